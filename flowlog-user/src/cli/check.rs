//! `flowlog check`.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::Format;
use super::tasks::{load, problems};

/// Arguments of `flowlog check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Task files or folders.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Says everything that is wrong with task files, and what the tasks would write.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn check(arguments: &CheckArgs) -> anyhow::Result<ExitCode> {
    if let Some(missing) = arguments.paths.iter().find(|path| std::fs::metadata(path).is_err()) {
        let why = std::fs::metadata(missing).err().map(|error| error.to_string()).unwrap_or_default();
        tracing::error!(path = %missing.display(), why, "cannot read");
        return Ok(ExitCode::from(2));
    }
    let (plan, found) = load(&arguments.paths);
    let valid = found.errors.is_empty() && (!arguments.strict || found.warnings.is_empty());
    let mut out = stdout().lock();
    match arguments.output {
        Format::Json => {
            let list = |problems: &[flowlog_user::tree::Problem]| -> Vec<serde_json::Value> {
                problems
                    .iter()
                    .map(|problem| {
                        serde_json::json!({ "file": &*problem.place.file, "line": problem.place.line,
                            "column": problem.place.column, "key": problem.place.path, "message": problem.message })
                    })
                    .collect()
            };
            let tasks: Vec<_> =
                plan.iter().flat_map(|plan| &plan.tasks).map(|task| &task.spec.name).collect();
            let answer = serde_json::json!({ "valid": valid, "tasks": tasks,
                "errors": list(&found.errors), "warnings": list(&found.warnings) });
            writeln!(out, "{answer}")?;
        }
        Format::Text => {
            for line in problems(&found) {
                writeln!(out, "{line}")?;
            }
            for task in plan.iter().flat_map(|plan| &plan.tasks) {
                writeln!(out, "{}", super::tasks::describe(task))?;
            }
        }
    }
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
