//! Indexes, ranges of time, damage in the midst of files, checks.

use std::fs;
use std::path::Path;

use super::tests::{SECOND_NS, gzip, indexed, line, lines, print, request, zstd};
use super::*;
use crate::record::container::{Frame, Index, header};

fn many(frames: u32) -> Vec<String> {
    (0..frames).map(|i| lines(i * 10..(i + 1) * 10)).collect()
}

fn since_until(since_ms: i64, until_ms: i64) -> TimeRange {
    let ns = |ms: i64| Some(SECOND_NS + ms * 1_000_000);
    TimeRange { since_ns: ns(since_ms), until_ns: ns(until_ms) }
}

fn print_range(path: &Path, range: TimeRange) -> (String, Summary) {
    let mut out = Vec::new();
    let summary = cat(&Request { range, ..request(&[path], Output::Json) }, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), summary)
}

#[test]
fn a_range_of_time_is_read_without_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-20261130T201426.000Z.log.zst");
    // Frames so large that reading ahead does not reach the whole file.
    let text = |i: u32| {
        (0..4000)
            .map(|n| {
                line(i * 2).replace("\"flow\":{", &format!("\"flow\":{{\"n\":\"{}\",", n * 7919 % 65_537))
            })
            .collect::<String>()
    };
    let frames: Vec<String> = (0..60).map(text).collect();
    let mut bytes = Vec::new();
    let mut index = Index { task: "t".into(), frames: Vec::new() };
    for (i, frame) in (0_i64..).zip(&frames) {
        let ns = SECOND_NS + i * 2_000_000;
        index.frames.push(Frame { offset: bytes.len() as u64, first_ns: ns, last_ns: ns, lines: 4000 });
        bytes.extend(zstd(std::slice::from_ref(frame), false));
    }
    fs::write(&path, [&bytes[..], &index.to_bytes()].concat()).unwrap();
    let (text, summary) = print_range(&path, since_until(50, 51));
    assert_eq!(text, frames[25]);
    assert!(
        summary.stats.read_bytes * 2 < bytes.len() as u64,
        "{} of {}",
        summary.stats.read_bytes,
        bytes.len()
    );
    // Nothing there, and open ends.
    assert_eq!(print_range(&path, since_until(51, 51)).0, "");
    assert_eq!(
        print_range(&path, TimeRange { since_ns: since_until(116, 0).since_ns, until_ns: None }).0,
        frames[58..].concat()
    );
    // Without the index the same is found by scanning.
    fs::write(&path, &bytes).unwrap();
    let (text, summary) = print_range(&path, since_until(50, 51));
    assert_eq!(text, frames[25]);
    assert_eq!(summary.stats.read_bytes, bytes.len() as u64 + 12, "and a look for an index");
}

/// A day in 24 files with a frame a minute: one minute of it costs under 2 % of the bytes. Only the frame that is
/// wanted holds records of its minute; what the others hold is never looked at.
#[test]
fn a_minute_of_a_day_costs_little() {
    let dir = tempfile::tempdir().unwrap();
    let noise = |i: u32| i.wrapping_mul(2_654_435_761).rotate_left(i % 31);
    let other: String =
        (0..2000).map(|i| format!("{{\"x\":\"{:x}{:x}\"}}\n", noise(i), noise(i + 9999))).collect();
    let (other, wanted) = (zstd(&[other], false), zstd(&[lines(0..10)], false));
    let mut all = 0;
    for hour in 0..24_i64 {
        let (mut bytes, mut index) = (Vec::new(), Index { task: "t".into(), frames: Vec::new() });
        for minute in 0..60 {
            let first_ns = SECOND_NS + ((hour - 20) * 60 + minute - 14) * 60_000_000_000;
            let is_wanted = first_ns == SECOND_NS;
            let lines = if is_wanted { 10 } else { 2000 };
            let last_ns = first_ns + 59_000_000_000;
            index.frames.push(Frame { offset: bytes.len() as u64, first_ns, last_ns, lines });
            bytes.extend_from_slice(if is_wanted { &wanted } else { &other });
        }
        bytes.extend(index.to_bytes());
        all += bytes.len() as u64;
        fs::write(dir.path().join(format!("a-20261130T{hour:02}0000.000Z.log.zst")), bytes).unwrap();
    }
    let (text, summary) = print_range(dir.path(), since_until(0, 59_000));
    assert_eq!((text, summary.damage.len()), (lines(0..10), 0));
    let read = summary.stats.read_bytes;
    assert!(read * 50 < all, "{read} of {all} bytes");
    println!("{read} of {all} bytes read");
}

#[test]
fn a_record_belongs_to_all_of_its_interval() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let record = r#"{"flow":{"extensions":{"value":{"first_seen":"2026-11-30T20:14:26Z","last_seen":"2026-11-30T20:14:26.500Z"}}},"time":"2026-11-30T20:14:26.500Z"}"#;
    fs::write(&path, format!("{record}\n{}", line(900))).unwrap();
    let found = |since, until| print_range(&path, since_until(since, until)).1.lines;
    assert_eq!(
        [found(100, 200), found(500, 600), found(501, 600), found(-9, 0), found(0, 999)],
        [1, 1, 0, 1, 2]
    );
}

#[test]
fn what_stands_behind_damage_is_read_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-20261130T201426.000Z.log.zst");
    let frames = many(5);
    let whole = indexed(&frames);
    let ends: Vec<usize> = (1..=5)
        .map(|n| zstd(&frames[..n], false).len() + if n > 0 { header("{}").len() } else { 0 })
        .collect();
    let frame_of = |at: usize| ends.iter().position(|end| at < *end);
    let first_frame = zstd(&frames[..1], false).len();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&path, &bytes).unwrap();
        let (text, summary) = print(&[&path], Output::Json);
        // Every frame but the one that was hit comes out.
        for (number, frame) in frames.iter().enumerate() {
            let hit = frame_of(at) == Some(number) && !(number == 0 && at >= first_frame);
            assert!(
                hit || text.contains(frame.as_str()),
                "byte {at}: frame {number} is missing: {:?}",
                summary.damage
            );
        }
        let in_a_frame = at < first_frame || (at >= ends[0] && at < ends[4]);
        if in_a_frame {
            let named =
                summary.damage.iter().any(|damage| damage.offset <= at as u64 && damage.end > damage.offset);
            assert!(named, "byte {at}: {:?}", summary.damage);
        }
        assert!(
            verify(std::slice::from_ref(&path)).unwrap()[0].damage.is_empty() <= !in_a_frame,
            "byte {at}"
        );
    }
    // A hole of foreign bytes in the midst, from a pipe as well as from a file.
    let hole = [&whole[..ends[1]], &[7; 300_000], &whole[ends[1]..]].concat();
    fs::write(&path, &hole).unwrap();
    let (text, summary) = print(&[&path], Output::Json);
    assert_eq!(text, lines(0..50));
    let [Damage { offset, end, .. }] = summary.damage[..] else { panic!("{:?}", summary.damage) };
    assert_eq!((offset, end), (ends[1] as u64, ends[1] as u64 + 300_000));
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_frames_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-20261130T201426.000Z.log.zst");
    let whole = indexed(&many(4));
    let frames_end = zstd(&many(4), false).len() + header("{}").len();
    fs::write(&path, &whole).unwrap();
    let verdict = verify(std::slice::from_ref(&path)).unwrap().remove(0);
    assert!(verdict.damage.is_empty() && verdict.indexed && verdict.lines == 40, "{verdict:?}");
    for cut in 1..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let (text, summary) = print(&[&path], Output::Json);
        assert!(lines(0..40).starts_with(&text) && (text.is_empty() || text.ends_with('\n')), "cut at {cut}");
        assert!(cut < frames_end || text == lines(0..40), "cut at {cut}");
        let verdict = verify(std::slice::from_ref(&path)).unwrap().remove(0);
        assert_eq!(verdict.damage.is_empty(), summary.damage.is_empty(), "cut at {cut}");
        assert!(!verdict.indexed);
        assert_eq!(verdict.lines, summary.lines, "cut at {cut}");
    }
}

#[test]
fn an_index_that_tells_of_something_else_is_found_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-20261130T201426.000Z.log.zst");
    let (five, four) = (indexed(&many(5)), indexed(&many(4)));
    let index = |bytes: &[u8]| {
        let len = u32::from_le_bytes(bytes[bytes.len() - 12..bytes.len() - 8].try_into().unwrap()) as usize;
        bytes[bytes.len() - len - 8..].to_vec()
    };
    let content = &five[..five.len() - index(&five).len()];
    fs::write(&path, [content, &index(&four)].concat()).unwrap();
    let verdict = verify(std::slice::from_ref(&path)).unwrap().remove(0);
    assert!(verdict.damage[0].what.contains("the index tells of 40 records in 4 frames"), "{verdict:?}");
    // Plain and gzip files are checked by their lines.
    fs::write(dir.path().join("b-20261130T201426.000Z.log.gz"), gzip(&lines(0..3))).unwrap();
    fs::write(dir.path().join("c-20261130T201426.000Z.log"), lines(0..3) + "{\"x\":1}\n").unwrap();
    let verdicts = verify(&[dir.path().to_path_buf()]).unwrap();
    assert_eq!(
        verdicts.iter().map(|verdict| (verdict.lines, verdict.damage.len())).collect::<Vec<_>>(),
        [(50, 1), (3, 0), (4, 1)]
    );
}

#[test]
fn patterns_are_served_and_hidden_files_are_not() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["x", "y"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
        fs::write(dir.path().join(folder).join("a.log"), lines(0..1)).unwrap();
        fs::write(dir.path().join(folder).join("b.txt"), lines(1..2)).unwrap();
        fs::write(dir.path().join(folder).join(".c.log"), lines(2..3)).unwrap();
    }
    let of = |pattern: &str| {
        cat(&request(&[&dir.path().join(pattern)], Output::Json), &mut std::io::sink())
            .map(|summary| summary.lines)
    };
    assert_eq!(of("*/a.log").unwrap(), 2);
    assert_eq!(of("x/*").unwrap(), 2);
    assert_eq!(of("[xz]/?.log").unwrap(), 1);
    assert!(of("z*/a").unwrap_err().to_string().contains("nothing fits"));
}

#[test]
fn what_files_hold_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let notices = concat!(
        r#"{"lost_events":{"source":"OBSERVER_EVENTS_QUEUE","num_events_lost":"12"},"time":"2026-11-30T20:14:26.010Z"}"#,
        "\n",
        r#"{"node_status":{"state_change":"NODE_GONE","node_names":["n"],"message":"m"},"time":"2026-11-30T20:14:26.010Z"}"#,
        "\n"
    );
    fs::write(dir.path().join("a-20261130T201426.000Z.log"), lines(0..10) + notices).unwrap();
    fs::write(dir.path().join("a.log.zst"), zstd(&[lines(100..110)], false)).unwrap();
    let (_, Summary { stats, .. }) = print(&[dir.path()], Output::Nothing);
    assert_eq!((stats.records, stats.notices, stats.lost, stats.files), (20, 2, 12, 2));
    assert_eq!(stats.text_bytes, (lines(0..10).len() + notices.len() + lines(100..110).len()) as u64);
    let ns = |ms: i64| SECOND_NS + ms * 1_000_000;
    assert_eq!(stats.range_ns, Some((ns(0), ns(109))));
    assert_eq!((stats.gaps, &stats.gap_ns[..]), (1, &[(ns(10), ns(100))][..]));
    assert!(stats.to_string().contains("2026-11-30T20:14:26.01Z to 2026-11-30T20:14:26.1Z"), "{stats}");
}

#[test]
fn compact_lines_are_hubbles() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let text = concat!(
        r#"{"flow":{"time":"2026-11-03T20:14:26.1239Z","verdict":"FORWARDED","IP":{"source":"10.0.0.1","destination":"fd00::2"},"l4":{"TCP":{"source_port":40000,"destination_port":443}},"source":{"identity":1},"destination":{"identity":2},"event_type":{"type":4,"sub_type":11},"is_reply":false,"Summary":"TCP Flags: SYN; start, 1 packet, 74 B"},"time":"2026-11-03T20:14:26.1239Z"}"#,
        "\n",
        r#"{"flow":{"verdict":"FORWARDED","IP":{"source":"10.0.0.2","destination":"10.0.0.1"},"l4":{"ICMPv4":{"type":8}},"source":{"identity":70000},"event_type":{"type":4},"is_reply":true,"Summary":"x"},"time":"2026-11-03T20:14:26Z"}"#,
        "\n",
        r#"{"lost_events":{"source":"OBSERVER_EVENTS_QUEUE","num_events_lost":"7"},"node_name":"n","time":"2026-11-03T20:14:26Z"}"#,
        "\n",
        r#"{"flow":{"time":"2026-11-13T01:02:03.004Z","verdict":"DROPPED","IP":{"source":"10.0.0.1","destination":"10.0.0.2"},"l4":{"UDP":{"source_port":1,"destination_port":53}},"source":{"identity":11,"namespace":"shop","pod_name":"cart-0"},"destination":{"identity":12},"destination_names":["a.example","b.example"],"event_type":{"type":1,"sub_type":133},"Summary":"UDP"}}"#,
        "\n",
        r#"{"flow":{"time":"2026-11-13T01:02:03.004Z","verdict":"REDIRECTED","IP":{"source":"10.0.0.1","destination":"10.0.0.2"},"destination_service":{"name":"dns","namespace":"kube"},"event_type":{"type":5},"policy_match_type":2,"traffic_direction":"INGRESS","is_reply":false,"Summary":"s","ip_trace_id":{"trace_id":"9"},"auth_type":"SPIRE"}}"#,
        "\n",
        r#"{"flow":{"verdict":"FORWARDED","ethernet":{"source":"aa","destination":"bb"},"l7":{"type":"RESPONSE","dns":{"observation_source":"proxy"}}}}"#,
        "\n",
    );
    fs::write(&path, text).unwrap();
    // As the client's printer has it: %s: %s %s %s %s %s %s %s (%s), times as Go's StampMilli.
    let want = "\
Nov  3 20:14:26.123: 10.0.0.1:40000 (host) -> [fd00::2]:443 (world) to-network FORWARDED (TCP Flags: SYN; start, 1 packet, 74 B)
Nov  3 20:14:26.000: 10.0.0.1 (unknown) <- 10.0.0.2 (ID:70000) to-endpoint FORWARDED (x)
EVENTS LOST: OBSERVER_EVENTS_QUEUE CPU(0) 7
Nov 13 01:02:03.004: shop/cart-0:1 (overlay-to-encrypt) <> a.example,b.example:53 (ID:12) Policy denied DROPPED (UDP)
Nov 13 01:02:03.004: 10.0.0.1 (unknown) -> kube/dns (unknown) policy-verdict:L3-L4 INGRESS ALLOWED (IP Trace ID: 9; s; SPIRE)
N/A: aa (unknown) <> bb (unknown) dns-response proxy FORWARDED ()
";
    assert_eq!(print(&[&path], Output::Compact(Style::default())).0, want);
    let numeric =
        print(&[&path], Output::Compact(Style { translate: false, node: true, ..Style::default() })).0;
    assert!(numeric.contains("\nNov 13 01:02:03.004 []: 10.0.0.1:1 (overlay"), "{numeric}");
}
