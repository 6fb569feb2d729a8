//! Files whose writer was killed, at every byte; and what a slow task's file becomes.

use super::tests::{ZSTD, chunk, later, lines, names, open, spec, zstd_cat};
use super::*;
use crate::record::container::{Index, TAIL_BYTES, payload_len};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// The whole lines that zstd's decoder gives before it ends or stumbles.
pub(super) fn readable(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    let mut piece = [0; 1 << 12];
    let mut decoder = zstd::stream::read::Decoder::new(bytes).unwrap();
    while let Ok(n @ 1..) = decoder.read(&mut piece) {
        text.extend_from_slice(&piece[..n]);
    }
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    String::from_utf8(text[..whole].to_vec()).unwrap()
}

/// A restart over a file cut there: what was readable is, every tool finds the file whole, and a line says what is
/// missing. Gives the salvaged text.
fn restart(dir: &Path, bytes: &[u8], finished: bool) -> String {
    let folder = dir.join("sub");
    fs::write(folder.join("a.log.zst"), bytes).unwrap();
    let before = readable(bytes);
    let (mut writer, salvaged) = open(&spec(dir, ZSTD), dir);
    let salvaged = salvaged.unwrap();
    let cut = bytes.len();
    assert_eq!(salvaged.records, before.lines().count() as u64, "cut at {cut}");
    let left = fs::read(&salvaged.path).unwrap();
    if before.is_empty() {
        writer.close().unwrap();
        fs::remove_file(&salvaged.path).unwrap();
        return before;
    }
    let text = zstd::decode_all(&*left).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
    let text = String::from_utf8(text).unwrap();
    let last = text.strip_prefix(&before).unwrap_or_else(|| panic!("cut at {cut}: {} bytes", text.len()));
    if finished {
        assert_eq!(last, "", "cut at {cut}");
    } else {
        let value: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(value["node_status"]["state_change"], "NODE_GONE", "cut at {cut}");
    }
    assert!(!salvaged.damaged && salvaged.what.contains("is whole now") != finished, "cut at {cut}");
    if !finished && !cut.is_multiple_of(16) {
        drop(writer);
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        return text;
    }
    // The restart goes on in a file of its own, and touches the other no more.
    writer.append(&chunk(9000..9001)).unwrap();
    let next = writer.close().unwrap().path.unwrap();
    let text_of_next = zstd_cat_all(&next);
    assert!(text_of_next.ends_with(&lines(9000..9001)));
    assert_eq!(text_of_next.lines().count(), 1 + usize::from(finished), "{text_of_next}");
    assert_eq!(text_of_next.contains("without closing"), finished);
    assert!(salvaged.path < next, "names sort as the files were written");
    assert_eq!(fs::read(&salvaged.path).unwrap(), left, "cut at {cut}");
    assert_eq!(names(&folder).len(), 2, "cut at {cut}: {:?}", names(&folder));
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    text
}

pub(super) fn zstd_cat_all(path: &Path) -> String {
    String::from_utf8(zstd::decode_all(fs::File::open(path).unwrap()).unwrap()).unwrap()
}

/// In memory where that can be: thousands of syncs are no part of this.
pub(super) fn memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

#[test]
fn a_live_file_cut_at_every_byte_is_mended() {
    let dir = memory();
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    for i in 0..6 {
        writer.append(&chunk(i * 3..(i + 1) * 3)).unwrap();
        writer.tick(later(if i % 3 == 1 { FRAME_MS_MAX } else { FLUSH_MS })).unwrap();
    }
    let live = fs::read(dir.path().join("sub/a.log.zst")).unwrap();
    let file = writer.close().unwrap().path.unwrap();
    let finished = fs::read(&file).unwrap();
    fs::remove_file(file).unwrap();
    for whole in [live, finished] {
        let has_index = whole.ends_with(b"flowlogE");
        for cut in 1..whole.len() {
            restart(dir.path(), &whole[..cut], false);
        }
        // Whole, but without its finished name.
        assert!(restart(dir.path(), &whole, has_index).starts_with(&lines(0..18)));
    }
}

/// A process that was killed between two files leaves an empty one: the records that it held are missing.
#[test]
fn an_empty_file_that_was_left_is_told_with_the_first_record() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), Compression::None);
    drop(open(&spec, dir.path()));
    let (mut writer, salvaged) = open(&spec, dir.path());
    assert_eq!(salvaged, None);
    writer.append(&chunk(0..3)).unwrap();
    let text = fs::read_to_string(writer.close().unwrap().path.unwrap()).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let first: serde_json::Value = serde_json::from_str(first).unwrap();
    assert_eq!(first["node_status"]["state_change"], "NODE_GONE");
    assert!(first["node_status"]["message"].as_str().unwrap().contains("without closing"), "{first}");
    assert_eq!(rest, lines(0..3));
    // What was closed in order leaves nothing to tell.
    let (mut writer, _) = open(&spec, dir.path());
    writer.append(&chunk(3..4)).unwrap();
    assert_eq!(fs::read_to_string(writer.close().unwrap().path.unwrap()).unwrap(), lines(3..4));
}

#[test]
fn a_block_that_ends_within_a_record_keeps_the_records_before() {
    let dir = memory();
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    writer.append(&chunk(0..10)).unwrap();
    writer.tick(later(FLUSH_MS)).unwrap();
    // 400 KiB in one flush: blocks of 128 KiB, each of which ends within a record.
    writer.append(&chunk(10..5600)).unwrap();
    writer.tick(later(FLUSH_MS)).unwrap();
    let whole = fs::read(dir.path().join("sub/a.log.zst")).unwrap();
    drop(writer);
    fs::remove_file(dir.path().join("sub/a.log.zst")).unwrap();
    let (mut seen, mut checked) = (std::collections::BTreeSet::new(), 0);
    for cut in (1..whole.len()).step_by(641).chain([whole.len() - 1]) {
        let text = restart(dir.path(), &whole[..cut], false);
        seen.insert(text.lines().count());
        checked += 1;
    }
    assert!(seen.len() >= 4 && seen.contains(&0) && seen.contains(&11), "{seen:?} of {checked} cuts");
    assert!(seen.iter().any(|lines| (1000..5000).contains(lines)), "{seen:?}");
    // zstd's own command agrees.
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    writer.close().unwrap();
    fs::write(dir.path().join("sub/a.log.zst"), &whole[..whole.len() * 2 / 3]).unwrap();
    let (_, salvaged) = open(&spec(dir.path(), ZSTD), dir.path());
    let path = salvaged.unwrap().path;
    assert!(Command::new("zstd").arg("-tq").arg(&path).status().unwrap().success());
    assert!(zstd_cat(&path).1);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
}

#[test]
fn what_is_no_file_of_ours_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let sized = zstd::bulk::compress(lines(0..100).as_bytes(), 1).unwrap(); // Its head says how much it holds.
    let mut damaged = zstd::encode_all(lines(0..5000).as_bytes(), 1).unwrap();
    damaged[6] |= 0b110; // A block of a kind that there is not.
    for bytes in [&sized[..sized.len() - 9], &damaged[..damaged.len() - 1], b"plain text", &[0x28, 0xb5]] {
        let live = dir.path().join("sub/a.log.zst");
        fs::write(&live, bytes).unwrap();
        let (_, salvaged) = open(&spec(dir.path(), ZSTD), dir.path());
        let salvaged = salvaged.unwrap();
        assert!(salvaged.damaged);
        let kept = fs::read(&salvaged.path).unwrap();
        assert!(kept == bytes || bytes.len() == 2, "{} of {} bytes", kept.len(), bytes.len());
    }
}

/// A record a second, for two minutes, with a flush each second and a frame each thirty.
#[test]
fn a_slow_tasks_file_is_put_together_when_it_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    for i in 0..120 {
        writer.append(&chunk(i..i + 1)).unwrap();
        writer.tick(later(if i % 30 == 29 { FRAME_MS_MAX } else { FLUSH_MS })).unwrap();
    }
    let live = dir.path().join("sub/a.log.zst");
    let before = fs::metadata(&live).unwrap();
    let path = writer.close().unwrap().path.unwrap();
    let bytes = fs::read(&path).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert!(bytes.len() as u64 * 10 < before.len() * 8, "{} of {}", bytes.len(), before.len());
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert_eq!(zstd_cat(&path), (lines(0..120), true));
    // One frame, and an index that tells of all of it.
    let len = payload_len(bytes[bytes.len() - TAIL_BYTES..].try_into().unwrap()).unwrap();
    let index = Index::parse(&bytes[bytes.len() - usize::try_from(len).unwrap()..]).unwrap();
    let [frame] = index.frames[..] else { panic!("{:?}", index.frames) };
    let (first, last) = (chunk(0..1).first_ns, chunk(119..120).last_ns);
    assert_eq!((frame.offset, frame.lines, frame.first_ns, frame.last_ns), (0, 120, first, last));
    assert_eq!(names(&dir.path().join("sub")).len(), 1, "nothing unfinished stays");
}

#[test]
fn files_end_with_the_clock_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let second = Duration::from_secs(1);
    let spec = Spec {
        rotation_interval: Some(second),
        rotation_aligned: true,
        ..spec(dir.path(), Compression::None)
    };
    let (mut writer, _) = open(&spec, dir.path());
    for i in 0..2 {
        let begun_ns = wall_ns();
        writer.append(&chunk(i..i + 1)).unwrap();
        let end_ns = (begun_ns / 1_000_000_000 + 1) * 1_000_000_000;
        let before = writer.written.rotations;
        while writer.written.rotations == before {
            let at = writer.deadline().unwrap();
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            writer.tick(Instant::now()).unwrap();
        }
        // The first one's second may have ended between the two looks at the clock.
        let late_ns = wall_ns() - end_ns;
        assert!((0..2_000_000_000).contains(&late_ns), "{late_ns} ns after the second");
    }
    // An idle second is told.
    std::thread::sleep(second);
    writer.tick(Instant::now()).unwrap();
    writer.close().unwrap();
    let folder = dir.path().join("sub");
    let texts: Vec<_> =
        names(&folder).iter().map(|name| fs::read_to_string(folder.join(name)).unwrap()).collect();
    assert_eq!(texts[..2], [lines(0..1), lines(1..2)]);
    assert!(texts[2].contains("no records from"), "{texts:?}");
}

#[test]
fn names_sort_as_files_were_written_also_when_the_clock_went_back() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sub");
    let plain = spec(dir.path(), Compression::None);
    let mut at = chunk(0..1);
    // The same millisecond, an hour back, days back: within one run and over restarts.
    for (n, back_s) in [0, 0, 3600, 0, 86_400 * 3].into_iter().enumerate() {
        let (mut writer, _) = open(&plain, dir.path());
        at.first_ns = chunk(0..1).first_ns - back_s * 1_000_000_000;
        at.lines = format!("{{\"flow\":{{}},\"n\":{n}}}\n").into();
        writer.append(&at).unwrap();
        writer.rotate().unwrap();
        at.lines = format!("{{\"flow\":{{}},\"n\":{n}.5}}\n").into();
        writer.append(&at).unwrap();
        writer.close().unwrap();
    }
    // An earlier version's second file of a millisecond, which has to be read before the others.
    let ls = Command::new("ls").current_dir(&folder).output().unwrap();
    let listed = String::from_utf8(ls.stdout).unwrap();
    let numbers: Vec<String> = listed
        .lines()
        .map(|name| {
            fs::read_to_string(folder.join(name))
                .unwrap()
                .trim_end()
                .rsplit_once(':')
                .unwrap()
                .1
                .replace('}', "")
        })
        .collect();
    assert_eq!(numbers, ["0", "0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5"]);
}

/// A gap begins when the killed process was last heard of, not when somebody looks.
#[test]
fn an_empty_file_that_was_left_says_since_when_records_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    let left = dir.path().join("sub/a.log.zst");
    fs::create_dir(dir.path().join("sub")).unwrap();
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_764_590_000_125);
    fs::File::create(&left).unwrap().set_modified(at).unwrap();
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    writer.append(&chunk(0..3)).unwrap();
    let text = zstd_cat_all(&writer.close().unwrap().path.unwrap());
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["node_status"]["state_change"], "NODE_GONE", "{text}");
    assert_eq!(first["time"], "2025-12-01T11:53:20.125Z");
}
