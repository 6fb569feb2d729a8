//! Many tasks at work: what a thousand cost beside encoding and compressing their own output, and ten that want the same
//! beside one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use flowlog_tests::daemon::PATIENCE;
use flowlog_tests::measure::{Case, in_turn, progress};
use flowlog_tests::model;
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::usage::on_one_cpu;
use flowlog_user::decode::Flows;
use flowlog_user::encode;
use flowlog_user::enrich::Enricher;
use flowlog_user::filter::{Classifier, Spec};
use flowlog_user::limits::CADENCES_MAX;
use flowlog_user::pipeline::{Batch, Pipeline};
use flowlog_user::record::fields::Mask;
use flowlog_user::record::{Flow, Format, Node};
use flowlog_user::task::{Overflow, Plan, Planned, Running};
use flowlog_user::write::Roots;

use crate::filter::{BATCH, one_in_a_hundred, plan, thousand};
use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "tasks",
    about: "many tasks at work: a thousand beside their own output, ten that want the same beside one",
    run,
};

/// Records of a round.
const RECORDS: usize = 50_000;
/// Enough of them for every file to be begun.
const FEWER: usize = RECORDS / 5;
const PROCESS: ClockId = ClockId::ProcessCPUTime;
const THREAD: ClockId = ClockId::ThreadCPUTime;
/// The level that files have without being told.
const LEVEL: i32 = 1;
/// Text that the bound compresses at a time.
const FRAME_BYTES: usize = 256 << 10;

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    on_one_cpu(|| measured(settings))
}

fn measured(settings: &Settings) -> Result<Vec<Figure>> {
    let node = Arc::new(model::node());
    let flows = model::flows(1, RECORDS);
    let mut figures = beside_output(settings, &flows, &node)?;
    figures.push(ten(settings, &flows, &node)?);
    Ok(figures)
}

/// A thousand tasks of ten filters, of which ten take a record: filters, JSON, zstd and files in all threads' time,
/// beside a loop that only encodes those records and compresses each task's lines.
fn beside_output(settings: &Settings, flows: &[Flow], node: &Arc<Node>) -> Result<Vec<Figure>> {
    let specs = thousand(flows, node)?;
    let taken = taken(&specs, flows, node);
    let lines = taken.iter().map(Vec::len).sum::<usize>();
    one_in_a_hundred(lines as f64 / flows.len() as f64)?;
    let rounds = (settings.rounds / 4).max(3);
    progress("1,000 tasks of 10 filters");
    let mut cases = [
        Case::new("all of it", || {
            let (ns, written) = worked(&specs, flows, node, Clock::OfAll)?;
            ensure!(written == lines, "{written} lines were taken");
            Ok(ns)
        }),
        Case::new("encoding and compressing", || bound(&taken, specs.len(), flows, node)),
    ];
    let series = in_turn(rounds, &mut cases)?;
    let [whole, bound] = series.as_slice() else { anyhow::bail!("two cases") };
    let name = "tasks: 1,000 of 10 filters, beside encoding and compressing what they take";
    Ok(vec![Figure::beside(name, whole, bound, "ns/record", Target::AtMost(1.5))])
}

/// Ten tasks that take everything, with one mask and format, beside one: in the time of the thread that filters,
/// encodes and hands on; others compress.
fn ten(settings: &Settings, flows: &[Flow], node: &Arc<Node>) -> Result<Figure> {
    let case = |name, count| {
        Case::new(name, move || {
            let specs: Vec<Arc<Spec>> = vec![Arc::default(); count];
            Ok(worked(&specs, flows, node, Clock::OfThis)?.0)
        })
    };
    progress("ten tasks with the same mask and format");
    let series = in_turn(settings.rounds, &mut [case("ten tasks", 10), case("one task", 1)])?;
    let [ten, one] = series.as_slice() else { anyhow::bail!("two cases") };
    let name = "tasks: ten with the same mask and format, beside one, without compressing";
    Ok(Figure::beside(name, ten, one, "ns/record", Target::AtMost(2.0)))
}

/// Which tasks take each record.
fn taken(specs: &[Arc<Spec>], flows: &[Flow], node: &Node) -> Vec<Vec<u32>> {
    let mut classifier = Classifier::new(specs.iter().map(AsRef::as_ref));
    classifier.begin(node);
    let mut take = |flow: &Flow| {
        let mut tasks = Vec::new();
        classifier.classify(&mut flow.clone(), node, |_| {}, &mut tasks);
        tasks
    };
    flows.iter().map(&mut take).collect()
}

/// Whose time counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// All threads', from when every file is begun until all is written. Opening and closing files is not asked for.
    OfAll,
    /// That of the thread which filters, encodes and hands on.
    OfThis,
}

/// Nanoseconds a record, and lines taken, while these tasks write their files.
fn worked(specs: &[Arc<Spec>], flows: &[Flow], node: &Arc<Node>, clock: Clock) -> Result<(f64, usize)> {
    let folder = tempfile::tempdir()?;
    let mut plan = tasks(specs.len(), folder.path())?;
    for (planned, filter) in plan.tasks.iter_mut().zip(specs) {
        *planned =
            Planned::new(0, flowlog_user::task::Spec { filter: Arc::clone(filter), ..planned.spec.clone() });
    }
    let roots = Arc::new(Roots::new(&[folder.path().into()])?);
    let mut pipeline = Pipeline::start(plan, &roots, Enricher::default(), Overflow::Wait)
        .map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let mut show = |flows: &[Flow]| {
        let batches: Vec<Flows> = flows.chunks(BATCH).map(batch).collect();
        let began = ns(if clock == Clock::OfAll { PROCESS } else { THREAD });
        for flows in batches {
            pipeline.take(Batch { flows, node: Arc::clone(node) });
        }
        if clock == Clock::OfThis {
            return Ok(ns(THREAD) - began);
        }
        written(&pipeline)?;
        Ok::<_, anyhow::Error>(ns(PROCESS) - began)
    };
    let (first, rest) = flows.split_at_checked(FEWER).context("records enough")?;
    show(first)?;
    let spent = show(rest)?;
    let finished = pipeline.finish();
    let lines: u64 = finished.iter().map(|task| task.counters.matched.get()).sum();
    let written: u64 = finished.iter().map(|task| task.counters.written.get()).sum();
    ensure!(lines == written, "{lines} lines were taken, {written} written");
    Ok((spent / rest.len() as f64, usize::try_from(lines)?))
}

/// Waits until everything that was taken is written, as each second it is.
fn written(pipeline: &Pipeline) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    let open = |task: &Running| task.counters().written.get() < task.counters().matched.get();
    while pipeline.running().any(open) {
        ensure!(Instant::now() < until, "records wait to be written");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn batch(flows: &[Flow]) -> Flows {
    let mut batch = vec![Vec::new(); CADENCES_MAX + 1];
    if let Some(first) = batch.first_mut() {
        first.extend_from_slice(flows);
    }
    batch
}

/// Tasks that write below a folder and take everything.
fn tasks(count: usize, folder: &Path) -> Result<Plan> {
    plan(&vec![Vec::new(); count], folder)
}

/// Nothing can be faster without writing something else: each record is encoded once, and each task's lines are
/// compressed with the level that its file has.
fn bound(taken: &[Vec<u32>], tasks: usize, flows: &[Flow], node: &Node) -> Result<f64> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let (mut text, mut waiting) = (Vec::new(), vec![Vec::new(); tasks]);
    let mut compressed = vec![0; zstd::zstd_safe::compress_bound(FRAME_BYTES * 2)];
    let began = ns(PROCESS);
    for (flow, tasks) in flows.iter().zip(taken).filter(|(_, tasks)| !tasks.is_empty()) {
        text.clear();
        encode::flow(Format::Json, flow, node, &Mask::ALL, &mut text);
        for task in tasks {
            let Some(waiting) = waiting.get_mut(*task as usize) else { continue };
            waiting.extend_from_slice(&text);
            if waiting.len() >= FRAME_BYTES {
                compressor.compress_to_buffer(waiting, &mut compressed)?;
                waiting.clear();
            }
        }
    }
    for rest in waiting.iter().filter(|rest| !rest.is_empty()) {
        compressor.compress_to_buffer(rest, &mut compressed)?;
    }
    Ok((ns(PROCESS) - began) / flows.len() as f64)
}

/// Nanoseconds of a clock.
pub(crate) fn ns(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
