//! How flows are printed, spelled as Hubble's client does; shared by the commands that print them.

use std::io::{IsTerminal, stdout};

use clap::{Args, ValueEnum};
use flowlog_user::read::{Style, TimeFormat};

const HEADING: &str = "Printing (as hubble observe has it)";

/// The flags.
#[derive(Args, Debug)]
#[command(next_help_heading = HEADING)]
pub(crate) struct StyleArgs {
    /// With `compact` and `dict`: addresses, even where names are known.
    #[arg(long)]
    numeric: bool,
    /// With `compact` and `dict`: the node too.
    #[arg(long)]
    print_node_name: bool,
    /// Colours of `compact` and `dict`: on a terminal, always or never. NO_COLOR in the environment means never.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", ignore_case = true)]
    color: Color,
    /// How times are written, in UTC: YearMonthDay, YearMonthDayHour, YearMonthDayHourMinute, StampMilli, RFC3339,
    /// RFC3339Milli, RFC3339Micro, RFC3339Nano or RFC1123Z [default: StampMilli; in a table as the record has it].
    #[arg(long, value_name = "FORMAT", value_parser = time_format)]
    time_format: Option<TimeFormat>,
    /// Say nothing of errors and warnings that end nothing; the exit code tells all the same.
    #[arg(long, short)]
    pub(crate) silent_errors: bool,
}

/// When there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal.
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

fn time_format(name: &str) -> Result<TimeFormat, String> {
    TimeFormat::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = TimeFormat::ALL.iter().map(|(name, _)| *name).collect();
        format!("unknown format `{name}`; expected one of {}", known.join(", "))
    })
}

impl StyleArgs {
    /// What they ask for, of stdout as it is.
    #[must_use]
    pub(crate) fn style(&self) -> Style {
        let colour = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => stdout().is_terminal() && colours_are_wanted(),
        };
        Style { translate: !self.numeric, node: self.print_node_name, colour, time: self.time_format }
    }
}

/// Whether the environment has nothing against colours: `NO_COLOR` is the convention of <https://no-color.org>.
pub(crate) fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
