//! `flowlog completions`.

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// Arguments of `flowlog completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn completions(arguments: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut super::Flowlog::command(), "flowlog", &mut script);
    stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
