//! `flowlog cat`.

use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use flowlog_user::clock::wall_ns;
use flowlog_user::encode;
use flowlog_user::read::{self, Damage, Output, Request, TimeRange, ToLine};
use flowlog_user::record::Format;

/// Arguments of `flowlog cat`.
#[derive(Args, Debug)]
pub(crate) struct CatArgs {
    /// Log files, folders of them, or patterns (`'/var/log/flowlog/dns*'`); live files are read up to their last flush,
    /// `-` is stdin.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// `json`: the records as they were written, a line each; `table`: columns for people; `compact`: a line each, as
    /// Hubble's client prints flows (in UTC).
    #[arg(long, short, value_enum, default_value = "json")]
    output: Shape,
    /// Only records whose packets were seen at this time or later: RFC 3339, or e.g. `10m` for ten minutes ago.
    #[arg(long, value_name = "TIME", value_parser = point)]
    since: Option<i64>,
    /// Only records whose packets were seen at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = point)]
    until: Option<i64>,
    /// Go on with what is written later, also across rotation and in new files.
    #[arg(long, short, conflicts_with = "stats")]
    follow: bool,
    /// Print what the files hold instead: records, bytes, ratio, time range, gaps, losses, damage.
    #[arg(long)]
    stats: bool,
}

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// JSON lines, unchanged.
    Json,
    /// Aligned columns.
    Table,
    /// A line each.
    Compact,
}

fn point(text: &str) -> Result<i64, String> {
    TimeRange::point(text, wall_ns())
}

/// Prints records; the exit code is 1 when a finished file is damaged.
///
/// # Errors
/// When a path cannot be read or stdout cannot be written.
pub(crate) fn cat(arguments: &CatArgs) -> anyhow::Result<ExitCode> {
    let output = match arguments.output {
        _ if arguments.stats => Output::Nothing,
        Shape::Json => Output::Json,
        Shape::Table => Output::Table,
        Shape::Compact => Output::Compact,
    };
    let request = Request {
        paths: arguments.paths.clone(),
        output,
        range: TimeRange { since_ns: arguments.since, until_ns: arguments.until },
        to_line: ToLine(Some(|event, out| encode::notice(Format::Json, event, out))),
    };
    let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
    if arguments.follow {
        let mut say = |damage: &Damage| tracing::warn!("{damage}");
        read::follow(&request, &mut out, &mut say, &|| false)?;
        return Ok(ExitCode::SUCCESS);
    }
    let summary = read::cat(&request, &mut out)?;
    for damage in &summary.damage {
        tracing::warn!("{damage}");
    }
    if arguments.stats && arguments.output == Shape::Json && !out.get_ref().is_terminal() {
        writeln!(out, "{}", summary.stats.to_json(&summary.damage))?;
    } else if arguments.stats {
        writeln!(out, "{}damage    {}", summary.stats, summary.damage.len())?;
    }
    out.flush()?;
    Ok(if summary.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
