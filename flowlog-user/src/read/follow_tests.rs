//! Files that get other names, grow and go while they are read.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::tests::{gzip, indexed, lines, print, request, zstd};
use super::*;

/// Takes what a follower prints.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn wait_for(&self, text: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            if *self.0.lock().unwrap() == text.as_bytes() {
                return;
            }
            std::thread::yield_now();
        }
        let got = self.0.lock().unwrap().clone();
        assert_eq!(String::from_utf8_lossy(&got).lines().count(), text.lines().count());
        assert_eq!(String::from_utf8_lossy(&got), text);
    }
}

/// Ends the reader also when a test fails.
struct StopLater<'a>(&'a AtomicBool);

impl Drop for StopLater<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a follower is asked for, until `then` is done, and what it says of damage.
fn following(request: &Request, then: impl FnOnce(&Shared)) -> (Summary, Vec<String>) {
    let (out, stop, damage) = (Shared::default(), AtomicBool::new(false), Mutex::new(Vec::new()));
    let summary = std::thread::scope(|scope| {
        let (mut to, stop_seen, seen) = (out.clone(), &stop, &damage);
        let reader = scope.spawn(move || {
            let mut report = |found: &Damage| seen.lock().unwrap().push(found.what.clone());
            follow(request, &mut to, &mut report, &|| stop_seen.load(Ordering::Relaxed)).unwrap()
        });
        let ends = StopLater(&stop);
        then(&out);
        drop(ends);
        reader.join().unwrap()
    });
    (summary, damage.into_inner().unwrap())
}

fn append(path: &Path, bytes: &[u8]) {
    fs::File::options().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_follower_sees_every_line_once_across_rotations() {
    let dir = tempfile::tempdir().unwrap();
    // Names that do not say how a file is compressed: it is seen.
    let live = dir.path().join("a.log");
    let finish =
        |n: u32| fs::rename(&live, dir.path().join(format!("a-20261130T201426.{n:03}Z.log"))).unwrap();
    append(&live, &zstd(&[lines(0..10)], false));
    let (summary, damage) = following(&request(&[dir.path()], Output::Json), |out| {
        out.wait_for(&lines(0..10));
        // An open frame, flushed, and its rest later.
        let open = zstd(&[lines(10..20)], true);
        let closed = zstd(&[lines(10..20)], false);
        append(&live, &open);
        out.wait_for(&lines(0..20));
        append(&live, &closed[open.len()..]);
        // More is written just before the file is finished, and two rotations pass at once.
        append(&live, &indexed(&[lines(20..30)]));
        finish(0);
        append(&live, &indexed(&[lines(30..40)]));
        finish(30);
        append(&live, &indexed(&[lines(40..50)]));
        out.wait_for(&lines(0..50));
        finish(40);
        append(&live, &indexed(&[lines(50..60)]));
        out.wait_for(&lines(0..60));
        // Finished as another file: put together with what was not read yet, then compressed.
        fs::write(dir.path().join("tmp.tmp"), indexed(&[lines(50..65)])).unwrap();
        fs::rename(dir.path().join("tmp.tmp"), &live).unwrap();
        finish(50);
        out.wait_for(&lines(0..65));
        append(&live, lines(65..70).as_bytes());
        out.wait_for(&lines(0..70));
        fs::write(dir.path().join("tmp.tmp"), gzip(&lines(65..72))).unwrap();
        fs::rename(dir.path().join("tmp.tmp"), dir.path().join("a-20261130T201426.065Z.log.gz")).unwrap();
        fs::remove_file(&live).unwrap();
        append(&live, &zstd(&[lines(72..75)], false));
        out.wait_for(&lines(0..75));
    });
    assert_eq!((summary.lines, damage), (75, Vec::new()));
}

#[test]
fn a_follower_begins_with_the_last_lines_and_goes_on_with_all() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("a.log");
    fs::write(&live, lines(0..20)).unwrap();
    let request = Request { limit: Limit::Last(3), ..request(&[dir.path()], Output::Json) };
    let (_, damage) = following(&request, |out| {
        out.wait_for(&lines(17..20));
        append(&live, lines(20..30).as_bytes());
        out.wait_for(&lines(17..30));
    });
    assert_eq!(damage, Vec::<String>::new());
}

/// Files that a shell's pattern named are deleted by their task as time goes on.
#[test]
fn a_follower_goes_on_when_a_named_file_is_deleted_or_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (old, live) = (dir.path().join("a-20261130T201426.000Z.log"), dir.path().join("a.log"));
    fs::write(&old, lines(0..10)).unwrap();
    fs::write(&live, lines(10..20)).unwrap();
    let (summary, damage) = following(&request(&[&old, &live], Output::Json), |out| {
        out.wait_for(&lines(0..20));
        fs::remove_file(&old).unwrap();
        append(&live, lines(20..30).as_bytes());
        out.wait_for(&lines(0..30));
        // The same file with other, fewer bytes.
        fs::write(&live, lines(40..45)).unwrap();
        out.wait_for(&(lines(0..30) + &lines(40..45)));
    });
    assert_eq!(summary.lines, 35);
    assert!(damage.len() == 1 && damage[0].contains("became shorter"), "{damage:?}");
}

/// A folder that is listed while a file gets another name may show the next live file before the one that was finished;
/// and somebody may put an older file there.
#[test]
fn a_follower_goes_on_with_the_live_file_when_an_older_one_appears() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("a.log");
    let (plain, zipped) = ("a-20261130T201426.000Z.log", "a-20261130T201426.005Z.log.gz");
    fs::write(&live, lines(20..25)).unwrap();
    let (summary, damage) = following(&request(&[dir.path()], Output::Json), |out| {
        let mut want = lines(20..25);
        out.wait_for(&want);
        for (name, bytes, older) in
            [(plain, lines(0..5).into_bytes(), 0..5), (zipped, gzip(&lines(5..10)), 5..10)]
        {
            fs::write(dir.path().join(name), bytes).unwrap();
            want += &lines(older.clone());
            out.wait_for(&want);
            append(&live, lines(25 + older.start..30 + older.start).as_bytes());
            want += &lines(25 + older.start..30 + older.start);
            out.wait_for(&want);
        }
        // Two live files of a task, as after a change of its compression.
        let other = dir.path().join("a.log.zst");
        for at in [40, 50] {
            append(&other, &zstd(&[lines(at..at + 5)], false));
            want += &lines(at..at + 5);
            out.wait_for(&want);
            append(&live, lines(at + 5..at + 10).as_bytes());
            want += &lines(at + 5..at + 10);
            out.wait_for(&want);
        }
        fs::rename(&live, dir.path().join("a-20261130T201426.020Z.log")).unwrap();
        fs::write(&live, lines(60..65)).unwrap();
        out.wait_for(&(want + &lines(60..65)));
    });
    assert_eq!((summary.lines, damage), (50, Vec::new()));
}

/// Finishes the live file so often, one after the other as a task does: one line each.
fn rotate(dir: &Path, numbers: std::ops::Range<u32>) {
    let live = dir.join("a.log");
    for number in numbers {
        fs::write(&live, lines(number..number + 1)).unwrap();
        let (second, ms) = (26 + number / 1000, number % 1000);
        fs::rename(&live, dir.join(format!("a-20261130T2014{second}.{ms:03}Z.log"))).unwrap();
    }
}

/// Calls `look` again and again while files get their finished names, with how many there were before.
fn while_rotating(mut look: impl FnMut(&Path, u32)) {
    const AT_ONCE: u32 = 25;
    let dir = tempfile::tempdir().unwrap();
    // Listing takes a while.
    for other in 0..500 {
        fs::write(dir.path().join(format!("b-20261130T201426.{other:03}Z.log")), "").unwrap();
    }
    let (goes, go) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        // Ends the thread when it is dropped, also by a failure.
        let goes = goes;
        scope.spawn(|| go.into_iter().for_each(|from| rotate(dir.path(), from..from + AT_ONCE)));
        for round in 0..12 {
            goes.send(round * AT_ONCE).unwrap();
            look(dir.path(), round.saturating_sub(1) * AT_ONCE);
            // The next ones begin when these are there.
            let last = round * AT_ONCE + AT_ONCE - 1;
            let last = dir.path().join(format!("a-20261130T201426.{last:03}Z.log"));
            while !last.exists() {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
fn no_file_is_missed_that_gets_its_finished_name_while_it_is_listed() {
    while_rotating(|dir, before| {
        let (text, summary) = print(&[dir], Output::Json);
        let count = u32::try_from(summary.lines).unwrap();
        assert!(count >= before && text == lines(0..count), "{before} files, {count} of them read: {text}");
    });
    while_rotating(|dir, before| {
        let verdicts = verify(&[dir.to_path_buf()]).unwrap();
        let checked: u64 = verdicts.iter().map(|verdict| verdict.lines).sum();
        assert!(checked >= before.into(), "{before} files, {checked} of them checked");
    });
}

#[test]
fn a_follower_misses_no_file_however_fast_they_change() {
    let dir = tempfile::tempdir().unwrap();
    rotate(dir.path(), 0..10);
    let (summary, damage) = following(&request(&[dir.path()], Output::Json), |out| {
        rotate(dir.path(), 10..3_000);
        let begun = Instant::now();
        let seen = || out.0.lock().unwrap().iter().filter(|byte| **byte == b'\n').count();
        while seen() < 3_000 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
    });
    assert_eq!((summary.lines, damage), (3_000, Vec::new()));
}
