//! The threads of the data plane: one that drains the kernel, one that works through batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use flowlog_abi::Told;
use flowlog_user::capture::live::{self, Live};
use flowlog_user::capture::{CaptureLedger, Captured};
use flowlog_user::clock::{Clock, monotonic_ns};
use flowlog_user::decode::{Cadences, Change, Counts, Decoder, Flows};
use flowlog_user::enrich;
use flowlog_user::pipeline::{Applied, Batch, Pipeline, Swap};
use flowlog_user::record::rules::Rules;
use flowlog_user::record::{Node, Pools};
use flowlog_user::server::board::{Board, View};
use flowlog_user::server::busiest::Watcher;
use flowlog_user::server::ledger::Books;
use flowlog_user::task::Finished;

use tokio::sync::oneshot;

use super::Names;
use super::live_line::Seen;
use super::losses::{self, Losses, Lost};
use super::privileged::{Pending, Privileged};
use super::settling::Settling;

/// Flows that are handed on together: they and their lines stay in a processor's second cache.
pub(super) const BATCH_FLOWS: usize = 1024;

/// Batches that may wait. When they do, the ring fills, and the kernel keeps what it has to say in its table.
pub(super) const BATCHES_WAITING: usize = 64;

/// How often the capture thread tells what it has seen.
const TELL: Duration = Duration::from_millis(500);

/// How long after a change of tasks the kernel goes on testing by rules that are wider than needed: changes come in
/// series, and each narrowing would cost the next one a grace period.
const NARROW_AFTER: Duration = Duration::from_millis(250);

/// What the control plane and the data plane share.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Set to stop in order.
    pub(crate) stop: AtomicBool,
    /// Set when the capture has stopped by itself.
    pub(crate) failed: AtomicBool,
    /// Where the capture thread tells what it has seen.
    pub(crate) board: Arc<Board>,
    /// The pools of records from now on.
    pools: Mutex<Arc<Pools>>,
}

impl Control {
    /// Nothing has happened yet; the capture tells `board` what it sees.
    pub(crate) fn new(board: Arc<Board>) -> Self {
        Self { board, ..Self::default() }
    }

    /// Other pools from now on; equal ones change nothing.
    pub(crate) fn set_pools(&self, pools: &Arc<Pools>) {
        let mut now = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if *now != *pools {
            *now = Arc::clone(pools);
        }
    }

    fn pools(&self) -> Arc<Pools> {
        Arc::clone(&self.pools.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What has been seen so far.
    pub(crate) fn seen(&self) -> Seen {
        let mut seen = Seen::default();
        if let Some(view) = self.board.view() {
            seen.connections = view.books.capture.kernel.connections;
            let packets = view.books.packets();
            seen.shown = packets.seen.packets;
            seen.packets = packets.counted.packets + packets.alone.packets;
            seen.bytes = packets.counted.bytes + packets.alone.bytes;
            seen.lost = packets.lost.packets;
        }
        for (_, task) in self.board.counters() {
            seen.lost += task.dropped_queue_full.get() + task.dropped_write_error.get();
        }
        seen
    }
}

/// Other tasks from now on.
pub(crate) struct Command {
    /// For the kernel, before the change: whatever the tasks before and the tasks after it want.
    pub(crate) widened: Rules,
    /// For the kernel, some time after it.
    pub(crate) narrowed: Rules,
    /// For the pipeline.
    pub(crate) swap: Swap,
    /// For the decoder.
    pub(crate) cadences: Cadences,
    /// What concerns open connections.
    pub(crate) change: Change,
    /// A cadence begins.
    pub(crate) begins: bool,
    /// Told what the pipeline has left, once the tasks are in force.
    pub(crate) done: oneshot::Sender<Applied>,
}

/// What the worker does, in this order.
enum Work {
    Batch(Batch),
    Swap(Box<Swap>, Option<Batch>, oneshot::Sender<Applied>),
    Lost(Lost),
}

/// The next work, and until it comes what tasks have added up; nothing when there will be no more.
fn next(receiver: &Receiver<Work>, pipeline: &mut Pipeline) -> Option<Work> {
    loop {
        let now = Instant::now();
        let settle = pipeline.settle_at().map(|at| at.saturating_duration_since(now));
        if settle.is_some_and(|pause| pause.is_zero()) {
            pipeline.settle();
        }
        let settle = settle.filter(|pause| !pause.is_zero());
        let Some(pause) = pipeline.give_out().into_iter().chain(settle).min() else {
            return receiver.recv().ok();
        };
        match receiver.recv_timeout(pause) {
            Ok(work) => return Some(work),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// What is left when the data plane has stopped.
#[derive(Debug)]
pub(crate) struct Done {
    /// The kernel's side of the ledger.
    pub(crate) capture: CaptureLedger,
    /// The decoder's.
    pub(crate) decode: Counts,
    /// The tasks, files closed.
    pub(crate) finished: Vec<Finished>,
    /// Why it stopped, when not asked to.
    pub(crate) error: Option<anyhow::Error>,
}

/// What the capturing thread leaves.
pub(crate) struct Captures {
    ledger: CaptureLedger,
    counts: Counts,
    error: Option<anyhow::Error>,
    /// Of pinned tables: a note to the daemon after this one is due when all files are closed.
    live: Option<Live>,
}

/// The running threads.
pub(crate) struct DataPlane {
    privileged: Privileged,
    capture: Pending<Captures>,
    work: JoinHandle<Vec<Finished>>,
}

impl DataPlane {
    /// Starts the capture on the thread that may capture, and the worker.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn start(
        privileged: &Privileged,
        live: Live,
        mut pipeline: Pipeline,
        cadences: Cadences,
        names: Names,
        control: Arc<Control>,
        commands: Receiver<Command>,
    ) -> anyhow::Result<Self> {
        let (sender, receiver): (SyncSender<Work>, Receiver<Work>) = sync_channel(BATCHES_WAITING);
        let (settling, losses) = (live.is_pinned().then(Settling::default), Losses::new(live.is_pinned()));
        let done = settling.as_ref().map(Settling::done);
        let work = Builder::new()
            .name("flowlog-work".into())
            .spawn(move || {
                while let Some(work) = next(&receiver, &mut pipeline) {
                    match work {
                        Work::Batch(batch) => {
                            pipeline.take(batch);
                            if let Some(done) = &done {
                                done.fetch_add(1, Ordering::Release);
                            }
                        }
                        Work::Lost(lost) => lost.tell(&pipeline),
                        Work::Swap(swap, last, done) => {
                            // The receiver is gone only when the daemon stops; it waits for closing tasks there.
                            let _ = done.send(pipeline.apply(*swap, last));
                        }
                    }
                }
                pipeline.finish()
            })
            .context("cannot start a thread")?;
        let node = Arc::new(snapshot(&live, &names, control.pools())?);
        let (changes, mut decoder) = (live.changes(), Decoder::new(cadences));
        decoder.go_on(live.starts());
        let clock = Clock::measure();
        let capture = Capture {
            live,
            clock,
            decoder,
            names,
            node,
            changes,
            control,
            sender,
            commands,
            narrow: None,
            settling,
            losses,
            watcher: None,
        };
        let capture = privileged.run(move || capture.run());
        Ok(Self { privileged: privileged.clone(), capture, work })
    }

    /// Waits until everything is drained and every file is closed.
    ///
    /// # Errors
    /// When a thread has died.
    pub(crate) fn join(self) -> anyhow::Result<Done> {
        let captured = self.capture.wait();
        let finished = self.work.join().map_err(|_| anyhow!("the working thread has died"))?;
        let Captures { ledger, counts, error, live } = captured?;
        if let Some(mut live) = live {
            // All of it is in closed files, or named there as dropped.
            self.privileged.run(move || live.settle(live.taken(), Told::default())).wait()??;
        }
        Ok(Done { capture: ledger, decode: counts, finished, error })
    }
}

/// The capturing thread.
struct Capture {
    live: Live,
    clock: Clock,
    decoder: Decoder,
    names: Names,
    node: Arc<Node>,
    /// [`Live::changes`] as of `node`.
    changes: u64,
    control: Arc<Control>,
    sender: SyncSender<Work>,
    commands: Receiver<Command>,
    /// Of pinned tables only.
    settling: Option<Settling>,
    losses: Losses,
    /// While somebody asks who speaks most.
    watcher: Option<Watcher>,
    /// What the kernel is to test by, and from when.
    narrow: Option<(Rules, Instant)>,
}

impl Capture {
    fn run(mut self) -> Captures {
        let mut out = self.decoder.flows();
        let mut error = self.poll(&mut out).err();
        if error.is_some() {
            self.control.failed.store(true, Ordering::Relaxed);
        }
        let Self { mut live, mut decoder, node, sender, clock, mut losses, .. } = self;
        let now = clock.again();
        let mut stopped = live.stop(&mut feed(&mut decoder, now, &mut out, &node, &sender, None, None));
        if live.is_pinned() {
            let suspended = live.standing(|report| decoder.suspend(report, now, &mut out));
            stopped = stopped.and_then(|ledger| suspended.map(|()| ledger));
            if let Some(lost) = live.lost() {
                let _ = sender.send(Work::Lost(losses::by_a_kill(lost, now)));
            }
        }
        for lost in stopped.iter().flat_map(|ledger| losses.news(ledger)) {
            let _ = sender.send(Work::Lost(lost));
        }
        // The worker ends when it has taken the last batch and the sender is gone.
        let _ = sender.send(Work::Batch(Batch { flows: out, node }));
        let ledger = stopped.unwrap_or_else(|failure| {
            error.get_or_insert(failure.into());
            CaptureLedger::default()
        });
        Captures { ledger, counts: decoder.counts(), error, live: live.is_pinned().then_some(live) }
    }

    /// Drains the kernel until told to stop.
    fn poll(&mut self, out: &mut Flows) -> anyhow::Result<()> {
        let mut told: Option<Instant> = None;
        while !self.control.stop.load(Ordering::Relaxed) {
            let now = self.clock.again();
            if now.step_ns(self.clock).abs() > STEP_NS {
                tracing::warn!(
                    seconds = now.step_ns(self.clock) / 1_000_000_000,
                    "the wall clock was stepped"
                );
            }
            self.clock = now;
            let batches = self.settling.as_mut().map(|settling| &mut settling.sent);
            self.live.poll(&mut feed(
                &mut self.decoder,
                self.clock,
                out,
                &self.node,
                &self.sender,
                batches,
                self.watcher.as_mut(),
            ))?;
            if self.live.changes() != self.changes {
                // Before the batch is handed on: its records may name what has just come.
                self.changes = self.live.changes();
                self.node = Arc::new(snapshot(&self.live, &self.names, Arc::clone(&self.node.pools))?);
            }
            self.hand_on(out);
            self.tell_lost();
            self.settle()?;
            // After it: what was drained before a change has the labels by which it was decided about.
            let pools = self.control.pools();
            if !Arc::ptr_eq(&pools, &self.node.pools) {
                self.node = Arc::new(Node { pools, ..Node::clone(&self.node) });
            }
            self.obey()?;
            let quiet = self.narrow_when_due()?;
            self.watch_talkers()?;
            if told.is_none_or(|told| told.elapsed() >= TELL) {
                told = Some(Instant::now());
                self.tell()?;
            }
            self.live.wait(quiet.min(TELL));
        }
        Ok(())
    }

    /// Takes changes of the tasks: everything decoded before is on its way to the tasks before. What the kernel has
    /// counted and not yet reported is divided by a look at its table.
    fn obey(&mut self) -> Result<(), live::Error> {
        while let Ok(command) = self.commands.try_recv() {
            // What was dropped before the change is for the tasks before it.
            let mut out = self.decoder.flows();
            let (decoder, clock) = (&mut self.decoder, self.clock);
            self.live.flush_drops(&mut |captured| {
                if let Captured::Drop(drop) = captured {
                    decoder.dropped(&drop.report, drop.direction, drop.dropped, clock, &mut out);
                }
            })?;
            self.hand_on(&mut out);
            // So was what was lost of it.
            self.tell()?;
            self.live.widen_rules(&command.widened)?;
            let mut last = self.decoder.flows();
            let Change { leaving, moving, joining, .. } = command.change;
            if command.begins || [leaving, moving, joining].as_flattened().contains(&true) {
                let (decoder, clock) = (&mut self.decoder, self.clock);
                self.live.standing(|report| decoder.stand(report, command.change, clock, &mut last))?;
            }
            self.decoder.change(command.cadences, monotonic_ns());
            let some = last.iter().any(|flows| !flows.is_empty());
            let last = some.then(|| Batch { flows: last, node: Arc::clone(&self.node) });
            let _ = self.sender.send(Work::Swap(Box::new(command.swap), last, command.done));
            self.narrow = Some((command.narrowed, Instant::now() + NARROW_AFTER));
        }
        // Nobody waits for this one; the next change would have to.
        self.live.settle_rules()
    }

    /// Lets the kernel reject what no task wants any more. How long until that is due.
    fn narrow_when_due(&mut self) -> Result<Duration, live::Error> {
        let Some((_, due)) = &self.narrow else { return Ok(Duration::MAX) };
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero()
            && let Some((rules, _)) = self.narrow.take()
        {
            self.live.set_rules(&rules)?;
            return Ok(Duration::MAX);
        }
        Ok(left)
    }

    /// Says in every file what daemons before this one lost.
    fn tell_lost(&mut self) {
        if let Some(lost) = self.live.lost() {
            let _ = self.sender.send(Work::Lost(losses::by_a_kill(lost, self.clock)));
        }
    }

    /// Notes in the kernel how much is in files, for the daemon that comes when this one is killed.
    fn settle(&mut self) -> Result<(), live::Error> {
        let Some(settling) = &mut self.settling else { return Ok(()) };
        let board = &self.control.board;
        let tasks = || board.counters().into_iter().map(|(_, counters)| counters).collect();
        if let Some((taken, held)) = settling.settled(tasks) {
            self.live.settle(taken, held)?;
        }
        // After `hand_on`: all that was taken is on its way, but for what the decoder holds.
        if settling.is_free() && settling.last != self.live.taken() {
            settling.begin(self.live.taken(), self.decoder.held());
        }
        Ok(())
    }

    /// Looks who speaks most, while somebody asks.
    fn watch_talkers(&mut self) -> Result<(), live::Error> {
        let busiest = &self.control.board.busiest;
        if !busiest.is_asked() {
            if self.watcher.take().is_some() {
                busiest.tell(None);
            }
            return Ok(());
        }
        let watcher = self.watcher.get_or_insert_default();
        if watcher.is_due() {
            watcher.begin(monotonic_ns());
            self.live.standing(|report| watcher.stands(report))?;
            busiest.tell(watcher.finish());
        }
        Ok(())
    }

    fn hand_on(&mut self, out: &mut Flows) {
        if out.iter().any(|flows| !flows.is_empty()) {
            if let Some(settling) = &mut self.settling {
                settling.sent += 1;
            }
            let flows = std::mem::replace(out, self.decoder.flows());
            // Fails only when the worker is gone; joining it says so.
            let _ = self.sender.send(Work::Batch(Batch { flows, node: Arc::clone(&self.node) }));
        }
    }

    fn tell(&mut self) -> Result<(), live::Error> {
        // Before the kernel's counters, which run on: so more was sent than is decoded, never the other way round.
        let decode = self.decoder.counts();
        let books = Books { capture: self.live.ledger()?, decode, ..Books::default() };
        for lost in self.losses.news(&books.capture) {
            let _ = self.sender.send(Work::Lost(lost));
        }
        self.control.board.tell(View { books, interfaces: self.live.interfaces(), taken: Instant::now() });
        Ok(())
    }
}

/// A wall clock further off than this between two batches was stepped, not slewed.
const STEP_NS: i64 = 500_000_000;

/// Decodes what the capture hands on; full batches go to the worker at once, so that memory stays bounded.
fn feed<'a>(
    decoder: &'a mut Decoder,
    clock: Clock,
    out: &'a mut Flows,
    node: &'a Arc<Node>,
    sender: &'a SyncSender<Work>,
    mut batches: Option<&'a mut u64>,
    mut watcher: Option<&'a mut Watcher>,
) -> impl FnMut(Captured<'_>) + 'a {
    move |captured| {
        if let Some(watcher) = &mut watcher {
            match &captured {
                Captured::Bytes(bytes) => watcher.bytes(bytes),
                Captured::End(report, _) => watcher.end(report),
                Captured::Drop(_) => {}
            }
        }
        match captured {
            Captured::Bytes(bytes) => decoder.bytes(bytes, clock, out),
            Captured::End(report, reason) => decoder.end(report, reason, clock, out),
            Captured::Drop(drop) => decoder.dropped(&drop.report, drop.direction, drop.dropped, clock, out),
        }
        if out.iter().map(Vec::len).sum::<usize>() >= BATCH_FLOWS {
            // The next batch will be about as large.
            let next = out.iter().map(|flows| Vec::with_capacity(flows.len())).collect();
            let flows = std::mem::replace(out, next);
            let _ = sender.send(Work::Batch(Batch { flows, node: Arc::clone(node) }));
            if let Some(batches) = &mut batches {
                **batches += 1;
            }
        }
    }
}

fn snapshot(
    live: &Live,
    (node_name, cluster_name): &Names,
    pools: Arc<Pools>,
) -> Result<Node, enrich::Error> {
    let (interfaces, addresses) = (live.known_interfaces(), live.addresses());
    let node = enrich::snapshot(node_name.as_deref(), cluster_name.as_deref(), interfaces, addresses)?;
    Ok(Node { pools, ..node })
}
