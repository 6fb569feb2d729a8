//! Joins the rooms: flows in, each task's records out. The only file that names them all.
//!
//! In: batches of flows by cadence, with the node they were seen on. Out: chunks of whole records to the writer of each
//! task. Flows are enriched once, and encoded once for each distinct mask and format, however many tasks
//! share it.

mod stage;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::{monotonic_ns, wall_ns};
use crate::decode::Flows;
use crate::encode;
use crate::enrich::Enricher;
use crate::limits::CADENCES_MAX;
use crate::metrics::TaskCounters;
use crate::record::fields::Mask;
use crate::record::{Flow, Foreign, Format, Node, Seen};
use crate::task::{
    Aggregator, Closing, Earlier, Finished, Overflow, Phase, Plan, Planned, RateLimit, Running, Spec,
};
use crate::write::{Chunk, Error, Roots};

pub use stage::{Built, Seat, Stage, Swap};

/// One batch on its way.
#[derive(Debug)]
pub struct Batch {
    /// Flows by cadence.
    pub flows: Flows,
    /// The node as of this batch.
    pub node: Arc<Node>,
}

/// A task in the pipeline.
#[derive(Debug)]
struct Lane {
    planned: Planned,
    mask: usize,
    kept: Kept,
    running: Running,
}

/// What a task remembers from batch to batch.
#[derive(Debug, Default)]
struct Kept {
    /// The change with which it joined its cadence.
    joined: u32,
    rate: Option<RateLimit>,
    aggregator: Option<Aggregator>,
}

/// The tasks, ready for batches.
#[derive(Debug)]
pub struct Pipeline {
    lanes: Vec<Lane>,
    masks: Vec<(u8, Mask, Format, bool)>,
    lines: Vec<Lines>,
    roots: Arc<Roots>,
    enricher: Enricher,
    overflow: Overflow,
    /// Events recorded elsewhere have been shown.
    recorded: bool,
}

/// What [`Pipeline::apply`] has left to do, and what went wrong.
#[derive(Debug, Default)]
pub struct Applied {
    /// Tasks that write what is queued and close, beside everything else.
    pub closing: Vec<Closing>,
    /// Tasks whose file was another's until now and could not be opened; they do not run.
    pub failed: Vec<(String, Error)>,
}

impl Pipeline {
    /// No task yet.
    #[must_use]
    pub const fn new(roots: Arc<Roots>, enricher: Enricher, overflow: Overflow) -> Self {
        Self {
            lanes: Vec::new(),
            masks: Vec::new(),
            lines: Vec::new(),
            roots,
            enricher,
            overflow,
            recorded: false,
        }
    }

    /// Opens every task's file and starts its writer; all or nothing. A task whose end has passed, or whose start is
    /// yet to come, is not opened.
    ///
    /// # Errors
    /// Every task that could not be started.
    pub fn start(
        plan: Plan,
        roots: &Arc<Roots>,
        enricher: Enricher,
        overflow: Overflow,
    ) -> Result<Self, Vec<Error>> {
        let mut pipeline = Self::new(Arc::clone(roots), enricher, overflow);
        let mut errors = Vec::new();
        for planned in plan.tasks {
            let name = &planned.spec.name;
            if planned.spec.phase(wall_ns()) != Phase::Running {
                tracing::info!(task = %name, "this is not between the task's start and end; its file is not opened");
                continue;
            }
            match open(&planned.spec, roots, Arc::default()) {
                Ok(running) => pipeline.seat(planned, Kept::default(), running),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            return Ok(pipeline);
        }
        pipeline.finish();
        Err(errors)
    }

    fn seat(&mut self, planned: Planned, mut kept: Kept, running: Running) {
        let aggregated = planned.spec.aggregation.is_some();
        let wanted = (planned.cadence, planned.mask, planned.spec.file.format, aggregated);
        let mask = self.masks.iter().position(|mask| *mask == wanted).unwrap_or_else(|| {
            self.masks.push(wanted);
            self.lines.push(Lines::default());
            self.masks.len() - 1
        });
        // A limit that stays has been used up to where it was.
        let asked = planned.spec.rate_limit;
        let rate = kept.rate.filter(|rate| Some(rate.per_second()) == asked).or(asked.map(RateLimit::new));
        // What was added up in another way is written as it was begun.
        let asked = planned.spec.aggregation;
        let stays = |aggregator: &Aggregator| Some(*aggregator.aggregation()) == asked;
        if let Some(old) = kept.aggregator.take_if(|aggregator| !stays(aggregator)) {
            give_out(Some(old), &running, self.overflow);
        }
        let format = planned.spec.file.format;
        let joined = kept.joined;
        let aggregator = kept
            .aggregator
            .or(asked.map(|asked| Aggregator::new(asked, format)))
            .map(|sums| sums.written_as(format));
        self.lanes.push(Lane { planned, mask, kept: Kept { joined, rate, aggregator }, running });
    }

    /// Replaces the tasks, between two batches. Those that stay keep writer, counters and place; what is not in the
    /// swap is told to close, which nothing waits for unless its file is wanted by another task.
    ///
    /// `last` holds what the tasks that go are still to be shown.
    pub fn apply(&mut self, swap: Swap, last: Option<Batch>) -> Applied {
        if let Some(last) = last {
            self.show_last(&swap, last);
        }
        let mut before: HashMap<String, Lane> =
            self.lanes.drain(..).map(|lane| (lane.planned.spec.name.clone(), lane)).collect();
        self.masks.clear();
        self.lines.clear();
        let new = || Kept { joined: swap.number, ..Kept::default() };
        let mut late = Vec::new();
        for seat in swap.seats {
            match seat {
                Seat::Keep(name) => {
                    if let Some(lane) = before.remove(&name) {
                        self.seat(lane.planned, lane.kept, lane.running);
                    }
                }
                Seat::Change(planned) => {
                    if let Some(mut lane) = before.remove(&planned.spec.name) {
                        if planned.spec.cadence != lane.planned.spec.cadence {
                            lane.kept.joined = swap.number;
                        }
                        if planned.spec.file != lane.planned.spec.file {
                            lane.running.reshape(planned.spec.file.clone());
                        }
                        self.seat(*planned, lane.kept, lane.running);
                    }
                }
                Seat::Open(planned, running) => self.seat(*planned, new(), running),
                Seat::OpenLater(planned, counters) => late.push((*planned, counters)),
            }
        }
        let overflow = self.overflow;
        let leaving = before.into_values().map(|lane| {
            give_out(lane.kept.aggregator, &lane.running, overflow);
            let ended = lane.planned.spec.phase(wall_ns()) == Phase::Ended;
            let why =
                if ended { "the task's end has come" } else { "the task was removed or its file moved" };
            (lane.planned.spec.file.live_path(), lane.running.close_because(why))
        });
        let (awaited, closing): (Vec<_>, Vec<_>) = leaving
            .partition(|(path, _)| late.iter().any(|(planned, _)| planned.spec.file.live_path() == *path));
        let mut applied = Applied {
            closing: closing.into_iter().map(|(_, closing)| closing).collect(),
            failed: Vec::new(),
        };
        // Seldom: files change hands, so the one has to be closed before the other is opened.
        while awaited.iter().any(|(_, closing)| !closing.is_done()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        applied.closing.extend(awaited.into_iter().map(|(_, closing)| closing));
        for (planned, counters) in late {
            match open(&planned.spec, &self.roots, counters) {
                Ok(running) => self.seat(planned, new(), running),
                Err(error) => applied.failed.push((planned.spec.name, error)),
            }
        }
        applied
    }

    /// The time by which rate limits are kept: a replay passes through hours in seconds.
    fn clock(&self) -> Option<i64> {
        (self.overflow == Overflow::Drop).then(|| i64::try_from(monotonic_ns()).unwrap_or(i64::MAX))
    }

    fn show_last(&mut self, swap: &Swap, mut last: Batch) {
        for flows in &mut last.flows {
            self.enricher.enrich(flows, &last.node);
        }
        for lines in &mut self.lines {
            lines.clear();
        }
        let clock = self.clock();
        let staying: HashSet<&str> = swap.seats.iter().map(Seat::name).collect();
        for Lane { planned, mask, kept, running } in &mut self.lanes {
            if staying.contains(planned.spec.name.as_str()) {
                continue;
            }
            let Some(flows) = last.flows.get(usize::from(planned.cadence)) else { continue };
            let Some(lines) = self.lines.get_mut(*mask) else { continue };
            if let Some(chunk) =
                take(flows, &last.node, planned, (running, kept, clock, self.overflow), lines)
            {
                running.write(chunk, self.overflow);
            }
        }
    }

    /// Shows a batch to every task.
    pub fn take(&mut self, mut batch: Batch) {
        for flows in &mut batch.flows {
            self.enricher.enrich(flows, &batch.node);
        }
        for lines in &mut self.lines {
            lines.clear();
        }
        let (now_ns, clock) = (wall_ns() - LATE_NS, self.clock());
        for Lane { planned, mask, kept, running } in &mut self.lanes {
            // The control plane takes it out at its end, with its last records; if it cannot, nothing more is written.
            if planned.spec.phase(now_ns) == Phase::Ended {
                continue;
            }
            // Those that are for some tasks only come first, and are encoded for each: there are few.
            let divided = batch.flows.get(CADENCES_MAX).map(Vec::as_slice).unwrap_or_default();
            let of = |flow: &&Flow| flow.cadence == planned.cadence && flow.joined.has(kept.joined);
            let divided: Vec<Flow> = divided.iter().filter(of).copied().collect();
            let to = (&*running, &mut *kept, clock, self.overflow);
            if let Some(chunk) = take(&divided, &batch.node, planned, to, &mut Lines::default()) {
                running.write(chunk, self.overflow);
            }
            let Some(flows) = batch.flows.get(usize::from(planned.cadence)) else { continue };
            let Some(lines) = self.lines.get_mut(*mask) else { continue };
            if let Some(chunk) =
                take(flows, &batch.node, planned, (running, kept, clock, self.overflow), lines)
            {
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
        for Lane { planned, mask, kept, running } in &mut self.lanes {
            if planned.spec.phase(now_ns) == Phase::Ended {
                continue;
            }
            let Some(lines) = self.lines.get_mut(*mask) else { continue };
            let (filter, mask, format) = (&planned.filter, &planned.mask, planned.spec.file.format);
            let aggregated = kept.aggregator.is_some();
            let to = (&*running, kept, None, self.overflow);
            let add = |aggregator: &mut Aggregator, event: &Foreign, common: &[u8], times| {
                // What is no flow is written at once, as Hubble does.
                let flow = event.flow().is_some();
                if flow {
                    aggregator.add(common, event, times, running.counters());
                }
                flow
            };
            let chunk = collect(events, to, format, add, |at, event, chunk| {
                if !filter.takes(event) {
                    return None;
                }
                let own = if aggregated && event.flow().is_some() { Format::Json } else { format };
                chunk.extend_from_slice(lines.line(at, |text| encode::event(own, event, mask, text)));
                let time_ns = event.time_ns().unwrap_or(now_ns);
                Some((time_ns, time_ns))
            });
            if let Some(chunk) = chunk {
                running.write(chunk, self.overflow);
            }
        }
    }

    /// Has every task's file tell of what a daemon before this one lost.
    pub fn note_lost(&self, lost: &Earlier) {
        self.running().for_each(|running| running.note_lost(lost.clone()));
    }

    /// Writes what tasks have added up over intervals that are over. How long until the next one is.
    pub fn give_out(&mut self) -> Option<Duration> {
        let now_ns = self.clock()?;
        let mut next: Option<i64> = None;
        for Lane { kept, running, .. } in &mut self.lanes {
            let Some(aggregator) = &mut kept.aggregator else { continue };
            for chunk in aggregator.due(now_ns, running.counters()) {
                running.write(chunk, self.overflow);
            }
            next = next.into_iter().chain(aggregator.until_ns()).min();
        }
        let left_ns = u64::try_from(next?.saturating_sub(now_ns)).unwrap_or(0);
        Some(Duration::from_nanos(left_ns))
    }

    /// Tasks that are running.
    pub fn running(&self) -> impl Iterator<Item = &Running> {
        self.lanes.iter().map(|lane| &lane.running)
    }

    /// Writes what is queued and closes every file.
    pub fn finish(self) -> Vec<Finished> {
        // What was recorded or captured elsewhere gets no last line of ours: its end is not that of a task.
        let replayed = self.overflow == Overflow::Wait;
        let close = |running: Running| {
            if self.recorded || replayed { running.close_because("") } else { running.close() }
        };
        // All are told before any is waited for: one that hangs must not keep the others from closing.
        let overflow = self.overflow;
        let give_out_and_close = |lane: Lane| {
            give_out(lane.kept.aggregator, &lane.running, overflow);
            close(lane.running)
        };
        let closing: Vec<Closing> = self.lanes.into_iter().map(give_out_and_close).collect();
        closing.into_iter().map(Closing::wait).collect()
    }
}

/// How late a task may be taken out after its end.
const LATE_NS: i64 = 1_000_000_000;

/// Opens a task's file and says what was found there.
fn open(spec: &Spec, roots: &Arc<Roots>, counters: Arc<TaskCounters>) -> Result<Running, Error> {
    let (running, salvaged) = Running::start(&spec.file, roots, counters)?;
    if let Some(salvaged) = salvaged {
        tracing::warn!(task = %spec.name, file = %salvaged.path.display(), records = salvaged.records,
            damaged = salvaged.damaged, "an earlier process did not close its file; it was finished for it");
    }
    Ok(running)
}

/// Writes what a task has added up.
fn give_out(aggregator: Option<Aggregator>, running: &Running, overflow: Overflow) {
    if let Some(mut aggregator) = aggregator {
        for chunk in aggregator.flush(running.counters()) {
            running.write(chunk, overflow);
        }
    }
}

/// Where a task's records go: its writer, what it remembers, the time by which that is kept (`None`: the records' own),
/// and what to do when the writer is behind.
type To<'a> = (&'a Running, &'a mut Kept, Option<i64>, Overflow);

/// The records of one task from one batch; counts every flow.
fn take(flows: &[Flow], node: &Node, task: &Planned, to: To<'_>, lines: &mut Lines) -> Option<Chunk> {
    let counters = to.0.counters();
    let add = |aggregator: &mut Aggregator, flow: &Flow, common: &[u8], times| {
        aggregator.add(common, &Seen { flow, node }, times, counters);
        true
    };
    let format = task.spec.file.format;
    // What is added up is told apart by its JSON.
    let own = if to.1.aggregator.is_some() { Format::Json } else { format };
    collect(flows, to, format, add, |at, flow, chunk| {
        if !task.filter.matches(flow, node) {
            return None;
        }
        chunk.extend_from_slice(lines.line(at, |text| encode::flow(own, flow, node, &task.mask, text)));
        Some((flow.last_seen_ns, flow.first_seen_ns))
    })
}

/// Collects the lines of the records that a task takes; `line` appends one and says its time and when
/// its interval began; `add` adds it up instead, where it can be. Counts every record.
fn collect<R>(
    shown: &[R],
    (running, kept, clock, overflow): To<'_>,
    format: Format,
    add: impl Fn(&mut Aggregator, &R, &[u8], (i64, i64)) -> bool,
    mut line: impl FnMut(usize, &R, &mut Vec<u8>) -> Option<(i64, i64)>,
) -> Option<Chunk> {
    let mut chunk = Vec::new();
    let (mut records, mut limited, mut added) = (0_u32, 0_u64, 0_u64);
    let mut times: Option<(i64, i64, i64)> = None;
    for (at, record) in shown.iter().enumerate() {
        let begin = chunk.len();
        let Some((time_ns, from_ns)) = line(at, record, &mut chunk) else { continue };
        if let Some(aggregator) = &mut kept.aggregator {
            for chunk in aggregator.due(clock.unwrap_or(time_ns), running.counters()) {
                running.write(chunk, overflow);
            }
            if add(aggregator, record, chunk.get(begin..).unwrap_or_default(), (time_ns, from_ns)) {
                chunk.truncate(begin);
                added += 1;
                continue;
            }
        }
        if let Some(rate) = &mut kept.rate
            && !rate.passes(clock.unwrap_or(time_ns))
        {
            chunk.truncate(begin);
            limited += 1;
            continue;
        }
        records += 1;
        let (first, last, from) = times.unwrap_or((time_ns, time_ns, from_ns));
        times = Some((first.min(time_ns), last.max(time_ns), from.min(from_ns)));
    }
    let counters = running.counters();
    let (decoded, matched) = (shown.len() as u64, u64::from(records) + limited + added);
    counters.rate_limited.add(limited);
    counters.decoded.add(decoded);
    counters.matched.add(matched);
    counters.not_matched.add(decoded - matched);
    let (first_ns, last_ns, seen_from_ns) = times?;
    Some(Chunk { format, lines: Bytes::from(chunk), records, first_ns, last_ns, seen_from_ns })
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
