//! The whole way of a record in userspace: the kernel's reports from memory through decoding, enrichment, matching,
//! encoding and compressing into files on disk, in the time of all threads, beside a loop that does nothing but encode
//! and compress the same records.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_tests::measure::{Case, Series, Spread, in_turn, progress};
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::usage::on_one_cpu;
use flowlog_user::clock::Clock;
use flowlog_user::config;
use flowlog_user::decode::{Cadence, Decoder, Flows};
use flowlog_user::encode;
use flowlog_user::enrich::Enricher;
use flowlog_user::limits::FRAME_BYTES_MAX;
use flowlog_user::pipeline::{Batch, Pipeline};
use flowlog_user::record::fields::Mask;
use flowlog_user::record::{Flow, Format, Node};
use flowlog_user::task::{Finished, Overflow, Plan};
use flowlog_user::write::Roots;
use rustix::time::ClockId;
use zerocopy::IntoBytes;

use crate::reports::{Fed, reports};
use crate::tasks::ns;
use crate::{Bench, Settings, model};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "pipeline",
    about: "reports from memory to files on disk on one core, beside encoding and compressing alone",
    run,
};

/// Records of a round.
const RECORDS: usize = 100_000;
/// As many as the data plane hands on together.
const BATCH: usize = 1_024;
/// The level that files have without being told.
const LEVEL: i32 = 1;
const SEED: u64 = 17;
/// Hubble 1.19's exporter on the same kind of machine: nanoseconds of one core for a flow as a line of 961 bytes,
/// uncompressed, with one filter.
const HUBBLE_NS: f64 = 48_600.0;

/// Eight fields, and `node_name`, which stays.
pub(crate) const EIGHT: &str = "fieldMask: [time, IP.source, IP.destination, l4, traffic_direction, \
                                extensions.event, extensions.packets, extensions.bytes]";
/// Who, when and how much: the record for which sizes are usually given.
const FIVE_TUPLE: &str = "fieldMaskExact: true, fieldMask: [time, IP.source, IP.destination, l4, \
                          extensions.first_seen, extensions.packets, extensions.bytes]";

/// One task's way, and what it must reach of the bound and of Hubble's path.
const WAYS: [(&str, &str, Option<f64>); 3] = [
    ("whole flow, JSON", "format: json", Some(15.0)),
    ("8 fields, JSON", EIGHT, None),
    ("whole flow, protobuf", "format: protobuf", Some(50.0)),
];

/// What a round works on.
pub(crate) struct Work {
    pub(crate) node: Arc<Node>,
    pub(crate) reports: Vec<Fed>,
    /// The reports' records, as they are encoded.
    pub(crate) flows: Vec<Flow>,
}

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    on_one_cpu(|| measured(settings))
}

fn measured(settings: &Settings) -> Result<Vec<Figure>> {
    let work = Work::new(RECORDS)?;
    let rounds = settings.rounds.min(21);
    let mut figures = Vec::new();
    for (name, keys, hubble) in WAYS {
        progress(name);
        figures.extend(one_task(rounds, &work, name, keys, hubble)?);
    }
    for (name, keys) in [("8 fields, JSON", EIGHT), ("whole flow, protobuf", "format: protobuf")] {
        figures.push(ten_tasks(rounds, &work, name, keys)?);
    }
    figures.extend(stages(rounds, &work)?);
    figures.extend(sizes(&work)?);
    Ok(figures)
}

impl Work {
    /// So many records of the model.
    pub(crate) fn new(records: usize) -> Result<Self> {
        let (node, flows) = model::records(SEED, records);
        let reports = reports(&flows);
        let mut decoded = Vec::with_capacity(flows.len());
        decode(&reports, |batch| decoded.extend(batch.into_iter().flatten()));
        let sums = |flows: &[Flow]| {
            flows.iter().fold((0, 0), |sum, flow| (sum.0 + flow.packets, sum.1 + flow.bytes))
        };
        let (ours, models) = (sums(&decoded), sums(&flows));
        // Of the model's last report the other direction may be missing, when nothing is new there.
        let more = decoded.len().checked_sub(flows.len());
        ensure!(
            ours == models && more.is_some_and(|more| more < 2),
            "{ours:?} decoded, {models:?} in the model"
        );
        decoded.truncate(flows.len());
        Enricher::default().enrich(&mut decoded, &node);
        Ok(Self { node: Arc::new(node), reports, flows: decoded })
    }
}

/// So many tasks with these keys that take everything.
pub(crate) fn plan(count: usize, keys: &str, folder: &Path) -> Result<Plan> {
    let task = |number| {
        let path = folder.join(format!("t{number}.log"));
        format!("- {{name: t{number}, filePath: {}, fileMaxSizeMb: 1000, {keys}}}\n", path.display())
    };
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    let tasks: String = (0..count).map(task).collect();
    std::fs::write(file.path(), format!("flowLogs:\n{tasks}"))?;
    let loaded = config::load(&[file.path().to_owned()]);
    Ok(loaded.map_err(|error| anyhow::anyhow!("{:?}", error.problems().errors))?.plan)
}

/// Decodes reports, and hands their records on in batches as the data plane does.
pub(crate) fn decode(reports: &[Fed], mut take: impl FnMut(Flows)) {
    let all = Cadence { start: true, update: true, end: true, interval_ns: 60_000_000_000 };
    let (mut decoder, clock) = (Decoder::new([Some(all), None, None, None]), Clock::wall());
    let mut out = decoder.flows();
    for Fed { report, end } in reports {
        match end {
            None => decoder.bytes(report.as_bytes(), clock, &mut out),
            Some(reason) => decoder.end(report, *reason, clock, &mut out),
        }
        if out.iter().map(Vec::len).sum::<usize>() >= BATCH {
            let next = out.iter().map(|flows| Vec::with_capacity(flows.len())).collect();
            take(std::mem::replace(&mut out, next));
        }
    }
    take(out);
}

/// What tasks with these keys cost by two clocks, nanoseconds a record: of all threads until files are closed, and of
/// the one that decodes, matches and encodes.
fn worked(work: &Work, count: usize, keys: &str, folder: &Path) -> Result<([f64; 2], Vec<Finished>)> {
    let plan = plan(count, keys, folder)?;
    let roots = Arc::new(Roots::new(&[folder.into()])?);
    let mut pipeline = Pipeline::start(plan, &roots, Enricher::default(), Overflow::Wait)
        .map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let began = [ns(ClockId::ProcessCPUTime), ns(ClockId::ThreadCPUTime)];
    decode(&work.reports, |flows| pipeline.take(Batch { flows, node: Arc::clone(&work.node) }));
    let shown = ns(ClockId::ThreadCPUTime);
    let finished = pipeline.finish();
    let ended = [ns(ClockId::ProcessCPUTime), shown];
    for task in &finished {
        let (matched, written) = (task.counters.matched.get(), task.counters.written.get());
        ensure!(matched == RECORDS as u64 && written == matched, "{matched} matched, {written} written");
    }
    let spent = |at: fn(&[f64; 2]) -> f64| (at(&ended) - at(&began)) / RECORDS as f64;
    let [all, own] = [spent(|[all, _]| *all), spent(|[_, own]| *own)];
    Ok(([all, own], finished))
}

fn one_task(
    rounds: usize,
    work: &Work,
    name: &str,
    keys: &'static str,
    hubble: Option<f64>,
) -> Result<Vec<Figure>> {
    let tasks = plan(1, keys, Path::new("/l"))?.tasks;
    let task = tasks.first().context("a task")?;
    let (format, mask) = (task.spec.file.format, task.mask);
    let mut cases = [
        Case::new(name, || {
            let folder = tempfile::tempdir()?;
            Ok(1e9 / worked(work, 1, keys, folder.path())?.0[0])
        }),
        Case::new("encoding and compressing", || Ok(1e9 / bound(work, format, &mask)?)),
        Case::new("Hubble", || Ok(1e9 / HUBBLE_NS)),
    ];
    let series = in_turn(rounds, &mut cases)?;
    let [ours, bound, anchor] = series.as_slice() else { anyhow::bail!("three cases") };
    let beside = |what, floor: &Series, least| {
        Figure::beside(format!("pipeline: {name}, {what}"), ours, floor, "records/s", Target::AtLeast(least))
    };
    let mut figures = vec![beside("beside encoding and compressing", bound, 0.75)];
    figures.extend(hubble.map(|least| beside("beside Hubble's exporter (as measured once)", anchor, least)));
    Ok(figures)
}

/// Nothing can be faster without writing something else.
fn bound(work: &Work, format: Format, mask: &Mask) -> Result<f64> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let mut text = Vec::with_capacity(FRAME_BYTES_MAX * 2);
    let mut compressed = vec![0; zstd::zstd_safe::compress_bound(FRAME_BYTES_MAX * 2)];
    let began = ns(ClockId::ProcessCPUTime);
    for flow in &work.flows {
        encode::flow(format, flow, &work.node, mask, &mut text);
        if text.len() >= FRAME_BYTES_MAX {
            compressor.compress_to_buffer(&text, &mut compressed)?;
            text.clear();
        }
    }
    compressor.compress_to_buffer(&text, &mut compressed)?;
    Ok((ns(ClockId::ProcessCPUTime) - began) / RECORDS as f64)
}

/// Ten tasks that take everything with one mask and format, in the time of the thread that decodes, matches and encodes:
/// others compress.
fn ten_tasks(rounds: usize, work: &Work, name: &str, keys: &'static str) -> Result<Figure> {
    progress("ten tasks");
    let case = |name, count| {
        Case::new(name, move || {
            let folder = tempfile::tempdir()?;
            Ok(worked(work, count, keys, folder.path())?.0[1])
        })
    };
    let series = in_turn(rounds.min(11), &mut [case("ten tasks", 10), case("one task", 1)])?;
    let [ten, one] = series.as_slice() else { anyhow::bail!("two cases") };
    let name = format!("pipeline: ten tasks, {name}, beside one, without compressing");
    Ok(Figure::beside(name, ten, one, "ns/record", Target::AtMost(2.0)))
}

/// Where the time goes: each stage by itself.
fn stages(rounds: usize, work: &Work) -> Result<Vec<Figure>> {
    progress("stages");
    let timed = |stage: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        let began = ns(ClockId::ThreadCPUTime);
        stage()?;
        Ok((ns(ClockId::ThreadCPUTime) - began) / RECORDS as f64)
    };
    let mut text = Vec::new();
    let mut encoding = |format| {
        let keys = format!("format: {}", Format::name(format));
        timed(&mut || {
            for batch in work.flows.chunks(BATCH) {
                text.clear();
                batch.iter().for_each(|flow| encode::flow(format, flow, &work.node, &Mask::ALL, &mut text));
            }
            ensure!(!text.is_empty(), "nothing was written as {keys}");
            Ok(())
        })
    };
    let encoding = std::cell::RefCell::new(&mut encoding);
    let mut flows = work.flows.clone();
    let mut cases = [
        Case::new("decode", || {
            timed(&mut || {
                decode(&work.reports, drop);
                Ok(())
            })
        }),
        Case::new("enrich", || {
            timed(&mut || {
                Enricher::default().enrich(&mut flows, &work.node);
                Ok(())
            })
        }),
        Case::new("encode as JSON", || (encoding.borrow_mut())(Format::Json)),
        Case::new("encode as flat JSON", || (encoding.borrow_mut())(Format::Flat)),
        Case::new("encode as protobuf", || (encoding.borrow_mut())(Format::Protobuf)),
    ];
    let series = in_turn(rounds, &mut cases)?;
    let figure = |(case, series): (&Case<'_>, &Series)| {
        let spread = Spread::of(series.values().to_vec());
        Figure::alone(format!("pipeline: stage, {}", case.name), spread, "ns/record", Target::None)
    };
    Ok(cases.iter().zip(&series).map(figure).collect())
}

/// What a record takes on disk.
fn sizes(work: &Work) -> Result<Vec<Figure>> {
    progress("sizes");
    let mut figures = Vec::new();
    let mut size = |name: &str, bytes: usize, target| {
        let spread = Spread::of(vec![bytes as f64 / RECORDS as f64; 3]);
        figures.push(Figure::alone(format!("pipeline: on disk, {name}"), spread, "B/record", target));
    };
    for (name, keys) in [("whole flow, JSON", ""), ("whole flow, protobuf", "format: protobuf")] {
        size(name, written(work, keys)?.0, Target::None);
    }
    let protobuf = format!("format: protobuf, {FIVE_TUPLE}");
    let (bytes, parquet) = written(work, &protobuf)?;
    size("five-tuple, times, counters, flags, JSON", written(work, FIVE_TUPLE)?.0, Target::None);
    size("five-tuple, times, counters, flags, protobuf", bytes, Target::AtMost(24.0));
    size("five-tuple, times, counters, flags, Parquet", parquet, Target::AtMost(18.0));
    Ok(figures)
}

/// Bytes of the file of a task with these keys, and of the Parquet that is made of it.
fn written(work: &Work, keys: &str) -> Result<(usize, usize)> {
    let folder = tempfile::tempdir()?;
    let (_, finished) = worked(work, 1, keys, folder.path())?;
    let file = finished.first().and_then(|task| task.files.paths.back()).context("a file")?;
    let printed = std::process::Command::new(binary()).args(["cat", "-o", "parquet"]).arg(file).output()?;
    ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    Ok((usize::try_from(file.metadata()?.len())?, printed.stdout.len()))
}
