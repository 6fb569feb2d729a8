use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::path::PathBuf;

use super::group::{Group, time_ns};
use super::sources::groups;
use super::table::Table;
use super::{Damage, Error};

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The lines as they were written.
    Json,
    /// Aligned columns for people.
    Table,
}

/// What was printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records printed.
    pub records: u64,
    /// Files that could not be read to their end; the command fails when there are any.
    pub damage: Vec<Damage>,
}

/// Prints the records of files and folders (their files, not their subfolders). Each task's records keep the order in
/// which they were written; between tasks they are merged by time. A reader that goes away ends it quietly.
///
/// # Errors
/// A path that cannot be opened, or an output that cannot be written.
pub fn cat(paths: &[PathBuf], output: Output, out: &mut dyn Write) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    match print(paths, output, out, &mut summary) {
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(summary),
        Err(error) => Err(error),
        Ok(()) => Ok(summary),
    }
}

fn print(paths: &[PathBuf], output: Output, out: &mut dyn Write, summary: &mut Summary) -> Result<(), Error> {
    let mut groups = groups(paths)?.into_iter().map(Group::new).collect::<Result<Vec<_>, _>>()?;
    let mut table = (output == Output::Table).then(Table::default);
    let several = groups.len() > 1;
    // The time of each group's line, and which group it is.
    let mut heads = BinaryHeap::new();
    for (index, group) in groups.iter_mut().enumerate() {
        if group.advance(&mut summary.damage)? {
            let time = if several { time_ns(&group.line).unwrap_or(i128::MIN) } else { 0 };
            heads.push(Reverse((time, index)));
        }
    }
    while let Some(Reverse((time, index))) = heads.pop() {
        let Some(group) = groups.get_mut(index) else { continue };
        match &mut table {
            Some(table) => table.line(&group.line, out),
            None => out.write_all(&group.line),
        }
        .map_err(Error::Output)?;
        summary.records += 1;
        if group.advance(&mut summary.damage)? {
            // A record without a time follows the one it was written after.
            let next = if several { time_ns(&group.line).unwrap_or(time) } else { 0 };
            heads.push(Reverse((next, index)));
        }
    }
    if let Some(table) = &mut table {
        table.finish(out).map_err(Error::Output)?;
    }
    out.flush().map_err(Error::Output)
}
