//! What a run says at its end.

use std::fmt::Write as _;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

use flowlog_user::server::ledger::{Books, Sum, drops_by_outcome};
use flowlog_user::task::Finished;

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
pub(crate) fn print(
    books: &Books,
    finished: &[Finished],
    files: &[PathBuf],
    output: Format,
) -> std::io::Result<()> {
    if output == Format::Json {
        let mut answer = books.to_json();
        if let Some(map) = answer.as_object_mut() {
            map.insert("files".into(), files.iter().map(|file| file.display().to_string()).collect());
        }
        return writeln!(stdout(), "{answer}");
    }
    write!(stderr(), "{}", text(books, finished, files))
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
            count(drops.counters.added_packets),
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

fn text(books: &Books, finished: &[Finished], files: &[PathBuf]) -> String {
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
        let dropped = counters.dropped_queue_full.get() + counters.dropped_write_error.get();
        let added_up = match counters.aggregated.get() {
            0 => String::new(),
            records => format!(", {} added up to {} lines", count(records), count(counters.aggregates.get())),
        };
        let _ = writeln!(
            text,
            "task {}: {} of {} records taken{added_up}, {} written ({} as {} on disk), {} dropped",
            task.name,
            count(counters.matched.get()),
            count(counters.decoded.get()),
            count(counters.written.get()),
            bytes(counters.written_bytes.get()),
            bytes(counters.disk_bytes.get()),
            count(dropped),
        );
    }
    closing(&mut text, books);
    if files.is_empty() {
        let _ = writeln!(text, "no file was written");
    } else {
        let _ = writeln!(text, "files:");
        for file in files {
            let _ = writeln!(text, "  {}", file.display());
        }
        let folders: std::collections::BTreeSet<_> = files.iter().filter_map(|file| file.parent()).collect();
        for folder in folders {
            let _ = writeln!(text, "read them with:  {} cat {} -o table", super::called(), folder.display());
        }
    }
    text
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
