//! Log files: what frames and flushes cost in size, how fast they are written, how little of a day a minute costs.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use flowlog_tests::measure::{Case, Spread, in_turn, progress};
use flowlog_tests::report::{Figure, Target};
use flowlog_user::encode;
use flowlog_user::read::{Output, Request, TimeRange, cat};
use flowlog_user::record::Format;
use flowlog_user::write::{
    Chunk, Compression, Definition, NoticeEncoder, OnEnd, OnFull, Owner, Roots, Spec, Sync, Writer,
};

use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "files",
    about: "log files: size against one long stream, throughput, a minute of a day",
    run,
};

const LEVEL: i32 = 1;
/// 2026-11-30T20:14:26Z.
const BEGIN_NS: i64 = 1_796_069_666_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;
/// Milliseconds of `Writer::tick`'s time after which a flush, or the end of a frame, is due.
const FLUSH_MS: u64 = 1_000;
const FRAME_MS: u64 = 30_000;
/// Text of a round of the throughput.
const ROUND_BYTES: usize = 32 << 20;
const CHUNK_RECORDS: u32 = 1_000;

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (rate, target) in [(1000, 1.05), (100, 1.05), (30, 1.15), (10, 1.15), (1, 1.15)] {
        progress(&format!("sizes at {rate} records/s"));
        figures.push(size(rate, target)?);
    }
    figures.push(throughput(settings)?);
    figures.push(minute()?);
    Ok(figures)
}

/// A record of the usual length, with what usually varies.
fn record(i: u64) -> String {
    let noise = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let noise = (noise ^ (noise >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let noise = noise ^ (noise >> 32);
    let (pod, port, peer) = (noise % 41, 32_768 + (noise >> 7) % 28_000, (noise >> 23) % 97);
    let (packets, connection, second) = ((noise >> 31) % 50, 59_156_463_619 + i / 2, i / 100 % 60);
    let (bytes, ns, before_ns) =
        (packets * 800 + noise % 1500, noise % 1_000_000_000, (noise >> 11) % 1_000_000_000);
    let time = format!("2026-11-30T20:14:{second:02}.{ns:09}Z");
    format!(
        "{{\"flow\":{{\"time\":\"{time}\",\"uuid\":\"f48733bd-c000-81b8-b000-{i:012x}\",\"emitter\":{{\"name\":\"flowlog\",\"version\":\
         \"0.1.0\"}},\"verdict\":\"FORWARDED\",\"IP\":{{\"source\":\"10.1.0.{pod}\",\"destination\":\"10.2.{}.{peer}\",\"ipVersion\":\
         \"IPv4\"}},\"l4\":{{\"TCP\":{{\"source_port\":{port},\"destination_port\":443,\"flags\":{{\"FIN\":true,\"SYN\":true,\"PSH\":\
         true,\"ACK\":true}}}}}},\"source\":{{\"identity\":3,\"labels\":[\"reserved:unmanaged\"]}},\"destination\":{{\"identity\":2,\
         \"labels\":[\"reserved:world\"]}},\"Type\":\"L3_L4\",\"node_name\":\"node-1\",\"event_type\":{{\"type\":4,\"sub_type\":5}},\
         \"traffic_direction\":\"EGRESS\",\"is_reply\":false,\"interface\":{{\"index\":3,\"name\":\"lxc7a21\"}},\"Summary\":\"TCP Flags: \
         SYN, ACK, FIN, PSH; end (fin), {packets} packets, {bytes} B\",\"extensions\":{{\"@type\":\"type.googleapis.com/\
         google.protobuf.Struct\",\"value\":{{\"event\":\"end\",\"end_reason\":\"fin\",\"connection\":{connection},\"first_seen\":\
         \"2026-11-30T20:14:{second:02}.{before_ns:09}Z\",\"last_seen\":\"{time}\",\"packets\":{packets},\"bytes\":{bytes}}}}}}},\
         \"node_name\":\"node-1\",\"time\":\"{time}\"}}\n",
        peer % 3
    )
}

fn records(from: u64, to: u64) -> String {
    (from..to).map(record).collect()
}

fn chunk(text: String, records: u32, at_ns: i64) -> Chunk {
    Chunk {
        format: Format::Json,
        lines: text.into(),
        records,
        first_ns: at_ns,
        last_ns: at_ns,
        seen_from_ns: at_ns,
    }
}

fn writer(folder: &Path) -> Result<Writer> {
    let spec = Spec {
        task: "bench".into(),
        path: folder.join("a.log"),
        format: Format::Json,
        notices: NoticeEncoder(encode::notice),
        compression: Compression::Zstd { level: LEVEL },
        size_bytes_max: 10 << 20,
        total_bytes_max: u64::MAX,
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
    };
    Ok(Writer::open(&spec, &Roots::new(&[folder.into()])?)?.0)
}

fn later(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

fn bytes_in(folder: &Path) -> Result<u64> {
    let sizes = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len()));
    sizes.sum::<std::io::Result<u64>>().context("sizes")
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52")]
fn figure(bytes: u64) -> f64 {
    bytes as f64
}

/// Two minutes of records (ten where they are few), each second flushed, against all of them in one stream.
fn size(rate: u64, target: f64) -> Result<Figure> {
    let seconds: u64 = if rate < 10 { 600 } else { 120 };
    let ours = || -> Result<f64> {
        let folder = tempfile::tempdir()?;
        let mut writer = writer(folder.path())?;
        for second in 0..seconds {
            let at_ns = BEGIN_NS + i64::try_from(second)? * SECOND_NS;
            let text = records(second * rate, (second + 1) * rate);
            writer.append(&chunk(text, u32::try_from(rate)?, at_ns))?;
            writer.tick(later(if second % 30 == 29 { FRAME_MS } else { FLUSH_MS }))?;
        }
        writer.close()?;
        Ok(figure(bytes_in(folder.path())?))
    };
    let floor = || Ok(figure(zstd::encode_all(records(0, seconds * rate).as_bytes(), LEVEL)?.len() as u64));
    let mut cases = [Case::new("files", ours), Case::new("one stream", floor)];
    let series = in_turn(3, &mut cases)?;
    let [ours, floor] = &series[..] else { anyhow::bail!("two cases") };
    let name = format!("files: size at {rate} records/s, one long stream as floor");
    Ok(Figure::beside(name, ours, floor, "bytes", Target::AtMost(target)))
}

/// Records from memory through the writer, against only compressing them into a file.
fn throughput(settings: &Settings) -> Result<Figure> {
    let mut chunks = Vec::new();
    let (mut bytes, mut at) = (0, 0);
    while bytes < ROUND_BYTES {
        let text = records(at, at + u64::from(CHUNK_RECORDS));
        (bytes, at) = (bytes + text.len(), at + u64::from(CHUNK_RECORDS));
        chunks.push(chunk(text, CHUNK_RECORDS, BEGIN_NS));
    }
    let rate = |began: Instant| figure(bytes as u64) / 1e6 / began.elapsed().as_secs_f64();
    let folder = tempfile::tempdir()?;
    let ours = || -> Result<f64> {
        let mut writer = writer(folder.path())?;
        let began = Instant::now();
        for chunk in &chunks {
            writer.append(chunk)?;
        }
        writer.close()?;
        ensure!(writer.take_written().records == at, "records are missing");
        let rate = rate(began);
        for entry in std::fs::read_dir(folder.path())? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(rate)
    };
    let bound = || -> Result<f64> {
        let path = folder.path().join("bound");
        let began = Instant::now();
        let mut encoder = zstd::stream::write::Encoder::new(File::create(&path)?, LEVEL)?;
        encoder.include_checksum(true)?;
        for chunk in &chunks {
            encoder.write_all(&chunk.lines)?;
        }
        encoder.finish()?.sync_data()?;
        let rate = rate(began);
        std::fs::remove_file(path)?;
        Ok(rate)
    };
    let mut cases = [Case::new("the writer", ours), Case::new("its bound", bound)];
    let series = in_turn(settings.rounds.min(15), &mut cases)?;
    let [ours, bound] = &series[..] else { anyhow::bail!("two cases") };
    let name = "files: writer, text in; zstd into a file as floor";
    Ok(Figure::beside(name, ours, bound, "MB/s", Target::AtLeast(0.75)))
}

/// What part of a day's files is read for one of its minutes.
fn minute() -> Result<Figure> {
    const MINUTES: i64 = 1440;
    const RECORDS: u32 = 300;
    progress("a day of records");
    let folder = tempfile::tempdir()?;
    let mut writer = writer(folder.path())?;
    for minute in 0..MINUTES {
        let from = u64::try_from(minute)? * u64::from(RECORDS);
        let at_ns = BEGIN_NS + minute * 60 * SECOND_NS;
        writer.append(&chunk(records(from, from + u64::from(RECORDS)), RECORDS, at_ns))?;
        writer.tick(later(FRAME_MS))?;
    }
    writer.close()?;
    let at_ns = BEGIN_NS + 700 * 60 * SECOND_NS;
    let request = Request {
        paths: vec![folder.path().into()],
        output: Output::Nothing,
        range: TimeRange { since_ns: Some(at_ns), until_ns: Some(at_ns + 59 * SECOND_NS) },
        ..Request::default()
    };
    let stats = cat(&request, &mut std::io::sink())?.stats;
    let part = figure(stats.read_bytes) / figure(stats.file_bytes) * 100.0;
    let name = format!("files: read for a minute of a day of {} MB", stats.file_bytes / 1_000_000);
    Ok(Figure::alone(name, Spread::of(vec![part; 3]), "%", Target::AtMost(2.0)))
}
