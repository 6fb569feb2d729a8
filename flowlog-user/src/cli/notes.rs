//! The thread that writes what must outlive the daemon, so that a slow disk delays no change of tasks.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use anyhow::Context;
use flowlog_user::config::Unwritten;
use flowlog_user::server::audit;
use flowlog_user::write::StateDir;

/// Lines of audit.log that wait for a state folder that can be written, in bytes; more are dropped, which is said.
const LINES_BYTES_MAX: usize = 1 << 20;

/// Writes accepted texts and lines of audit.log.
pub(crate) struct Notes {
    sender: Sender<(Unwritten, String)>,
    thread: JoinHandle<()>,
}

impl Notes {
    /// Starts the thread; without a state folder it writes nothing.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(state: Option<Arc<StateDir>>) -> anyhow::Result<Self> {
        let (sender, receiver) = channel::<(Unwritten, String)>();
        let write = move || {
            let (mut texts, mut lines) = (Unwritten::default(), String::new());
            for (more_texts, more_lines) in receiver {
                texts.add(more_texts);
                lines += &more_lines;
                let Some(state) = &state else { continue };
                match state.append(audit::NAME, &lines) {
                    Ok(()) => lines.clear(),
                    Err(error) => {
                        tracing::warn!(%error, "audit.log is behind; trying again with the next lines");
                        if lines.len() > LINES_BYTES_MAX {
                            tracing::error!(bytes = lines.len(), "lines for audit.log are dropped");
                            lines.clear();
                        }
                    }
                }
                if let Err(error) = texts.write() {
                    tracing::warn!(%error, "the last accepted tasks are not kept; trying again with the next change");
                }
            }
        };
        let thread =
            Builder::new().name("flowlog-notes".into()).spawn(write).context("cannot start a thread")?;
        Ok(Self { sender, thread })
    }

    /// Hands on what is to be written.
    pub(crate) fn send(&self, texts: Unwritten, lines: String) {
        if texts.is_empty() && lines.is_empty() {
            return;
        }
        // Fails only when the thread has died, which it does not by itself.
        let _ = self.sender.send((texts, lines));
    }

    /// Waits until everything is written.
    pub(crate) fn finish(self) {
        drop(self.sender);
        let _ = self.thread.join();
    }
}
