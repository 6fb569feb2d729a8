//! `flowlog migrate`.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use flowlog_user::config::{Form, Migration, Outcome, migrations};
use flowlog_user::tree::Problem;
use flowlog_user::write::create_beside;
use serde_json::{Value, json};

use super::Format;

/// Arguments of `flowlog migrate`.
#[derive(Args, Debug)]
pub(crate) struct MigrateArgs {
    /// Task files or folders.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write each new file beside the old one, which stays as it is; without it the new text is printed.
    #[arg(long)]
    write: bool,
    /// The form to be written.
    #[arg(long, value_enum, default_value = "v1")]
    to: To,
    /// Folder in which tasks write whose form does not say where (v1alpha1-flowlog).
    #[arg(long, value_name = "DIR", value_parser = super::absolute(), default_value = super::run::LOG_ROOT, env = "FLOWLOG_LOG_ROOT")]
    log_root: PathBuf,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Forms of a task file.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum To {
    /// `flowlog.io/v1`.
    V1,
    /// `flowlog.io/v1alpha1`, kind FlowLogs: Hubble's keys.
    V1alpha1,
    /// `flowlog.io/v1alpha1`, kind FlowLog: a resource for each task.
    V1alpha1Flowlog,
    /// Hubble's own: neither apiVersion nor kind.
    Hubble,
}

/// Makes task files into those of another version; the old ones stay.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn migrate(arguments: &MigrateArgs) -> anyhow::Result<ExitCode> {
    let to = match arguments.to {
        To::V1 => Form::V1,
        To::V1alpha1 => Form::V1alpha1,
        To::V1alpha1Flowlog => Form::Draft,
        To::Hubble => Form::Hubble,
    };
    let all = match migrations(&arguments.paths, to, &arguments.log_root) {
        Ok(all) => all,
        Err(error) => {
            tracing::error!("{error}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut out = stdout().lock();
    let several = all.iter().filter(|one| matches!(one.outcome, Outcome::Convert { .. })).count() > 1;
    let (mut failed, mut answers) = (false, Vec::new());
    for migration in &all {
        let mut error = None;
        if let Outcome::Convert { target, text, .. } = &migration.outcome {
            if arguments.write {
                error = create_beside(target, &migration.file, text.as_bytes()).err();
            } else if matches!(arguments.output, Format::Text) {
                if several {
                    writeln!(out, "# {}", target.display())?;
                }
                out.write_all(text.as_bytes())?;
            }
        }
        failed |= error.is_some() || matches!(migration.outcome, Outcome::Failed(_));
        let error = error.map(|error| error.to_string());
        match arguments.output {
            Format::Text => say(migration, to, arguments.write, error.as_deref()),
            Format::Json => answers.push(to_json(migration, arguments.write, error.as_deref())),
        }
    }
    if matches!(arguments.output, Format::Json) {
        writeln!(out, "{}", json!({ "files": answers }))?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Says what became of a file.
fn say(migration: &Migration, to: Form, written: bool, error: Option<&str>) {
    let file = migration.file.display();
    let from = migration.form.map(|form| form.to_string()).unwrap_or_default();
    match &migration.outcome {
        Outcome::Current => tracing::info!("{file} is {to} already"),
        Outcome::Pools => tracing::info!("{file} holds pools, which stay as they are"),
        Outcome::There { file: other, difference, removed } => {
            let other = other.display();
            match (difference, removed.is_empty()) {
                (Some(difference), _) => {
                    tracing::warn!(
                        "{file} ({from}) is in {other} already, which says something else: {difference}"
                    );
                }
                (None, true) => tracing::info!("{file} ({from}) is in {other} already, which says the same"),
                (None, false) => tracing::info!("{file} ({from}) was converted into {other} already"),
            }
            removed.iter().for_each(|line| tracing::warn!("{line}"));
        }
        Outcome::Convert { target, without, .. } => {
            match (error, written) {
                (Some(error), _) => tracing::error!("{error}"),
                (None, true) => {
                    tracing::info!("{file} ({from}) is {} now; {file} stays as it is", target.display());
                }
                (None, false) => {
                    tracing::info!("{file} ({from}) would be {}; --write writes it", target.display());
                }
            }
            without.iter().for_each(|line| tracing::info!("{file}: {line}, and is left out"));
            migration.lost.iter().for_each(|lost| tracing::warn!("{lost}"));
        }
        Outcome::Failed(problems) => problems.iter().for_each(|problem| tracing::error!("{problem}")),
    }
}

fn to_json(migration: &Migration, write: bool, error: Option<&str>) -> Value {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let mut answer = json!({ "file": path(&migration.file), "form": migration.form.map(Form::name) });
    let more = match &migration.outcome {
        Outcome::Current => json!({ "outcome": "current" }),
        Outcome::Pools => json!({ "outcome": "pools" }),
        Outcome::There { file, difference, removed } => {
            json!({ "outcome": "there", "target": path(file), "difference": difference, "removed": removed })
        }
        Outcome::Convert { target, text, without } => {
            json!({ "outcome": "convert", "target": path(target), "text": text, "without": without,
            "written": write && error.is_none(), "error": error })
        }
        Outcome::Failed(problems) => {
            let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
            json!({ "outcome": "failed", "errors": lines })
        }
    };
    let lost: Vec<String> = migration.lost.iter().map(Problem::to_string).collect();
    if let (Value::Object(answer), false) = (&mut answer, lost.is_empty()) {
        answer.insert("lost".into(), lost.into());
    }
    if let (Value::Object(answer), Value::Object(more)) = (&mut answer, more) {
        answer.extend(more);
    }
    answer
}
