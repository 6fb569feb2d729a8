//! Joins the rooms: flows in, each task's records out. The only file that names them all.
//!
//! In: batches of flows by cadence, with the node they were seen on. Out: chunks of whole records to the writer of each
//! task. One classifier says which tasks want a flow; one that nobody wants costs nothing further. Others are enriched
//! once, and encoded once for each distinct mask and format, however many tasks share it.

mod lane;
mod leaving;
mod lines;
mod recorded;
mod seated;
mod stage;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use self::lane::{At, Kept, Lane, give_out, write};
use self::lines::Lines;
use crate::clock::{monotonic_ns, wall_ns};
use crate::decode::{DIVIDED, DROPPED, Flows, MOVED};
use crate::encode;
use crate::enrich::Enricher;
use crate::filter::Classifier;
use crate::limits::CADENCES_MAX;
use crate::metrics::{Sent, Tally, TaskCounters};
use crate::record::fields::Mask;
use crate::record::{Flow, Format, Node, Seen};
use crate::task::{Closing, Earlier, Finished, Overflow, Planned, Running, Spec};
use crate::write::{Error, Roots};

pub use stage::{Built, Seat, Stage, Swap};

/// One batch on its way.
#[derive(Debug)]
pub struct Batch {
    /// Flows by cadence.
    pub flows: Flows,
    /// The node as of this batch.
    pub node: Arc<Node>,
}

/// The tasks of one cadence.
#[derive(Debug, Default)]
struct Group {
    classifier: Classifier,
    /// The lane of each of the classifier's tasks; none where its file could not be opened.
    lanes: Vec<Option<usize>>,
    /// Records shown to them.
    shown: u64,
}

/// The tasks, ready for batches.
#[derive(Debug)]
pub struct Pipeline {
    lanes: Vec<Lane>,
    groups: [Group; CADENCES_MAX],
    /// What shares lines: cadence, mask, format, and whether they are only added up.
    masks: Vec<(u8, Mask, Format, bool)>,
    lines: Vec<Lines>,
    /// Lanes of tasks that have an end, and of those that add up.
    ending: Vec<usize>,
    adding: Vec<usize>,
    /// Lanes of tasks that get drops.
    dropping: Vec<usize>,
    /// Lanes that have taken something of the batch at hand, and tasks that want the flow at hand.
    touched: Vec<usize>,
    found: Vec<u32>,
    /// When all counters were last brought up to date; nothing when they are.
    unsettled_since: Option<Instant>,
    roots: Arc<Roots>,
    enricher: Enricher,
    overflow: Overflow,
    /// Events recorded elsewhere have been shown.
    recorded: bool,
    /// Where what tasks take is added up, where somebody wants to know.
    tally: Option<Arc<Mutex<Tally>>>,
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
    pub fn new(roots: Arc<Roots>, enricher: Enricher, overflow: Overflow) -> Self {
        Self {
            lanes: Vec::new(),
            groups: Default::default(),
            masks: Vec::new(),
            lines: Vec::new(),
            ending: Vec::new(),
            adding: Vec::new(),
            dropping: Vec::new(),
            touched: Vec::new(),
            found: Vec::new(),
            unsettled_since: None,
            roots,
            enricher,
            overflow,
            recorded: false,
            tally: None,
        }
    }

    /// Gives a task its place, and that place's number.
    fn seat(&mut self, planned: Planned, kept: Kept, running: Running) -> usize {
        let aggregated = planned.spec.aggregation.is_some();
        let wanted = (planned.cadence, planned.mask, planned.spec.file.format, aggregated);
        let lines = self.masks.iter().position(|mask| *mask == wanted).unwrap_or_else(|| {
            self.masks.push(wanted);
            self.lines.push(Lines::default());
            self.masks.len() - 1
        });
        let at = self.lanes.len();
        if planned.spec.end.is_some() {
            self.ending.push(at);
        }
        if aggregated {
            self.adding.push(at);
        }
        if planned.spec.drops {
            self.dropping.push(at);
        }
        self.lanes.push(Lane::new(planned, lines, kept, running, self.overflow));
        at
    }

    /// Replaces the tasks, between two batches. Those that stay keep writer, counters and place; what is not in the
    /// swap is told to close, which nothing waits for unless its file is wanted by another task.
    ///
    /// `last` holds what the tasks that go are still to be shown.
    pub fn apply(&mut self, swap: Swap, last: Option<Batch>) -> Applied {
        if let Some(last) = last {
            self.show_last(&swap, last);
        }
        self.settle();
        let mut before: HashMap<String, Lane> =
            self.lanes.drain(..).map(|lane| (lane.planned.spec.name.clone(), lane)).collect();
        for emptied in [&mut self.ending, &mut self.adding, &mut self.dropping, &mut self.touched] {
            emptied.clear();
        }
        self.masks.clear();
        self.lines.clear();
        let number = swap.number;
        // What a task has joined with, so far as it goes on as it was; else it joins now.
        let goes_on = before.iter().filter(|(name, _)| !swap.moving.contains(*name));
        let joined: HashMap<String, u32> =
            goes_on.map(|(name, lane)| (name.clone(), lane.kept.joined)).collect();
        let joined = |planned: &Planned| joined.get(&planned.spec.name).copied().unwrap_or(number);
        let mut late = Vec::new();
        let mut places = Vec::with_capacity(swap.seats.len());
        for (seat, cadence) in swap.seats {
            let place = match seat {
                Seat::Keep(name) => {
                    before.remove(&name).map(|lane| self.seat(lane.planned, lane.kept, lane.running))
                }
                Seat::Change(planned) => before.remove(&planned.spec.name).map(|mut lane| {
                    lane.kept.joined = joined(&planned);
                    if planned.spec.file != lane.planned.spec.file {
                        lane.running.reshape(planned.spec.file.clone());
                    }
                    self.seat(*planned, lane.kept, lane.running)
                }),
                Seat::Open(planned, running) => {
                    let kept = Kept::new(joined(&planned));
                    Some(self.seat(*planned, kept, running))
                }
                Seat::OpenLater(planned, counters) => {
                    late.push((places.len(), *planned, counters));
                    None
                }
            };
            places.push((cadence, place));
        }
        let staying: HashSet<String> = self.lanes.iter().map(|lane| lane.planned.spec.name.clone()).collect();
        let closing = leaving::close(before, &staying, &late, self.overflow);
        let mut applied = Applied { closing, failed: Vec::new() };
        for (at, planned, counters) in late {
            match open(&planned.spec, &self.roots, counters) {
                Ok(running) => {
                    let kept = Kept::new(joined(&planned));
                    let lane = self.seat(planned, kept, running);
                    if let Some((_, place)) = places.get_mut(at) {
                        *place = Some(lane);
                    }
                }
                Err(error) => applied.failed.push((planned.spec.name, error)),
            }
        }
        self.group(swap.classifiers, &places);
        applied
    }

    /// Takes classifiers whose tasks are these places, by cadence.
    fn group(&mut self, classifiers: [Classifier; CADENCES_MAX], places: &[(u8, Option<usize>)]) {
        self.groups = classifiers.map(|classifier| Group { classifier, ..Group::default() });
        for (cadence, place) in places {
            if let Some(group) = self.groups.get_mut(usize::from(*cadence)) {
                group.lanes.push(*place);
            }
        }
        for lane in &mut self.lanes {
            lane.restart();
        }
    }

    /// The time by which rate limits are kept: a replay passes through hours in seconds.
    fn clock(&self) -> Option<i64> {
        (self.overflow == Overflow::Drop).then(|| i64::try_from(monotonic_ns()).unwrap_or(i64::MAX))
    }

    /// Shows a batch to the tasks that go, and its last list to those that move.
    fn show_last(&mut self, swap: &Swap, last: Batch) {
        let staying: HashSet<&str> = swap.seats.iter().map(|(seat, _)| seat.name()).collect();
        let Batch { mut flows, node } = last;
        let mut moved = vec![Vec::new(); MOVED + 1];
        if let (Some(from), Some(to)) = (flows.get_mut(MOVED), moved.get_mut(DIVIDED)) {
            std::mem::swap(from, to);
        }
        let leaves = |name: &str| !staying.contains(name);
        self.show_some(Batch { flows, node: Arc::clone(&node) }, leaves);
        self.show_some(Batch { flows: moved, node }, |name| swap.moving.contains(name));
    }

    /// Shows a batch to some tasks, by their names.
    fn show_some(&mut self, batch: Batch, meant: impl Fn(&str) -> bool) {
        self.settle();
        for lane in &mut self.lanes {
            lane.is_left_out = !meant(&lane.planned.spec.name);
        }
        self.show(batch);
        self.settle();
        for lane in &mut self.lanes {
            lane.is_left_out = false;
        }
    }

    /// Shows a batch to every task.
    pub fn take(&mut self, batch: Batch) {
        self.leave_out_ended(wall_ns() - LATE_NS);
        self.show(batch);
    }

    /// The control plane takes a task out at its end, with its last records; if it cannot, nothing more is written.
    fn leave_out_ended(&mut self, now_ns: i64) {
        for at in &self.ending {
            let Some(lane) = self.lanes.get_mut(*at) else { continue };
            let has_ended = lane.has_ended(now_ns);
            if has_ended != lane.is_left_out {
                let shown = self.groups.get(usize::from(lane.planned.cadence)).map_or(0, |group| group.shown);
                lane.settle(shown);
                lane.is_left_out = has_ended;
            }
        }
    }

    fn show(&mut self, mut batch: Batch) {
        let (node, clock) = (&*batch.node, self.clock());
        for lines in &mut self.lines {
            lines.clear();
        }
        for group in &mut self.groups {
            group.classifier.begin(node);
        }
        let mut record = 0;
        // Those that are for some tasks only come first: there are few.
        let divided = batch.flows.get_mut(DIVIDED).map(std::mem::take).unwrap_or_default();
        for mut flow in divided {
            let is_for =
                |lane: &&mut Lane| lane.planned.cadence == flow.cadence && flow.joined.has(lane.kept.joined);
            self.lanes.iter_mut().filter(is_for).for_each(Lane::show_alone);
            self.offer(usize::from(flow.cadence), record, &mut flow, (node, clock));
            record += 1;
        }
        let dropped = batch.flows.get_mut(DROPPED).map(std::mem::take).unwrap_or_default();
        for mut flow in dropped {
            self.offer_dropped(record, &mut flow, (node, clock));
            record += 1;
        }
        for (cadence, flows) in batch.flows.iter_mut().take(CADENCES_MAX).enumerate() {
            if let Some(group) = self.groups.get_mut(cadence) {
                group.shown += flows.len() as u64;
            }
            for flow in flows {
                self.offer(cadence, record, flow, (node, clock));
                record += 1;
            }
        }
        self.hand_on();
    }

    /// Shows dropped packets to the tasks that get any, whatever their cadence.
    fn offer_dropped(&mut self, record: usize, flow: &mut Flow, about: (&Node, Option<i64>)) {
        let mut cadences = [false; CADENCES_MAX];
        for at in &self.dropping {
            let Some(lane) = self.lanes.get_mut(*at) else { continue };
            lane.show_alone();
            if let Some(has) = cadences.get_mut(usize::from(lane.planned.cadence)) {
                *has = true;
            }
        }
        for (cadence, _) in cadences.into_iter().enumerate().filter(|(_, has)| *has) {
            self.offer(cadence, record, flow, about);
        }
    }

    /// Shows one flow to the tasks of a cadence that want it.
    fn offer(&mut self, cadence: usize, record: usize, flow: &mut Flow, (node, clock): (&Node, Option<i64>)) {
        let overflow = self.overflow;
        let Self { lanes, groups, lines, touched, found, enricher, tally, .. } = self;
        let Some(group) = groups.get_mut(cadence) else { return };
        let enrich = |flow: &mut _| enricher.enrich(std::slice::from_mut(flow), node);
        group.classifier.classify(flow, node, enrich, found);
        let flow = &*flow;
        let at = At { time_ns: flow.last_seen_ns, from_ns: flow.first_seen_ns };
        if let Some(tally) = tally.as_ref().filter(|_| !found.is_empty() && flow.dropped.is_none()) {
            let sent = Sent { packets: flow.packets, bytes: flow.bytes };
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.add(flow.connection, flow.source, flow.destination, sent);
        }
        for task in &*found {
            let Some(Some(place)) = group.lanes.get(*task as usize) else { continue };
            let Some(lane) = lanes.get_mut(*place) else { continue };
            let is_for_it = flow.dropped.is_none() || lane.planned.spec.drops;
            if lane.is_left_out || !is_for_it || !flow.joined.has(lane.kept.joined) {
                continue;
            }
            let Some(lines) = lines.get_mut(lane.lines) else { continue };
            let (format, mask) = (lane.line_format(), lane.planned.mask);
            let encode = |text: &mut _| encode::flow(format, flow, node, &mask, text);
            let clock_ns = clock.unwrap_or(at.time_ns);
            if let Some(aggregator) = &mut lane.kept.aggregator {
                let line = lines.line(record, encode);
                write(aggregator.due(clock_ns, lane.running.counters()), &lane.running, overflow);
                let times = (at.time_ns, at.from_ns);
                aggregator.add(lines.text(line), &Seen { flow, node }, times, lane.running.counters());
                lane.add();
            } else if lane.admits(clock_ns) {
                lane.take(lines.line(record, encode), at);
            }
            if lane.touch() {
                touched.push(*place);
            }
        }
    }

    /// Hands what the tasks have taken to their writers; what costs time for each task is done from time to time.
    fn hand_on(&mut self) {
        for place in self.touched.drain(..) {
            let Some(lane) = self.lanes.get_mut(place) else { continue };
            if let Some(lines) = self.lines.get_mut(lane.lines) {
                lane.hand_on(lines, self.overflow);
            }
        }
        if self.unsettled_since.get_or_insert_with(Instant::now).elapsed() >= SETTLE {
            self.settle();
        }
    }

    /// When [`Self::settle`] is due, if nothing else comes.
    #[must_use]
    pub fn settle_at(&self) -> Option<Instant> {
        Some(self.unsettled_since? + SETTLE)
    }

    /// Brings the counters of all tasks up to date.
    pub fn settle(&mut self) {
        self.unsettled_since = None;
        for lane in &mut self.lanes {
            let group = self.groups.get(usize::from(lane.planned.cadence));
            lane.settle(group.map_or(0, |group| group.shown));
        }
    }

    /// Has every task's file tell of what was lost before it came here.
    pub fn note_lost(&self, lost: &Earlier) {
        self.running().for_each(|running| running.note_lost(lost.clone()));
    }

    /// The same of dropped packets, in the files of the tasks that get them.
    pub fn note_lost_drops(&self, lost: &Earlier) {
        let dropping = self.dropping.iter().filter_map(|at| self.lanes.get(*at));
        dropping.for_each(|lane| lane.running.note_lost(lost.clone()));
    }

    /// Writes what tasks have added up over intervals that are over. How long until the next one is.
    pub fn give_out(&mut self) -> Option<Duration> {
        let now_ns = self.clock()?;
        let mut next: Option<i64> = None;
        for at in &self.adding {
            let Some(Lane { kept, running, .. }) = self.lanes.get_mut(*at) else { continue };
            let Some(aggregator) = &mut kept.aggregator else { continue };
            write(aggregator.due(now_ns, running.counters()), running, self.overflow);
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
    pub fn finish(mut self) -> Vec<Finished> {
        self.settle();
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

/// How long the counters of tasks that take nothing may be behind.
const SETTLE: Duration = Duration::from_millis(50);

/// Opens a task's file and says what was found there.
fn open(spec: &Spec, roots: &Arc<Roots>, counters: Arc<TaskCounters>) -> Result<Running, Error> {
    let (running, salvaged) = Running::start(&spec.file, roots, counters)?;
    if let Some(salvaged) = salvaged {
        tracing::warn!(task = %spec.name, file = %salvaged.path.display(), records = salvaged.records,
            damaged = salvaged.damaged, what = %salvaged.what, "something was in the live file's place");
        crate::task::note_salvaged(running.counters(), &salvaged);
    }
    Ok(running)
}
