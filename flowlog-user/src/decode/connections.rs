//! What each cadence has written of each connection.

use flowlog_abi::{DirectionReport, Report, Told};

use super::divided::Divided;
use super::flow::{Interval, build};
use super::ids::ById;
use super::{Cadence, Cadences, Change, Flows};
use crate::clock::Clock;
use crate::limits::CADENCES_MAX;
use crate::record::{EndReason, Event, Flow};

/// One direction as one cadence has written it.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    packets: u64,
    bytes: u64,
    /// First packet since the last record, nanoseconds of the kernel's clock; 0 = none.
    first_ns: u64,
    number: u32,
    seen: bool,
}

impl Side {
    /// The next record of this direction: what came since the last one.
    fn next(
        &mut self,
        now: &DirectionReport,
        cadence: u8,
        event: Event,
        reason: Option<EndReason>,
    ) -> Interval {
        self.number += 1;
        let interval = Interval {
            cadence,
            event,
            end_reason: reason,
            number: self.number,
            first_ns: self.first_ns,
            packets: now.packets.saturating_sub(self.packets),
            bytes: now.bytes.saturating_sub(self.bytes),
        };
        // A report may come late, after the table was looked at.
        self.packets = self.packets.max(now.packets);
        self.bytes = self.bytes.max(now.bytes);
        self.first_ns = 0;
        interval
    }
}

impl Side {
    /// The last records of a direction for whoever leaves; of this, only the number changes.
    fn leave(&mut self, now: &DirectionReport, number: u8, cadence: Cadence) -> [Option<Interval>; 2] {
        let mut side = *self;
        let first = meet(&mut side, now);
        let start = (first && cadence.start).then(|| side.next(now, number, Event::Start, None));
        let last = match (cadence.end, cadence.update && now.packets > side.packets) {
            (true, _) => Some(side.next(now, number, Event::End, Some(EndReason::Shutdown))),
            (false, true) => Some(side.next(now, number, Event::Update, None)),
            (false, false) => None,
        };
        self.number = side.number;
        [start, last]
    }

    /// What came since the last record, for whoever goes on in another way; of this, only the number changes.
    fn pass(&mut self, now: &DirectionReport, number: u8, cadence: Cadence) -> Option<Interval> {
        let mut side = *self;
        let first = meet(&mut side, now);
        let (event, reason) = interim(&cadence, first)?;
        let interval = side.next(now, number, event, reason);
        self.number = side.number;
        Some(interval)
    }
}

/// What a record is that is due only because somebody else goes on with the connection; none where the cadence asks for
/// nothing that it could be.
const fn interim(cadence: &Cadence, first: bool) -> Option<(Event, Option<EndReason>)> {
    match cadence {
        Cadence { start: true, .. } if first => Some((Event::Start, None)),
        Cadence { update: true, .. } => Some((Event::Update, None)),
        Cadence { end: true, .. } => Some((Event::End, Some(EndReason::Shutdown))),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Written {
    sides: [Side; 2],
    updated_ns: u64,
}

/// A connection of the kernel's table.
#[derive(Clone, Copy, Debug)]
struct Open {
    written: [Written; CADENCES_MAX],
    /// Packets and bytes of each direction as last reported: where a cadence that begins now starts to count.
    reported: [(u64, u64); 2],
    /// The same as the kernel's reports had it, whatever was seen to stand in between.
    told: [(u64, u64); 2],
}

/// The table.
#[derive(Debug)]
pub(super) struct Connections {
    cadences: Cadences,
    open: ById<Open>,
    /// Where the records' numbers begin of connections that an earlier daemon knew.
    base: u32,
    divided: Divided,
}

impl Connections {
    pub(super) fn new(cadences: Cadences) -> Self {
        Self { cadences, open: ById::default(), base: 0, divided: Divided::default() }
    }

    /// Goes on with what earlier daemons began, the last of which was number `before`.
    pub(super) const fn go_on(&mut self, before: u64) {
        // A million records of one direction for each of a few thousand daemons: no uuid comes twice.
        let daemon = (before & 0xfff) as u32;
        self.base = daemon << 20;
    }

    /// What reports told and no record says yet: connections, packets and bytes.
    pub(super) fn held(&self) -> Told {
        let speaking: Vec<usize> = (0..CADENCES_MAX)
            .filter(|at| self.cadences.get(*at).is_some_and(|c| c.is_some_and(|c| c.update || c.end)))
            .collect();
        self.open.values().fold(Told::default(), |sum, open| sum.and(open.held(&speaking)))
    }

    /// The daemon stops and another goes on with the connection, of which `report` is what stands in the table: records
    /// say what was told and is not in one yet. What was not told remains with the kernel.
    pub(super) fn suspend(&mut self, report: &Report, clock: Clock, out: &mut Flows) {
        let Some(Open { written, told, .. }) = self.open.remove(&report.connection) else { return };
        let [out @ .., _, divided, _] = out.as_mut_slice() else { return };
        let mut said = *report;
        for (side, (packets, bytes)) in said.directions.iter_mut().zip(told) {
            (side.packets, side.bytes) = (packets, bytes);
        }
        for ((number, cadence), (mut written, out)) in
            (0..).zip(&self.cadences).zip(written.into_iter().zip(out))
        {
            let Some(cadence) = cadence else { continue };
            for (at, (now, side)) in said.directions.iter().zip(&mut written.sides).enumerate() {
                let first = meet(side, now);
                if now.packets <= side.packets {
                    continue;
                }
                let Some((event, reason)) = interim(cadence, first) else { continue };
                let interval = side.next(now, number, event, reason);
                let flow = build(&said, at, &interval, clock);
                self.divided.take(flow, at, out, divided);
            }
        }
    }

    /// Notes how a connection stands, and gives the tasks that leave these cadences their last records, as at the end
    /// of a capture; those that move get what they would get if another daemon went on. What stays is not touched, but for
    /// the numbers of its records, which may have gaps.
    pub(super) fn stand(&mut self, report: &Report, change: Change, clock: Clock, out: &mut Flows) {
        // One that is not known begins in the ring, after this.
        let Some(Open { written, reported, .. }) = self.open.get_mut(&report.connection) else { return };
        *reported = report.directions.map(|side| (side.packets, side.bytes));
        let [out @ .., _, divided, moved] = out.as_mut_slice() else { return };
        let whose = change.leaving.into_iter().zip(change.moving);
        let slots = (0..).zip(&self.cadences).zip(whose).zip(written.iter_mut().zip(out));
        for (((number, cadence), (leaving, moving)), (written, out)) in slots {
            let Some(cadence) = cadence.filter(|_| leaving || moving) else { continue };
            for (at, (now, kept)) in report.directions.iter().zip(&mut written.sides).enumerate() {
                if leaving && now.packets > 0 {
                    let intervals = kept.leave(now, number, cadence);
                    for flow in intervals.iter().flatten().filter_map(|one| build(report, at, one, clock)) {
                        self.divided.last(flow, at, out, divided);
                    }
                }
                if moving && now.packets > kept.packets {
                    let interval = kept.pass(now, number, cadence);
                    if let Some(flow) = interval.and_then(|one| build(report, at, &one, clock)) {
                        self.divided.part(flow, at, moved);
                    }
                }
            }
        }
        // After those that go, whose records these marks do not divide.
        for ((number, joining), written) in (0..).zip(change.joining).zip(written.iter()) {
            let pending = |(now, side): (&DirectionReport, &Side)| now.packets > side.packets;
            if joining && report.directions.iter().zip(&written.sides).any(pending) {
                self.divided.divide(report, number, change.number, clock);
            }
        }
    }

    /// Other cadences from now on. One that was not there counts from what was last reported or seen to stand.
    pub(super) fn change(&mut self, cadences: Cadences, now_ns: u64) {
        let new: Vec<usize> = (0..CADENCES_MAX)
            .filter(|at| {
                let (before, after) = (self.cadences.get(*at), cadences.get(*at));
                after.is_some_and(Option::is_some) && before != after
            })
            .collect();
        self.cadences = cadences;
        if new.is_empty() {
            return;
        }
        for Open { written, reported, .. } in self.open.values_mut() {
            for at in &new {
                let Some(written) = written.get_mut(*at) else { continue };
                written.begin(reported, now_ns);
            }
        }
    }

    /// A hash table is at most seven eighths full, has a power of two of places and is moved as a whole when it grows.
    pub(super) fn bytes_max(entries: u64) -> u64 {
        let places = (entries * 8 / 7 + 1).next_power_of_two();
        let place = (size_of::<(u64, Open)>() + 1) as u64;
        places * place + places / 2 * place + Divided::BYTES_MAX
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// A report while the connection lives.
    pub(super) fn report(&mut self, report: &Report, clock: Clock, out: &mut Flows) {
        let base = self.base;
        let Open { written, reported, told } =
            self.open.entry(report.connection).or_insert_with(|| Open::new(report, base));
        *reported = report.directions.map(|side| (side.packets, side.bytes));
        *told = *reported;
        let now_ns = report.directions.iter().map(|side| side.last_ns).max().unwrap_or(0);
        let [out @ .., _, divided, _] = out.as_mut_slice() else { return };
        for ((number, cadence), (written, out)) in (0..).zip(&self.cadences).zip(written.iter_mut().zip(out))
        {
            let Some(cadence) = cadence else { continue };
            let due = cadence.due(now_ns.saturating_sub(written.updated_ns));
            if due {
                written.updated_ns = now_ns;
            }
            for (at, (now, side)) in report.directions.iter().zip(&mut written.sides).enumerate() {
                let first = meet(side, now);
                let event = match (first, cadence.start, due && now.packets > side.packets) {
                    (true, true, _) => Event::Start,
                    (_, _, true) => Event::Update,
                    _ => continue,
                };
                let interval = side.next(now, number, event, None);
                let flow = build(report, at, &interval, clock);
                self.divided.take(flow, at, out, divided);
            }
        }
    }

    /// The last report of a connection.
    pub(super) fn end(&mut self, report: &Report, reason: EndReason, clock: Clock, out: &mut Flows) {
        let open = self.open.remove(&report.connection);
        let mut written = open.unwrap_or_else(|| Open::new(report, self.base)).written;
        let [out @ .., _, divided, _] = out.as_mut_slice() else { return };
        for ((number, cadence), (written, out)) in (0..).zip(&self.cadences).zip(written.iter_mut().zip(out))
        {
            let Some(cadence) = cadence else { continue };
            for (at, (now, side)) in report.directions.iter().zip(&mut written.sides).enumerate() {
                let first = meet(side, now);
                if now.packets == 0 {
                    continue;
                }
                if first && cadence.start {
                    let interval = side.next(now, number, Event::Start, None);
                    let flow = build(report, at, &interval, clock);
                    self.divided.take(flow, at, out, divided);
                }
                if cadence.end {
                    let interval = side.next(now, number, Event::End, Some(reason));
                    let flow = build(report, at, &interval, clock);
                    self.divided.take(flow, at, out, divided);
                }
            }
        }
        self.divided.forget(report.connection);
    }

    /// A packet that found no place in the table: one record, the last its cadence would have written.
    pub(super) fn alone(&self, report: &Report, why: EndReason, clock: Clock, out: &mut Flows) {
        for ((number, cadence), out) in (0..).zip(&self.cadences).zip(out) {
            let Some(cadence) = cadence else { continue };
            let (event, reason) = match cadence {
                Cadence { end: true, .. } => (Event::End, Some(why)),
                Cadence { start: true, .. } => (Event::Start, None),
                _ => (Event::Update, None),
            };
            for (at, now) in report.directions.iter().enumerate().filter(|(_, now)| now.packets > 0) {
                let interval =
                    Side { first_ns: now.first_ns, ..Side::default() }.next(now, number, event, reason);
                let flow: Option<Flow> = build(report, at, &interval, clock);
                out.extend(flow);
            }
        }
    }
}

impl Open {
    /// A connection that is spoken of for the first time. If its first report went to an earlier daemon, that one
    /// has written all that was told before.
    fn new(report: &Report, base: u32) -> Self {
        let mut written = Written { updated_ns: report.started_ns, ..Written::default() };
        let told = report.directions.map(|side| (side.reported_packets, side.reported_bytes));
        if report.number > 1 {
            for (side, (packets, bytes)) in written.sides.iter_mut().zip(told) {
                *side = Side { packets, bytes, first_ns: 0, number: base, seen: packets > 0 };
            }
        }
        Self { written: [written; CADENCES_MAX], reported: told, told }
    }

    fn held(&self, cadences: &[usize]) -> Told {
        let side = |at: usize| {
            let (packets, bytes) = self.told.get(at).copied().unwrap_or_default();
            cadences.iter().filter_map(|cadence| self.written.get(*cadence)?.sides.get(at)).fold(
                (0, 0),
                |most: (u64, u64), side| {
                    let not_written = packets.saturating_sub(side.packets);
                    (most.0.max(not_written), most.1.max(bytes.saturating_sub(side.bytes)))
                },
            )
        };
        let (up, down) = (side(0), side(1));
        let packets = up.0 + down.0;
        Told { records: u64::from(packets > 0), packets, bytes: up.1 + down.1 }
    }
}

impl Written {
    /// Forgets what came before: the next record speaks of what comes from now on. Numbers go on, since a record's
    /// uuid is made of them.
    fn begin(&mut self, reported: &[(u64, u64); 2], now_ns: u64) {
        self.updated_ns = now_ns;
        for (side, (packets, bytes)) in self.sides.iter_mut().zip(reported) {
            *side = Side {
                packets: *packets,
                bytes: *bytes,
                first_ns: 0,
                number: side.number,
                seen: side.seen || *packets > 0,
            };
        }
    }
}

/// Notes what a report says of a direction; true when it is the first to speak of it.
const fn meet(side: &mut Side, now: &DirectionReport) -> bool {
    if side.first_ns == 0 {
        side.first_ns = now.first_ns;
    }
    let first = now.packets > 0 && !side.seen;
    side.seen = side.seen || first;
    first
}
