//! `flowlog verify`.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use flowlog_user::read;

use super::Format;

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

/// Checks whole files; the exit code is 1 when anything is wrong with one of them.
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
        let whole = verdict.damage.is_empty();
        if arguments.output == Format::Json {
            let damage: Vec<_> = verdict
                .damage
                .iter()
                .map(|damage| serde_json::json!({ "from": damage.offset, "to": damage.end, "what": damage.what }))
                .collect();
            let json = serde_json::json!({ "file": verdict.path, "whole": whole, "live": verdict.live,
                "lines": verdict.lines, "indexed": verdict.indexed, "damage": damage });
            writeln!(out, "{json}")?;
            continue;
        }
        let index = if verdict.indexed { "index agrees" } else { "no index" };
        let state = match (whole, verdict.live) {
            (false, _) => "damaged",
            (true, true) => "whole so far",
            (true, false) => "whole",
        };
        writeln!(out, "{}: {state}, {} lines, {index}", verdict.path.display(), verdict.lines)?;
        for damage in &verdict.damage {
            writeln!(out, "  {damage}")?;
        }
    }
    let whole = verdicts.iter().all(|verdict| verdict.damage.is_empty());
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
