//! The wall clock is set while tasks wait for their start or end. Only where the machine is the test's own: an emulated
//! guest (`cargo xtask vm`).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use flowlog_tests::netns::{FAR, run};
use flowlog_tests::records::{all, sums};
use flowlog_tests::traffic::udp;

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
    let send = |port: u16| udp(&bench.pair, format!("{FAR}:{port}").parse()?, 5, 100);
    send(5_000)?;
    // Into the window, back out of it, in again, and past its end.
    let steps = [(40_000, "started", 1), (0, "stopped", 1), (50_000, "started", 2), (80_000, "ended", 1)];
    for (port, (ahead, event, count)) in (5_001..).zip(steps) {
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
        send(port)?;
    }
    daemon.stop()?.check()?;
    let files = bench.files("all-")?;
    ensure!(files.len() == 1, "another task noticed the clock: {files:?} of {:?}", bench.files("")?);
    let packets = |task: &str| -> Result<Vec<u64>> {
        let sums = sums(&all(&bench.path("logs"), task)?);
        let of = |port| sums.iter().filter(|(tuple, _)| tuple.4 == port).map(|(_, sum)| sum.packets).sum();
        Ok((5_000..5_005).map(of).collect())
    };
    ensure!(packets("all-")? == [5; 5], "{:?}", packets("all-")?);
    // Of what was sent while it did not run it has nothing.
    ensure!(packets("w-")? == [0, 5, 0, 5, 0], "{:?}", packets("w-")?);
    Ok(())
}
