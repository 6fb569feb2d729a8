//! One guest: boots, runs the tests, and is read until it powers off.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::image::Image;
use super::kernels::Kernel;
use super::{Hook, SILENCE_MAX};
use crate::counts::Counts;
use crate::say;

const MEMORY_MB: &str = "3072";
/// What a test says of itself when it leaves the guest alone.
const LEFT_OUT: &str = "skipped under emulation: ";

/// What to run where.
pub(super) struct Run<'a> {
    pub(super) series: &'static str,
    pub(super) hook: Hook,
    pub(super) kernel: &'a Kernel,
    pub(super) image: &'a Image,
    /// Words for the test binary.
    pub(super) words: &'a [String],
}

/// What became of it.
pub(super) struct Outcome {
    pub(super) series: &'static str,
    pub(super) hook: Hook,
    pub(super) counts: Counts,
    /// The test that is running: what it says itself stands between its name and how it ended.
    now: String,
    /// Names of the tests that failed.
    pub(super) failed: Vec<String>,
    /// Tests that passed without having run, with their reason.
    pub(super) left_out: Vec<String>,
    pub(super) took: Duration,
    /// Why it did not power off by itself.
    pub(super) died: Option<String>,
}

impl Outcome {
    /// Ran and passed.
    pub(super) fn passed(&self) -> u64 {
        self.counts.passed.saturating_sub(self.left_out.len() as u64)
    }

    fn take(&mut self, line: &str) {
        self.counts.add(line);
        let name = test_name(line);
        if let Some(name) = name {
            name.clone_into(&mut self.now);
        }
        if let Some((_, why)) = line.split_once(LEFT_OUT) {
            self.left_out.push(format!("{}: {why}", self.now));
        } else if line == "FAILED" || name.is_some() && line.ends_with("FAILED") {
            self.failed.push(self.now.clone());
        }
    }
}

/// The name in `test NAME ...`.
fn test_name(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.split_once(" ...").map(|(name, _)| name)
}

impl Run<'_> {
    /// Boots it and passes on what its tests say, each line with the minutes and seconds since the start.
    pub(super) fn boot(&self) -> Result<Outcome> {
        say::step(&format!("running the kernel tests on {} with {}", self.kernel.release, self.hook.name()));
        let started = Instant::now();
        let mut child = self.command().spawn().context("cannot start qemu-system-x86_64")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                    break;
                }
            }
        });
        let mut outcome = self.outcome();
        let mut ended = false;
        loop {
            match lines.recv_timeout(SILENCE_MAX) {
                Ok(line) => {
                    let seconds = started.elapsed().as_secs();
                    say::out(&format!("[{} {:>2}:{:02}] {line}", self.series, seconds / 60, seconds % 60));
                    ended |= line.starts_with("guest: the tests ended with");
                    outcome.take(&line);
                }
                Err(RecvTimeoutError::Timeout) => {
                    outcome.died = Some(format!("silent for {} minutes", SILENCE_MAX.as_secs() / 60));
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        end(&mut child, outcome.died.is_some())?;
        if !ended && outcome.died.is_none() {
            outcome.died = Some(format!("its last words are in {}", self.console().display()));
        }
        outcome.took = started.elapsed();
        Ok(outcome)
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            series: self.series,
            hook: self.hook,
            counts: Counts::default(),
            now: String::new(),
            failed: Vec::new(),
            left_out: Vec::new(),
            took: Duration::ZERO,
            died: None,
        }
    }

    /// The daemon is told what it would not do by itself, and what it must not leave.
    const fn told(&self) -> &'static str {
        match (self.hook, self.kernel.has_tcx) {
            (Hook::Clsact, false) => "auto",
            (hook, _) => hook.name(),
        }
    }

    /// Where the guest's kernel log goes.
    fn console(&self) -> PathBuf {
        super::folder().join(format!("console-{}-{}.log", self.series, self.hook.name()))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("qemu-system-x86_64");
        let words = self.words.join(",");
        command
            // Two CPUs, as races need; each is a thread of its own.
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", MEMORY_MB])
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .arg("-kernel")
            .arg(self.kernel.image())
            .arg("-initrd")
            .arg(&self.image.archive)
            .arg("-drive")
            .arg(format!("file={},if=virtio,format=raw,snapshot=on", self.image.disk.display()))
            .arg("-serial")
            .arg(format!("file:{}", self.console().display()))
            .args(["-serial", "stdio", "-append"])
            .arg(format!("console=ttyS0 quiet panic=-1 flowlog.hook={} flowlog.tests={words}", self.told()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }
}

/// Waits for a guest, or ends it.
fn end(child: &mut Child, now: bool) -> Result<()> {
    if now {
        child.kill()?;
    }
    child.wait()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_not_passed() {
        let mut outcome = Outcome {
            series: "6.1",
            hook: Hook::Clsact,
            counts: Counts::default(),
            now: String::new(),
            failed: Vec::new(),
            left_out: Vec::new(),
            took: Duration::ZERO,
            died: None,
        };
        let said = "test perf::quick ... skipped under emulation: it measures time\nok\n\
                    test a::b ... ok\ntest a::c ... FAILED\ntest a::d ... Error: it\nbecause\nFAILED\n\
                    test result: FAILED. 2 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n";
        said.lines().for_each(|line| outcome.take(line));
        assert_eq!((outcome.passed(), outcome.counts.failed), (1, 2));
        assert_eq!(outcome.failed, ["a::c", "a::d"]);
        assert_eq!(outcome.left_out, ["perf::quick: it measures time"]);
    }
}
