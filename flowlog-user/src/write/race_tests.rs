//! Somebody who may write to the log folder plays tricks while files are opened, rotated and closed.

use super::tests::{ZSTD, chunk, later, lines, names, open, spec, zstd_cat};
use super::*;
use crate::limits::RETRY_MS;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// Links are swapped in and out for the folder and for the live file; nothing outside is ever touched, no mode changes.
#[test]
fn links_swapped_in_between_lead_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("a.log");
    fs::write(&victim, "victim").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o604)).unwrap();
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o701)).unwrap();
    let (folder, aside) = (dir.path().join("sub"), dir.path().join("aside"));
    let stop = AtomicBool::new(false);
    let (mut tries, mut opened) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                turn += 1;
                if turn.is_multiple_of(2) {
                    let _ = fs::rename(&folder, &aside);
                    let _ = symlink(outside.path(), &folder);
                    std::thread::yield_now();
                    let _ = fs::remove_file(&folder);
                    let _ = fs::rename(&aside, &folder);
                } else {
                    let live = folder.join("a.log");
                    let _ = fs::remove_file(&live);
                    let _ =
                        if turn % 4 == 1 { symlink(&victim, &live) } else { fs::hard_link(&victim, &live) };
                    std::thread::yield_now();
                    let _ = fs::remove_file(&live);
                }
            }
        });
        let spec = spec(dir.path(), Compression::None);
        let roots = Roots::new(&[dir.path().into()]).unwrap();
        let until = Instant::now() + Duration::from_millis(1500);
        while Instant::now() < until {
            tries += 1;
            let Ok((mut writer, _)) = Writer::open(&spec, &roots) else { continue };
            opened += 1;
            for i in 0..3 {
                let _ = writer.append(&chunk(i..i + 1));
                let _ = writer.rotate();
            }
            let _ = writer.close();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(opened > 0 && tries > opened, "{opened} of {tries}: nothing was raced");
    assert_eq!(names(outside.path()), ["a.log"]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
    assert_eq!(fs::metadata(&victim).unwrap().permissions().mode() & 0o777, 0o604);
    assert_eq!(fs::metadata(outside.path()).unwrap().permissions().mode() & 0o777, 0o701);
}

/// What stands in the next file's place when one is finished: refused, told, and gone on when it is gone.
#[test]
fn whatever_stands_in_the_next_files_place_is_refused_until_it_is_gone() {
    type Trick = fn(&Path, &Path);
    let tricks: [(&str, Trick, &str); 4] = [
        ("a link", |live, victim| symlink(victim, live).unwrap(), "symbolic link"),
        (
            "a hard link",
            |live, victim| fs::hard_link(victim, live).unwrap(),
            "no regular file of a single name",
        ),
        ("a FIFO", |live, _| fifo(live), "no regular file of a single name"),
        ("a folder", |live, _| fs::create_dir(live).unwrap(), "no regular file of a single name"),
    ];
    for (what, trick, told) in tricks {
        let dir = tempfile::tempdir().unwrap();
        let (live, victim) = (dir.path().join("sub/a.log.zst"), dir.path().join("victim"));
        fs::write(&victim, "victim").unwrap();
        let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
        writer.append(&chunk(0..10)).unwrap();
        writer.write_out(Boundary::FrameEnd).unwrap();
        writer.finish_live(false).unwrap();
        trick(&live, &victim);
        writer.append(&chunk(10..20)).unwrap();
        let error = writer.tick(later(FLUSH_MS)).unwrap_err().to_string();
        assert!(error.contains(told), "{what}: {error}");
        assert_eq!(writer.trouble(), Some(error.as_str()), "{what}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "victim", "{what}");
        let _ = fs::remove_file(&live).or_else(|_| fs::remove_dir(&live));
        writer.tick(later(RETRY_MS)).unwrap();
        assert_eq!(writer.trouble(), None, "{what}");
        let path = writer.close().unwrap().path.unwrap();
        assert_eq!(zstd_cat(&path), (lines(10..20), true), "{what}");
        assert_eq!(writer.take_written().lost, 0, "{what}");
    }
}

/// The folder is taken away and a link to another one put in its place.
#[test]
fn a_folder_replaced_by_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sub");
    let (mut writer, _) = open(&spec(dir.path(), ZSTD), dir.path());
    writer.append(&chunk(0..10)).unwrap();
    writer.tick(later(FLUSH_MS)).unwrap();
    fs::rename(&folder, dir.path().join("moved")).unwrap();
    symlink(outside.path(), &folder).unwrap();
    writer.append(&chunk(10..20)).unwrap();
    let error = writer.tick(later(FLUSH_MS)).unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    writer.append(&chunk(20..30)).unwrap();
    assert_eq!(names(outside.path()), [""; 0]);
    fs::remove_file(&folder).unwrap();
    writer.tick(later(RETRY_MS)).unwrap();
    writer.tick(later(RETRY_MS)).unwrap(); // What was found out is told next.
    let path = writer.close().unwrap().path.unwrap();
    let written = writer.take_written();
    assert_eq!((written.records, written.lost), (30, 0));
    // What was written before the trouble was seen went where the file went, and that file is whole.
    assert_eq!(zstd_cat(&dir.path().join("moved/a.log.zst")), (lines(0..20), true));
    let (text, whole) = zstd_cat(&path);
    assert!(whole && text.contains("moved or replaced") && text.contains(&lines(20..30)), "{text}");
    assert_eq!(names(outside.path()), [""; 0]);
}

#[test]
fn devices_are_refused() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root makes devices.
    }
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let (path, null) = (dir.path().join("sub/a.log.zst"), rustix::fs::makedev(1, 3));
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::CharacterDevice, mode, null).unwrap();
    let before = fs::metadata(&path).unwrap().permissions().mode();
    let error =
        Writer::open(&spec(dir.path(), ZSTD), &Roots::new(&[dir.path().into()]).unwrap()).err().unwrap();
    assert!(matches!(error, Error::NotRegular { .. }), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode(), before);
}
