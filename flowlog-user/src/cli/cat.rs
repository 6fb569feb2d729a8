//! `flowlog cat`.

use std::io::{BufWriter, ErrorKind, IsTerminal, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use flowlog_user::clock::wall_ns;
use flowlog_user::encode::{self, Sheet};
use flowlog_user::project;
use flowlog_user::read::{
    self, Convert, Damage, Limit, Look, Output, Piece, Request, Sieve, Summary, TimeRange, ToLine,
};
use flowlog_user::record::Format;
use flowlog_user::record::fields::Mask;

use super::flags::FilterArgs;
use super::style::StyleArgs;

/// Records that `--last` holds back at most, as many as Hubble's client.
const LAST_MAX: u64 = 1_000_000;

/// How a line begins that a log says of itself.
const NODE_STATUS: &[u8] = b"{\"node_status\"";

/// Arguments of `flowlog cat`.
#[derive(Args, Debug)]
pub(crate) struct CatArgs {
    /// Log files, folders of them, or patterns (`'/var/log/flowlog/dns*'`); live files are read up to their last flush,
    /// `-` is stdin.
    #[arg(required_unless_present = "print-raw-filters", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// `json`: the records as Hubble exports them, a line each; `table`: columns for people; `compact` and `dict`: as
    /// Hubble's client prints flows (in UTC); `flat`: JSON lines of one level; `csv` and `parquet`: a row each, sorted by
    /// time.
    #[arg(long, short, value_enum, default_value = "json")]
    output: Shape,
    /// Only records whose packets were seen at this time or later: RFC 3339, or e.g. `10m` for ten minutes ago.
    #[arg(long, value_name = "TIME", value_parser = point)]
    since: Option<i64>,
    /// Only records whose packets were seen at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = point)]
    until: Option<i64>,
    /// Go on with what is written later, also across rotation and in new files.
    #[arg(long, short, conflicts_with_all = ["stats", "first"])]
    follow: bool,
    /// The first N flows.
    #[arg(long, value_name = "N", conflicts_with = "last")]
    first: Option<u64>,
    /// The last N flows.
    #[arg(long, value_name = "N")]
    last: Option<u64>,
    /// All flows: what is done anyway, and understood as hubble does.
    #[arg(long, conflicts_with_all = ["first", "last"])]
    all: bool,
    /// Only these fields of flows, with `time` and `node_name`: paths as in a task's `fieldMask`, separated by commas.
    #[arg(long, value_name = "PATH,...", value_delimiter = ',')]
    field_mask: Vec<String>,
    /// Also print records of frames whose checksum does not fit, which may be altered; without it they are left out, and
    /// named.
    #[arg(long)]
    doubtful: bool,
    /// Print what the files hold instead: records, bytes, ratio, time range, gaps, losses, damage.
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    style: StyleArgs,
    #[command(flatten)]
    filters: FilterArgs,
}

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// JSON lines, unchanged.
    #[value(aliases = ["jsonpb", "JSON"])]
    Json,
    /// Aligned columns.
    #[value(alias = "tab")]
    Table,
    /// A line each.
    Compact,
    /// Keys and values.
    Dict,
    /// JSON lines of one level.
    Flat,
    /// A row each.
    Csv,
    /// Apache Parquet.
    Parquet,
}

fn point(text: &str) -> Result<i64, String> {
    TimeRange::point(text, wall_ns())
}

/// Prints records; the exit code is 1 when a file is damaged, or there is none.
///
/// # Errors
/// When a path cannot be read or stdout cannot be written.
pub(crate) fn cat(arguments: &CatArgs) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
    if arguments.filters.print {
        write!(out, "{}", arguments.filters.to_yaml())?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let request = request(arguments)?;
    let sheet = matches!(arguments.output, Shape::Csv | Shape::Parquet);
    if arguments.follow && sheet {
        bail!("--follow has no end, and what is sorted is printed at the end; take -o flat");
    }
    if arguments.output == Shape::Parquet && !arguments.stats && out.get_ref().is_terminal() {
        bail!("Parquet is not for terminals; add e.g. `> flows.parquet`");
    }
    if arguments.follow && arguments.paths.iter().all(|path| path.as_os_str() == "-") {
        // A pipe ends by itself; until then each line is shown as it comes (stdout is buffered by lines).
        let summary = read::cat(&request, out.get_mut())?;
        return Ok(told(&summary, arguments));
    }
    if arguments.follow {
        let silent = arguments.style.silent_errors;
        let mut say = |damage: &Damage| {
            if !silent {
                tracing::warn!("{damage}");
            }
        };
        read::follow(&request, &mut out, &mut say, &|| false)?;
        return Ok(ExitCode::SUCCESS);
    }
    let summary = read::cat(&request, &mut out)?;
    let code = told(&summary, arguments);
    if arguments.stats && arguments.output == Shape::Json && !out.get_ref().is_terminal() {
        writeln!(out, "{}", summary.stats.to_json(&summary.damage))?;
    } else if arguments.stats {
        writeln!(out, "{}damage    {}", summary.stats, summary.damage.len())?;
    }
    match out.flush() {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        flushed => flushed?,
    }
    Ok(code)
}

/// Says what was damaged, or that there was nothing to read; failure when anything was, or nothing.
fn told(summary: &Summary, arguments: &CatArgs) -> ExitCode {
    for damage in summary.damage.iter().filter(|_| !arguments.style.silent_errors) {
        tracing::warn!("{damage}");
    }
    if summary.stats.files == 0 {
        tracing::error!("no files: there is no log file in what was named; check the path and its names");
        return ExitCode::FAILURE;
    }
    if summary.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn request(arguments: &CatArgs) -> anyhow::Result<Request> {
    let style = arguments.style.style();
    let output = match arguments.output {
        _ if arguments.stats => Output::Nothing,
        Shape::Json => Output::Json,
        Shape::Table => Output::Table(style),
        Shape::Compact => Output::Compact(style),
        Shape::Dict => Output::Dict(style),
        Shape::Flat | Shape::Csv | Shape::Parquet => Output::Converted,
    };
    let paths: Vec<&str> = arguments.field_mask.iter().map(String::as_str).collect();
    if !paths.is_empty() && matches!(arguments.output, Shape::Table | Shape::Compact | Shape::Dict) {
        bail!("--field-mask chooses fields of records; with this --output all that it shows is fixed");
    }
    let mask = project::compile(&paths, false).context("--field-mask")?;
    if let (Some(since), Some(until)) = (arguments.since, arguments.until)
        && since > until
    {
        bail!("--since is later than --until, and no time lies between; exchange them");
    }
    // As with hubble, 0 is no limit.
    let limit = match (arguments.first.filter(|n| *n > 0), arguments.last.filter(|n| *n > 0)) {
        (Some(first), _) => Limit::First(usize::try_from(first).unwrap_or(usize::MAX)),
        (None, Some(last)) if last > LAST_MAX => {
            bail!("--last must be at most {LAST_MAX}, and {last} was given")
        }
        (None, Some(last)) => Limit::Last(usize::try_from(last).unwrap_or(usize::MAX)),
        (None, None) => Limit::None,
    };
    Ok(Request {
        paths: arguments.paths.clone(),
        output,
        range: TimeRange { since_ns: arguments.since, until_ns: arguments.until },
        convert: converter(arguments.output),
        to_line: ToLine(Some(|event, out| encode::notice(Format::Json, event, out))),
        sieve: sieve(&arguments.filters, mask, arguments.is_silent_of_the_log()),
        limit,
        doubtful: arguments.doubtful,
    })
}

/// What writes the formats that are not Hubble's.
fn converter(shape: Shape) -> Convert {
    let sheet = |shape| {
        let mut sheet = Sheet::new(shape);
        Convert::new(move |piece, out| match piece {
            Piece::Record(event) => sheet.take(event, out),
            Piece::End => sheet.finish(out),
        })
    };
    match shape {
        Shape::Json | Shape::Table | Shape::Compact | Shape::Dict => Convert::default(),
        Shape::Csv => sheet(encode::Shape::Csv),
        Shape::Parquet => sheet(encode::Shape::Parquet),
        Shape::Flat => {
            let mut line = Vec::new();
            Convert::new(move |piece, out| {
                let Piece::Record(event) = piece else { return Ok(()) };
                line.clear();
                encode::notice(Format::Flat, event, &mut line);
                out.write_all(&line)
            })
        }
    }
}

impl CatArgs {
    /// Whether what a log says of itself is left out: for people Hubble's client has it on stderr, among the errors.
    /// Among records it is one of them, and tells what a loss is about.
    fn is_silent_of_the_log(&self) -> bool {
        let is_for_people = match self.output {
            Shape::Table | Shape::Compact | Shape::Dict => true,
            Shape::Json | Shape::Flat | Shape::Csv | Shape::Parquet => false,
        };
        self.style.silent_errors && is_for_people && !self.stats
    }
}

/// Filter and mask, where there are any. `silent`: without what a log says of itself.
fn sieve(filters: &FilterArgs, mask: Mask, silent: bool) -> Sieve {
    let filter = filters.filter();
    if filter.is_none() && mask == Mask::ALL && !silent {
        return Sieve::default();
    }
    Sieve::new(move |line, out| {
        if silent && line.starts_with(NODE_STATUS) {
            return Look::Leave;
        }
        if filter.is_none() && mask == Mask::ALL {
            return Look::Take;
        }
        let event = match read::event(line) {
            Ok(event) => event,
            Err(error) => return Look::Unknown(error.to_string()),
        };
        if filter.as_ref().is_some_and(|filter| !filter.takes(&event)) {
            return Look::Leave;
        }
        if mask == Mask::ALL || event.flow().is_none() {
            return Look::Take;
        }
        encode::foreign::encode(&event, &mask, out);
        Look::Rewritten
    })
}
