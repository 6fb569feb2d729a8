//! How packets are captured, shared by the commands that attach.

use clap::{Args, ValueEnum};
use flowlog_user::capture::live::{self, HookMode};
use flowlog_user::limits::{RING_BYTES, TABLE_ENTRIES};
use flowlog_user::record::rules::Rules;

use super::CaptureArgs;

/// Sizes, hooks, and where packets count.
#[derive(Args, Debug)]
pub(crate) struct AttachArgs {
    /// How many connections the kernel's table holds.
    #[arg(long, value_name = "N", default_value_t = TABLE_ENTRIES, value_parser = clap::value_parser!(u32).range(64..=1 << 24), env = "FLOWLOG_TABLE_ENTRIES")]
    pub(super) table_entries: u32,
    /// Size of the ring buffer between kernel and daemon; a power of two.
    #[arg(long, value_name = "BYTES", default_value_t = RING_BYTES, value_parser = ring_bytes, env = "FLOWLOG_RING_BYTES")]
    pub(super) ring_bytes: u32,
    /// Where a packet that crosses several interfaces counts.
    #[arg(long, value_enum, default_value = "once", env = "FLOWLOG_OBSERVATION")]
    observation: Observation,
    /// How programs are attached: TCX links where the kernel has them, else filters on clsact.
    #[arg(long, value_enum, default_value = "auto", env = "FLOWLOG_HOOK")]
    hook: Hook,
}

/// Where a packet counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Observation {
    /// Once on this node, where it was seen first.
    Once,
    /// Once at each interface; each has flows of its own.
    All,
}

/// How programs are attached.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Hook {
    /// TCX where the kernel has it.
    Auto,
    /// TCX or nothing.
    Tcx,
    /// Filters on a clsact qdisc.
    Clsact,
}

fn ring_bytes(text: &str) -> Result<u32, String> {
    const MIN: u64 = 1 << 16;
    const MAX: u64 = 1 << 31;
    let bytes: u64 = text.parse().map_err(|_| format!("`{text}` is no number of bytes"))?;
    match u32::try_from(bytes) {
        Ok(ring) if (MIN..=MAX).contains(&bytes) && bytes.is_power_of_two() => Ok(ring),
        _ => Err(format!(
            "must be a power of two from {MIN} to {MAX}; the next one is {}",
            bytes.clamp(MIN, MAX).next_power_of_two()
        )),
    }
}

impl AttachArgs {
    /// Options of a capture of these rules that chooses interfaces by role and removes nobody's filters.
    pub(crate) fn options(&self, capture: &CaptureArgs, rules: Rules) -> live::Options {
        live::Options {
            hook: match self.hook {
                Hook::Auto => HookMode::Auto,
                Hook::Tcx => HookMode::Tcx,
                Hook::Clsact => HookMode::Clsact,
            },
            tunnel: capture.tunnel_mode(),
            observe_all: self.observation == Observation::All,
            table_entries: self.table_entries,
            ring_bytes: self.ring_bytes,
            timeouts: capture.timeouts(),
            // A task that is added later may ask for it, and it is fixed when the programs are loaded.
            report_start: true,
            rules,
            ..live::Options::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_a_power_of_two_and_other_sizes_are_told_the_next() {
        assert_eq!(ring_bytes("65536"), Ok(1 << 16));
        assert_eq!(ring_bytes("2147483648"), Ok(1 << 31));
        for (text, next) in [
            ("0", "65536"),
            ("65537", "131072"),
            ("3000000000", "2147483648"),
            ("4294967295", "2147483648"),
            ("4294967296", "2147483648"),
            ("18446744073709551615", "2147483648"),
        ] {
            assert!(ring_bytes(text).unwrap_err().ends_with(&format!("the next one is {next}")), "{text}");
        }
        assert!(ring_bytes("-1").is_err() && ring_bytes("8M").is_err());
    }
}
