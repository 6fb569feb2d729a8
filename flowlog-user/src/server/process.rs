//! What the process costs, as the kernel says (proc(5)).

use std::fs::read_to_string;

/// Processor time, memory and descriptors of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// User and system time since the start, seconds.
    pub cpu_seconds: f64,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Open file descriptors.
    pub open_fds: u64,
}

impl Process {
    /// Reads it now; what cannot be read stays 0.
    #[must_use]
    pub fn read() -> Self {
        let stat = read_to_string("/proc/self/stat").unwrap_or_default();
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            cpu_seconds: cpu_seconds(&stat, rustix::param::clock_ticks_per_second()).unwrap_or_default(),
            resident_bytes: resident_bytes(&status).unwrap_or_default(),
            open_fds: std::fs::read_dir("/proc/self/fd").map_or(0, |dir| dir.count() as u64),
        }
    }
}

/// Fields 14 and 15, counted behind the name, which may hold anything.
#[expect(clippy::cast_precision_loss, reason = "a processor time of 2^53 ticks is millions of years")]
fn cpu_seconds(stat: &str, ticks: u64) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / ticks.max(1) as f64)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_behind_the_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_seconds(stat, 100), Some(3.0));
        assert_eq!(cpu_seconds("", 100), None);
        assert_eq!(resident_bytes("VmPeak:\t 9 kB\nVmRSS:\t   12 kB\n"), Some(12_288));
    }

    #[test]
    fn this_process_uses_something() {
        let process = Process::read();
        assert!(process.resident_bytes > 1 << 20 && process.open_fds >= 3, "{process:?}");
    }
}
