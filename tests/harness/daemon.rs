//! flowlog as a child process.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::netns::Netns;

/// The binary under test.
///
/// # Panics
/// When it is not built; `cargo xtask test` builds it.
#[must_use]
pub fn binary() -> PathBuf {
    let given = std::env::var_os("FLOWLOG_BIN").map(PathBuf::from);
    let path = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/debug/flowlog"));
    assert!(path.is_file(), "{} is missing; run `cargo xtask test`, which builds it", path.display());
    path.canonicalize().unwrap_or(path)
}

/// How long anything may take before a test gives up: loading the programs alone takes a minute where the CPU is
/// emulated on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A running daemon; killed when dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// How a daemon ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it printed on stdout: the ledger.
    pub ledger: Value,
    /// Everything it said on stderr.
    pub log: Vec<String>,
}

impl Daemon {
    /// Starts `flowlog run` in a namespace with these task files and arguments and waits until it watches.
    ///
    /// # Errors
    /// When it ends before it watches; the message holds what it said.
    pub fn start(netns: &Netns, tasks: &Path, logs: &Path, more: &[&str]) -> Result<Self> {
        let mut daemon = Self::spawn(netns, tasks, logs, more)?;
        daemon.wait_for("\"watching\"")?;
        Ok(daemon)
    }

    /// Starts it without waiting.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn spawn(netns: &Netns, tasks: &Path, logs: &Path, more: &[&str]) -> Result<Self> {
        Self::spawn_through(netns, &[], tasks, logs, more)
    }

    /// The same behind a program that becomes it, with its arguments.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_through(
        netns: &Netns,
        prefix: &[&str],
        tasks: &Path,
        logs: &Path,
        more: &[&str],
    ) -> Result<Self> {
        let binary = binary();
        let words: Vec<&str> =
            prefix.iter().copied().chain([binary.to_str().context("a plain path")?]).collect();
        let (program, arguments) = words.split_first().context("a program")?;
        let mut command: Command = netns.command(program);
        command
            .args(arguments)
            .arg("run")
            .arg("--tasks")
            .arg(tasks)
            .arg("--log-root")
            .arg(logs)
            .arg("--state-dir")
            .arg(logs.with_file_name("state"))
            // Namespaces share /run; and loopback may be down; whoever asks for a place of its own gets it through `more`.
            .args(["-o", "json"])
            .env("FLOWLOG_SOCKET", "none")
            .env("FLOWLOG_LISTEN", "none")
            .args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().context("cannot start flowlog")?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines, seen: Vec::new() })
    }

    /// Waits for a line on stderr that holds `text`.
    ///
    /// # Errors
    /// When it does not come before the daemon ends or patience does.
    pub fn wait_for(&mut self, text: &str) -> Result<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return Ok(line);
                    }
                }
                Err(_) => bail!("flowlog never said {text}; it said:\n{}", self.seen.join("\n")),
            }
        }
    }

    /// Its process id (of the daemon itself: `ip netns exec` becomes it).
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Asks it to stop and waits; its ledger must be JSON.
    ///
    /// # Errors
    /// When it does not end, or prints something else than its ledger.
    pub fn stop(self) -> Result<Ended> {
        self.signal(Signal::TERM)?;
        self.wait()
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// As [`Self::stop`].
    pub fn wait(mut self) -> Result<Ended> {
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().context("stdout is piped")?;
        stdout.read_to_string(&mut text)?;
        let status = self.child.wait()?;
        self.seen.extend(self.lines.iter());
        let log = std::mem::take(&mut self.seen);
        let ledger = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).with_context(|| text.clone())?
        };
        Ok(Ended { status, ledger, log })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Ended {
    /// It ended well, and every sum of its ledger closes.
    ///
    /// # Errors
    /// When not; the message says which.
    pub fn check(&self) -> Result<()> {
        ensure!(self.status.success(), "flowlog ended with {}:\n{}", self.status, self.log.join("\n"));
        let open: Vec<_> = self
            .ledger
            .get("sums")
            .and_then(Value::as_array)
            .context("the ledger has sums")?
            .iter()
            .filter(|sum| sum.get("left") != sum.get("right"))
            .collect();
        ensure!(open.is_empty(), "sums do not close: {open:?}");
        Ok(())
    }

    /// A number of the ledger, by JSON pointer.
    ///
    /// # Errors
    /// When there is none.
    pub fn number(&self, pointer: &str) -> Result<u64> {
        self.ledger
            .pointer(pointer)
            .and_then(Value::as_u64)
            .with_context(|| format!("no number at {pointer} in {}", self.ledger))
    }
}
