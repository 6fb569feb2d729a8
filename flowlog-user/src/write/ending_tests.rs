//! How files end when something stands in the way.

use super::tests::{ZSTD, chunk, later, lines, names, open, spec, zstd_cat};
use super::*;
use crate::limits::RETRY_MS;
use crate::record::container::{Index, TAIL_BYTES, payload_len};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const PLAIN: Compression = Compression::None;
const GZIP: Compression = Compression::Gzip { level: 6 };

/// The index at a file's end, checked against the frames that `zstd` itself finds.
fn index(path: &Path) -> Index {
    let bytes = fs::read(path).unwrap();
    let len = payload_len(bytes[bytes.len() - TAIL_BYTES..].try_into().unwrap()).unwrap();
    let index = Index::parse(&bytes[bytes.len() - usize::try_from(len).unwrap()..]).unwrap();
    for frame in &index.frames {
        let rest = &bytes[usize::try_from(frame.offset).unwrap()..];
        let size = zstd::zstd_safe::find_frame_compressed_size(rest).unwrap();
        let text = zstd::decode_all(&rest[..size]).unwrap();
        assert_eq!(text.iter().filter(|byte| **byte == b'\n').count() as u64, frame.lines);
    }
    index
}

/// What a text's `lost_events` lines add up to.
fn told(text: &str) -> u64 {
    text.lines()
        .filter_map(|line| {
            serde_json::from_str::<serde_json::Value>(line)
                .unwrap()
                .pointer("/lost_events/num_events_lost")?
                .as_str()?
                .parse::<u64>()
                .ok()
        })
        .sum()
}

/// As much text as can be read, up to the last newline.
fn whole_lines(mut from: impl std::io::Read) -> String {
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = from.read(&mut piece) {
        text.extend_from_slice(&piece[..read]);
    }
    text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    String::from_utf8(text).unwrap()
}

/// Somebody makes the live file shorter, and then the task ends, without another record.
#[test]
fn a_file_that_others_made_shorter_gets_no_index_and_the_next_one_tells() {
    for compression in [ZSTD, PLAIN] {
        for left in [0_usize, 100, 400, 560] {
            let dir = tempfile::tempdir().unwrap();
            let (mut writer, _) = open(&spec(dir.path(), compression), dir.path());
            writer.append(&chunk(0..20)).unwrap();
            writer.tick(later(FRAME_MS_MAX)).unwrap();
            let live = dir.path().join("sub").join(&writer.names.live);
            let before = fs::read(&live).unwrap();
            fs::File::options().write(true).open(&live).unwrap().set_len(left as u64).unwrap();
            let path = writer.close().unwrap().path.unwrap();
            let text = match compression {
                Compression::Zstd { .. } => zstd_cat(&path).0,
                _ => fs::read_to_string(&path).unwrap(),
            };
            assert!(text.contains("NODE_ERROR") && text.contains("20 records were written to it"), "{text}");
            // What the file that stays holds by zstd itself, or as whole lines of text.
            let still = match compression {
                Compression::Zstd { .. } => zstd::stream::read::Decoder::new(&before[..left])
                    .map(|from| whole_lines(from).matches('\n').count())
                    .unwrap_or(0),
                _ => before[..left].iter().filter(|byte| **byte == b'\n').count(),
            };
            assert_eq!(told(&text), 20 - still as u64, "{text}");
            assert_eq!(writer.take_written().gone, 20 - still as u64);
            let names = names(&dir.path().join("sub"));
            assert_eq!(names.len(), if left == 0 { 1 } else { 2 }, "{names:?}");
            if left > 0 {
                let kept = fs::read(dir.path().join("sub").join(&names[0])).unwrap();
                assert_eq!(kept, before[..left], "it stays as it is");
            }
        }
    }
}

/// Records wait because nothing can be written, and then the file is deleted or made shorter: they go into the next one.
#[test]
fn what_waits_goes_into_the_next_file() {
    for compression in [ZSTD, PLAIN, GZIP] {
        for shorter in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (mut writer, _) = open(&spec(dir.path(), compression), dir.path());
            writer.append(&chunk(0..10)).unwrap();
            writer.tick(later(FLUSH_MS)).unwrap();
            let live = dir.path().join("sub").join(&writer.names.live);
            let unwritable = fs::File::open(&live).unwrap();
            writer.live.as_mut().unwrap().file = unwritable;
            let _ = writer.append(&chunk(10..3000)); // Fails here or at the flush.
            let _ = writer.tick(later(FLUSH_MS));
            assert!(writer.trouble().is_some());
            writer.append(&chunk(3000..4000)).unwrap();
            if shorter {
                fs::File::options().write(true).open(&live).unwrap().set_len(0).unwrap();
            } else {
                fs::remove_file(&live).unwrap();
            }
            writer.tick(later(RETRY_MS)).unwrap();
            assert_eq!(writer.trouble(), None);
            writer.append(&chunk(4000..4001)).unwrap();
            let path = writer.close().unwrap().path.unwrap();
            let written = writer.take_written();
            assert_eq!((written.records, written.lost), (4001, 0));
            let text = match compression {
                Compression::Zstd { .. } => {
                    index(&path);
                    zstd_cat(&path).0
                }
                Compression::Gzip { .. } => {
                    let out = std::process::Command::new("gzip").arg("-dc").arg(&path).output().unwrap();
                    assert!(out.status.success());
                    String::from_utf8(out.stdout).unwrap()
                }
                Compression::None => fs::read_to_string(&path).unwrap(),
            };
            let (said, records): (Vec<_>, Vec<_>) =
                text.lines().partition(|line| line.contains("NODE_ERROR") || line.contains("lost_events"));
            assert_eq!(records.join("\n") + "\n", lines(10..4001));
            let (what, lines) = if shorter { ("changed", 3) } else { ("deleted", 2) };
            assert!(said.len() == lines && said[0].contains(what) | said[1].contains(what), "{said:?}");
            assert_eq!((told(&text), written.gone), (10, 10), "what was in the file before");
        }
    }
}

/// A frame is open, half of it written, when nothing more can be: it is closed where it is, and can be read.
#[test]
fn a_frame_that_an_error_leaves_open_is_closed() {
    for (again, first) in [(false, true), (true, true), (false, false), (true, false)] {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
        let mut at = 0;
        if !first {
            writer.append(&chunk(0..10)).unwrap();
            writer.tick(later(FRAME_MS_MAX)).unwrap();
            at = 10;
        }
        for _ in 0..2 {
            writer.append(&chunk(at..at + 10)).unwrap();
            writer.tick(later(FLUSH_MS)).unwrap();
            at += 10;
        }
        let live = dir.path().join("sub/a.log.zst");
        let unwritable = fs::File::open(&live).unwrap();
        let file = std::mem::replace(&mut writer.live.as_mut().unwrap().file, unwritable);
        writer.append(&chunk(at..at + 10)).unwrap();
        writer.tick(later(FLUSH_MS)).unwrap_err();
        let readable = zstd_cat(&live).0;
        assert_eq!(readable, lines(0..at));
        writer.live.as_mut().unwrap().file = file;
        if again {
            writer.tick(later(RETRY_MS)).unwrap();
        } else {
            writer.discard("the disk is full");
            writer.say_at_the_end();
            writer.trouble = None;
        }
        writer.gone("flowlog was stopped");
        let path = writer.close().unwrap().path.unwrap();
        let written = writer.take_written();
        let (text, whole) = zstd_cat(&path);
        let want = if again { at + 10 } else { at };
        assert!(whole && text.starts_with(&lines(0..want)), "{text}");
        assert_eq!((written.records, written.lost), (want.into(), u64::from(at + 10 - want)));
        assert_eq!(text.contains("\"num_events_lost\":\"10\""), !again, "{text}");
        assert!(text.lines().last().unwrap().contains("NODE_GONE"), "{text}");
        let frames = index(&path).frames;
        assert_eq!(frames.iter().map(|frame| frame.lines).sum::<u64>(), text.lines().count() as u64);
    }
}

/// A file that can neither be written nor closed stays as a crash would have left it, and the next start mends it.
#[test]
fn a_file_that_cannot_be_closed_keeps_its_live_name() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), ZSTD);
    let (mut writer, _) = open(&spec, dir.path());
    writer.append(&chunk(0..10)).unwrap();
    writer.tick(later(FLUSH_MS)).unwrap();
    let live = dir.path().join("sub/a.log.zst");
    writer.live.as_mut().unwrap().file = fs::File::open(&live).unwrap();
    writer.append(&chunk(10..15)).unwrap();
    writer.gone("flowlog was stopped");
    writer.close().unwrap_err();
    let written = writer.take_written();
    assert_eq!((written.records, written.lost), (10, 5));
    assert_eq!(writer.take_files().paths, std::slice::from_ref(&live));
    assert_eq!(zstd_cat(&live).0, lines(0..10));
    drop(writer);
    let (_, salvaged) = open(&spec, dir.path());
    let salvaged = salvaged.unwrap();
    assert!(salvaged.records == 10 && !salvaged.damaged, "{salvaged:?}");
    assert!(zstd_cat(&salvaged.path).0.starts_with(&lines(0..10)));
    // What was salvaged is as complete as any file: header and index.
    let index = index(&salvaged.path);
    assert_eq!(index.frames.iter().map(|frame| frame.lines).collect::<Vec<_>>(), [10, 1]);
    let times = (index.frames[0].first_ns, index.frames[0].last_ns);
    assert_eq!(times, (1_796_069_666_000_000_000, 1_796_069_666_009_000_000), "those in the records");
    let bytes = fs::read(&salvaged.path).unwrap();
    assert!(bytes.windows(8).any(|window| window == b"flowlogH"));
}

/// What a process leaves that is killed while one file takes another's place.
#[test]
fn a_whole_file_on_its_way_to_its_name_gets_there() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), ZSTD);
    let (mut writer, _) = open(&spec, dir.path());
    writer.append(&chunk(0..10)).unwrap();
    let path = writer.close().unwrap().path.unwrap();
    let folder = dir.path().join("sub");
    fs::rename(&path, folder.join("a.log.zst.next")).unwrap();
    // A child of another test, on its way to its program, may hold the lock of what was closed; it stays for the next one.
    let until = Instant::now() + Duration::from_secs(10);
    let (mut writer, salvaged) = loop {
        match open(&spec, dir.path()) {
            (mut writer, None) if Instant::now() < until => drop(writer.close().unwrap()),
            (writer, salvaged) => break (writer, salvaged.unwrap()),
        }
    };
    assert!(salvaged.records == 10 && !salvaged.damaged, "{salvaged:?}");
    assert_eq!(zstd_cat(&salvaged.path), (lines(0..10), true));
    writer.close().unwrap();
    assert_eq!(names(&folder).len(), 1);
    fs::write(folder.join("a.log.zst.next"), "").unwrap();
    let (mut writer, salvaged) = open(&spec, dir.path());
    assert_eq!(salvaged, None);
    writer.close().unwrap();
    assert_eq!(names(&folder).len(), 1);
}

/// Another process that wants the same file never gets it, however often it is rotated.
#[test]
fn a_name_is_never_free_while_its_task_writes() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    for compression in [ZSTD, PLAIN] {
        let spec = spec(dir.path(), compression);
        let (mut writer, _) = open(&spec, dir.path());
        let done = std::sync::atomic::AtomicBool::new(false);
        let tries = std::thread::scope(|scope| {
            let contender = scope.spawn(|| {
                let roots = Roots::new(&[dir.path().into()]).unwrap();
                let mut tries = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    match Writer::open(&spec, &roots) {
                        Err(Error::Busy { .. }) => tries += 1,
                        Err(error) => panic!("{error}"),
                        Ok(_) => panic!("it got the file after {tries} tries"),
                    }
                }
                tries
            });
            for i in 0..200 {
                writer.append(&chunk(i..i + 1)).unwrap();
                writer.rotate().unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            contender.join().unwrap()
        });
        assert!(tries > 100, "only {tries} tries");
        writer.close().unwrap();
    }
}
