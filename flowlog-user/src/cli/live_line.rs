//! The line that shows what is seen while a run goes on.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use super::summary::{bytes, count};

/// What the capture thread tells about now and then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Connections that entered the table.
    pub(crate) connections: u64,
    /// Packets shown to the hooks: ARP and the like too, and again at each interface crossed.
    pub(crate) shown: u64,
    /// Packets of connections, each once.
    pub(crate) packets: u64,
    /// Layer-2 bytes of the same.
    pub(crate) bytes: u64,
    /// Packets lost for want of a place in table and ring, and records dropped by tasks.
    pub(crate) lost: u64,
}

/// Rewrites one line on a terminal; elsewhere prints a line every ten seconds.
#[derive(Debug)]
pub(crate) struct LiveLine {
    terminal: bool,
    started: Instant,
    printed: Option<Instant>,
    hinted: bool,
}

/// What to check when nothing passes.
pub(super) fn nothing_passes() -> String {
    format!(
        "nothing has passed the watched interfaces yet; try `ping -c 3 <your gateway>`, see `{} interfaces` for what is \
         watched and what is left out, or add `--interface GLOB`",
        super::called()
    )
}

/// How long nothing may pass before the hint.
pub(super) const QUIET: Duration = Duration::from_secs(5);

impl LiveLine {
    /// A line that begins now.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), started: Instant::now(), printed: None, hinted: false }
    }

    /// Shows the state; says once what to try when nothing passes.
    pub(crate) fn show(&mut self, seen: Seen) {
        if seen.shown == 0 && self.started.elapsed() >= QUIET && !self.hinted {
            self.hinted = true;
            self.clear();
            let _ = writeln!(stderr(), "{}", nothing_passes());
        }
        let pause = if self.terminal { Duration::from_millis(250) } else { Duration::from_secs(10) };
        if self.printed.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        self.printed = Some(Instant::now());
        let text = format!(
            "{} connections  {} packets  {}  {} lost",
            count(seen.connections),
            count(seen.packets),
            bytes(seen.bytes),
            count(seen.lost)
        );
        let _ = if self.terminal { write!(stderr(), "\r\x1b[K{text}") } else { writeln!(stderr(), "{text}") };
        let _ = stderr().flush();
    }

    /// Takes the line away, so that what follows begins at the left.
    pub(crate) fn clear(&self) {
        if self.terminal && self.printed.is_some() {
            let _ = write!(stderr(), "\r\x1b[K");
            let _ = stderr().flush();
        }
    }
}
