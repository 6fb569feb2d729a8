//! What there was in sum.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use flowlog_user::metrics::{Sent, Tally, TaskCounters};
use flowlog_user::server::ledger::Books;

use super::watch::{Known, say};
use crate::cli::data_plane::Done;
use crate::cli::summary::{bytes, closing, count};

/// Pairs that are named.
const PAIRS: usize = 10;

/// Prints the summary on stderr. A reader of stdout that is gone is no failure.
pub(super) fn print(known: &Known, done: Done, took: Duration) -> anyhow::Result<ExitCode> {
    let Done { capture, decode, error, .. } = done;
    let tasks = vec![("observed".into(), Arc::clone(&known.counters))];
    let books = Books { capture, decode, recorded: None, tasks };
    let tally = known.tally.lock().unwrap_or_else(PoisonError::into_inner);
    say(text(&books, &tally, &known.counters, took.as_secs_f64()).trim_end());
    match error {
        Some(error) => Err(error.context("stopped early")),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn text(books: &Books, tally: &Tally, counters: &TaskCounters, seconds: f64) -> String {
    let mut text = String::new();
    let ((connections, more), all) = (tally.connections(), tally.talkers.all());
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{}{} connections, {} packets, {} in {seconds:.1} s",
        if more { "more than " } else { "" },
        count(connections),
        count(all.packets),
        bytes(all.bytes),
    );
    let dropped = counters.dropped_queue_full.get() + counters.dropped_write_error.get();
    let mut shown = format!("{} flows shown", count(counters.written.get()));
    for (number, what) in [
        (counters.passed_over.get(), "left out as more than asked for, or still open at the end"),
        (dropped, "lost, since stdout was not read"),
    ] {
        if number > 0 {
            let _ = write!(shown, "; {} {what}", count(number));
        }
    }
    let _ = writeln!(text, "{shown}");
    pairs(&mut text, tally);
    let packets = books.packets();
    let _ = writeln!(
        text,
        "{} packets lost; beside them {} that no filter wants, {} no IP, {} not understood",
        count(packets.lost.packets),
        count(packets.rejected.packets),
        count(packets.not_ip.packets),
        count(packets.unparsed.packets),
    );
    closing(&mut text, books);
    text
}

fn pairs(text: &mut String, tally: &Tally) {
    let busiest = tally.talkers.busiest(PAIRS);
    if busiest.is_empty() {
        return;
    }
    let least = match tally.talkers.forgotten_bytes() {
        0 => "",
        _ => " (at least so much: there were too many pairs to remember each)",
    };
    let _ = writeln!(text, "busiest pairs{least}:");
    for ((one, other), Sent { packets, bytes: sent }) in busiest {
        let _ = writeln!(text, "  {:>10}  {:>11} packets  {one} <-> {other}", bytes(sent), count(packets));
    }
}
