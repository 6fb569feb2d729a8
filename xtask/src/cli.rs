//! Which command is meant, and what the commands are.

use std::ffi::OsString;
use std::fmt;

use anyhow::Result;

use crate::{bench, build, build_ebpf, corpus, demo, dist, run, say, setup, test, tidy, vm};

/// One command: its name, what the overview says, its own help and what runs it.
pub(crate) struct Command {
    /// The word after `cargo xtask`.
    pub(crate) name: &'static str,
    /// One line of the overview.
    pub(crate) about: &'static str,
    /// The text of `--help`.
    pub(crate) help: &'static str,
    /// Takes the arguments after the name.
    pub(crate) run: fn(lexopt::Parser) -> Result<()>,
}

/// All commands, in the order in which a newcomer needs them.
pub(crate) const COMMANDS: &[Command] = &[
    run::COMMAND,
    test::COMMAND,
    setup::COMMAND,
    build_ebpf::COMMAND,
    build::COMMAND,
    bench::COMMAND,
    vm::COMMAND,
    corpus::COMMAND,
    dist::COMMAND,
    tidy::COMMAND,
    test::CI_COMMAND,
    demo::COMMAND,
];

/// The command line cannot be understood: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Finds and runs the command.
pub(crate) fn dispatch(args: Vec<OsString>) -> Result<()> {
    let Some(first) = args.first().map(|word| word.to_string_lossy().into_owned()) else {
        say::out(&overview());
        return Ok(());
    };
    let asked = match first.as_str() {
        "-h" | "--help" => None,
        "help" => args.get(1).map(|word| word.to_string_lossy().into_owned()),
        _ => Some(first.clone()),
    };
    let Some(name) = asked else {
        say::out(&overview());
        return Ok(());
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(unknown(&name).into());
    };
    // Only the words before `--` are ours; what follows belongs to the program that is started.
    let wants_help = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help" || arg == "-h");
    if first == "help" || wants_help {
        say::out(command.help);
        return Ok(());
    }
    (command.run)(lexopt::Parser::from_args(args.into_iter().skip(1)))
}

/// An argument that the command does not know.
pub(crate) fn unexpected(command: &str, arg: &lexopt::Arg<'_>) -> anyhow::Error {
    let word = match arg {
        lexopt::Arg::Short(letter) => format!("-{letter}"),
        lexopt::Arg::Long(name) => format!("--{name}"),
        lexopt::Arg::Value(value) => value.to_string_lossy().into_owned(),
    };
    Usage(format!("`{command}` does not take `{word}`; see `cargo xtask {command} --help`")).into()
}

fn unknown(name: &str) -> Usage {
    let near = COMMANDS
        .iter()
        .map(|command| (distance(name, command.name), command.name))
        .min()
        .filter(|(far, candidate)| *far <= 3 && *far < candidate.len());
    let hint = near.map_or_else(
        || "`cargo xtask --help` lists the commands".to_owned(),
        |(_, candidate)| format!("did you mean `cargo xtask {candidate}`?"),
    );
    Usage(format!("there is no command `{name}`; {hint}"))
}

fn overview() -> String {
    let mut text = String::from("flowlog's developer commands\n\nusage: cargo xtask <command> [options]\n\n");
    // One without a word about itself is a part of another.
    for command in COMMANDS.iter().filter(|command| !command.about.is_empty()) {
        text.push_str(&format!("  {:<12} {}\n", command.name, command.about));
    }
    text.push_str(
        "\n`cargo xtask <command> --help` says more. New here? `cargo xtask run` sets up, builds and starts flowlog \
         on\nthis machine; `cargo xtask test` runs every test. Exit codes: 0 success, 1 failure, 2 usage.",
    );
    text
}

/// Edit distance (insert, delete, replace), to suggest the nearest word.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.iter().skip(1)) {
            left = (corner + usize::from(x != *y)).min(left + 1).min(above + 1);
            corner = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "run"), 3);
        assert_eq!(distance("tidy", "tidy"), 0);
    }

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        assert!(unknown("biuld").0.contains("`cargo xtask build`"));
        assert!(unknown("build_ebpf").0.contains("build-ebpf"));
        assert!(unknown("kubernetes").0.contains("--help"));
    }

    #[test]
    fn an_unknown_command_is_a_usage_error() {
        let error = dispatch(vec!["tset".into()]).unwrap_err();
        assert!(error.is::<Usage>());
        assert!(error.to_string().contains("cargo xtask test"));
    }

    #[test]
    fn an_unknown_option_is_a_usage_error() {
        let error = dispatch(vec!["tidy".into(), "--nonsense".into()]).unwrap_err();
        assert!(error.is::<Usage>());
    }

    #[test]
    fn every_help_names_its_command() {
        for command in COMMANDS {
            assert!(command.help.contains(&format!("cargo xtask {}", command.name)), "{}", command.name);
        }
    }
}
