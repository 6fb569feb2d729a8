use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::{Damage, Error, Output, Request, Style, Summary, ToLine, cat};
use crate::record::container::{Frame, Index, header};

pub(super) fn lines(range: std::ops::Range<u32>) -> String {
    range.map(line).collect()
}

pub(super) fn line(i: u32) -> String {
    format!(
        "{{\"flow\":{{\"uuid\":\"{:08x}\"}},\"time\":\"2026-11-30T20:14:26.{i:03}Z\"}}\n",
        i.wrapping_mul(0x9e37_79b9)
    )
}

/// Frames with checksums; of the last one only what a flush gives when `open`.
pub(super) fn zstd(frames: &[String], open: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let mut encoder = zstd::stream::write::Encoder::new(bytes, 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(frame.as_bytes()).unwrap();
        encoder.flush().unwrap();
        bytes = if open && index + 1 == frames.len() {
            encoder.get_ref().clone()
        } else {
            encoder.finish().unwrap()
        };
    }
    bytes
}

/// 2026-11-30T20:14:26Z, the second of every line here.
pub(super) const SECOND_NS: i64 = 1_796_069_666_000_000_000;

/// A file as the writer makes it: a header behind the first frame, an index at the end.
pub(super) fn indexed(frames: &[String]) -> Vec<u8> {
    let (mut bytes, mut index) = (Vec::new(), Index { task: "t".into(), frames: Vec::new() });
    let mut count = 0;
    for (at, frame) in frames.iter().enumerate() {
        let lines = frame.lines().count() as u64;
        let ns = |n: u64| SECOND_NS + i64::try_from(n).unwrap() * 1_000_000;
        index.frames.push(Frame {
            offset: bytes.len() as u64,
            first_ns: ns(count),
            last_ns: ns(count + lines - 1),
            lines,
        });
        count += lines;
        bytes.extend(zstd(std::slice::from_ref(frame), false));
        if at == 0 {
            bytes.extend(header("{}"));
        }
    }
    bytes.extend(index.to_bytes());
    bytes
}

pub(super) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn request(paths: &[&Path], output: Output) -> Request {
    let paths = paths.iter().map(|path| path.to_path_buf()).collect();
    let to_line = ToLine(Some(|event, out| crate::encode::notice(crate::record::Format::Json, event, out)));
    Request { paths, output, to_line, ..Request::default() }
}

pub(super) fn print(paths: &[&Path], output: Output) -> (String, Summary) {
    let mut out = Vec::new();
    let summary = cat(&request(paths, output), &mut out).unwrap();
    (String::from_utf8(out).unwrap(), summary)
}

#[test]
fn a_folder_gives_finished_and_live_files_of_every_kind_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    put("a-20261130T201426.000Z-2.log.gz", &gzip(&lines(10..20)));
    put("a-20261130T201426.000Z.log.zst", &indexed(&[lines(0..5), lines(5..10)]));
    put("a-20261130T201426.100Z.log", lines(20..30).as_bytes());
    let open = zstd(&[lines(30..40), lines(40..50)], true);
    put("a.log.zst", &open);
    put(".hidden", b"no record\n");
    put("a-20261130T201426.100Z.log.gz.tmp", b"half");
    fs::create_dir(dir.path().join("below")).unwrap();
    put("below/b.log", lines(50..51).as_bytes());
    fs::create_dir(dir.path().join(".below")).unwrap();
    put(".below/b.log", lines(51..52).as_bytes());
    let (text, summary) = print(&[dir.path()], Output::Json);
    assert_eq!(text, lines(0..51));
    assert_eq!((summary.lines, summary.damage), (51, Vec::new()));

    // Named twice is read once.
    let live = dir.path().join("a.log.zst");
    assert_eq!(print(&[dir.path(), &live], Output::Json).0, lines(0..51));
    assert_eq!(print(&[&live], Output::Json).0, lines(30..50));
}

#[test]
fn a_damaged_index_is_named_and_costs_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-20261130T201426.000Z.log.zst");
    let whole = indexed(&[lines(0..5), lines(5..10)]);
    let frames_end = zstd(&[lines(0..5), lines(5..10)], false).len() + header("{}").len();
    for at in frames_end..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        let (text, summary) = print(&[&path], Output::Json);
        assert_eq!(text, lines(0..10), "byte {at}");
        assert!(!summary.damage.is_empty(), "byte {at}");
    }
    // Lines that others have compressed under such a name never had an index.
    fs::write(&path, zstd::bulk::compress(lines(0..10).as_bytes(), 3).unwrap()).unwrap();
    assert_eq!(print(&[&path], Output::Json).1.damage, []);
}

#[test]
fn a_live_file_that_nobody_writes_ends_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log"); // Which does not say how it is compressed.
    let age = |path: &Path| {
        let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        File::options().write(true).open(path).unwrap().set_modified(hour_ago).unwrap();
    };
    for (bytes, amid) in [
        (zstd(&[lines(0..5), lines(5..10)], true), true),
        (zstd(&[lines(0..5), lines(5..10)], false), false),
        (lines(0..11).trim_end().as_bytes().to_vec(), true),
        (lines(0..10).into_bytes(), false),
    ] {
        fs::write(&path, bytes).unwrap();
        let (text, summary) = print(&[&path], Output::Json);
        assert_eq!((text, summary.damage), (lines(0..10), Vec::new()));
        age(&path);
        let (text, summary) = print(&[&path], Output::Json);
        assert_eq!((text, summary.damage.len()), (lines(0..10), usize::from(amid)));
        let verdicts = super::verify(std::slice::from_ref(&path)).unwrap();
        assert_eq!(verdicts[0].damage.len(), usize::from(amid));
    }
}

/// What a decoder still holds when all bytes of a live file are read belongs to it too.
#[test]
fn a_live_file_gives_everything_up_to_its_last_flush() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log.zst");
    for records in (1..9000).step_by(331) {
        fs::write(&path, zstd(&[lines(0..records)], true)).unwrap();
        let (text, summary) = print(&[&path], Output::Json);
        assert_eq!(text.len(), lines(0..records).len(), "{records} records");
        assert_eq!(summary.damage, []);
    }
}

#[test]
fn tasks_are_merged_by_time() {
    let dir = tempfile::tempdir().unwrap();
    let odd: String = (0..50).filter(|i| i % 2 == 1).map(line).collect();
    let even: String = (0..50).filter(|i| i % 2 == 0).map(line).collect();
    fs::write(dir.path().join("odd.log"), odd).unwrap();
    fs::write(dir.path().join("even.log.zst"), zstd(&[even], false)).unwrap();
    // Without a time at its end, and without any: after the record before it.
    let other = line(1).replace("\"time\"", "\"no\"")
        + "{\"flow\":{},\"time\":\"2026-11-30T20:14:26.0105Z\",\"x\":1}\n{\"flow\":{}}\n";
    fs::write(dir.path().join("other.log"), &other).unwrap();
    let (text, summary) = print(&[dir.path()], Output::Json);
    let mut want: Vec<String> = (0..50).map(line).collect();
    want.splice(11..11, other.lines().skip(1).map(|line| format!("{line}\n")));
    want.insert(0, other.lines().next().unwrap().to_owned() + "\n");
    assert_eq!(text, want.concat());
    assert_eq!(summary.lines, 53);
}

#[test]
fn a_cut_is_named_in_a_finished_file_and_expected_in_a_live_one() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("a.log.zst");
    let finished = dir.path().join("a-20261130T201426.000Z.log.zst");
    let parts = [lines(0..10), lines(10..20)];
    let first = zstd(&parts[..1], false).len();
    let whole = zstd(&parts, false);
    let flushed = zstd(&parts, true).len();
    let with_index = indexed(&parts);
    let head =
        with_index.windows(whole.len() - first).position(|bytes| bytes == &whole[first..]).unwrap() - first;
    for (path, whole, head) in [(&live, &whole, 0), (&finished, &with_index, head)] {
        for cut in 1..whole.len() {
            let records = if cut >= flushed + head {
                20
            } else if cut >= first {
                10
            } else {
                0
            };
            fs::write(path, &whole[..cut]).unwrap();
            let (text, summary) = print(&[path], Output::Json);
            fs::remove_file(path).unwrap();
            assert!(lines(0..20).starts_with(&text), "cut at {cut}");
            assert!(text.len() >= lines(0..records).len(), "cut at {cut}: {records} records were flushed");
            assert!(text.is_empty() || text.ends_with('\n'));
            // Also where a frame ends, since no index follows.
            let harmless = path == &live;
            assert_eq!(summary.damage.is_empty(), harmless, "cut at {cut}: {:?}", summary.damage);
            if let [damage] = &summary.damage[..] {
                assert!(damage.path == finished && damage.offset <= cut as u64);
            }
        }
    }
}

#[test]
fn a_flipped_byte_is_named_and_the_other_files_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = zstd(&[lines(0..10), lines(10..20)], false);
    let first = zstd(&[lines(0..10)], false).len();
    let last = bytes.len() - 1;
    bytes[last] ^= 1; // The checksum of the second frame.
    let path = dir.path().join("a-20261130T201426.000Z.log.zst");
    fs::write(&path, &bytes).unwrap();
    fs::write(
        dir.path().join("a-20261130T201426.020Z.log"),
        lines(20..30) + "not a record\n" + &lines(30..31),
    )
    .unwrap();
    fs::write(dir.path().join("a-20261130T201426.030Z.log"), lines(31..32) + "{\"half\":").unwrap();
    fs::write(dir.path().join("a.log"), lines(32..33) + "{\"half\":").unwrap();
    let (text, summary) = print(&[dir.path()], Output::Json);
    assert!(text.starts_with(&lines(0..10)) && text.ends_with(&lines(20..33)), "{text}");
    let [Damage { path: damaged, offset, .. }, no_record, half] = &summary.damage[..] else {
        panic!("{:?}", summary.damage)
    };
    assert!(*damaged == path && *offset == first as u64, "{:?}", summary.damage);
    assert!(no_record.to_string().contains("a-20261130T201426.020Z.log: damaged at byte"), "{no_record}");
    assert!(half.what.contains("within a record"), "{half}");
}

#[test]
fn what_is_missing_or_endless_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let error = cat(&request(&[&missing], Output::Json), &mut io::sink()).unwrap_err();
    assert!(matches!(&error, Error::Open { path, .. } if *path == missing), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");

    let endless = dir.path().join("endless");
    File::create(&endless).unwrap().set_len(3 << 20).unwrap();
    let (text, summary) = print(&[&endless], Output::Json);
    assert!(text.is_empty() && summary.damage[0].what.contains("without an end"));
    assert_eq!(print(&[], Output::Table(Style::default())), (String::new(), Summary::default()));
}

struct Gone(io::ErrorKind);

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly_and_a_full_disk_does_not() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.log"), lines(0..3)).unwrap();
    for output in [Output::Json, Output::Table(Style::default())] {
        let quiet = cat(&request(&[dir.path()], output), &mut Gone(io::ErrorKind::BrokenPipe)).unwrap();
        assert!(quiet.damage.is_empty());
        let error = cat(&request(&[dir.path()], output), &mut Gone(io::ErrorKind::StorageFull)).unwrap_err();
        assert!(matches!(error, Error::Output(_)));
    }
}

#[test]
fn a_table_is_aligned_and_keeps_control_characters_out() {
    let dir = tempfile::tempdir().unwrap();
    let text = concat!(
        r#"{"flow":{"time":"2026-11-30T20:14:26Z","IP":{"source":"10.0.0.1","destination":"10.0.0.2"},"l4":{"TCP":{"source_port":40000,"destination_port":443}},"traffic_direction":"EGRESS","interface":{"index":2,"name":"eth0"},"extensions":{"value":{"event":"end","end_reason":"fin","packets":12,"bytes":1468006}}},"time":"2026-11-30T20:14:26Z"}"#,
        "\n",
        r#"{"flow":{"IP":{"source":"fd00::1","destination":"fd00::2"},"l4":{"UDP":{"source_port":53,"destination_port":5353}},"interface":{"name":"e\u001b[31m"},"extensions":{"value":{"event":"start","packets":1,"bytes":80}}},"time":"2026-11-30T20:14:27.5Z"}"#,
        "\n",
        r#"{"flow":{"IP":{"source":"1.2.3.4","destination":"5.6.7.8"},"Summary":"IPv4 protocol 47; start, 1 packet, 60 B"},"time":"2026-11-30T20:14:28Z"}"#,
        "\n",
        r#"{"lost_events":{"num_events_lost":"12"},"time":"2026-11-30T20:14:29Z"}"#,
        "\n",
    );
    let want = "\
TIME                    SOURCE          DESTINATION     PROTOCOL          DIRECTION  EVENT  REASON  PACKETS    BYTES  INTERFACE
2026-11-30T20:14:26Z    10.0.0.1:40000  10.0.0.2:443    TCP               EGRESS     end    fin          12  1468006  eth0
2026-11-30T20:14:27.5Z  [fd00::1]:53    [fd00::2]:5353  UDP               -          start  -             1       80  e\u{fffd}[31m
2026-11-30T20:14:28Z    1.2.3.4         5.6.7.8         IPv4 protocol 47  -          -      -             -        -  -
2026-11-30T20:14:29Z    12 records lost from - to -
";
    let path = dir.path().join("a.log");
    fs::write(&path, text).unwrap();
    assert_eq!(print(&[&path], Output::Table(Style::default())).0, want);

    // More rows than are held back to settle the widths.
    fs::write(&path, text.repeat(400)).unwrap();
    let printed = print(&[&path], Output::Table(Style::default())).0;
    assert_eq!(printed.lines().count(), 1601);
    assert!(printed.starts_with(want) && printed.ends_with(want.split_once('\n').unwrap().1));
}
