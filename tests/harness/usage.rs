//! What a process takes of the machine, as the kernel says it.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Time that all threads of a process have had so far, from `stat`'s fields 14 and 15 in ticks of 10 ms.
///
/// # Errors
/// When there is no such process.
pub fn processor_time(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("a name")?;
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<u64>);
    Ok(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>()?))
}

/// A line of a process' `status` in KiB (`VmRSS`, `RssAnon`, ...).
///
/// # Errors
/// When there is no such process or line.
pub fn kib(pid: u32, name: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.with_context(|| format!("no {name}"))?.trim().trim_end_matches(" kB").parse()?)
}

/// Does something while all threads of this process, those that are started by it too, take turns on one CPU. What is
/// called a CPU may be half a core: there, the time that two threads take at once says nothing beside what one takes.
///
/// # Errors
/// When the kernel refuses, or those of what is done.
pub fn on_one_cpu<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let usual = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    keep_to(&one)?;
    let done = work();
    keep_to(&usual)?;
    done
}

fn keep_to(cpus: &CpuSet) -> Result<()> {
    for thread in std::fs::read_dir("/proc/self/task")? {
        let number = thread?.file_name().to_str().context("a number")?.parse()?;
        match sched_setaffinity(Pid::from_raw(number), cpus) {
            // It has ended since.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
