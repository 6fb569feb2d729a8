//! `flowlog observe`: flows as they come, without task file, daemon or any file written.

mod summary;
mod task;
mod watch;

use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use clap::{Args, ValueEnum};
use flowlog_user::read::{Layout, Output};
use flowlog_user::write::{Extent, Show};
use jiff::SignedDuration;

use super::attach::AttachArgs;
use super::flags::LiveFilterArgs;
use super::logging::Voice;
use super::session::block_on;
use super::style::StyleArgs;
use super::{CaptureArgs, duration};

/// Records that `--last` holds back at most: about 100 MB of them.
const LAST_MAX: u64 = 100_000;
/// How a line begins that says what became of records.
const NODE_STATUS: &[u8] = b"{\"node_status\"";

/// Arguments of `flowlog observe`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  flowlog observe                               every flow: its start, an update a minute, its end
  flowlog observe --port 53 -o table            who asks which name server
  flowlog observe --not --ip 10.0.0.0/8 -o json --for 30s > flows.jsonl
  flowlog observe --to-port 443 --print-task    the task that keeps just this; prints it and ends

Programs and tables are its own, so a running daemon is not disturbed; each of the two looks at every packet.")]
pub(crate) struct ObserveArgs {
    /// `compact` and `dict`: as Hubble's client prints flows; `table`: columns with packets and bytes; `json`: as Hubble
    /// exports them, a line each; `flat`: JSON lines of one level.
    #[arg(long, short, value_enum, default_value = "compact")]
    output: Shape,
    /// With `json` and `flat`, only these fields, with `time` and `node_name`: paths as in a task's `fieldMask`,
    /// separated by commas.
    #[arg(long, value_name = "PATH,...", value_delimiter = ',')]
    field_mask: Vec<String>,
    /// End after so many flows.
    #[arg(long, value_name = "N", conflicts_with = "last", value_parser = clap::value_parser!(u64).range(1..))]
    first: Option<u64>,
    /// Show the last N flows, at the end.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=LAST_MAX))]
    last: Option<u64>,
    /// Stop by itself after this time, e.g. 30s or 2h.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    time: Option<SignedDuration>,
    /// What is done anyway, and understood as hubble does.
    #[arg(long, short)]
    follow: bool,
    /// Print the task that keeps just these flows, as a file for `flowlog run --tasks`, and end.
    #[arg(long)]
    print_task: bool,
    #[command(flatten)]
    style: StyleArgs,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    attach: AttachArgs,
    #[command(flatten)]
    filters: LiveFilterArgs,
}

/// How flows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// A line each.
    Compact,
    /// Aligned columns.
    #[value(alias = "tab")]
    Table,
    /// Hubble's JSON lines.
    #[value(aliases = ["jsonpb", "JSON"])]
    Json,
    /// JSON lines of one level.
    Flat,
    /// Keys and values.
    Dict,
}

/// Shows flows until a signal, `--for` or `--first` says stop; then what there was in sum.
///
/// # Errors
/// When privileges or kernel are missing, an interface cannot be attached, or a flag is wrong.
pub(crate) fn observe(arguments: &ObserveArgs) -> anyhow::Result<ExitCode> {
    if arguments.filters.filters.print {
        write!(stdout(), "{}", arguments.filters.filters.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let people = matches!(arguments.output, Shape::Compact | Shape::Table | Shape::Dict);
    if people && !arguments.field_mask.is_empty() && !arguments.print_task {
        bail!("--field-mask chooses fields of records; add -o json or -o flat: what others show is fixed");
    }
    let text = task::text(arguments);
    let task = task::read(&text)?;
    if arguments.print_task {
        write!(stdout(), "{text}")?;
        return Ok(ExitCode::SUCCESS);
    }
    block_on(watch::watch(arguments, task))
}

impl ObserveArgs {
    /// Beside the flows, it tells what goes on itself.
    pub(crate) const fn voice(&self) -> Voice {
        if self.style.silent_errors { Voice::Errors } else { Voice::Warnings }
    }

    /// How records are shown. On a terminal nothing comes after the end was asked for: the last words on connections that
    /// are still open are for programs.
    fn show(&self, over: &Arc<AtomicBool>) -> Show {
        let style = self.style.style();
        let mut layout = Layout::live(match self.output {
            Shape::Compact => Output::Compact(style),
            Shape::Table => Output::Table(style),
            Shape::Dict => Output::Dict(style),
            Shape::Json | Shape::Flat => Output::Json,
        });
        let silent = self.style.silent_errors;
        let extent = match (self.first, self.last) {
            (Some(first), _) => Extent::First(first),
            (None, Some(last)) => Extent::Last(usize::try_from(last).unwrap_or(usize::MAX)),
            (None, None) => Extent::All,
        };
        let show = Show::new(extent, move |line, out| {
            if !(silent && line.starts_with(NODE_STATUS)) {
                // Writing to memory cannot fail.
                let _ = layout.line(line, out);
            }
        });
        if stdout().is_terminal() { show.until(Arc::clone(over)) } else { show }
    }
}
