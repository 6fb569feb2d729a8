//! The wall clock is set while tasks wait for their start or end. Only where the machine is the test's own: an emulated
//! guest (`cargo xtask vm`).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use flowlog_tests::netns::run;

use crate::reload::{Bench, CHANGED};

/// Sets the wall clock back when dropped, as far as the monotonic one has gone on.
struct Clock(SystemTime, std::time::Instant);

impl Clock {
    fn take() -> Option<Self> {
        let own = std::env::var_os("FLOWLOG_EMULATED").is_some();
        if !own {
            println!("skipped: the clock of this machine is not the test's own; an emulated guest's is");
        }
        own.then(|| Self(SystemTime::now(), std::time::Instant::now()))
    }

    fn set(&self, ahead: i64) -> Result<()> {
        let now = self.0.duration_since(UNIX_EPOCH)? + self.1.elapsed();
        let seconds = i64::try_from(now.as_secs())?.checked_add(ahead).context("a time")?;
        run("date", &["-s", &format!("@{seconds}")]).map(drop)
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        drop(self.set(0));
    }
}

#[test]
fn a_step_of_the_wall_clock_starts_and_ends_tasks() -> Result<()> {
    let Some(clock) = Clock::take() else { return Ok(()) };
    let bench = Bench::new()?;
    let moment = |ahead: u64| -> Result<String> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH)? + Duration::from_secs(ahead);
        Ok(run("date", &["-u", "-d", &format!("@{}", at.as_secs()), "+%FT%TZ"])?.trim().to_owned())
    };
    bench.write(
        "a.yaml",
        &[
            &format!(
                "{{name: w, filePath: LOGS/w.log, start: \"{}\", end: \"{}\"}}",
                moment(36_000)?,
                moment(72_000)?
            ),
            "{name: all, filePath: LOGS/all.log}",
        ],
    )?;
    let mut daemon = bench.start(&[])?;
    ensure!(bench.files("w")?.is_empty(), "opened ten hours before its start");
    // Into the window, back out of it, in again, and past its end.
    for (ahead, event, count) in
        [(40_000, "started", 1), (0, "stopped", 1), (50_000, "started", 2), (80_000, "ended", 1)]
    {
        clock.set(ahead)?;
        daemon.wait_for(CHANGED)?;
        // audit.log is written after the change is in force.
        let until = std::time::Instant::now() + Duration::from_secs(10);
        let found = || -> Result<usize> {
            let lines = bench.audit(event)?;
            Ok(lines.iter().filter(|line| line["task"] == "w" && line["cause"] == "clock").count())
        };
        while found()? < count {
            ensure!(std::time::Instant::now() < until, "{ahead}: {event} {:?}", bench.audit(event)?);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    daemon.stop()?.check()?;
    ensure!(bench.files("all-")?.len() == 1, "another task noticed the clock");
    Ok(())
}
