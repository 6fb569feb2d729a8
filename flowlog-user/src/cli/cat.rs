//! `flowlog cat`.

use std::io::{BufWriter, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use flowlog_user::read::{self, Output};

/// Arguments of `flowlog cat`.
#[derive(Args, Debug)]
pub(crate) struct CatArgs {
    /// Log files, or folders of them; live files are read up to their last flush.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// `json`: the records as they were written, a line each; `table`: columns for people.
    #[arg(long, short, value_enum, default_value = "json")]
    output: Shape,
}

/// How records are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shape {
    /// JSON lines, unchanged.
    Json,
    /// Aligned columns.
    Table,
}

/// Prints records; the exit code is 1 when a finished file is damaged.
///
/// # Errors
/// When a path cannot be read or stdout cannot be written.
pub(crate) fn cat(arguments: &CatArgs) -> anyhow::Result<ExitCode> {
    let output = match arguments.output {
        Shape::Json => Output::Json,
        Shape::Table => Output::Table,
    };
    let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
    let summary = read::cat(&arguments.paths, output, &mut out)?;
    for damage in &summary.damage {
        tracing::warn!("{damage}");
    }
    Ok(if summary.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
