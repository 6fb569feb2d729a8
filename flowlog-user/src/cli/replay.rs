//! `flowlog replay`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use flowlog_user::capture::Captured;
use flowlog_user::capture::replay::Replay;
use flowlog_user::clock::Clock;
use flowlog_user::config::Sources;
use flowlog_user::decode::Decoder;
use flowlog_user::enrich::{Enricher, label, snapshot};
use flowlog_user::pipeline::{Batch, Pipeline};
use flowlog_user::read::{BadLine, Counts, flows};
use flowlog_user::record::{Node, Pools};
use flowlog_user::server::ledger::Books;
use flowlog_user::task::{Finished, Overflow, Plan};
use flowlog_user::write::{Roots, create_folders};

use super::{Format, NodeArgs, summary, tasks};

/// Arguments of `flowlog replay`.
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// Capture file (pcap or pcapng); may be given several times, in order of time.
    #[arg(long = "pcap", value_name = "FILE", num_args = 1..)]
    pcaps: Vec<PathBuf>,
    /// Recorded flows instead: lines of Hubble's export or of a log of ours, compressed or not; `-` is stdin. Each passes
    /// the tasks' filters and masks once, with its own time and node name, and gets the label of the pool that an address
    /// belongs to where it has none of a pool.
    #[arg(long = "flows", value_name = "FILE", num_args = 1.., required_unless_present = "pcaps", conflicts_with = "pcaps")]
    flows: Vec<PathBuf>,
    #[command(flatten)]
    node: NodeArgs,
    /// Write the tasks' files below this folder (created where it is missing) instead of where they say: the folders that a
    /// `filePath` has below its log root (`--log-root`, /var/log/flowlog) or, outside of those, below what all tasks have in
    /// common, are kept. Files are rotated by size; `fileRotationInterval` is about the clock, and says nothing here.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Folder below which tasks may write where they say; may be given several times.
    #[arg(long, value_name = "DIR", value_parser = super::absolute(), env = "FLOWLOG_LOG_ROOT")]
    log_root: Vec<PathBuf>,
    /// What to print at the end.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Flows that are handed on together.
const BATCH_FLOWS: usize = 1024;

/// Recorded events that are handed on together; they are larger than flows.
const BATCH_EVENTS: usize = 512;

/// Lines that are no events of which each is told.
const BAD_LINES_TOLD: usize = 10;

/// Replays captures through parser, table, filters and writers.
///
/// # Errors
/// When tasks are not valid, a file cannot be written, or a capture cannot be read to its end (what came before is
/// written).
pub(crate) fn replay(arguments: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let sources = Sources { log_root: arguments.log_root.first().cloned(), ..arguments.node.sources() };
    let loaded = match arguments.flows.is_empty() {
        true => tasks::load_or_fail(&sources)?,
        false => tasks::load_for_recorded(&sources)?,
    };
    let mut plan = loaded.plan;
    tasks::stdout_is_free(&plan, arguments.output)?;
    let mut roots = arguments.log_root.clone();
    if let Some(folder) = &arguments.output_dir {
        let folder = std::path::absolute(folder)?;
        create_folders(&folder).with_context(|| "--output-dir")?;
        tasks::move_below(&mut plan, &folder, &roots)?;
        roots.push(folder);
    }
    if roots.is_empty() && plan.tasks.iter().any(|task| !task.spec.file.is_stdout()) {
        bail!(
            "where to? give --output-dir DIR for files of this replay alone, or --log-root DIR to write where the tasks say \
             (beside what a daemon wrote there)"
        );
    }
    if !arguments.flows.is_empty() {
        return recorded(arguments, plan, &loaded.pools.pools, &Arc::new(Roots::new(&roots)?));
    }
    let timeouts = arguments.node.capture.timeouts();
    let cadences =
        tasks::cadences(&plan.cadences.iter().copied().map(Some).collect::<Vec<_>>(), timeouts.active_ns);
    let report_start = cadences.iter().flatten().any(|cadence| cadence.start);
    let enricher = Enricher::new(arguments.node.capture.cluster_cidr.clone());
    let (node_name, cluster_name) = arguments.node.names();
    let node = snapshot(node_name.as_deref(), cluster_name.as_deref(), BTreeMap::new(), Vec::new())?;
    let node = Arc::new(Node { pools: loaded.pools.pools, ..node });
    let roots = Arc::new(Roots::new(&roots)?.with_node(&node.name));
    let mut pipeline =
        Pipeline::start(plan, &roots, enricher, Overflow::Wait).map_err(|errors| super::run::all(&errors))?;

    let mut decoder = Decoder::new(cadences);
    let mut flows = decoder.flows();
    let mut source = Replay::new(timeouts, arguments.node.capture.tunnel_mode(), report_start);
    let mut sink = |captured: Captured<'_>| {
        match captured {
            Captured::Bytes(bytes) => decoder.bytes(bytes, Clock::wall(), &mut flows),
            Captured::End(report, reason) => decoder.end(report, reason, Clock::wall(), &mut flows),
            Captured::Drop(drop) => {
                decoder.dropped(&drop.report, drop.direction, drop.dropped, Clock::wall(), &mut flows);
            }
        }
        if flows.iter().map(Vec::len).sum::<usize>() >= BATCH_FLOWS {
            let full = std::mem::replace(&mut flows, decoder.flows());
            pipeline.take(Batch { flows: full, node: Arc::clone(&node) });
        }
    };
    // A capture that cannot be read to its end still gives what came before.
    let outcome = arguments.pcaps.iter().try_for_each(|path| source.file(path, &mut sink).map(drop));
    source.stop(&mut sink);
    pipeline.take(Batch { flows, node });
    let finished = pipeline.finish();
    let books = Books {
        capture: source.ledger(),
        decode: decoder.counts(),
        recorded: None,
        tasks: finished.iter().map(|task| (Arc::clone(&task.name), Arc::clone(&task.counters))).collect(),
    };
    summary::print(&books, &finished, arguments.output)?;
    outcome?;
    Ok(exit_code(&finished))
}

/// A replay has all the time there is: whatever is dropped could not be written.
fn exit_code(finished: &[Finished]) -> ExitCode {
    if summary::all_written(finished) {
        return ExitCode::SUCCESS;
    }
    tracing::error!("not every record could be written; see what was dropped above");
    ExitCode::FAILURE
}

/// Puts recorded events through filters, masks and writers.
fn recorded(
    arguments: &ReplayArgs,
    plan: Plan,
    pools: &Pools,
    roots: &Arc<Roots>,
) -> anyhow::Result<ExitCode> {
    let enricher = Enricher::new(Vec::new());
    let mut pipeline =
        Pipeline::start(plan, roots, enricher, Overflow::Wait).map_err(|errors| super::run::all(&errors))?;
    let mut counts = Counts::default();
    let mut waiting = Vec::with_capacity(BATCH_EVENTS);
    let mut told = 0;
    let outcome = arguments.flows.iter().try_for_each(|path| {
        let sink = |mut event| {
            label(&mut event, pools);
            waiting.push(event);
            if waiting.len() == BATCH_EVENTS {
                pipeline.take_recorded(&waiting);
                waiting.clear();
            }
        };
        let bad = |line: &BadLine| {
            told += 1;
            if told <= BAD_LINES_TOLD {
                tracing::warn!("{line}; the line is passed over");
            }
        };
        flows(path, &mut counts, sink, bad)
    });
    pipeline.take_recorded(&waiting);
    let finished = pipeline.finish();
    let books = Books {
        recorded: Some(counts),
        tasks: finished.iter().map(|task| (Arc::clone(&task.name), Arc::clone(&task.counters))).collect(),
        ..Books::default()
    };
    summary::print(&books, &finished, arguments.output)?;
    outcome?;
    if counts.damaged > 0 {
        bail!("{} damaged parts were passed over; `flowlog verify` names them", counts.damaged);
    }
    if counts.malformed > 0 {
        bail!("{} of {} lines were no events and passed over", counts.malformed, counts.lines);
    }
    Ok(exit_code(&finished))
}
