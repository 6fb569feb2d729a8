//! The way of a record from the kernel's report to the lines of a file's task allocates nothing once it is under way.

use std::net::Ipv4Addr;
use std::sync::Arc;

use allocation_counter::measure;
use anyhow::{Result, ensure};
use flowlog_abi::{Around, DirectionReport, FlowKey, REPORT_FLOW, Report, hook, protocol};
use flowlog_tests::generated::filters;
use flowlog_tests::model;
use flowlog_tests::random::Random;
use flowlog_user::clock::Clock;
use flowlog_user::config;
use flowlog_user::decode::{Cadence, Decoder, Flows};
use flowlog_user::encode;
use flowlog_user::enrich::Enricher;
use flowlog_user::filter::{Classifier, Spec};
use flowlog_user::limits::CADENCES_MAX;
use flowlog_user::pipeline::{Batch, Pipeline};
use flowlog_user::record::fields::Mask;
use flowlog_user::record::{Flow, Format};
use flowlog_user::task::{Overflow, Plan};
use flowlog_user::write::Roots;
use zerocopy::IntoBytes;

const CONNECTIONS: u32 = 500;
const SECOND: u64 = 1_000_000_000;

/// An update of a connection over TCP, as the kernel reports it for the `round`th time, a minute after the one before.
fn report(connection: u32, round: u64) -> Report {
    let address = |last: u32| Ipv4Addr::from_bits(0x0a01_0000 | last).to_ipv6_mapped().octets();
    let side = |at_s: u64| DirectionReport {
        ifindex: 10,
        hook: hook::UPLINK_EGRESS,
        packets: round * 10,
        bytes: round * 1000,
        reported_packets: (round - 1) * 10,
        reported_bytes: (round - 1) * 1000,
        first_ns: (100 + at_s) * SECOND,
        last_ns: (100 + at_s) * SECOND,
        ..DirectionReport::default()
    };
    Report {
        key: FlowKey {
            low: address(connection % 7),
            high: address(100 + connection % 50),
            low_port: 443,
            high_port: u16::try_from(30_000 + connection).unwrap_or(0),
            protocol: protocol::TCP,
            version: 4,
            kind: 0,
        },
        directions: [side(round * 60), side(round * 60 + 1)],
        started_ns: 100 * SECOND,
        connection: u64::from(connection) + 1,
        interfaces: [10, 2, 0, 0],
        generation: 0,
        rtt_ns: 0,
        number: u32::try_from(round).unwrap_or(0),
        what: REPORT_FLOW,
        opener: 1,
        midstream: 0,
        zero: 0,
        around: [Around::default(); 2],
    }
}

/// Tasks with filters of every kind.
fn plan(seed: u64, tasks: usize, folder: &str) -> Result<Plan> {
    let mut random = Random::new(seed);
    let mut text = "flowLogs:\n".to_owned();
    for task in 0..tasks {
        let (include, exclude) = (filters(&mut random, 3), filters(&mut random, 1));
        text += &format!(
            "- {{name: t{task}, filePath: {folder}/t{task}.log, includeFilters: {include}, excludeFilters: {exclude}}}\n"
        );
    }
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), text)?;
    let loaded = config::load(&[file.path().to_owned()])
        .map_err(|error| anyhow::anyhow!("{error}: {:?}", error.problems().errors.first()))?;
    Ok(loaded.plan)
}

#[test]
fn a_record_on_its_way_allocates_nothing() -> Result<()> {
    let all = Cadence { start: true, update: true, end: true, interval_ns: 60 * SECOND };
    let mut decoder = Decoder::new([Some(all), None, None, None]);
    let node = model::node();
    let plan = plan(11, 40, "/l")?;
    let specs: Vec<Arc<Spec>> = plan.tasks.iter().map(|task| Arc::clone(&task.spec.filter)).collect();
    let mut classifier = Classifier::new(specs.iter().map(AsRef::as_ref));
    let enricher = Enricher::default();
    let (mut flows, mut found) = (decoder.flows(), Vec::new());
    let (mut texts, mut records, mut taken) = ([Vec::new(), Vec::new(), Vec::new()], 0, 0);
    let mask = config_mask()?;
    let mut pass = |round: u64, records: &mut usize, taken: &mut usize| {
        flows.iter_mut().for_each(Vec::clear);
        texts.iter_mut().for_each(Vec::clear);
        for connection in 0..CONNECTIONS {
            decoder.bytes(report(connection, round).as_bytes(), Clock::wall(), &mut flows);
        }
        classifier.begin(&node);
        for flow in flows.iter_mut().flatten() {
            *records += 1;
            let enrich = |flow: &mut Flow| enricher.enrich(std::slice::from_mut(flow), &node);
            classifier.classify(flow, &node, enrich, &mut found);
            *taken += found.len();
            for (text, format) in texts.iter_mut().zip(Format::ALL) {
                for mask in [&Mask::ALL, &mask] {
                    encode::flow(format, flow, &node, mask, text);
                }
            }
        }
    };
    // Buffers and tables find their sizes.
    (1..4).for_each(|round| pass(round, &mut records, &mut taken));
    let before = records;
    let counted = measure(|| (4..8).for_each(|round| pass(round, &mut records, &mut taken)));
    ensure!(records - before == 8 * CONNECTIONS as usize && taken > 1000, "{records} records, {taken} taken");
    ensure!(counted.count_total == 0, "{} allocations for {} records", counted.count_total, records - before);
    Ok(())
}

/// Some fields of all that there are.
fn config_mask() -> Result<Mask> {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(
        file.path(),
        "flowLogs: [{name: a, filePath: /l/a.log, fieldMask: [time, IP, l4, extensions.bytes, Summary]}]",
    )?;
    let loaded = config::load(&[file.path().to_owned()])?;
    Ok(loaded.plan.tasks.first().map_or(Mask::ALL, |task| task.mask))
}

/// What a batch costs in allocations is by task, never by record.
#[test]
fn a_batch_allocates_for_its_tasks_and_not_for_its_records() -> Result<()> {
    const TASKS: usize = 30;
    let work = tempfile::tempdir()?;
    let node = Arc::new(model::node());
    let roots = Arc::new(Roots::new(&[work.path().into()])?);
    let plan = plan(12, TASKS, &work.path().to_string_lossy())?;
    let mut pipeline = Pipeline::start(plan, &roots, Enricher::default(), Overflow::Wait)
        .map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let flows = model::flows(3, 40_000);
    let batch = |flows: &[Flow]| {
        let mut batch: Flows = vec![Vec::new(); CADENCES_MAX + 1];
        batch[0].extend_from_slice(flows);
        Batch { flows: batch, node: Arc::clone(&node) }
    };
    for flows in flows.chunks(4000) {
        pipeline.take(batch(flows));
    }
    let mut batches: Vec<Batch> = flows.chunks(4000).map(batch).collect();
    let count = batches.len();
    let counted = measure(|| batches.drain(..).for_each(|batch| pipeline.take(batch)));
    let finished = pipeline.finish();
    let taken: u64 = finished.iter().map(|task| task.counters.matched.get()).sum();
    ensure!(taken > 50_000, "only {taken} records were taken");
    // Of each task in each batch: the lines' copy, its place in the queue, and waking the writer.
    let most = u64::try_from(count * TASKS * 8)?;
    ensure!(counted.count_total < most, "{} allocations for {taken} records", counted.count_total);
    Ok(())
}
