//! A daemon's folders and its wire: what tests need that change files under it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use flowlog_tests::daemon::{Daemon, binary};
use flowlog_tests::netns::Pair;

/// Folders `tasks`, `pools` and `logs`, all empty, and a wire to another end.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    pub(crate) pair: Pair,
}

impl Site {
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["tasks", "pools", "logs"] {
            std::fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder, pair: Pair::new(false)? })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a daemon on all of it.
    pub(crate) fn start(&self, more: &[&str]) -> Result<Daemon> {
        let [pools, socket] = ["pools", "socket"].map(|name| self.path(name));
        let pools = pools.to_str().context("a plain path")?;
        let socket = socket.to_str().context("a plain path")?;
        let all = [&["--pools", pools, "--socket", socket][..], more].concat();
        Daemon::start(&self.pair.near, &self.path("tasks"), &self.path("logs"), &all)
    }

    /// What `flowlog status` prints.
    pub(crate) fn status(&self, more: &[&str]) -> Result<String> {
        let server = format!("unix://{}", self.path("socket").display());
        let output = Command::new(binary()).args(["status", "--server", &server]).args(more).output()?;
        Ok(String::from_utf8(output.stdout)?)
    }
}
