use super::super::{Definition, Owner, Sync};
use super::*;
use crate::limits::{FRAME_BYTES_MAX, RETRY_MS};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

pub(in crate::write) const ZSTD: Compression = Compression::Zstd { level: 3 };
/// 2026-11-30T20:14:26.123Z
const FIRST_NS: i64 = 1_796_069_666_123_000_000;

fn is_send<T: Send>() {}

pub(in crate::write) fn spec(dir: &Path, compression: Compression) -> Spec {
    Spec {
        format: crate::record::Format::Json,
        notices: super::super::notice::ENCODER,
        task: "t".into(),
        path: dir.join("sub/a.log"),
        compression,
        size_bytes_max: 10 << 20,
        total_bytes_max: 60 << 20,
        age_max: None,
        free_percent_min: None,
        rotation_interval: None,
        rotation_aligned: false,
        mode: 0o640,
        owner: Owner::default(),
        sync: Sync::None,
        on_full: OnFull::Drop,
        on_end: OnEnd::Keep,
        definition: Definition::default(),
    }
}

/// Opens; a lock that was just given up may live on for a moment in a process that another test is about to start.
pub(super) fn open(spec: &Spec, root: &Path) -> (Writer, Option<Salvaged>) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match Writer::open(spec, &Roots::new(&[root.into()]).unwrap()) {
            Err(Error::Busy { .. }) if Instant::now() < until => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

fn said(salvaged: Option<Salvaged>) -> (PathBuf, u64, bool) {
    salvaged.map(|salvaged| (salvaged.path, salvaged.records, salvaged.damaged)).unwrap()
}

fn refused(spec: &Spec, root: &Path) -> Error {
    Writer::open(spec, &Roots::new(&[root.into()]).unwrap()).err().unwrap()
}

/// Lines that compress badly, so that sizes matter.
pub(super) fn lines(range: std::ops::Range<u32>) -> String {
    range
        .map(|i| {
            let noise = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let noise = (noise ^ (noise >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            format!(
                "{{\"n\":{i},\"x\":\"{noise:016x}\",\"time\":\"2026-11-30T20:14:26.{:03}Z\"}}\n",
                i % 1000
            )
        })
        .collect()
}

pub(super) fn chunk(range: std::ops::Range<u32>) -> Chunk {
    let first_ns = FIRST_NS + i64::from(range.start) * 1_000_000;
    Chunk {
        format: crate::record::Format::Json,
        records: range.end - range.start,
        lines: lines(range).into(),
        first_ns,
        last_ns: first_ns,
        seen_from_ns: first_ns,
    }
}

pub(super) fn later(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

/// What `zstd -dc` gives, and whether it found the file whole.
pub(super) fn zstd_cat(path: &Path) -> (String, bool) {
    let output = Command::new("zstd").arg("-dc").arg(path).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

pub(super) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn flushed_records_are_readable_while_the_file_is_live_and_only_those_count() {
    is_send::<Writer>();
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, salvaged) = open(&spec(dir.path(), ZSTD), dir.path());
    assert_eq!(salvaged, None);
    assert_eq!(writer.deadline(), None);
    writer.append(&chunk(0..10)).unwrap();
    assert_eq!(writer.take_written(), Written::default());
    assert!(writer.deadline().unwrap() <= later(FLUSH_MS));
    writer.tick(Instant::now()).unwrap();
    assert_eq!(writer.take_written(), Written::default(), "not due yet");

    writer.tick(later(FLUSH_MS)).unwrap();
    let live = dir.path().join("sub/a.log.zst");
    let disk_bytes = fs::metadata(&live).unwrap().len();
    let bytes = lines(0..10).len() as u64;
    assert_eq!(writer.take_written(), Written { records: 10, bytes, disk_bytes, ..Written::default() });
    assert_eq!(zstd_cat(&live), (lines(0..10), false), "flushed, the frame is open");

    writer.append(&chunk(10..20)).unwrap();
    writer.tick(later(FRAME_MS_MAX)).unwrap();
    assert_eq!(zstd_cat(&live), (lines(0..20), true), "the frame has ended");
    assert_eq!(writer.deadline(), None);
    assert_eq!(writer.take_written().records, 10);
    assert_eq!(fs::metadata(&live).unwrap().permissions().mode() & 0o7777, 0o640);
    assert_eq!(fs::metadata(dir.path().join("sub")).unwrap().permissions().mode() & 0o7777, 0o750);

    writer.append(&chunk(20..21)).unwrap();
    let finished = dir.path().join("sub/a-20261130T201426.123Z.log.zst");
    assert_eq!(writer.close().unwrap(), Closed { path: Some(finished.clone()) });
    assert_eq!(writer.take_written().records, 1);
    assert_eq!(names(&dir.path().join("sub")), ["a-20261130T201426.123Z.log.zst"]);
    assert_eq!(zstd_cat(&finished), (lines(0..21), true));
    assert!(Command::new("zstd").arg("-tq").arg(&finished).status().unwrap().success());
    let list = Command::new("zstd").arg("-lv").arg(&finished).output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("# Zstandard Frames: 2"), "{list}");
    assert!(list.contains("Check: XXH64"), "{list}");
}

#[test]
fn what_is_due_is_done_even_when_only_records_come() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    writer.append(&chunk(0..10)).unwrap();
    writer.pending.since = Instant::now().checked_sub(Duration::from_millis(FLUSH_MS));
    writer.append(&chunk(10..20)).unwrap();
    assert_eq!(writer.take_written().records, 20);
    assert_eq!(zstd_cat(&dir.path().join("sub/a.log.zst")).0, lines(0..20));
}

#[test]
fn a_frame_ends_when_it_holds_enough_records() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    let mut at = 0;
    while writer.written.records == 0 {
        writer.append(&chunk(at..at + 1000)).unwrap();
        at += 1000;
        writer.pending.since = None; // On a busy machine a second may pass, and a flush be due.
    }
    let bytes = lines(0..at).len();
    assert!((FRAME_BYTES_MAX..FRAME_BYTES_MAX + lines(at - 1000..at).len()).contains(&bytes), "{bytes}");
    assert_eq!(zstd_cat(&dir.path().join("sub/a.log.zst")), (lines(0..at), true));
}

#[test]
fn an_empty_file_leaves_nothing_and_is_reused() {
    let dir = tempfile::tempdir().unwrap();
    for compression in [ZSTD, Compression::Gzip { level: 6 }, Compression::None] {
        let spec = spec(dir.path(), compression);
        let (writer, _) = open(&spec, dir.path());
        drop(writer); // Killed: the empty file stays.
        assert_eq!(names(&dir.path().join("sub")).len(), 1);
        let (mut writer, salvaged) = open(&spec, dir.path());
        assert_eq!(salvaged, None);
        assert_eq!(writer.close().unwrap(), Closed { path: None });
        assert_eq!(names(&dir.path().join("sub")), [""; 0]);
    }
}

#[test]
fn links_and_places_outside_the_roots_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let root = dir.path();
    let good = spec(root, ZSTD);

    symlink(elsewhere.path(), root.join("sub")).unwrap();
    assert!(matches!(refused(&good, root), Error::Link { .. }));
    fs::remove_file(root.join("sub")).unwrap();

    fs::create_dir(root.join("sub")).unwrap();
    let live = root.join("sub/a.log.zst");
    symlink(elsewhere.path().join("victim"), &live).unwrap();
    let message = refused(&good, root).to_string();
    assert!(message.contains("symbolic link") && message.contains("task t"), "{message}");
    fs::remove_file(&live).unwrap();

    fs::write(elsewhere.path().join("victim"), "").unwrap();
    fs::hard_link(elsewhere.path().join("victim"), &live).unwrap();
    assert!(matches!(refused(&good, root), Error::NotRegular { .. }));
    fs::remove_file(&live).unwrap();

    rustix::fs::mknodat(
        rustix::fs::CWD,
        &live,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(matches!(refused(&good, root), Error::NotRegular { .. }));
    fs::remove_file(&live).unwrap();
    fs::create_dir(&live).unwrap();
    assert!(matches!(refused(&good, root), Error::NotRegular { .. }));

    for path in [elsewhere.path().join("a.log"), root.join("sub/../../a.log"), root.join("..").join("a.log")]
    {
        let error = refused(&Spec { path, ..good.clone() }, root);
        assert!(error.to_string().contains("--log-root"), "{error}");
    }
    assert_eq!(names(elsewhere.path()), ["victim"]);
}

#[test]
fn a_missing_root_is_created_and_a_missing_parent_named() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("flowlog");
    Roots::new(std::slice::from_ref(&root)).unwrap();
    assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o7777, 0o750);
    let error = Roots::new(&[dir.path().join("a/b")]).unwrap_err().to_string();
    assert!(error.contains("a/b") && error.contains("--log-root"), "{error}");
}

#[test]
fn a_second_writer_of_the_same_file_is_refused_until_the_first_closes() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), ZSTD);
    let (mut first, _) = open(&spec, dir.path());
    first.append(&chunk(0..1)).unwrap();
    first.tick(later(FLUSH_MS)).unwrap();
    let message = refused(&spec, dir.path()).to_string();
    assert!(message.contains("another process writes") && message.contains("a.log.zst"), "{message}");
    first.append(&chunk(1..2)).unwrap();
    first.close().unwrap();
    let (_second, salvaged) = open(&spec, dir.path());
    assert_eq!(salvaged, None);
}

#[test]
fn files_rotate_by_size_and_lose_nothing() {
    for compression in [ZSTD, Compression::Gzip { level: 6 }, Compression::None] {
        let dir = tempfile::tempdir().unwrap();
        let spec = Spec { size_bytes_max: 4 << 10, ..spec(dir.path(), compression) };
        let (mut writer, _) = open(&spec, dir.path());
        let mut written = Written::default();
        for i in 0..40 {
            writer.append(&chunk(i * 25..(i + 1) * 25)).unwrap();
            writer.tick(later(FLUSH_MS)).unwrap();
        }
        writer.close().unwrap();
        let now = writer.take_written();
        written.records += now.records;
        assert_eq!((written.records, now.lost, now.bytes), (1000, 0, lines(0..1000).len() as u64));
        let folder = dir.path().join("sub");
        let files = names(&folder);
        assert!(files.len() > 3, "{files:?}");
        assert_eq!(now.rotations, files.len() as u64);
        let mut all = String::new();
        for file in &files {
            let path = folder.join(file);
            let content = match compression {
                Compression::Zstd { .. } => zstd_cat(&path).0,
                Compression::Gzip { .. } => {
                    let output = Command::new("gzip").arg("-dc").arg(&path).output().unwrap();
                    assert!(output.status.success() && file.ends_with(".log.gz"));
                    String::from_utf8(output.stdout).unwrap()
                }
                Compression::None => {
                    assert!(fs::metadata(&path).unwrap().len() <= spec.size_bytes_max);
                    fs::read_to_string(&path).unwrap()
                }
            };
            assert!(content.ends_with('\n'));
            all += &content;
        }
        assert_eq!(all, lines(0..1000), "file names sort by time");
    }
}

#[test]
fn files_rotate_by_time_once_they_hold_something() {
    let dir = tempfile::tempdir().unwrap();
    let spec = Spec { rotation_interval: Some(Duration::from_mins(10)), ..spec(dir.path(), ZSTD) };
    let (mut writer, _) = open(&spec, dir.path());
    writer.tick(later(599_000)).unwrap();
    writer.append(&chunk(0..5)).unwrap();
    writer.tick(later(599_000)).unwrap();
    assert_eq!(writer.written.rotations, 0);
    let left = writer.deadline().unwrap() - Instant::now();
    assert!(left > Duration::from_mins(9), "only the rotation is left, in {left:?}");
    writer.tick(later(600_000)).unwrap();
    // The same first time again: a collision.
    writer.append(&chunk(0..5)).unwrap();
    writer.close().unwrap();
    assert_eq!(
        names(&dir.path().join("sub")),
        ["a-20261130T201426.123Z.log.zst", "a-20261130T201426.124Z.log.zst"]
    );
    assert_eq!(writer.take_written().rotations, 2);
}

#[test]
fn what_a_killed_process_left_is_kept_under_a_finished_name() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), ZSTD);
    let (mut writer, _) = open(&spec, dir.path());
    writer.append(&chunk(0..10)).unwrap();
    writer.tick(later(FRAME_MS_MAX)).unwrap();
    writer.append(&chunk(10..20)).unwrap();
    writer.tick(later(FLUSH_MS)).unwrap();
    writer.append(&chunk(20..30)).unwrap(); // Never flushed.
    drop(writer);
    let left = fs::read(dir.path().join("sub/a.log.zst")).unwrap();

    let (mut writer, salvaged) = open(&spec, dir.path());
    // Named by the `time` of its first record.
    let path = dir.path().join("sub/a-20261130T201426.000Z.log.zst");
    assert_eq!(said(salvaged), (path.clone(), 20, false));
    let mended = fs::read(&path).unwrap();
    assert!(mended.starts_with(&left), "what was there stays");
    let (text, whole) = zstd_cat(&path);
    let last = text.strip_prefix(&lines(0..20)).unwrap();
    assert!(whole && last.contains("NODE_GONE") && last.contains("flowlog ended without closing"), "{text}");
    writer.append(&chunk(30..31)).unwrap();
    writer.close().unwrap();
    assert_eq!(fs::read(&path).unwrap(), mended);
}

#[test]
fn salvage_of_plain_lines_and_of_anything_else() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sub");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.log"), lines(7..9) + "{\"half").unwrap();
    let (_, salvaged) = open(&spec(dir.path(), Compression::None), dir.path());
    let path = folder.join("a-20261130T201426.007Z.log");
    assert_eq!(said(salvaged), (path.clone(), 2, false));
    let text = fs::read_to_string(path).unwrap();
    let last = text.strip_prefix(&lines(7..9)).unwrap();
    assert!(last.contains("NODE_GONE") && last.ends_with("}\n") && last.lines().count() == 1, "{text}");

    fs::write(folder.join("a.log"), lines(8..9)).unwrap();
    fs::write(folder.join("a-20200101T000000.000Z.log.gz.tmp"), "half").unwrap();
    let (_, salvaged) = open(&spec(dir.path(), Compression::Gzip { level: 6 }), dir.path());
    let path = folder.join("a-20261130T201426.008Z.log.gz");
    assert_eq!(said(salvaged), (path, 1, false));
    assert!(!folder.join("a-20200101T000000.000Z.log.gz.tmp").exists());

    // No time to be read: that of the file counts.
    let file = fs::File::create(folder.join("a.log.zst")).unwrap();
    (&file).write_all(b"no zstd at all").unwrap();
    let modified = std::time::UNIX_EPOCH + Duration::from_millis(1_796_069_666_500);
    file.set_modified(modified).unwrap();
    let (_, salvaged) = open(&spec(dir.path(), ZSTD), dir.path());
    let path = folder.join("a-20261130T201426.500Z.log.zst");
    assert!(salvaged.as_ref().unwrap().what.contains("no file that flowlog has written"));
    assert_eq!(said(salvaged), (path.clone(), 0, true));
    assert_eq!(fs::read(path).unwrap(), b"no zstd at all");
}

#[test]
fn a_file_cut_anywhere_gives_every_record_flushed_before_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    let live = dir.path().join("sub/a.log.zst");
    let mut flushed = vec![(0_u64, 0_u32)];
    for i in 0..8 {
        writer.append(&chunk(i * 10..(i + 1) * 10)).unwrap();
        writer.tick(later(if i % 3 == 2 { FRAME_MS_MAX } else { FLUSH_MS })).unwrap();
        flushed.push((fs::metadata(&live).unwrap().len(), (i + 1) * 10));
    }
    let whole = fs::read(&live).unwrap();
    let cut = dir.path().join("cut.zst");
    let all = lines(0..80);
    let mut offsets: Vec<usize> = (4..whole.len()).step_by(23).collect();
    offsets.extend(flushed.iter().map(|(at, _)| usize::try_from(*at).unwrap()).filter(|at| *at > 0));
    for at in offsets {
        fs::write(&cut, &whole[..at]).unwrap();
        let records = flushed.iter().rfind(|(len, _)| *len <= at as u64).unwrap().1;
        let (text, _) = zstd_cat(&cut);
        assert!(all.starts_with(&text), "cut at {at}: something else comes out");
        assert!(text.len() >= lines(0..records).len(), "cut at {at}: {records} records were flushed");
    }
}

/// The live file, but nothing can be written to it.
fn break_live(writer: &mut Writer, dir: &Path) -> File {
    let unwritable = File::open(dir.join("sub").join(&writer.names.live)).unwrap();
    std::mem::replace(&mut writer.live.as_mut().unwrap().file, unwritable)
}

#[test]
fn what_cannot_be_written_waits_and_is_written_later_or_counted_as_lost() {
    for compression in [ZSTD, Compression::None] {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, _) = open(&spec(dir.path(), compression), dir.path());
        writer.append(&chunk(0..10)).unwrap();
        writer.tick(later(FLUSH_MS)).unwrap();
        let kept = break_live(&mut writer, dir.path());
        writer.append(&chunk(10..20)).unwrap_or_default();
        let message = writer.tick(later(FLUSH_MS)).unwrap_err().to_string();
        assert!(message.contains("task t") && message.contains("cannot write") && message.contains("a.log"));
        assert_eq!(writer.trouble(), Some(message.as_str()));
        assert_eq!((writer.written.records, writer.written.lost), (10, 0));
        assert!(writer.deadline().unwrap() <= later(RETRY_MS));

        // It goes on where it stopped.
        writer.live.as_mut().unwrap().file = kept;
        writer.tick(later(RETRY_MS)).unwrap();
        assert_eq!((writer.trouble(), writer.written.records), (None, 20));

        // For ever: what does not fit is lost, and so is at the end what waits.
        let kept = break_live(&mut writer, dir.path());
        let mut taken = 20;
        while writer.written.lost == 0 {
            writer.append(&chunk(taken..taken + 500)).unwrap_or_default();
            writer.tick(later(FLUSH_MS)).unwrap_or_default();
            taken += 500;
            assert!(taken < 200_000);
        }
        assert_eq!(writer.written.lost, 500);
        writer.close().unwrap_err();
        drop(kept);
        assert_eq!((writer.written.records, writer.written.lost), (20, u64::from(taken) - 20));
        let folder = dir.path().join("sub");
        let [name] = &names(&folder)[..] else { panic!("{:?}", names(&folder)) };
        assert_eq!(zstd_or_plain(&folder.join(name)), lines(0..20));
    }
}

fn zstd_or_plain(path: &Path) -> String {
    if path.extension().is_some_and(|ext| ext == "zst") {
        zstd_cat(path).0
    } else {
        fs::read_to_string(path).unwrap()
    }
}

#[test]
fn a_file_that_was_moved_away_is_not_renamed_over_another() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sub");
    let (mut writer, _) = open(&spec(dir.path(), Compression::None), dir.path());
    writer.append(&chunk(0..10)).unwrap();
    fs::rename(folder.join("a.log"), folder.join("moved")).unwrap();
    fs::write(folder.join("a.log"), "foreign\n").unwrap();
    assert!(matches!(writer.close().unwrap_err(), Error::Replaced { .. }));
    assert_eq!(fs::read_to_string(folder.join("moved")).unwrap(), lines(0..10));
    assert_eq!(fs::read_to_string(folder.join("a.log")).unwrap(), "foreign\n");
}

#[test]
fn writers_that_contend_for_a_file_lose_and_mix_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), Compression::None);
    let roots = Roots::new(&[dir.path().into()]).unwrap();
    let contend = |offset: u32| {
        let mut written = 0;
        while written < 50 {
            let (mut writer, salvaged) = match Writer::open(&spec, &roots) {
                Ok(opened) => opened,
                Err(Error::Busy { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(salvaged, None);
            writer.append(&chunk(offset + written..offset + written + 1)).unwrap();
            writer.close().unwrap();
            written += 1;
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| contend(0));
        scope.spawn(|| contend(100));
    });
    let folder = dir.path().join("sub");
    let records =
        |text: String| text.lines().find(|line| line.starts_with("{\"n\"")).map(|line| format!("{line}\n"));
    let mut texts: Vec<_> = names(&folder)
        .iter()
        // One may open and lock what the other has just made, and take it for left.
        .filter_map(|name| records(fs::read_to_string(folder.join(name)).unwrap()))
        .collect();
    texts.sort();
    let mut want: Vec<_> = (0..50).chain(100..150).map(|i| lines(i..i + 1)).collect();
    want.sort();
    assert_eq!(texts, want);
}
