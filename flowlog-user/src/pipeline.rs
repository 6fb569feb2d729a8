//! Joins the rooms: flows in, each task's records out. The only file that names them all.
//!
//! In: batches of flows by cadence, with the node they were seen on. Out: chunks of whole records to the writer of each
//! task. Flows are enriched once, and encoded once for each distinct mask, however many tasks share it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::wall_ns;
use crate::decode::Flows;
use crate::encode::{foreign, json};
use crate::enrich::Enricher;
use crate::record::fields::Mask;
use crate::record::{Flow, Foreign, Node};
use crate::task::{Finished, Overflow, Plan, Planned, Running};
use crate::write::{Chunk, Error, Roots};

/// One batch on its way.
#[derive(Debug)]
pub struct Batch {
    /// Flows by cadence.
    pub flows: Flows,
    /// The node as of this batch.
    pub node: Arc<Node>,
}

/// A task in the pipeline. `running` is taken out when its end time has passed.
#[derive(Debug)]
struct Lane {
    planned: Planned,
    mask: usize,
    running: Option<Running>,
}

/// The tasks, ready for batches.
#[derive(Debug)]
pub struct Pipeline {
    lanes: Vec<Lane>,
    masks: Vec<(u8, Mask)>,
    lines: Vec<Lines>,
    enricher: Enricher,
    overflow: Overflow,
    finished: Vec<Finished>,
    /// Events recorded elsewhere have been shown.
    recorded: bool,
}

impl Pipeline {
    /// Opens every task's file and starts its writer; all or nothing. A task whose end has passed is not opened.
    ///
    /// # Errors
    /// Every task that could not be started.
    pub fn start(
        plan: Plan,
        roots: &Roots,
        enricher: Enricher,
        overflow: Overflow,
    ) -> Result<Self, Vec<Error>> {
        let mut pipeline = Self {
            lanes: Vec::with_capacity(plan.tasks.len()),
            masks: Vec::new(),
            lines: Vec::new(),
            enricher,
            overflow,
            finished: Vec::new(),
            recorded: false,
        };
        let mut errors = Vec::new();
        for planned in plan.tasks {
            if let Err(error) = pipeline.add(planned, roots) {
                errors.push(error);
            }
        }
        if errors.is_empty() {
            return Ok(pipeline);
        }
        pipeline.finish();
        Err(errors)
    }

    fn add(&mut self, planned: Planned, roots: &Roots) -> Result<(), Error> {
        if over(&planned, wall_ns()) {
            tracing::info!(task = %planned.spec.name, "the task's end has passed; its file is not opened");
            return Ok(());
        }
        let (running, salvaged) = Running::start(&planned.spec.file, roots)?;
        if let Some(salvaged) = salvaged {
            tracing::warn!(task = %planned.spec.name, file = %salvaged.path.display(), records = salvaged.records,
                damaged = salvaged.damaged, "an earlier process did not close its file; it was finished for it");
        }
        let wanted = (planned.cadence, planned.mask);
        let mask = self.masks.iter().position(|mask| *mask == wanted).unwrap_or_else(|| {
            self.masks.push(wanted);
            self.lines.push(Lines::default());
            self.masks.len() - 1
        });
        self.lanes.push(Lane { planned, mask, running: Some(running) });
        Ok(())
    }

    /// Shows a batch to every task.
    pub fn take(&mut self, mut batch: Batch) {
        for flows in &mut batch.flows {
            self.enricher.enrich(flows, &batch.node);
        }
        for lines in &mut self.lines {
            lines.clear();
        }
        let now_ns = wall_ns();
        for lane in &mut self.lanes {
            if over(&lane.planned, now_ns) {
                let ended =
                    lane.running.take().map(|running| running.finish_because("the task's end has come"));
                self.finished.extend(ended);
            }
            let Some(running) = &lane.running else { continue };
            let Some(flows) = batch.flows.get(usize::from(lane.planned.cadence)) else { continue };
            let Some(lines) = self.lines.get_mut(lane.mask) else { continue };
            if let Some(chunk) = take(flows, &batch.node, &lane.planned, running, lines) {
                running.write(chunk, self.overflow);
            }
        }
    }

    /// Shows recorded events to every task, each once, whatever the task's cadence.
    pub fn take_recorded(&mut self, events: &[Foreign]) {
        self.recorded = true;
        for lines in &mut self.lines {
            lines.clear();
        }
        let now_ns = wall_ns();
        for lane in &mut self.lanes {
            if over(&lane.planned, now_ns) {
                self.finished.extend(lane.running.take().map(Running::finish));
            }
            let Some(running) = &lane.running else { continue };
            let Some(lines) = self.lines.get_mut(lane.mask) else { continue };
            let (filter, mask) = (&lane.planned.filter, &lane.planned.mask);
            let chunk = collect(events, running, |at, event, chunk| {
                if !filter.takes(event) {
                    return None;
                }
                chunk.extend_from_slice(lines.line(at, |text| foreign::encode(event, mask, text)));
                let time_ns = event.time_ns().unwrap_or(now_ns);
                Some((time_ns, time_ns))
            });
            if let Some(chunk) = chunk {
                running.write(chunk, self.overflow);
            }
        }
    }

    /// Tasks that are running.
    pub fn running(&self) -> impl Iterator<Item = &Running> {
        self.lanes.iter().filter_map(|lane| lane.running.as_ref())
    }

    /// Writes what is queued and closes every file.
    pub fn finish(mut self) -> Vec<Finished> {
        let running: Vec<Running> = self.lanes.drain(..).filter_map(|lane| lane.running).collect();
        let finish = if self.recorded { Running::finish_recorded } else { Running::finish };
        self.finished.extend(running.into_iter().map(finish));
        self.finished
    }
}

/// Whether the task's end has passed.
fn over(task: &Planned, now_ns: i64) -> bool {
    task.spec.end.is_some_and(|end| end.as_nanosecond() <= i128::from(now_ns))
}

/// The records of one task from one batch; counts every flow.
fn take(flows: &[Flow], node: &Node, task: &Planned, running: &Running, lines: &mut Lines) -> Option<Chunk> {
    collect(flows, running, |at, flow, chunk| {
        if !task.filter.matches(flow, node) {
            return None;
        }
        chunk.extend_from_slice(lines.line(at, |text| json::encode(flow, node, &task.mask, text)));
        Some((flow.last_seen_ns, flow.first_seen_ns))
    })
}

/// Collects the lines of the records that a task takes; `line` appends one and says its time and when
/// its interval began. Counts every record.
fn collect<R>(
    shown: &[R],
    running: &Running,
    mut line: impl FnMut(usize, &R, &mut Vec<u8>) -> Option<(i64, i64)>,
) -> Option<Chunk> {
    let mut chunk = Vec::new();
    let mut records = 0_u32;
    let mut times: Option<(i64, i64, i64)> = None;
    for (at, record) in shown.iter().enumerate() {
        let Some((time_ns, from_ns)) = line(at, record, &mut chunk) else { continue };
        records += 1;
        let (first, last, from) = times.unwrap_or((time_ns, time_ns, from_ns));
        times = Some((first.min(time_ns), last.max(time_ns), from.min(from_ns)));
    }
    let counters = running.counters();
    let (decoded, matched) = (shown.len() as u64, u64::from(records));
    counters.decoded.add(decoded);
    counters.matched.add(matched);
    counters.not_matched.add(decoded - matched);
    let (first_ns, last_ns, seen_from_ns) = times?;
    Some(Chunk { lines: Bytes::from(chunk), records, first_ns, last_ns, seen_from_ns })
}

/// The flows of a batch as lines under one mask, each encoded when the first task asks for it.
#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    ranges: Vec<Option<Range<usize>>>,
}

impl Lines {
    fn clear(&mut self) {
        self.text.clear();
        self.ranges.clear();
    }

    fn line(&mut self, at: usize, encode: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        if self.ranges.len() <= at {
            self.ranges.resize(at + 1, None);
        }
        let Some(slot) = self.ranges.get_mut(at) else { return &[] };
        let range = slot.get_or_insert_with(|| {
            let start = self.text.len();
            encode(&mut self.text);
            start..self.text.len()
        });
        self.text.get(range.clone()).unwrap_or_default()
    }
}

/// Where each finished task's last file is.
#[must_use]
pub fn files(finished: &[Finished]) -> Vec<PathBuf> {
    finished.iter().filter_map(|task| task.last_file.clone()).collect()
}
