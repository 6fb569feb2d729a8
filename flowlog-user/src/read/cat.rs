use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};
use std::path::PathBuf;

use super::convert::Convert;
use super::group::{Group, time_ns};
use super::printer::Printer;
use super::range::TimeRange;
use super::sieve::Sieve;
use super::sources::{Key, Source, grouped};
use super::stats::Stats;
use super::style::Style;
use super::{Damage, Error};
use crate::record::Foreign;

/// How often it is listed what changes meanwhile.
const LOOKS: usize = 100;

/// How records are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The lines as they were written.
    #[default]
    Json,
    /// Aligned columns for people.
    Table(Style),
    /// A line each, as Hubble's client prints flows.
    Compact(Style),
    /// Keys and values, as Hubble's client prints them.
    Dict(Style),
    /// As [`Request::convert`] writes them.
    Converted,
    /// Nothing: they are only counted.
    Nothing,
}

impl Output {
    /// The style of layouts that have one.
    pub(super) fn style(self) -> Style {
        match self {
            Self::Table(style) | Self::Compact(style) | Self::Dict(style) => style,
            Self::Json | Self::Converted | Self::Nothing => Style::default(),
        }
    }
}

/// Appends an event as Hubble's line: what becomes of records of the other formats. Without it they are damage.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToLine(pub Option<fn(&Foreign, &mut Vec<u8>)>);

/// Which of the records that are left are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// All.
    #[default]
    None,
    /// So many flows from the beginning, and what stands between them.
    First(usize),
    /// So many flows from the end, and what stands between them and behind.
    Last(usize),
}

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Files, folders, patterns; `-` is stdin.
    pub paths: Vec<PathBuf>,
    /// How it is printed.
    pub output: Output,
    /// When it was seen.
    pub range: TimeRange,
    /// What [`Output::Converted`] is.
    pub convert: Convert,
    /// How records of other formats become lines.
    pub to_line: ToLine,
    /// Which records, and what of them.
    pub sieve: Sieve,
    /// How many.
    pub limit: Limit,
    /// Also records that a damaged frame may have altered.
    pub doubtful: bool,
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

/// Prints the records of files and folders (and of their subfolders). Each task's records keep the order in
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

/// The files behind the paths, the live ones opened. While they are listed and opened, one may get its finished name and
/// be missed under both; so it is listed again until nothing has changed, and what has is opened anew.
fn open(request: &Request) -> Result<Vec<Group>, Error> {
    let mut listed: BTreeMap<Key, Vec<Source>> = BTreeMap::new();
    let mut opened: BTreeMap<Key, Group> = BTreeMap::new();
    for look in 0..LOOKS {
        let found = match grouped(&request.paths) {
            // A live file that was named is open, though its name leads nowhere for a moment.
            Err(_) if look > 0 => break,
            found => found?,
        };
        if look > 0 && found == listed {
            break;
        }
        opened.retain(|key, _| found.contains_key(key));
        for (key, sources) in &found {
            if listed.get(key) != Some(sources) {
                opened.insert(key.clone(), Group::new(sources.clone(), request, false)?);
            }
        }
        listed = found;
    }
    Ok(opened.into_values().collect())
}

fn print(
    request: &Request,
    printer: &mut Printer,
    out: &mut dyn Write,
    summary: &mut Summary,
) -> Result<(), Error> {
    let mut groups = open(request)?;
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
        printer.record(group, several, stopped, summary, out)?;
        if printer.is_done() {
            break;
        }
        if group.advance(&mut summary.stats, &mut summary.damage)? {
            // A record without a time follows the one it was written after.
            let next = if several { time_ns(&group.line).unwrap_or(time) } else { 0 };
            heads.push(Reverse((next, index)));
        }
    }
    printer.finish(summary, out)
}
