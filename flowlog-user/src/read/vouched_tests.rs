//! What says that a file is whole, and how far: a name, a header, checksums, an index.

use std::fs;
use std::io::Write;

use super::tests::{gzip, indexed, lines, print, zstd};
use super::*;
use crate::record::container::header;

const NAME: &str = "a-20261130T201426.000Z.log";

fn without_checksum(text: &str) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Nothing is called whole by lines alone, and nothing by parts of which there may have been more.
#[test]
fn how_far_a_file_could_be_checked_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (lines(0..10), lines(10..20));
    let framed = |text: &String| zstd(std::slice::from_ref(text), false);
    for (what, bytes, checked) in [
        ("finished", indexed(&[one.clone(), two.clone()]), Checked::Whole),
        ("frames", [framed(&one), framed(&two)].concat(), Checked::Parts),
        ("no checksum", without_checksum(&one), Checked::Lines),
        ("one of two", [framed(&one), without_checksum(&two)].concat(), Checked::Lines),
        ("gzip", gzip(&one), Checked::Whole),
        ("gzip twice", [gzip(&one), gzip(&two)].concat(), Checked::Parts),
        ("plain", one.clone().into_bytes(), Checked::Lines),
        ("plain behind gzip", [gzip(&one), two.clone().into_bytes()].concat(), Checked::Lines),
        (
            "plain behind a finished one",
            [indexed(std::slice::from_ref(&one)), two.clone().into_bytes()].concat(),
            Checked::Parts,
        ),
    ] {
        // By a name that says nothing, so that no index is missed.
        let path = dir.path().join("flows.jsonl");
        fs::write(&path, bytes).unwrap();
        let verdict = verify(std::slice::from_ref(&path)).unwrap().remove(0);
        assert_eq!(verdict.checked, checked, "{what}: {verdict:?}");
        assert_eq!(verdict.damage.is_empty(), !what.starts_with("plain behind a"), "{what}: {verdict:?}");
    }
}

/// Each byte of a member altered, one at a time: a record that is not as it was written is one of those that are named.
#[test]
fn records_of_a_damaged_gzip_member_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("{NAME}.gz"));
    let (first, second) = (gzip(&lines(0..10)), gzip(&lines(10..400)));
    let written = lines(0..400);
    let written: Vec<&str> = written.lines().collect();
    let (mut damaged, mut altered) = (0, 0);
    // Behind the member's head, which holds nothing of the records.
    for place in (first.len() + 10..first.len() + second.len()).step_by(7) {
        let mut bytes = [first.as_slice(), &second].concat();
        bytes[place] ^= 0x04;
        fs::write(&path, bytes).unwrap();
        let (text, summary) = print(&[&path], Output::Json);
        let Some(damage) = summary.damage.iter().find(|damage| damage.what.contains("gzip member")) else {
            assert_eq!(text.lines().collect::<Vec<_>>(), written, "byte {place}");
            continue;
        };
        damaged += 1;
        assert_eq!(damage.offset, first.len() as u64, "byte {place}: {damage}");
        let named = damage.what.split("records ").nth(1).map(|rest| {
            let mut numbers =
                rest.split(" to ").map(|part| part.split(' ').next().unwrap().parse::<usize>().unwrap());
            (numbers.next().unwrap(), numbers.next().unwrap())
        });
        for (at, line) in text.lines().enumerate() {
            if written.get(at) != Some(&line) {
                altered += 1;
                let (from, to) = named.unwrap_or_else(|| panic!("byte {place}: {damage}"));
                assert!((from..=to).contains(&(at + 1)), "byte {place}, line {at}: {damage}");
            }
        }
        assert!(named.is_none_or(|(from, _)| from == 11), "byte {place}: {damage}");
        assert!(text.lines().count() <= named.map_or(10, |(_, to)| to), "byte {place}: {damage}");
    }
    assert!(damaged > 100 && altered > 100, "{damaged} damaged, {altered} lines altered");
}

/// A name that says what the file does not hold is told, with what it holds, and costs no record.
#[test]
fn a_name_that_does_not_fit_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let text = lines(0..10);
    let contents = [
        ("lines of JSON", text.clone().into_bytes(), 10),
        ("gzip", gzip(&text), 10),
        ("zstd", indexed(&[text]), 10),
        ("zeros", vec![0; 4096], 0),
        ("neither", b"\x7fELF and so on".to_vec(), 0),
    ];
    for live in [false, true] {
        for (suffix, says) in [("zst", "zstd"), ("gz", "gzip"), ("", "")] {
            for (holds, bytes, records) in &contents {
                let stem = if live { "a.log" } else { NAME };
                let path =
                    dir.path().join(stem).with_extension(["log", suffix].join(".").trim_end_matches('.'));
                fs::write(&path, bytes).unwrap();
                let summary = print(&[&path], Output::Json).1;
                assert_eq!(summary.lines, *records, "{holds} in {path:?}");
                let found = verify(std::slice::from_ref(&path)).unwrap().remove(0).damage;
                for damage in [&summary.damage, &found] {
                    let told = damage.iter().find(|damage| damage.what.starts_with("the name says"));
                    let told = told.map(|damage| damage.what.as_str());
                    assert_eq!(
                        told.is_some(),
                        !says.is_empty() && *holds != says,
                        "{holds} in {path:?}: {damage:?}"
                    );
                    assert!(told.is_none_or(|told| told.contains(says) && told.contains(holds)), "{told:?}");
                }
                fs::remove_file(&path).unwrap();
            }
        }
    }
}

/// A header that was cut out of a file with an index, so that all else agrees.
#[test]
fn a_header_that_is_gone_is_told_and_costs_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("{NAME}.zst"));
    let whole = indexed(&[lines(0..10)]);
    let (at, len) = (zstd(&[lines(0..10)], false).len(), header("{}").len());
    assert!(whole[at..].starts_with(&header("{}")));
    fs::write(&path, [&whole[..at], &whole[at + len..]].concat()).unwrap();
    let damage = verify(std::slice::from_ref(&path)).unwrap().remove(0).damage;
    assert!(damage.len() == 1 && damage[0].what.contains("header is gone"), "{damage:?}");
    let (text, summary) = print(&[&path], Output::Json);
    assert_eq!((text, summary.damage), (lines(0..10), damage));
}
