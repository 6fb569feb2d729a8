//! What others do to a live file costs records; the next file tells of each of them, once.

use super::tests::{ZSTD, chunk, later, lines, names, open, spec, zstd_cat};
use super::*;
use std::fs;
use std::path::Path;

/// When the deed is noticed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    MoreRecords,
    Rotation,
    End,
}

/// What the files of a folder hold, by the compressors' own programs: records, and what `lost_events` lines tell of each
/// place. A line that is cut off is none.
fn found(folder: &Path) -> (u64, Vec<(u64, String)>) {
    let text: String = names(folder).iter().map(|name| text(&folder.join(name))).collect();
    let lines: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let records = lines.iter().filter(|line| line.get("flow").is_some()).count() as u64;
    let mut told = Vec::new();
    for pair in lines.windows(2) {
        if let Some(lost) = pair[0].pointer("/lost_events/num_events_lost") {
            let message = pair[1].pointer("/node_status/message").unwrap().as_str().unwrap().to_owned();
            told.push((lost.as_str().unwrap().parse().unwrap(), message));
        }
    }
    (records, told)
}

fn text(path: &Path) -> String {
    let text = match path.extension().and_then(std::ffi::OsStr::to_str) {
        Some("zst") => zstd_cat(path).0,
        Some("gz") => {
            let out = std::process::Command::new("gzip").arg("-dc").arg(path).output().unwrap();
            assert!(out.status.success());
            String::from_utf8(out.stdout).unwrap()
        }
        _ => fs::read_to_string(path).unwrap(),
    };
    text + "\n"
}

/// Lines that a reader takes for events.
pub(super) fn events(range: std::ops::Range<u32>) -> String {
    lines(range).lines().map(|line| format!("{{\"flow\":{line}}}\n")).collect()
}

pub(super) fn flows(range: std::ops::Range<u32>) -> Chunk {
    Chunk { lines: events(range.clone()).into(), ..chunk(range) }
}

/// A live file with records, a notice among them, and then more records; somebody works on it. Whenever that is
/// noticed: what can be read and what is told to be lost is what was given.
#[test]
fn whatever_others_take_is_counted_and_told() {
    type Deed = fn(&Path);
    let deeds: [(&str, Deed); 5] = [
        ("deleted", |live| fs::remove_file(live).unwrap()),
        ("deleted", |live| {
            let other = live.with_extension("other.tmp");
            fs::write(&other, "").unwrap();
            fs::rename(other, live).unwrap();
        }),
        ("emptied", |live| shorten(live, 0)),
        ("cut", |live| shorten(live, 30)),
        ("cut", |live| shorten(live, 80)),
    ];
    for compression in [ZSTD, Compression::Gzip { level: 6 }, Compression::None] {
        for (what, deed) in deeds {
            for then in [Then::MoreRecords, Then::Rotation, Then::End] {
                let dir = tempfile::tempdir().unwrap();
                let rotates = Some(Duration::from_mins(10));
                let spec = Spec { rotation_interval: rotates, ..spec(dir.path(), compression) };
                let (mut writer, _) = open(&spec, dir.path());
                writer.append(&flows(0..40)).unwrap();
                writer.tick(later(FRAME_MS_MAX)).unwrap();
                writer.note_lost(Place::Queue, 7, 1, 2, "full");
                writer.tick(Instant::now()).unwrap();
                writer.append(&flows(40..100)).unwrap();
                writer.tick(later(FRAME_MS_MAX)).unwrap();
                deed(&dir.path().join("sub").join(&writer.names.live));
                let given = match then {
                    Then::MoreRecords => {
                        writer.append(&flows(100..150)).unwrap();
                        writer.tick(later(FLUSH_MS)).unwrap();
                        150
                    }
                    Then::Rotation => {
                        writer.tick(later(600_000)).unwrap();
                        100
                    }
                    Then::End => 100,
                };
                writer.close().unwrap();
                let case = format!("{what}, {compression:?}, {then:?}");
                let written = writer.take_written();
                assert_eq!((written.records, written.lost), (given, 0), "{case}");
                let (records, told) = found(&dir.path().join("sub"));
                let gone: Vec<_> =
                    told.iter().filter(|(_, why)| why.contains("at the written file")).collect();
                let [(gone, why)] = gone[..] else { panic!("{case}: {told:?}") };
                assert_eq!((records + gone, *gone), (given, written.gone), "{case}: {told:?}");
                assert!(why.contains("by someone else while it was written"), "{case}: {why}");
                let queue: u64 =
                    told.iter().filter(|(_, why)| why.contains("at the queue")).map(|(lost, _)| lost).sum();
                assert_eq!(queue, 7, "{case}: what the file told of losses is told once: {told:?}");
            }
        }
    }
}

fn shorten(live: &Path, percent: u64) {
    let file = fs::File::options().write(true).open(live).unwrap();
    file.set_len(file.metadata().unwrap().len() * percent / 100).unwrap();
}
