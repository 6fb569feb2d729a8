//! Which files go, and which never do.

use super::tests::{ZSTD, chunk, later, lines, names, open, spec, zstd_cat};
use super::*;
use crate::limits::RETRY_MS;
use std::fs;
use std::process::Command;

#[test]
fn retention_deletes_the_oldest_files_of_this_task_only() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sub");
    fs::create_dir(&folder).unwrap();
    let foreign = [
        "a.log",
        "a-b-20200101T000000.000Z.log.zst",
        "a-20200101T000000.000Z.log.bak",
        "b.log.zst",
        // Ours by name, not by what is in them.
        "a-20190101T000000.000Z.log.gz",
        "a-20190101T000000.000Z.log",
        "a-20190101T000000.000Z.log.zst",
        "a-20190101T000001.000Z.log",
        "other",
    ];
    for name in foreign {
        fs::write(folder.join(name), [0; 50_000]).unwrap();
    }
    let of_another =
        Spec { task: "other".into(), path: dir.path().join("other/b.log"), ..spec(dir.path(), ZSTD) };
    let (mut writer, _) = open(&of_another, dir.path());
    writer.append(&chunk(0..1000)).unwrap();
    let its_file = writer.close().unwrap().path.unwrap();
    fs::copy(its_file, folder.join("a-20190101T000000.000Z.log.zst")).unwrap();
    fs::write(folder.join("a-20190101T000001.000Z.log"), lines(0..1000)).unwrap();
    fs::remove_file(folder.join("other")).unwrap();
    fs::hard_link(folder.join("a-20190101T000001.000Z.log"), folder.join("other")).unwrap();
    let ours = folder.join("a-20200101T000000.000Z.log"); // Ours, from another setting.
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let first = format!(r#"{{"flow":{{"emitter":{{"name":"flowlog"}}}},"node_name":"{node}","#);
    fs::write(&ours, lines(0..5000).replacen('{', &first, 1)).unwrap();
    assert!(Command::new("gzip").arg(&ours).status().unwrap().success());
    let spec = Spec { size_bytes_max: 4 << 10, total_bytes_max: 25 << 10, ..spec(dir.path(), ZSTD) };
    let (mut writer, _) = open(&spec, dir.path());
    assert_eq!(names(&folder).len(), foreign.len() + 1);
    assert!(!folder.join("a-20200101T000000.000Z.log.gz").exists());
    for i in 0..100 {
        writer.append(&chunk(i * 25..(i + 1) * 25)).unwrap();
        writer.tick(later(FLUSH_MS)).unwrap();
        let own: u64 = names(&folder)
            .iter()
            .filter(|name| !foreign.contains(&name.as_str()))
            .map(|name| fs::metadata(folder.join(name)).unwrap().len())
            .sum();
        assert!(own <= spec.total_bytes_max, "{own} bytes");
    }
    let own = names(&folder).into_iter().filter(|name| !foreign.contains(&name.as_str())).collect::<Vec<_>>();
    assert!(own.len() >= 4, "{own:?}");
    assert_eq!(names(&folder).len(), own.len() + foreign.len());
    let newest = own.iter().rfind(|name| name.as_str() != "a.log.zst").unwrap();
    let oldest = zstd_cat(&folder.join(&own[0])).0;
    assert!(own[0] < *newest && !oldest.contains("\"n\":0,"), "the oldest went first");
}

#[test]
fn the_files_of_a_task_that_is_gone_stay_or_go_as_configured() {
    for (on_end, left) in [(super::super::OnEnd::Keep, 4), (super::super::OnEnd::Delete, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sub");
        let spec = Spec { on_end, ..spec(dir.path(), ZSTD) };
        let (mut writer, _) = open(&spec, dir.path());
        fs::write(folder.join("a-20200101T000000.000Z.log"), "not the task's own").unwrap();
        for i in 0..3 {
            writer.append(&chunk(i * 10..(i + 1) * 10)).unwrap();
            writer.rotate().unwrap();
        }
        writer.close().unwrap();
        assert_eq!(writer.clear().unwrap(), 4 - left);
        let names = names(&folder);
        assert_eq!(names.len() as u64, left, "{names:?}");
        assert_eq!(names[0], "a-20200101T000000.000Z.log");
    }
}

#[test]
fn old_files_go_by_age_and_for_space() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sub");
    let old = |age: Duration| {
        let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
        writer.append(&chunk(0..10)).unwrap();
        let path = writer.close().unwrap().path.unwrap();
        let at = std::time::SystemTime::UNIX_EPOCH + Duration::from_nanos(wall_ns().unsigned_abs()) - age;
        fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        path
    };
    let (older, newer) = (old(Duration::from_secs(7300)), old(Duration::from_secs(7100)));
    let with_age = Spec { age_max: Some(Duration::from_secs(7200)), ..spec(dir.path(), ZSTD) };
    let (mut writer, _) = open(&with_age, dir.path());
    assert!(!older.exists() && newer.exists());
    assert!(writer.deadline().is_some_and(|at| at <= later(AGE_CHECK_MS)), "it looks again by itself");
    fs::File::options().write(true).open(&newer).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    writer.tick(later(AGE_CHECK_MS)).unwrap();
    assert!(!newer.exists());
    writer.close().unwrap();

    // No file system is that empty.
    let kept = old(Duration::ZERO);
    let (mut writer, _) = open(&Spec { free_percent_min: Some(100), ..spec(dir.path(), ZSTD) }, dir.path());
    writer.append(&chunk(0..10)).unwrap();
    let error = writer.tick(later(FLUSH_MS)).unwrap_err();
    assert!(matches!(error, Error::LowSpace { min: 100, .. }), "{error}");
    assert!(!kept.exists(), "the oldest went first");
    writer.spec.free_percent_min = None;
    writer.tick(later(RETRY_MS)).unwrap();
    writer.close().unwrap();
    assert_eq!(writer.take_written().records, 10);
    assert_eq!(names(&folder).len(), 1);
}

/// Files named like the task's own that are none: whatever they look like, they stay.
#[test]
fn what_is_not_proved_the_tasks_own_is_never_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sub");
    fs::create_dir(&folder).unwrap();
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let line = |node: &str, emitter: &str| {
        format!(
            "{{\"flow\":{{\"emitter\":{{\"name\":\"{emitter}\"}},\"node_name\":\"{node}\"}},\"node_name\":\"{node}\"}}\n"
        )
    };
    let gzip = |text: &str| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        std::io::Write::write_all(&mut gz, text.as_bytes()).unwrap();
        gz.finish().unwrap()
    };
    // A real file, of another node, of another task, and of this one with a flipped bit in its header.
    let made = |node: &str, task: &str| {
        let elsewhere = tempfile::tempdir().unwrap();
        let roots = Roots::new(&[elsewhere.path().into()]).unwrap().with_node(node);
        let spec = Spec { task: task.into(), ..spec(elsewhere.path(), ZSTD) };
        let mut writer = Writer::open(&spec, &roots).unwrap().0;
        writer.append(&chunk(0..1000)).unwrap();
        fs::read(writer.close().unwrap().path.unwrap()).unwrap()
    };
    let mut flipped = made(&node, "t");
    let at = flipped.windows(8).position(|window| window == b"flowlogH").unwrap() + 30;
    flipped[at] ^= 1;
    let foreign = [
        ("a-20200101T000000.000Z.log", line("other", "hubble").into_bytes()),
        ("a-20200101T000001.000Z.log", line(&node, "hubble").into_bytes()),
        ("a-20200101T000002.000Z.log", line("other", "flowlog").into_bytes()),
        ("a-20200101T000003.000Z.log.zst", zstd::encode_all(line(&node, "flowlog").as_bytes(), 1).unwrap()),
        ("a-20200101T000004.000Z.log.gz", gzip(&line("other", "hubble"))),
        ("a-20200101T000005.000Z.log.zst", made("other", "t")),
        ("a-20200101T000006.000Z.log.zst", made(&node, "u")),
        ("a-20200101T000007.000Z.log.zst", flipped),
        ("a-20200101T000008.000Z.log", b"\x05\x0a\x03\x10\x01\x00".repeat(100)),
        ("a-20200101T000009.000Z.log", Vec::new()),
    ];
    for (name, bytes) in &foreign {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let own = [
        ("a-20200102T000000.000Z.log.zst", made(&node, "t")),
        ("a-20200102T000001.000Z.log", line(&node, "flowlog").into_bytes()),
        ("a-20200102T000002.000Z.log.gz", gzip(&line(&node, "flowlog"))),
    ];
    for (name, bytes) in &own {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let (mut writer, _) = open(&Spec { total_bytes_max: 0, ..spec(dir.path(), ZSTD) }, dir.path());
    let mut left = names(&folder);
    left.retain(|name| name != "a.log.zst");
    assert_eq!(left, foreign.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let deleted = writer.take_files().deleted;
    let told: Vec<_> = deleted.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(told, own.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    assert!(deleted.iter().all(|(_, why)| why.contains("0 bytes")), "{deleted:?}");
    writer.close().unwrap();
}

/// Files of every compression, finished by a process that is no longer there, also of records that do not say who made
/// them.
#[test]
fn a_restart_knows_its_files_again() {
    for compression in [ZSTD, Compression::Gzip { level: 6 }, Compression::None] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sub");
        let kept = Spec { ..spec(dir.path(), compression) };
        for i in 0..3 {
            let (mut writer, _) = open(&kept, dir.path());
            writer.append(&chunk(i..i + 1)).unwrap();
            writer.rotate().unwrap();
            writer.append(&chunk(i..i + 1)).unwrap();
            writer.close().unwrap();
        }
        assert_eq!(names(&folder).len(), 6);
        let signed = {
            let file = fs::File::create(dir.path().join("x")).unwrap();
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::fsetxattr(&file, "user.flowlog", b"x", flags).is_ok()
        };
        let (mut writer, _) = open(&Spec { total_bytes_max: 0, ..kept }, dir.path());
        let left = names(&folder).len() - 1;
        let plain = compression == Compression::None;
        assert_eq!(left, if plain && !signed { 6 } else { 0 }, "{:?}", names(&folder));
        writer.close().unwrap();
    }
}

#[test]
fn what_gzip_makes_of_a_file_is_what_counts_as_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(&spec(dir.path(), Compression::Gzip { level: 6 }), dir.path());
    writer.append(&chunk(0..5000)).unwrap();
    let path = writer.close().unwrap().path.unwrap();
    let written = writer.take_written();
    assert_eq!(written.disk_bytes, fs::metadata(path).unwrap().len());
    assert!(written.bytes > 3 * written.disk_bytes / 2);
}

/// Records of one moment, as a replay may have them, and so little space that each file goes as soon as it is finished,
/// also one that was left: no name comes again, and they sort as they were written.
#[test]
fn a_name_is_not_given_again_when_its_file_is_gone() {
    for compression in [ZSTD, Compression::Gzip { level: 6 }, Compression::None] {
        let dir = tempfile::tempdir().unwrap();
        let spec = Spec { total_bytes_max: 1, ..spec(dir.path(), compression) };
        let at_once = || Chunk { first_ns: 0, last_ns: 0, seen_from_ns: 0, ..chunk(0..3) };
        let (mut writer, _) = open(&spec, dir.path());
        writer.append(&at_once()).unwrap();
        writer.tick(later(FLUSH_MS)).unwrap();
        drop(writer); // Killed.
        let (mut writer, salvaged) = open(&spec, dir.path());
        let mut given = vec![salvaged.unwrap().path];
        for _ in 0..5 {
            writer.append(&Chunk { first_ns: 1_796_069_666_000_000_000, ..at_once() }).unwrap();
            writer.tick(later(FLUSH_MS)).unwrap();
            writer.rotate().unwrap();
            given.extend(writer.take_files().paths);
        }
        assert!(given.len() == 6 && given.is_sorted_by(|a, b| a < b), "{given:?}");
        assert!(given.iter().all(|path| !path.exists()), "{given:?}");
    }
}
