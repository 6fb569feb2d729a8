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

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_knows_every_command() {
        let mut command = crate::cli::Flowlog::command();
        let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        for name in ["run", "observe", "top", "estimate", "interfaces", "status"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            generate(*shell, &mut command, "flowlog", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in &names {
                assert!(script.contains(name.as_str()), "{shell}: {name}");
            }
            assert!(script.contains("print-task") && script.contains("interval"), "{shell}");
        }
    }
}
