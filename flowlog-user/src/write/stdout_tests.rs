use std::io::Read;
use std::time::{Duration, Instant};

use super::super::notice::ENCODER;
use super::*;
use crate::record::Format;
use crate::write::{Compression, Definition, OnFull, Owner, Sync};

fn lines(range: std::ops::Range<u32>) -> String {
    range
        .map(|at| format!("{{\"flow\":{{\"uuid\":\"{at:08x}\"}},\"time\":\"2026-11-30T20:14:26Z\"}}\n"))
        .collect()
}

fn chunk(range: std::ops::Range<u32>) -> Chunk {
    let (records, lines) = (range.end - range.start, lines(range).into());
    Chunk { format: Format::Json, lines, records, first_ns: 1, last_ns: 2, seen_from_ns: 1 }
}

fn spec() -> Spec {
    Spec {
        task: "t".into(),
        path: "stdout".into(),
        format: Format::Json,
        notices: ENCODER,
        compression: Compression::None,
        size_bytes_max: u64::MAX,
        total_bytes_max: 0,
        age_max: None,
        free_percent_min: None,
        rotation_interval: None,
        rotation_aligned: false,
        mode: 0o640,
        owner: Owner::default(),
        sync: Sync::None,
        on_full: OnFull::Drop,
        on_end: super::super::OnEnd::Keep,
        definition: Definition::default(),
    }
}

fn of_pipe() -> (Stdout, std::fs::File) {
    let (from, to) = std::io::pipe().unwrap();
    (Stdout::new(&spec(), "n", to.into()), std::os::fd::OwnedFd::from(from).into())
}

#[test]
fn a_reader_gets_every_record_and_the_last_word() {
    let (mut stdout, mut from) = of_pipe();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        text
    });
    for at in 0..50 {
        stdout.append(&chunk(at * 100..at * 100 + 100), true).unwrap();
    }
    stdout.gone("flowlog was stopped");
    stdout.close(true).unwrap();
    let written = stdout.take_written();
    assert_eq!((written.records, written.lost, written.notices), (5000, 0, 1));
    drop(stdout);
    let text = reader.join().unwrap();
    let (records, last) = text.split_at(lines(0..5000).len());
    assert_eq!(records, lines(0..5000));
    assert!(last.contains("NODE_GONE") && last.lines().count() == 1, "{last}");
}

#[test]
fn a_reader_that_is_gone_costs_this_tasks_records_only_and_no_time() {
    let (mut stdout, from) = of_pipe();
    stdout.append(&chunk(0..10), false).unwrap();
    drop(from);
    let began = Instant::now();
    for at in 1..100 {
        stdout.append(&chunk(at * 10..at * 10 + 10), false).unwrap();
    }
    assert!(began.elapsed() < Duration::from_millis(500), "it waited for nobody");
    assert!(stdout.trouble().unwrap().contains("gone"));
    stdout.close(false).unwrap();
    let written = stdout.take_written();
    assert_eq!(written.records + written.lost, 1000);
    assert!(written.lost >= 980, "{written:?}");
}

#[test]
fn a_reader_that_stands_still_is_told_what_it_missed() {
    let (mut stdout, mut from) = of_pipe();
    let (mut appended, began) = (0_u64, Instant::now());
    // Far more than the pipe and the queue hold.
    while stdout.trouble().is_none() {
        let at = u32::try_from(appended).unwrap();
        stdout.append(&chunk(at..at + 1000), false).unwrap();
        appended += 1000;
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    assert!(stdout.trouble().unwrap().contains("nobody reads"));
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        from.read_to_end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    while stdout.trouble().is_some() {
        stdout.retry_at = None;
        stdout.tick(Instant::now()).unwrap();
        std::thread::yield_now();
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    let at = u32::try_from(appended).unwrap();
    stdout.append(&chunk(at..at + 10), false).unwrap();
    stdout.close(false).unwrap();
    let written = stdout.take_written();
    assert_eq!(written.records + written.lost, appended + 10);
    drop(stdout);
    let text = reader.join().unwrap();
    assert!(text.contains(&format!("\"num_events_lost\":\"{}\"", written.lost)), "{written:?}");
    let whole: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let flows = whole.iter().filter(|line| line.get("flow").is_some()).count();
    assert_eq!((flows as u64, whole.len() as u64), (written.records, written.records + written.notices));
    assert!(text.ends_with(&lines(at..at + 10)) || text.contains(&lines(at..at + 10)));
}

/// A FIFO whose readers come and go, and one that takes its records.
struct Fifo {
    path: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl Fifo {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        Self { path, _folder: folder }
    }

    fn reader(&self) -> std::fs::File {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        rustix::fs::open(&self.path, flags, rustix::fs::Mode::empty()).unwrap().into()
    }

    /// One that comes after another has gone: what that one has not read is left to nobody.
    fn next_reader(&self) -> std::fs::File {
        let mut reader = self.reader();
        std::io::copy(&mut (&mut reader).take(1 << 20), &mut std::io::sink()).unwrap_or_default();
        reader
    }

    /// Needs a reader.
    fn stdout(&self) -> Stdout {
        let to = std::fs::OpenOptions::new().write(true).open(&self.path).unwrap();
        Stdout::new(&spec(), "n", to.into())
    }
}

/// Looks at once whether somebody reads again.
fn look(stdout: &mut Stdout) {
    stdout.retry_at = None;
    stdout.tick(Instant::now()).unwrap();
}

fn assert_whole(text: &str) {
    assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{text}");
}

#[test]
fn a_new_reader_begins_with_a_whole_record() {
    let fifo = Fifo::new();
    let mut first = fifo.reader();
    let mut stdout = fifo.stdout();
    let records = 2000;
    stdout.append(&chunk(0..records), false).unwrap();
    first.read_exact(&mut [0; 512]).unwrap();
    drop(first);
    stdout.tick(Instant::now()).unwrap();
    assert!(stdout.trouble().unwrap().contains("gone"));
    let mut second = fifo.next_reader();
    look(&mut stdout);
    stdout.append(&chunk(records..records + 10), false).unwrap();
    stdout.close(false).unwrap();
    let written = stdout.take_written();
    assert_eq!(written.records + written.lost, u64::from(records) + 10);
    drop(stdout);
    let mut text = String::new();
    second.read_to_string(&mut text).unwrap();
    assert_whole(&text);
    assert!(text.starts_with("{\"lost_events\"") && text.ends_with(&lines(records..records + 10)), "{text}");
}

/// The same where the reader that left had the beginning of a line about losses: the next one gets all of that line.
#[test]
fn a_new_reader_gets_the_whole_of_a_notice_that_was_begun() {
    let fifo = Fifo::new();
    let first = fifo.reader();
    let mut stdout = fifo.stdout();
    // One notice that is longer than the pipe: part of it is written, and the rest waits.
    let long = format!("{{\"node_status\":{{\"message\":\"{}\"}}}}\n", "x".repeat(1 << 20));
    stdout.push_notices(long.clone().into_bytes(), 1, 1);
    stdout.pump(Duration::ZERO);
    let waits = stdout.waiting_bytes;
    assert!(waits > 0 && waits < long.len() as u64, "{waits} of {} bytes wait", long.len());
    drop(first);
    stdout.tick(Instant::now()).unwrap();
    assert!(stdout.trouble().unwrap().contains("gone"));
    assert_eq!(stdout.waiting_bytes, long.len() as u64);
    let mut second = fifo.next_reader();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        while !text.ends_with(b"\n") {
            match second.read_to_end(&mut text) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
                read => drop(read.unwrap()),
            }
        }
        String::from_utf8(text).unwrap()
    });
    let began = Instant::now();
    while stdout.waiting_bytes > 0 {
        look(&mut stdout);
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    drop(stdout);
    assert!(reader.join().unwrap() == long, "the notice is not whole");
}
