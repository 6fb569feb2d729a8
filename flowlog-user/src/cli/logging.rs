//! Where the log goes, in which form, and how much of it.

mod levels;
mod repeats;

use std::io::{IsTerminal, stderr};

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

pub(crate) use repeats::{tell as tell_repeats, tell_all as tell_all_repeats};

use super::style::colours_are_wanted;

const HEADING: &str = "Log (on stderr)";

/// What of the log a person can choose, with every command.
#[derive(Args, Debug)]
pub(crate) struct LogArgs {
    /// Say more of what the daemon does, and whatever it says as often as it comes.
    #[arg(long, short, global = true, display_order = 900, help_heading = HEADING)]
    verbose: bool,
    /// Levels by target, e.g. `warn`, `capture=debug` or `info,write=trace`; targets are parts of flowlog
    /// (`capture`, `decode`, `enrich`, `filter`, `task`, `config`, `write`, `server`, `cli`) or crates.
    #[arg(long, global = true, value_name = "[TARGET=]LEVEL,...", value_delimiter = ',', value_parser = levels::directive, env = "FLOWLOG_LOG", display_order = 901, help_heading = HEADING)]
    log: Vec<levels::Directive>,
    /// Form of the log: text on a terminal, JSON lines elsewhere from the daemon and text from everything else.
    #[arg(long, global = true, value_enum, default_value = "auto", env = "FLOWLOG_LOG_FORMAT", display_order = 902, help_heading = HEADING)]
    log_format: LogFormat,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// By where it goes.
    Auto,
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// What a command has to say while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// The daemon's: a machine collects it, for months.
    Daemon,
    /// A command's, for the person who called it.
    Command,
    /// Warnings and errors only, since the command tells the person itself what goes on.
    Warnings,
    /// Errors only.
    Errors,
}

/// Sets the log up. Always on stderr, since stdout is for data; of what the daemon says again and again only the first
/// lines of each minute.
pub(crate) fn start(arguments: &LogArgs, voice: Voice) {
    let level = match voice {
        _ if arguments.verbose => LevelFilter::DEBUG,
        Voice::Daemon | Voice::Command => LevelFilter::INFO,
        Voice::Warnings => LevelFilter::WARN,
        Voice::Errors => LevelFilter::ERROR,
    };
    let default = if voice == Voice::Errors { LevelFilter::ERROR } else { LevelFilter::WARN };
    let targets = Targets::new().with_default(default).with_target(levels::OURS, level);
    let targets = levels::apply(targets, &arguments.log);
    let terminal = stderr().is_terminal();
    let plain = match arguments.log_format {
        LogFormat::Auto => terminal || voice != Voice::Daemon,
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let limit = repeats::Repeats { on: voice == Voice::Daemon && !arguments.verbose };
    let text = plain.then(|| {
        tracing_subscriber::fmt::layer()
            .with_writer(stderr)
            .with_ansi(terminal && colours_are_wanted())
            .with_target(false)
            .without_time()
            .with_filter(limit)
    });
    let json =
        (!plain).then(|| tracing_subscriber::fmt::layer().json().with_writer(stderr).with_filter(limit));
    tracing_subscriber::registry().with(text).with(json).with(targets).init();
}
