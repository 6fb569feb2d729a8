//! Any command of flowlog as a child process, with both of its streams read line by line.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::daemon::{PATIENCE, binary};
use crate::netns::Netns;

/// A running command; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    told: Vec<String>,
}

/// How it ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status.
    pub status: ExitStatus,
    /// Lines of stdout that nobody has read before.
    pub out: Vec<String>,
    /// Everything on stderr.
    pub err: String,
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

impl Process {
    /// Starts flowlog with these arguments in a namespace.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn flowlog(netns: &Netns, arguments: &[&str]) -> Result<Self> {
        let mut command = netns.command(binary().to_str().context("a plain path")?);
        command.args(arguments);
        Self::spawn(command)
    }

    /// Starts a command in a process group of its own.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn spawn(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let out = lines(child.stdout.take().context("stdout is piped")?);
        let err = lines(child.stderr.take().context("stderr is piped")?);
        Ok(Self { child, out, err, told: Vec::new() })
    }

    /// The next line on stdout, if one comes in time.
    ///
    /// # Errors
    /// When none comes before the process ends or `patience` does.
    pub fn line(&self, patience: Duration) -> Result<String> {
        self.out.recv_timeout(patience).context("no line came")
    }

    /// Waits for a line on stderr that holds `text`.
    ///
    /// # Errors
    /// When it does not come before the process ends or patience does.
    pub fn told(&mut self, text: &str) -> Result<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.err.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.told.push(line.clone());
                    if line.contains(text) {
                        return Ok(line);
                    }
                }
                Err(_) => bail!("it never said {text}; it said:\n{}", self.told.join("\n")),
            }
        }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Interrupts it, as Ctrl-C does, and waits.
    ///
    /// # Errors
    /// When it is gone already, or does not end.
    pub fn interrupt(self) -> Result<Outcome> {
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        self.wait()
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it does not.
    pub fn wait(mut self) -> Result<Outcome> {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None if Instant::now() >= until => {
                    bail!("it does not end; it said:\n{}", self.told.join("\n"))
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut told = std::mem::take(&mut self.told);
        told.extend(self.err.iter());
        Ok(Outcome { status, out: self.out.iter().collect(), err: told.join("\n") })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
