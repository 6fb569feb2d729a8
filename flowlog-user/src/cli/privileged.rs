//! The one thread that keeps the capture's capabilities: it loads, attaches, and then captures until the end.

use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use anyhow::{Context, anyhow};

type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs one after the other, on a thread that was started before anything was given up.
#[derive(Clone, Debug)]
pub(crate) struct Privileged(Sender<Job>);

/// What a job gives, once it is done.
#[derive(Debug)]
pub(crate) struct Pending<T>(std::sync::mpsc::Receiver<T>);

impl Privileged {
    /// Starts the thread.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let (sender, jobs) = channel::<Job>();
        Builder::new()
            .name("flowlog-capture".into())
            .spawn(move || jobs.into_iter().for_each(|job| job()))
            .context("cannot start a thread")?;
        Ok(Self(sender))
    }

    /// Gives it a job.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Pending<T> {
        let (sender, receiver) = channel();
        // Both fail only when the other side is gone, which waiting finds out.
        let _ = self.0.send(Box::new(move || drop(sender.send(job()))));
        Pending(receiver)
    }
}

impl<T> Pending<T> {
    /// Waits until it is done.
    ///
    /// # Errors
    /// The thread has died.
    pub(crate) fn wait(self) -> anyhow::Result<T> {
        self.0.recv().map_err(|_| anyhow!("the capturing thread has died"))
    }
}
