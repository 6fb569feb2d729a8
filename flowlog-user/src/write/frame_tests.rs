//! Frames, header, index, and what they cost.

use super::super::{Definition, Sync};
use super::tests::{ZSTD, chunk, later, lines, names, open, spec, zstd_cat};
use super::*;
use crate::limits::{COMPRESSORS_BYTES_MAX, RETRY_MS};
use crate::record::container::{Index, SKIPPABLE_MAGIC, TAIL_BYTES, parse_header, payload_len};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The payloads of the skippable frames in a file and where each frame of content begins, found by `zstd`'s own
/// rules: a frame is what `zstd -dc` decodes when it begins there.
fn walk(bytes: &[u8]) -> (Vec<&[u8]>, Vec<usize>) {
    let (mut skippable, mut frames, mut at) = (Vec::new(), Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(&SKIPPABLE_MAGIC) {
            let len = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
            skippable.push(&bytes[at + 8..at + 8 + len]);
            at += 8 + len;
        } else {
            frames.push(at);
            at += zstd::zstd_safe::find_frame_compressed_size(&bytes[at..]).unwrap();
        }
    }
    (skippable, frames)
}

#[test]
fn a_finished_file_has_a_header_and_an_index_of_its_frames() {
    let dir = tempfile::tempdir().unwrap();
    let definition = Definition(r#"{"name":"t","fieldMask":["time"]}"#.into());
    let spec = Spec { definition, ..spec(dir.path(), ZSTD) };
    let (mut writer, _) = open(&spec, dir.path());
    for i in 0..5 {
        writer.append(&chunk(i * 10..(i + 1) * 10)).unwrap();
        writer.tick(later(if i == 1 { FLUSH_MS } else { FRAME_MS_MAX })).unwrap();
    }
    let path = writer.close().unwrap().path.unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(writer.take_written().disk_bytes, bytes.len() as u64);
    let (skippable, offsets) = walk(&bytes);
    assert_eq!(offsets[0], 0, "an ordinary frame first");
    let [header, index] = skippable[..] else { panic!("{}", skippable.len()) };
    let header: serde_json::Value = serde_json::from_str(parse_header(header).unwrap()).unwrap();
    assert_eq!((&header["task"], &header["definition"]["fieldMask"][0]), (&"t".into(), &"time".into()));
    assert_eq!(payload_len(bytes[bytes.len() - TAIL_BYTES..].try_into().unwrap()), Some(index.len() as u64));
    let index = Index::parse(index).unwrap();
    assert_eq!(index.task, "t");
    let got: Vec<_> =
        index.frames.iter().map(|frame| (usize::try_from(frame.offset).unwrap(), frame.lines)).collect();
    assert_eq!(got, offsets.iter().copied().zip([10, 20, 10, 10]).collect::<Vec<_>>());
    let (from, second, to) = (chunk(0..1).first_ns, chunk(10..11).first_ns, chunk(20..21).last_ns);
    assert_eq!(
        (index.frames[0].first_ns, index.frames[1].first_ns, index.frames[1].last_ns),
        (from, second, to)
    );
    assert_eq!(zstd_cat(&path), (lines(0..50), true));
    assert!(Command::new("zstd").arg("-tq").arg(&path).status().unwrap().success());
}

/// Two minutes of so many records in so many seconds, written as they would be, against one long stream: the overhead in
/// per cent.
fn overhead((records, every): (u32, u32)) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let spec = Spec { compression: Compression::Zstd { level: 1 }, ..spec(dir.path(), ZSTD) };
    let (mut writer, _) = open(&spec, dir.path());
    let seconds = 120 * every;
    let mut all = String::new();
    for second in (0..seconds).step_by(every as usize) {
        let from = second / every * records;
        let text: String = (from..from + records).map(flow).collect();
        let first_ns = chunk(0..1).first_ns + i64::from(second) * 1_000_000_000;
        all += &text;
        let chunk = Chunk {
            format: crate::record::Format::Json,
            lines: text.into(),
            records,
            first_ns,
            last_ns: first_ns,
            seen_from_ns: first_ns,
        };
        writer.append(&chunk).unwrap();
        // A frame lasts 30 s, within which each second is flushed.
        writer.tick(later(if second % 30 + every >= 30 { FRAME_MS_MAX } else { FLUSH_MS })).unwrap();
    }
    let path = writer.close().unwrap().path.unwrap();
    let long = zstd::encode_all(all.as_bytes(), 1).unwrap().len();
    let ours = usize::try_from(fs::metadata(path).unwrap().len()).unwrap();
    let overhead = (ours as f64 / long as f64 - 1.0) * 100.0;
    println!("{records} records in {every} s: {ours} bytes, one long stream {long}: {overhead:.1} %");
    overhead
}

/// A record as long and as varied as those of real traffic.
fn flow(i: u32) -> String {
    let noise = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(i) << 17);
    let (pod, port, peer, packets) =
        (noise % 41, 32_768 + (noise >> 7) % 28_000, (noise >> 23) % 97, (noise >> 31) % 50);
    let (uuid, bytes, ns) = (noise >> 5, packets * 800 + noise % 1500, noise % 1_000_000_000);
    format!(
        "{{\"flow\":{{\"time\":\"2026-11-30T20:14:{:02}.{ns:09}Z\",\"uuid\":\"{uuid:016x}-{i}\",\"verdict\":\"FORWARDED\",\
         \"IP\":{{\"source\":\"10.1.0.{pod}\",\"destination\":\"10.2.{}.{peer}\",\"ipVersion\":\"IPv4\"}},\"l4\":{{\"TCP\":\
         {{\"source_port\":{port},\"destination_port\":443}}}},\"extensions\":{{\"packets\":{packets},\"bytes\":{bytes}}}}},\
         \"time\":\"2026-11-30T20:14:{:02}.{ns:09}Z\"}}\n",
        i / 100 % 60,
        peer % 3,
        i / 100 % 60
    )
}

#[test]
fn frames_and_flushes_cost_little() {
    for (rate, max) in
        [((1000, 1), 5.0), ((100, 1), 5.0), ((30, 1), 15.0), ((10, 1), 15.0), ((1, 1), 15.0), ((1, 10), 15.0)]
    {
        let overhead = overhead(rate);
        assert!(overhead <= max, "{rate:?}: {overhead:.1} %");
    }
}

/// Whether this is the child that runs the test alone: compressors are shared by the whole process. The parent waits
/// for it.
fn alone(name: &str) -> bool {
    const CHILD: &str = "FLOWLOG_TEST_ALONE";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let name = format!("write::writer::frame_tests::{name}");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{said}");
    false
}

/// Resident bytes of this process.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn a_thousand_tasks_stay_small_and_lose_nothing() {
    if !alone("a_thousand_tasks_stay_small_and_lose_nothing") {
        return;
    }
    // In memory where that can be: a thousand syncs are no part of this.
    let dir = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let before = resident();
    let mut writers: Vec<_> = (0..1000)
        .map(|i| {
            let spec = Spec {
                task: format!("t{i}"),
                path: dir.path().join(format!("{i}.log")),
                ..spec(dir.path(), ZSTD)
            };
            open(&spec, dir.path()).0
        })
        .collect();
    for round in 0..3 {
        for writer in &mut writers {
            writer.append(&chunk(round * 200..(round + 1) * 200)).unwrap();
        }
        for writer in &mut writers {
            writer.tick(later(FLUSH_MS)).unwrap();
        }
    }
    let grown = resident().saturating_sub(before);
    println!("1000 tasks with records under way: {} MiB", grown >> 20);
    assert!(grown < 256 << 20, "{grown} bytes");
    assert!(grown > COMPRESSORS_BYTES_MAX / 8, "nothing was under way: {grown} bytes");
    for writer in &mut writers {
        let path = writer.close().unwrap().path.unwrap();
        assert_eq!(writer.take_written().records, 600);
        assert_eq!(zstd::decode_all(&fs::read(path).unwrap()[..]).unwrap(), lines(0..600).as_bytes());
    }
}

#[test]
fn a_sync_as_often_as_promised() {
    let dir = tempfile::tempdir().unwrap();
    let dirty = |sync| {
        let (mut writer, _) = open(&Spec { sync, ..spec(dir.path(), ZSTD) }, dir.path());
        writer.append(&chunk(0..10)).unwrap();
        writer.live.as_mut().unwrap().synced = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        writer.tick(later(FLUSH_MS)).unwrap();
        let after_flush = writer.live.as_ref().unwrap().dirty;
        writer.append(&chunk(10..20)).unwrap();
        writer.tick(later(FRAME_MS_MAX)).unwrap();
        let after_frame = writer.live.as_ref().unwrap().dirty;
        writer.close().unwrap();
        (after_flush, after_frame)
    };
    assert_eq!(dirty(Sync::None), (true, true));
    assert_eq!(dirty(Sync::Frame), (true, false));
    assert_eq!(dirty(Sync::Interval), (false, true), "synced at the flush, and again a second later");
}

#[test]
fn a_sync_that_failed_is_never_taken_as_done() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(&Spec { sync: Sync::Frame, ..spec(dir.path(), ZSTD) }, dir.path());
    writer.append(&chunk(0..10)).unwrap();
    writer.tick(later(FRAME_MS_MAX)).unwrap();
    writer.append(&chunk(10..20)).unwrap();
    // Written, and then the sync fails.
    writer.doubt(&writer.folder.io("sync", &writer.names.live, rustix::io::Errno::IO));
    writer.rotate().unwrap();
    writer.tick(later(RETRY_MS)).unwrap();
    writer.close().unwrap();
    let folder = dir.path().join("sub");
    let texts: Vec<_> = names(&folder).iter().map(|name| zstd_cat(&folder.join(name)).0).collect();
    let [old, new] = &texts[..] else { panic!("{texts:?}") };
    assert_eq!(*old, lines(0..20));
    assert!(new.contains("NODE_ERROR") && new.contains("may not be on the disk"), "{new}");
}

#[test]
fn others_that_work_on_the_live_file_are_noticed() {
    type Deed = fn(&Path);
    let deeds: [(&str, Deed, u32); 5] = [
        ("deleted", |folder| fs::remove_file(folder.join("a.log.zst")).unwrap(), 0),
        ("deleted", |folder| fs::remove_dir_all(folder).unwrap(), 0),
        ("moved", |folder| fs::rename(folder.join("a.log.zst"), folder.join("moved")).unwrap(), 20),
        ("moved", |folder| fs::rename(folder, folder.with_file_name("elsewhere")).unwrap(), 20),
        (
            "changed",
            |folder| {
                fs::File::options().write(true).open(folder.join("a.log.zst")).unwrap().set_len(0).unwrap();
            },
            0,
        ),
    ];
    for (what, deed, kept) in deeds {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sub");
        let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
        writer.append(&chunk(0..10)).unwrap();
        writer.tick(later(FLUSH_MS)).unwrap();
        deed(&folder);
        writer.append(&chunk(10..20)).unwrap();
        writer.tick(later(FLUSH_MS)).unwrap();
        writer.append(&chunk(20..30)).unwrap();
        let path = writer.close().unwrap().path.unwrap();
        let written = writer.take_written();
        assert_eq!((written.records, written.lost), (30, 0), "{what}");
        let (text, whole) = zstd_cat(&path);
        assert!(whole && text.ends_with(&lines(kept.max(10)..30)), "{what}: {text}");
        assert!(text.contains("NODE_ERROR") && text.contains(what), "{what}: {text}");
        let gone = 10 - kept.min(10);
        assert_eq!(written.gone, u64::from(gone), "{what}");
        assert_eq!(text.contains("lost_events"), gone > 0, "{what}: {text}");
        if kept > 0 {
            let moved = [folder.join("moved"), dir.path().join("elsewhere/a.log.zst")];
            let moved = moved.iter().find(|path| path.exists()).unwrap();
            assert_eq!(zstd_cat(moved), (lines(0..20), true), "{what}");
        }
        assert_eq!(path.parent().unwrap(), folder);
    }
}

#[test]
fn a_task_ends_with_a_line_that_says_so_and_an_idle_one_says_that_too() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sub");
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    writer.gone("nothing was ever written");
    assert_eq!(writer.close().unwrap(), Closed { path: None });

    let spec = Spec { rotation_interval: Some(Duration::from_mins(10)), ..spec(dir.path(), ZSTD) };
    let (mut writer, _) = open(&spec, dir.path());
    assert!(writer.deadline().unwrap() > later(590_000));
    writer.tick(later(600_000)).unwrap();
    let idle = zstd_cat(&folder.join(&names(&folder)[0])).0;
    assert!(idle.contains("NODE_CONNECTED") && idle.contains("no records from"), "{idle}");
    writer.note_lost(Place::Queue, 7, 1_000_000_000, 2_000_000_000, "full");
    writer.append(&chunk(0..10)).unwrap();
    writer.gone("it was removed");
    let path = writer.close().unwrap().path.unwrap();
    let written = writer.take_written();
    assert_eq!((written.records, written.notices, written.lost), (10, 4, 0));
    let text = zstd_cat(&path).0;
    let last: Vec<_> = text.lines().collect();
    assert!(last[last.len() - 1].contains("NODE_GONE") && last[last.len() - 1].contains("it was removed"));
    assert!(text.contains("\"num_events_lost\":\"7\"") && text.contains("1970-01-01T00:00:01Z"), "{text}");
    assert_eq!(last.len(), 13);
}

#[test]
fn placeholders_are_filled_in() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("{node}/{task}-{date}.log");
    let spec = Spec { task: "a/b".into(), path, ..spec(dir.path(), ZSTD) };
    let roots = Roots::new(&[dir.path().into()]).unwrap().with_node("east/n1");
    let (mut writer, _) = Writer::open(&spec, &roots).unwrap();
    let day = &crate::record::rfc3339(wall_ns())[..10];
    assert_eq!(names(&dir.path().join("east-n1")), [format!("a-b-{day}.log.zst")]);
    writer.append(&chunk(0..10)).unwrap();
    writer.close().unwrap();
    assert_eq!(names(&dir.path().join("east-n1")), [format!("a-b-{day}-20261130T201426.123Z.log.zst")]);
    assert!(
        Writer::open(&Spec { task: "..".into(), path: dir.path().join("{task}/a"), ..spec }, &roots).is_err()
    );
}

#[test]
fn files_are_given_to_whom_the_task_says() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let owner =
        |user: &str, group: &str| super::super::Owner { user: Some(user.into()), group: Some(group.into()) };
    let error = Writer::open(
        &Spec { owner: owner("nobody-of-that-name", "0"), ..spec(dir.path(), ZSTD) },
        &Roots::new(&[dir.path().into()]).unwrap(),
    );
    assert!(error.err().unwrap().to_string().contains("fileUser nobody-of-that-name"));
    if !rustix::process::geteuid().is_root() {
        return; // Only root gives files away.
    }
    for compression in [ZSTD, Compression::Gzip { level: 6 }] {
        let (mut writer, _) =
            open(&Spec { owner: owner("daemon", "54321"), ..spec(dir.path(), compression) }, dir.path());
        writer.append(&chunk(0..10)).unwrap();
        let found = fs::metadata(writer.close().unwrap().path.unwrap()).unwrap();
        assert_eq!((found.uid(), found.gid()), (1, 54321)); // daemon is 1 on Debian and Red Hat.
    }
}
