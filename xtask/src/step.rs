//! Running programs so that a person sees that something happens.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{say, system};

const POLL_MS: u64 = 100;
const WORD_EVERY_S: u64 = 5;
const LAST_LINES: usize = 25;

/// Runs a program whose own output is progress enough.
pub(crate) fn shown(what: &str, command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", words(command)))?;
    if !status.success() {
        bail!("{what} failed ({status}): `{}`", words(command));
    }
    Ok(())
}

/// Runs a talkative program: its output goes to a log, the person sees the step and its seconds. On failure the last
/// lines of the log are shown. `limit` ends a program that takes longer.
pub(crate) fn quiet(what: &str, command: &mut Command, limit: Option<Duration>) -> Result<()> {
    let (log, file) = log_file(what)?;
    say::step(&format!("{what}: {}", words(command)));
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().with_context(|| format!("cannot start `{}`", words(command)))?;
    let status = wait(what, &mut child, limit)?;
    if status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
        say::note(&format!("    {line}"));
    }
    let why = status.map_or_else(|| "took too long".to_owned(), |status| status.to_string());
    bail!("{what} failed ({why}); the whole output is in {}", log.display());
}

/// The status, or `None` when the limit ended it.
fn wait(what: &str, child: &mut Child, limit: Option<Duration>) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut said_s = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            say::rewrite("");
            return Ok(Some(status));
        }
        let elapsed = start.elapsed();
        if limit.is_some_and(|limit| elapsed > limit) {
            say::rewrite("");
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        let line = format!("    {what} ... {} s", elapsed.as_secs());
        if say::rewrite(&line).is_none() && elapsed.as_secs() >= said_s + WORD_EVERY_S {
            said_s = elapsed.as_secs();
            say::note(&line);
        }
        std::thread::sleep(Duration::from_millis(POLL_MS));
    }
}

fn log_file(what: &str) -> Result<(PathBuf, File)> {
    let folder = system::target_dir().join("xtask-log");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let name: String = what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let path = folder.join(format!("{name}.log"));
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((path, file))
}

/// The command as a person would type it.
pub(crate) fn words(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let start = Instant::now();
        let error = quiet("test limit", Command::new("sleep").arg("60"), Some(Duration::from_millis(50)));
        assert!(error.unwrap_err().to_string().contains("took too long"));
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_failure_names_the_log() {
        let error =
            quiet("test failure", Command::new("sh").args(["-c", "echo why; exit 3"]), None).unwrap_err();
        assert!(error.to_string().contains("test-failure.log"), "{error}");
    }
}
