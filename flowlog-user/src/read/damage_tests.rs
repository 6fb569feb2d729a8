//! Files that somebody altered: nothing that was not written is given out, everything whole is, and the rest is named.

use std::fs;
use std::path::Path;

use super::tests::{gzip, indexed, line, lines, print, request, zstd};
use super::*;
use crate::record::container::{Index, header};

const NAME: &str = "a-20261130T201426.000Z.log.zst";

fn many(frames: u32) -> Vec<String> {
    (0..frames).map(|i| lines(i * 10..(i + 1) * 10)).collect()
}

/// Where each frame of [`indexed`] begins, and where the index does.
fn places(frames: &[String]) -> Vec<usize> {
    (0..=frames.len())
        .map(|n| zstd(&frames[..n], false).len() + if n > 0 { header("{}").len() } else { 0 })
        .collect()
}

fn verdict(path: &Path) -> Verdict {
    verify(&[path.to_path_buf()]).unwrap().remove(0)
}

#[test]
fn frames_that_were_taken_out_put_in_or_moved_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    // Each of another size: an index knows where frames begin, not what is in them.
    let frames: Vec<String> = (0..5).map(|i| lines(i * 10..(i + 1) * 10 - i)).collect();
    let (whole, at) = (indexed(&frames), places(&frames));
    let part = |n: usize| &whole[at[n]..at[n + 1]];
    let tail = &whole[at[5]..];
    let (a, b, c, d, e) = (part(0), part(1), part(2), part(3), part(4));
    for (name, parts) in [
        ("whole", [a, b, c, d, e, tail].concat()),
        ("first out", [b, c, d, e, tail].concat()),
        ("middle out", [a, b, d, e, tail].concat()),
        ("last out", [a, b, c, d, tail].concat()),
        ("all out", tail.to_vec()),
        ("swapped", [a, c, b, d, e, tail].concat()),
        ("doubled", [a, b, b, c, d, e, tail].concat()),
        ("put in front", [b, a, b, c, d, e, tail].concat()),
        ("no index", [a, b, c, d, e].concat()),
        ("empty", Vec::new()),
    ] {
        fs::write(&path, &parts).unwrap();
        let (whole, verdict) = (name == "whole", verdict(&path));
        assert_eq!((verdict.damage.is_empty(), verdict.indexed), (whole, whole), "{name}: {verdict:?}");
        let summary = print(&[&path], Output::Json).1;
        assert_eq!(summary.damage.is_empty(), whole, "{name}");
        assert!(name == "empty" || whole || !summary.damage[0].what.is_empty());
        // A range that holds everything gives all that is there, also where the index leads elsewhere.
        let mut out = Vec::new();
        let range = TimeRange { since_ns: Some(0), until_ns: None };
        let ranged = cat(&Request { range, ..request(&[&path], Output::Json) }, &mut out).unwrap();
        assert_eq!(ranged.lines, summary.lines, "{name}");
    }
    let told = verdict_of(&path, [a, b, d, e, tail].concat());
    assert!(told.contains("40 records in 5 frames") && told.contains("32 in 4"), "{told}");
}

fn verdict_of(path: &Path, bytes: Vec<u8>) -> String {
    fs::write(path, bytes).unwrap();
    format!("{:?}", verdict(path).damage)
}

#[test]
fn an_altered_header_is_named_and_costs_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let frames = many(3);
    let (whole, at) = (indexed(&frames), places(&frames));
    // But for the first byte, of which half the bits make it a frame of others.
    for place in at[1] - header("{}").len() + 1..at[1] {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x02;
        fs::write(&path, bytes).unwrap();
        let (text, summary) = print(&[&path], Output::Json);
        assert!(!summary.damage.is_empty() && !verdict(&path).damage.is_empty(), "byte {place}");
        assert!(lines(0..30).ends_with(&text) || text == lines(0..30), "byte {place}: {}", text.len());
    }
}

#[test]
fn files_that_were_put_together_are_read_whole_by_any_range() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("together.zst");
    let parts = [indexed(&many(2)), zstd(&[lines(20..30)], false), indexed(&[lines(30..40)])];
    fs::write(&path, parts.concat()).unwrap();
    assert_eq!(print(&[&path], Output::Json), {
        let summary = print(&[&path], Output::Json).1;
        (lines(0..40), Summary { damage: Vec::new(), ..summary })
    });
    for (since, until, want) in
        [(None, None, 40), (Some(15), None, 25), (None, Some(14), 15), (Some(31), Some(32), 2)]
    {
        let ns = |ms: Option<i64>| ms.map(|ms| super::tests::SECOND_NS + ms * 1_000_000);
        let range = TimeRange { since_ns: ns(since), until_ns: ns(until) };
        let mut out = Vec::new();
        let summary = cat(&Request { range, ..request(&[&path], Output::Json) }, &mut out).unwrap();
        assert_eq!((summary.lines, summary.damage), (want, Vec::new()), "{since:?} {until:?}");
    }
}

/// Every byte of a frame altered, one at a time: what comes out was written, and all of the frames beside it does.
#[test]
fn an_altered_frame_gives_nothing_that_was_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let frames = many(3);
    let (whole, at) = (indexed(&frames), places(&frames));
    let good = [frames[0].as_str(), &frames[2]].concat();
    let (mut altered, mut same) = (0, 0);
    for place in at[1]..at[2] {
        for bit in [0x01, 0x10, 0x80] {
            let mut bytes = whole.clone();
            bytes[place] ^= bit;
            fs::write(&path, &bytes).unwrap();
            let (text, summary) = print(&[&path], Output::Json);
            if text == lines(0..30) {
                same += 1; // Some bits of a frame mean nothing to a decoder.
                continue;
            }
            altered += 1;
            assert_eq!(text, good, "byte {place}, bit {bit}");
            assert!(!summary.damage.is_empty() && !verdict(&path).damage.is_empty());
        }
    }
    assert!(altered > 100 && same < altered / 10, "{altered} altered, {same} the same");
    // Who asks for it gets what could be decoded, where that is anything.
    let mut bytes = whole.clone();
    bytes[at[2] - 2] ^= 1; // In the checksum.
    fs::write(&path, bytes).unwrap();
    let mut out = Vec::new();
    let summary = cat(&Request { doubtful: true, ..request(&[&path], Output::Json) }, &mut out).unwrap();
    assert_eq!((String::from_utf8(out).unwrap(), summary.damage.is_empty()), (lines(0..30), false));
    // Recorded flows pass over it and go on.
    let mut counts = Counts::default();
    let mut told = Vec::new();
    flows(&path, &mut counts, |_| {}, |bad| told.push(bad.to_string())).unwrap();
    assert_eq!((counts.taken, counts.damaged), (20, 2), "{told:?}");
    assert!(told[0].contains("damaged"), "{told:?}");
}

#[test]
fn a_cut_gzip_file_gives_what_gzip_gives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-20261130T201426.000Z.log.gz");
    let whole = gzip(&lines(0..3000));
    for cut in (1..whole.len()).step_by(whole.len() / 40).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..cut]).unwrap();
        let output = std::process::Command::new("gzip").arg("-dc").arg(&path).output().unwrap();
        let theirs = String::from_utf8(output.stdout).unwrap();
        let theirs = theirs.rsplit_once('\n').map_or(String::new(), |(lines, _)| format!("{lines}\n"));
        let (text, summary) = print(&[&path], Output::Json);
        assert!(text.len() >= theirs.len(), "cut at {cut}: {} and theirs {}", text.len(), theirs.len());
        assert!(lines(0..3000).starts_with(&text) && !summary.damage.is_empty(), "cut at {cut}");
    }
    // What follows a member is read as what it is.
    let mixed = [gzip(&lines(0..3)), gzip(&lines(3..5)), zstd(&[lines(5..9)], false), b"x\n".to_vec()];
    fs::write(&path, mixed.concat()).unwrap();
    let (text, summary) = print(&[&path], Output::Json);
    assert_eq!((text, summary.damage.len()), (lines(0..9), 1));
    // A byte altered in the midst is found by the checksum.
    let mut bytes = whole;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&path, bytes).unwrap();
    assert!(!print(&[&path], Output::Json).1.damage.is_empty() && !verdict(&path).damage.is_empty());
}

#[test]
fn broken_lines_of_plain_files_are_named_where_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-20261130T201426.000Z.log");
    let whole = lines(0..500);
    let length = line(0).len();
    for broken in [0, 1, 99, 498, 499] {
        for with in [b'\0', b'\t', b'x'] {
            let mut bytes = whole.clone().into_bytes();
            // A hole, or the line's first byte.
            let hole = broken * length..broken * length + if with == b'x' { 1 } else { 20 };
            bytes[hole].fill(with);
            fs::write(&path, bytes).unwrap();
            let (text, summary) = print(&[&path], Output::Json);
            let (from, to) = ((broken * length) as u64, ((broken + 1) * length) as u64);
            let n = u32::try_from(broken).unwrap();
            assert_eq!(text, lines(0..n) + &lines(n + 1..500));
            let found: Vec<_> = summary.damage.iter().map(|damage| (damage.offset, damage.end)).collect();
            assert_eq!(found, [(from, to)], "line {broken}");
            let found = verdict(&path).damage;
            assert_eq!(found.iter().map(|d| (d.offset, d.end)).collect::<Vec<_>>(), [(from, to)]);
        }
    }
    // Many in a row are one damage; other line ends and blank lines are none.
    fs::write(&path, format!("{}{}{}", lines(0..3), "no record\n".repeat(1000), lines(3..5))).unwrap();
    let damage = verdict(&path).damage;
    let three = 3 * length as u64;
    assert_eq!(damage.iter().map(|d| (d.offset, d.end)).collect::<Vec<_>>(), [(three, three + 10_000)]);
    fs::write(&path, lines(0..5).replace('\n', "\r\n") + "\n\n" + &lines(5..6)).unwrap();
    let (text, summary) = print(&[&path], Output::Json);
    assert_eq!((text, summary.damage), (lines(0..6), Vec::new()));
}

#[test]
fn files_in_subfolders_are_read_and_checked_and_nothing_is_no_log() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(verify(&[dir.path().to_path_buf()]).unwrap(), []);
    let below = dir.path().join("task/node");
    fs::create_dir_all(&below).unwrap();
    fs::write(below.join(NAME), &indexed(&many(2))[..150]).unwrap();
    std::os::unix::fs::symlink("/", dir.path().join("task/all")).unwrap();
    let verdicts = verify(&[dir.path().to_path_buf()]).unwrap();
    assert!(verdicts.len() == 1 && !verdicts[0].damage.is_empty(), "{verdicts:?}");
    assert_eq!(print(&[dir.path()], Output::Json).1.stats.files, 1);
}

/// An index stays what it was, whoever reads it.
#[test]
fn an_index_is_read_back() {
    let bytes = indexed(&many(2));
    let len = u32::from_le_bytes(bytes[bytes.len() - 12..bytes.len() - 8].try_into().unwrap()) as usize;
    assert_eq!(Index::parse(&bytes[bytes.len() - len..]).unwrap().frames.len(), 2);
}

#[test]
fn a_line_that_is_no_event_is_named_with_its_place_by_every_output() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flows.jsonl");
    let good = line(11);
    let broken = [
        good.replace("\"uuid\":", "\"uuid\";").into_bytes(),
        good.replace("\"flow\"", "\"flaw\"").into_bytes(),
        good.replace("{\"uuid\"", "[\"uuid\"").into_bytes(),
        good.replace("},", ",").into_bytes(),
        good.replace("},\"time\"", "}}{\"time\"").into_bytes(),
        good.replacen("uuid\":\"", "uuid\":\"\u{1}", 1).into_bytes(),
        good.bytes().map(|byte| if byte == b'6' { 0xff } else { byte }).collect(),
        b"{}\n".to_vec(),
        b"{\"a\":1}\n".to_vec(),
        b"{\"flow\":null}\n".to_vec(),
        b"{\"flow\":7}\n".to_vec(),
        b"{\"flow\":{},\"lost_events\":{}}\n".to_vec(),
        b"{\"time\":\"2026-11-30T20:14:26Z\"}\n".to_vec(),
    ];
    let before = lines(0..11);
    for broken in broken {
        let told = String::from_utf8_lossy(&broken).into_owned();
        fs::write(&path, [before.as_bytes(), &broken, lines(12..20).as_bytes()].concat()).unwrap();
        let style = Style::default();
        let ever = TimeRange { since_ns: Some(0), until_ns: None };
        let outputs = [Output::Json, Output::Nothing, Output::Table(style), Output::Compact(style)];
        for (output, range) in
            outputs.map(|output| (output, TimeRange::default())).into_iter().chain([(Output::Json, ever)])
        {
            let mut out = Vec::new();
            let summary = cat(&Request { range, ..request(&[&path], output) }, &mut out).unwrap();
            let places: Vec<u64> = summary.damage.iter().map(|damage| damage.offset).collect();
            assert_eq!(places, [before.len() as u64], "{output:?} {told}: {:?}", summary.damage);
            assert_eq!(summary.lines, 19, "{output:?} {told}");
            if output == Output::Json {
                assert_eq!(String::from_utf8(out).unwrap(), before.clone() + &lines(12..20), "{told}");
            }
        }
        let verdict = verdict(&path);
        assert_eq!(verdict.damage.first().map(|damage| damage.offset), Some(before.len() as u64), "{told}");
    }
}

/// By name it is what was asked for; in a folder the others are read, and it is named. (Nobody may read such a file of the
/// kernel's, root neither.)
#[test]
fn a_file_that_cannot_be_opened_keeps_no_other_from_being_read() {
    let dir = tempfile::tempdir().unwrap();
    for (name, range) in [("a-20261130T201426.000Z.log", 0..10), ("c.log", 20..30)] {
        fs::write(dir.path().join(name), lines(range)).unwrap();
    }
    for name in ["a-20261130T201426.100Z.log", "b.log"] {
        let closed = dir.path().join(name);
        std::os::unix::fs::symlink("/proc/sys/vm/drop_caches", &closed).unwrap();
        let error = cat(&request(&[&closed], Output::Json), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("check the path and its permissions"), "{error}");
        let (text, summary) = print(&[dir.path()], Output::Json);
        assert_eq!(text, lines(0..10) + &lines(20..30));
        let [damage] = &summary.damage[..] else { panic!("{name}: {:?}", summary.damage) };
        assert!(damage.path == closed && damage.what.contains("cannot be opened"), "{damage}");
        let verdicts = verify(&[dir.path().to_path_buf()]).unwrap();
        let damaged: Vec<_> = verdicts.iter().filter(|verdict| !verdict.damage.is_empty()).collect();
        assert!(verdicts.len() == 3 && damaged.len() == 1 && damaged[0].path == closed, "{verdicts:?}");
        fs::remove_file(&closed).unwrap();
    }
}
