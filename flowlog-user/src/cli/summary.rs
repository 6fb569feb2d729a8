//! What a run says at its end.

use std::fmt::Write as _;
use std::io::{Write, stderr, stdout};

use flowlog_user::server::ledger::{Books, Sum, drops_by_outcome};
use flowlog_user::task::Finished;
use flowlog_user::write::Files;

use super::Format;

/// A number with thin groups: `1,234,567`.
#[must_use]
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes for people: `60 B`, `1.4 MiB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
pub(crate) fn bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{n} B") } else { format!("{value:.1} {unit}") }
}

/// Prints the end of a run: for people on stderr, as JSON on stdout where asked for.
///
/// # Errors
/// When stdout or stderr cannot be written.
pub(crate) fn print(books: &Books, finished: &[Finished], output: Format) -> std::io::Result<()> {
    if output == Format::Json {
        let mut answer = books.to_json();
        if let Some(map) = answer.as_object_mut() {
            let files = finished.iter().flat_map(|task| &task.files.paths);
            map.insert("files".into(), files.map(|file| file.display().to_string()).collect());
            let deleted = finished.iter().filter(|task| task.files.removed > 0);
            let deleted = deleted.map(|task| (task.name.to_string(), task.files.removed.into()));
            map.insert("files_deleted".into(), deleted.collect::<serde_json::Map<_, _>>().into());
        }
        return writeln!(stdout(), "{answer}");
    }
    write!(stderr(), "{}", text(books, finished))
}

/// What became of the packets.
fn captured(text: &mut String, books: &Books) {
    let packets = books.packets();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} connections, {} packets, {}; beside them {} seen again at another interface, {} no IP, {} not understood, \
         {} lost",
        count(books.capture.kernel.connections),
        count(packets.counted.packets + packets.alone.packets),
        bytes(packets.counted.bytes + packets.alone.bytes),
        count(packets.elsewhere.packets),
        count(packets.not_ip.packets),
        count(packets.unparsed.packets),
        count(packets.lost.packets),
    );
    if packets.rejected.packets > 0 {
        let rejected = packets.rejected;
        let _ = writeln!(
            text,
            "{} packets, {} of connections that no task wants",
            count(rejected.packets),
            bytes(rejected.bytes)
        );
    }
    let drops = &books.capture.drops;
    if drops.counters.seen > 0 {
        let outcomes = drops_by_outcome(drops);
        let lost = outcomes.iter().filter(|(name, _)| name.starts_with("lost"));
        let _ = writeln!(
            text,
            "{} dropped by the kernel in {} drops; {} drops of no task, {} no IP, {} not understood, {} lost",
            count(drops.packets()),
            count(drops.counters.added),
            count(drops.counters.rejected),
            count(drops.counters.not_ip),
            count(drops.counters.unparsed),
            count(lost.map(|(_, n)| n).sum()),
        );
    }
    for (reason, n) in books.capture.reasons.iter().filter(|(_, n)| *n > 0) {
        let _ = writeln!(text, "  {reason}: {}", count(*n));
    }
}

/// Whether every sum of the ledger closes, and which do not.
pub(super) fn closing(text: &mut String, books: &Books) {
    let open: Vec<Sum> = books.sums().into_iter().filter(|sum| !sum.closes()).collect();
    if open.is_empty() {
        let _ = writeln!(text, "the ledger closes");
    } else if books.capture.continues {
        let _ =
            writeln!(text, "the pinned tables go on counting, so the following sums are those of a moment");
    }
    for Sum { name, left, right } in open {
        let _ = writeln!(text, "the ledger does not close: {name}: {left}, but its parts are {right}");
    }
}

/// Whether every record that the tasks took is written.
pub(crate) fn all_written(finished: &[Finished]) -> bool {
    finished.iter().all(|task| task.failed.is_none() && dropped(task) == 0)
}

fn dropped(task: &Finished) -> u64 {
    task.counters.dropped_queue_full.get() + task.counters.dropped_write_error.get()
}

fn text(books: &Books, finished: &[Finished]) -> String {
    let mut text = String::new();
    if let Some(recorded) = books.recorded {
        let _ = writeln!(
            text,
            "{} recorded events, {} lines that were none",
            count(recorded.taken),
            count(recorded.malformed)
        );
    } else {
        captured(&mut text, books);
    }
    for task in finished {
        let counters = &task.counters;
        let added_up = match counters.aggregated.get() {
            0 => String::new(),
            records => format!(", {} added up to {} lines", count(records), count(counters.aggregates.get())),
        };
        let size = match task.is_stdout {
            true => format!("{} to stdout", bytes(counters.written_bytes.get())),
            false => {
                format!(
                    "{} as {} on disk",
                    bytes(counters.written_bytes.get()),
                    bytes(counters.disk_bytes.get())
                )
            }
        };
        let _ = writeln!(
            text,
            "task {}: {} of {} records taken{added_up}, {} written ({size}), {} dropped",
            task.name,
            count(counters.matched.get()),
            count(counters.decoded.get()),
            count(counters.written.get()),
            count(dropped(task)),
        );
        if let Some(why) = &task.failed {
            let _ = writeln!(text, "task {}: not everything could be written at the end: {why}", task.name);
        }
    }
    closing(&mut text, books);
    files(&mut text, finished);
    text
}

/// Files of a task that are named at either end of a long list.
const FILES_NAMED: usize = 10;

/// Where the records are, and what is no longer there.
fn files(text: &mut String, finished: &[Finished]) {
    if finished.iter().all(|task| task.files.paths.is_empty()) {
        let _ = writeln!(text, "no file was written");
    } else {
        let _ = writeln!(text, "files:");
    }
    for task in finished {
        let Files { paths, before, removed, .. } = &task.files;
        let hidden = paths.len().saturating_sub(2 * FILES_NAMED);
        if *before > 0 {
            let _ = writeln!(text, "  {} of task {} before these", count(*before), task.name);
        }
        for (at, path) in paths.iter().enumerate() {
            if hidden > 0 && at == FILES_NAMED {
                let _ = writeln!(text, "  ... and {} more", count(hidden as u64));
            }
            if hidden == 0 || at < FILES_NAMED || at >= FILES_NAMED + hidden {
                let _ = writeln!(text, "  {}", path.display());
            }
        }
        if *removed > 0 {
            let _ = writeln!(
                text,
                "{} files of task {} were deleted, as its keys ask (fileMaxSizeMb, fileMaxBackups, fileMaxTotalMb, \
                 fileMaxAge, fileMinFreePercent, onFull, onEnd)",
                count(*removed),
                task.name
            );
        }
    }
    let paths = finished.iter().flat_map(|task| &task.files.paths);
    let folders: std::collections::BTreeSet<_> = paths.filter_map(|file| file.parent()).collect();
    for folder in folders {
        let _ = writeln!(text, "read them with:  {} cat {} -o table", super::called(), folder.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([count(0), count(999), count(1000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [bytes(0), bytes(1023), bytes(1536), bytes(5 << 20)],
            ["0 B", "1023 B", "1.5 KiB", "5.0 MiB"]
        );
    }
}
