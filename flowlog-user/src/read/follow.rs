use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use super::Error;
use super::cat::{Request, Summary, quiet};
use super::group::{Group, file_identity};
use super::printer::Printer;
use super::sources::{Identity, Key, Source, grouped};

/// Between two looks for more.
const PAUSE: Duration = Duration::from_millis(200);

/// Prints as [`super::cat`] does, and goes on with what is written later, also across rotation and in new files, until
/// the reader goes away or `stop` says so. `report` hears of what cannot be read as it is met.
///
/// # Errors
/// As [`super::cat`].
pub fn follow(
    request: &Request,
    out: &mut dyn Write,
    report: &mut dyn FnMut(&super::Damage),
    stop: &dyn Fn() -> bool,
) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    let result = watch(request, out, report, stop, &mut summary);
    quiet(result)?;
    Ok(summary)
}

fn watch(
    request: &Request,
    out: &mut dyn Write,
    report: &mut dyn FnMut(&super::Damage),
    stop: &dyn Fn() -> bool,
    summary: &mut Summary,
) -> Result<(), Error> {
    let mut printer = Printer::new(request);
    let mut tasks: BTreeMap<Key, Group> = BTreeMap::new();
    let mut read: Vec<Identity> = Vec::new();
    let mut first = true;
    while !stop() {
        look(&request.paths, request, &mut tasks, &mut read, first)?;
        first = false;
        let mut reported = summary.damage.len();
        for group in tasks.values_mut() {
            while group.advance(&mut summary.stats, &mut summary.damage)? {
                printer.record(group, true, &mut None, summary, out)?;
            }
            for damage in summary.damage.iter().skip(reported) {
                report(damage);
            }
            reported = summary.damage.len();
        }
        printer.finish(summary, out)?;
        sleep(PAUSE);
    }
    Ok(())
}

/// Adds files that were not there before.
fn look(
    paths: &[PathBuf],
    request: &Request,
    tasks: &mut BTreeMap<Key, Group>,
    read: &mut Vec<Identity>,
    first: bool,
) -> Result<(), Error> {
    let found = if first {
        grouped(paths)?
    } else {
        // Each for itself: between two files of a task its name leads nowhere, and a named file may be gone for good.
        let mut found: BTreeMap<Key, Vec<Source>> = BTreeMap::new();
        for (key, sources) in
            paths.iter().filter_map(|path| grouped(std::slice::from_ref(path)).ok()).flatten()
        {
            found.entry(key).or_default().extend(sources);
        }
        found
    };
    let mut present = Vec::new();
    for (key, sources) in found {
        let group = match tasks.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Group::new(Vec::new(), request, true)?)
            }
        };
        for source in sources {
            let Some(listed) = file_identity(&source) else { continue };
            present.push(listed);
            if read.contains(&listed) {
                continue;
            }
            let added = if group.holds(listed) { Some(listed) } else { group.add(source)? };
            // Another one, or none, where a rotation came in between; the one that was listed has another name now.
            if let Some(identity) = added {
                present.push(identity);
                read.push(identity);
            }
        }
    }
    // A number of a file that is gone may become another file's.
    read.retain(|identity| present.contains(identity) || tasks.values().any(|group| group.holds(*identity)));
    Ok(())
}
