//! What a process takes of the machine, as the kernel says it.

use std::time::Duration;

use anyhow::{Context, Result};

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
