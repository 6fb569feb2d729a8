use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::Value;

use super::compact;
use super::group::{Group, time_ns};
use super::range::{TimeRange, seen_ns};
use super::sources::groups;
use super::stats::Stats;
use super::table::Table;
use super::{Damage, Error};
use crate::record::Foreign;

/// How records are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The lines as they were written.
    #[default]
    Json,
    /// Aligned columns for people.
    Table,
    /// A line each, as Hubble's client prints flows.
    Compact,
    /// Nothing: they are only counted.
    Nothing,
}

/// Appends an event as Hubble's line: what becomes of records of the other formats. Without it they are damage.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToLine(pub Option<fn(&Foreign, &mut Vec<u8>)>);

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Files, folders, patterns; `-` is stdin.
    pub paths: Vec<PathBuf>,
    /// How it is printed.
    pub output: Output,
    /// When it was seen.
    pub range: TimeRange,
    /// How records of other formats become lines.
    pub to_line: ToLine,
}

/// What was printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Lines printed.
    pub lines: u64,
    /// What they, and the files, hold.
    pub stats: Stats,
    /// What could not be read; the command fails when there is any.
    pub damage: Vec<Damage>,
}

/// Prints the records of files and folders (their files, not their subfolders). Each task's records keep the order in
/// which they were written; between tasks they are merged by time. A reader that goes away ends it quietly.
///
/// # Errors
/// A path that cannot be opened, or an output that cannot be written.
pub fn cat(request: &Request, out: &mut dyn Write) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    let mut printer = Printer::new(request);
    quiet(print(request, &mut printer, out, &mut summary))?;
    Ok(summary)
}

/// A reader that went away is no error.
pub(super) fn quiet(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn print(
    request: &Request,
    printer: &mut Printer,
    out: &mut dyn Write,
    summary: &mut Summary,
) -> Result<(), Error> {
    let groups = groups(&request.paths)?.into_iter();
    let mut groups: Vec<Group> =
        groups.map(|sources| Group::new(sources, request, false)).collect::<Result<_, _>>()?;
    let several = groups.len() > 1;
    let mut stopped = vec![None; groups.len()];
    // The time of each group's line, and which group it is.
    let mut heads = BinaryHeap::new();
    for (index, group) in groups.iter_mut().enumerate() {
        if group.advance(&mut summary.stats, &mut summary.damage)? {
            let time = if several { time_ns(&group.line).unwrap_or(i128::MIN) } else { 0 };
            heads.push(Reverse((time, index)));
        }
    }
    while let Some(Reverse((time, index))) = heads.pop() {
        let (Some(group), Some(stopped)) = (groups.get_mut(index), stopped.get_mut(index)) else { continue };
        let log = if several { Some(group.log.as_str()) } else { None };
        printer.line(&group.line, log, stopped, summary, out)?;
        if group.advance(&mut summary.stats, &mut summary.damage)? {
            // A record without a time follows the one it was written after.
            let next = if several { time_ns(&group.line).unwrap_or(time) } else { 0 };
            heads.push(Reverse((next, index)));
        }
    }
    printer.finish(out)
}

/// Prints lines that are in the range, and counts them.
pub(super) struct Printer {
    output: Output,
    range: TimeRange,
    table: Table,
}

impl Printer {
    pub(super) fn new(request: &Request) -> Self {
        Self { output: request.output, range: request.range, table: Table::default() }
    }

    pub(super) fn line(
        &mut self,
        line: &[u8],
        log: Option<&str>,
        stopped: &mut Option<i64>,
        summary: &mut Summary,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let count = self.output == Output::Nothing;
        if count || !self.range.is_open() {
            let value: Value = serde_json::from_slice(line).unwrap_or_default();
            // A line without any time cannot be told to be outside.
            let inside = seen_ns(&value).is_none_or(|(first, last)| self.range.overlaps(first, last));
            if !inside {
                return Ok(());
            }
            if count {
                summary.stats.count(&value, stopped);
            }
        }
        summary.lines += 1;
        match self.output {
            Output::Json => out.write_all(line),
            Output::Table => self.table.line(line, log, out),
            Output::Compact => compact::line(line, out),
            Output::Nothing => Ok(()),
        }
        .map_err(Error::Output)
    }

    /// Prints what was held back.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        self.table.finish(out).and_then(|()| out.flush()).map_err(Error::Output)
    }
}
