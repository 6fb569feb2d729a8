//! `flowlog verify`.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use flowlog_user::read::{self, Checked, Verdict};

use super::Format;

const PARTS: &str = ": each part is as it was written; that parts are missing would not show";
const LINES: &str = ": each line was looked at; that lines are missing or altered would not show";

/// Arguments of `flowlog verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Log files, folders of them, or patterns; `-` is stdin.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What to print.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Checks whole files; the exit code is 1 when anything is wrong with one of them, as far as that would show.
///
/// # Errors
/// When a path cannot be read or stdout cannot be written.
pub(crate) fn verify(arguments: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let verdicts = read::verify(&arguments.paths)?;
    if verdicts.is_empty() {
        bail!("there is no log file in what was named");
    }
    let mut out = stdout().lock();
    for verdict in &verdicts {
        if arguments.output == Format::Json {
            writeln!(out, "{}", json(verdict))?;
            continue;
        }
        writeln!(out, "{}: {}", verdict.path.display(), text(verdict))?;
        for damage in &verdict.damage {
            writeln!(out, "  {damage}")?;
        }
    }
    let undamaged = verdicts.iter().all(|verdict| verdict.damage.is_empty());
    Ok(if undamaged { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Of a file that cannot tell, nothing is said to be whole.
fn text(verdict: &Verdict) -> String {
    let (state, what) = match (verdict.damage.is_empty(), verdict.live, verdict.checked) {
        (false, ..) => ("damaged", ""),
        (true, true, Checked::Lines) => ("no damage found so far", LINES),
        (true, true, _) => ("whole so far", ""),
        (true, false, Checked::Whole) => ("whole", ""),
        (true, false, Checked::Parts) => ("no damage found", PARTS),
        (true, false, Checked::Lines) => ("no damage found", LINES),
    };
    let by = match (verdict.indexed, verdict.checked) {
        (true, _) => "index agrees",
        (false, Checked::Whole) => "checksum agrees",
        (false, Checked::Parts) => "no index",
        (false, Checked::Lines) => "no checksum",
    };
    let lines = if verdict.lines == 1 { "line" } else { "lines" };
    format!("{state}, {} {lines}, {by}{what}", verdict.lines)
}

fn json(verdict: &Verdict) -> serde_json::Value {
    let damage: Vec<_> = verdict
        .damage
        .iter()
        .map(|damage| serde_json::json!({ "from": damage.offset, "to": damage.end, "what": damage.what }))
        .collect();
    // Neither true nor false where the file cannot tell.
    let whole = match (damage.is_empty(), verdict.checked) {
        (false, _) => Some(false),
        (true, Checked::Whole) => Some(true),
        (true, Checked::Parts) if verdict.live => Some(true),
        (true, Checked::Parts | Checked::Lines) => None,
    };
    serde_json::json!({ "file": verdict.path, "whole": whole, "live": verdict.live, "lines": verdict.lines,
        "indexed": verdict.indexed, "checked": verdict.checked.name(), "damage": damage })
}
