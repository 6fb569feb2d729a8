//! Words to the person: results to stdout, everything else to stderr; colour only on a terminal.

use std::io::{IsTerminal, Write};

/// A result: stdout. Writing to a closed pipe is nobody's mistake, so its error is dropped.
pub(crate) fn out(text: &str) {
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

/// What is happening: stderr.
pub(crate) fn note(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// The beginning of a step.
pub(crate) fn step(text: &str) {
    note(&format!("{} {text}", painted("1;32", "==>")));
}

/// Something to know, not a failure.
pub(crate) fn warn(text: &str) {
    note(&format!("{} {text}", painted("1;33", "note:")));
}

/// Why a command stops.
pub(crate) fn problem(error: &anyhow::Error) {
    note(&format!("{} {error:#}", painted("1;31", "error:")));
}

/// Rewrites the last line of a terminal; `None` when stderr is not one.
pub(crate) fn rewrite(text: &str) -> Option<()> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let mut err = std::io::stderr().lock();
    drop(write!(err, "\r\x1b[K{text}"));
    drop(err.flush());
    Some(())
}

fn painted(code: &str, text: &str) -> String {
    let wanted = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    if wanted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
