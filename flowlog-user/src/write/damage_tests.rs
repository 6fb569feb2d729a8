//! Files that a killed process left and that are damaged too, as by a power cut: what can be read is kept, and what cannot
//! is told.

use super::mend_tests::{memory, readable, zstd_cat_all};
use super::tampered_tests::{events, flows};
use super::tests::{ZSTD, later, open, spec, zstd_cat};
use super::*;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A live file of whole frames of three records each, and one of two blocks of three records that has no end.
fn live(dir: &Path, frames: u32) -> Vec<u8> {
    let (mut writer, _) = open(&spec(dir, ZSTD), dir);
    for i in 0..frames + 2 {
        writer.append(&flows(i * 3..(i + 1) * 3)).unwrap();
        writer.tick(later(if i < frames { FRAME_MS_MAX } else { FLUSH_MS })).unwrap();
    }
    let bytes = fs::read(dir.join("sub/a.log.zst")).unwrap();
    fs::remove_file(writer.close().unwrap().path.unwrap()).unwrap();
    bytes
}

/// Where each frame with content begins and ends, as zstd itself finds them.
fn frames(bytes: &[u8], frames: u32) -> Vec<(usize, usize)> {
    let (mut at, mut found) = (0, Vec::new());
    while found.len() < frames as usize {
        let end = at + zstd::zstd_safe::find_frame_compressed_size(&bytes[at..]).unwrap();
        if bytes[at..].starts_with(&crate::record::container::FRAME_MAGIC) {
            found.push((at, end));
        }
        at = end;
    }
    found
}

fn is_gone(line: &str) -> bool {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    value.pointer("/node_status/state_change").is_some_and(|state| state == "NODE_GONE")
}

fn start_anew(folder: &Path) {
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir(folder).unwrap();
}

/// A power cut at every byte: the file is as long as it was, or as pages are, and zeros stand where nothing had reached the
/// disk. The next start keeps every record before them, and says that some are missing.
#[test]
fn zeros_from_any_byte_on_cost_no_record_before_them_and_are_told() {
    let dir = memory();
    let whole = live(dir.path(), 2);
    let folder = dir.path().join("sub");
    for cut in 1..whole.len() {
        for len in [cut + 1 + cut % 3, whole.len(), 4096] {
            let mut bytes = whole[..cut].to_vec();
            bytes.resize(len.max(cut + 1), 0);
            // Some of the zeros may be what was written.
            let same = bytes.iter().zip(&whole).take_while(|(a, b)| a == b).count();
            let before = readable(&whole[..same]);
            let case = format!("cut at {cut}, {len} bytes");
            drop(open(&spec(dir.path(), ZSTD), dir.path())); // It leaves a file of its own.
            fs::write(folder.join("a.log.zst"), &bytes).unwrap();
            let (mut writer, salvaged) = open(&spec(dir.path(), ZSTD), dir.path());
            let salvaged = salvaged.unwrap();
            assert_eq!(salvaged.records, before.lines().count() as u64, "{case}");
            if before.is_empty() {
                writer.append(&flows(0..1)).unwrap();
                let next = zstd_cat_all(&writer.close().unwrap().path.unwrap());
                assert!(is_gone(next.lines().next().unwrap()), "{case}: {next}");
            } else {
                let text = zstd_cat_all(&salvaged.path);
                let last = text.strip_prefix(&before).unwrap_or_else(|| panic!("{case}: {text}"));
                assert!(is_gone(last) && !salvaged.damaged, "{case}: {salvaged:?}");
                assert!(zstd_cat(&salvaged.path).1, "{case}: zstd finds the file whole");
                assert!(fs::read(&salvaged.path).unwrap().ends_with(b"flowlogE"), "{case}: no index");
            }
            drop(writer);
            start_anew(&folder);
        }
    }
}

/// The same of records that are not compressed.
#[test]
fn zeros_behind_plain_records_are_cut_off() {
    let (dir, folder) = folder();
    let delimited = |n: u8| {
        let name = [0x0a, 5, b'a', 0, b'c', 0, 0]; // A text with zeros, also at its end.
        let time = [0xca, 0x3e, 2, 0x08, n];
        let body = [&[0xc2, 0x3e, 7][..], &name, &time].concat();
        [&[u8::try_from(body.len()).unwrap()][..], &body].concat()
    };
    for (format, records) in [
        (Format::Json, (0..4).map(|n| events(n..n + 1).into_bytes()).collect::<Vec<_>>()),
        (Format::Protobuf, (1..5).map(delimited).collect()),
    ] {
        let whole = records.concat();
        for cut in 1..whole.len() {
            let mut bytes = whole[..cut].to_vec();
            bytes.resize(4096, 0);
            fs::write(folder.join("a.log"), &bytes).unwrap();
            let same = bytes.iter().zip(&whole).take_while(|(a, b)| a == b).count();
            let mut kept = 0;
            while records[..=kept].concat().len() <= same {
                kept += 1;
            }
            let spec = Spec { format, ..spec(dir.path(), Compression::None) };
            let (_, salvaged) = open(&spec, dir.path());
            let salvaged = salvaged.unwrap();
            let left = fs::read(&salvaged.path).unwrap();
            let case = format!("{format:?} cut at {cut}: {salvaged:?}");
            if kept > 0 {
                assert_eq!(salvaged.records, kept as u64, "{case}");
                assert!(left.starts_with(&records[..kept].concat()), "{case}");
                assert!(
                    left.windows(9).any(|window| window == b"NODE_GONE") || format != Format::Json,
                    "{case}"
                );
                assert!(left.len() < 1000, "{case}: the zeros are gone");
            }
            start_anew(&folder);
        }
    }
}

/// A bit of a frame that had ended is another: nothing is called whole, and start and file name where records are missing.
#[test]
fn a_damaged_frame_before_the_end_is_named_and_costs_no_other_record() {
    let dir = memory();
    let whole = live(dir.path(), 4);
    let folder = dir.path().join("sub");
    for (i, (from, to)) in frames(&whole, 4).into_iter().enumerate() {
        let mut bytes = whole.clone();
        bytes[to - 1] ^= 1; // In its checksum.
        fs::write(folder.join("a.log.zst"), &bytes).unwrap();
        let (_, salvaged) = open(&spec(dir.path(), ZSTD), dir.path());
        let salvaged = salvaged.unwrap();
        let what = &salvaged.what;
        assert!(salvaged.damaged && !what.contains("whole now"), "frame {i}: {what}");
        let place = format!("bytes {from} to {to}");
        assert!(what.contains(&place), "frame {i}: {what}");
        assert_eq!(salvaged.records, 15, "frame {i}: five pieces of six");
        // Every frame by itself, but for the one that was damaged.
        let left = fs::read(&salvaged.path).unwrap();
        let text: String = frames(&left, 6)
            .into_iter()
            .filter(|place| *place != (from, to))
            .map(|(from, to)| String::from_utf8(zstd::decode_all(&left[from..to]).unwrap()).unwrap())
            .collect();
        let at = u32::try_from(i).unwrap() * 3;
        let good = events(0..at) + &events(at + 3..18);
        let last = text.strip_prefix(&good).unwrap_or_else(|| panic!("frame {i}: {text}"));
        assert!(is_gone(last) && last.contains(&place), "frame {i}: {last}");
        start_anew(&folder);
    }
}

/// A folder for plain files that others have left.
fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = memory();
    let folder = dir.path().join("sub");
    fs::create_dir(&folder).unwrap();
    (dir, folder)
}

/// A page in the middle of plain lines is missing.
#[test]
fn a_hole_in_plain_lines_is_no_whole_file() {
    let (dir, folder) = folder();
    let file = fs::File::create(folder.join("a.log")).unwrap();
    file.write_all_at(events(0..300).as_bytes(), 0).unwrap();
    file.write_all_at(&[0; 4096], 4096).unwrap();
    let text = fs::read(folder.join("a.log")).unwrap();
    let intact =
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.contains(&0)).count();
    let (_, salvaged) = open(&spec(dir.path(), Compression::None), dir.path());
    let salvaged = salvaged.unwrap();
    assert_eq!((salvaged.records, salvaged.damaged), (intact as u64, true), "{salvaged:?}");
    assert!(salvaged.what.contains("1 lines are no records"), "{salvaged:?}");
}

/// An open frame that cannot be read stays as it is, and the next file says that something is missing; of what is no file
/// of the task's there is nothing to tell.
#[test]
fn what_was_put_aside_is_told_in_the_next_file() {
    let dir = memory();
    let folder = dir.path().join("sub");
    let whole = live(dir.path(), 2);
    let mut bytes = whole.clone();
    let at = bytes.len() - 20;
    bytes[at..].iter_mut().for_each(|byte| *byte ^= 0x55);
    for (bytes, tells) in [(bytes, true), (vec![0; 4096], true), (b"plain text".to_vec(), false)] {
        fs::write(folder.join("a.log.zst"), &bytes).unwrap();
        let (mut writer, salvaged) = open(&spec(dir.path(), ZSTD), dir.path());
        let salvaged = salvaged.unwrap();
        assert!(salvaged.damaged && salvaged.what.contains("put aside as it was"), "{salvaged:?}");
        assert_eq!(fs::read(&salvaged.path).unwrap(), bytes);
        writer.append(&flows(0..1)).unwrap();
        let next = zstd_cat_all(&writer.close().unwrap().path.unwrap());
        assert_eq!(is_gone(next.lines().next().unwrap()), tells, "{next}");
        start_anew(&folder);
    }
}
