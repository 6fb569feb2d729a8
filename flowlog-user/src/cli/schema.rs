//! `flowlog schema`.

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::Args;
use flowlog_user::config;

/// Arguments of `flowlog schema`.
#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// Print a table of all keys as Markdown instead.
    #[arg(long)]
    keys: bool,
}

/// Prints the JSON schema of task files, or the table of their keys.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn schema(arguments: &SchemaArgs) -> anyhow::Result<ExitCode> {
    let mut out = stdout().lock();
    if arguments.keys {
        write!(out, "{}", config::table())?;
    } else {
        writeln!(out, "{:#}", config::schema())?;
    }
    Ok(ExitCode::SUCCESS)
}
