//! What each cadence has written of each connection.

use std::collections::HashMap;

use flowlog_abi::{DirectionReport, Report};

use super::flow::{Interval, build};
use super::{Cadence, Flows};
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
        self.packets = now.packets;
        self.bytes = now.bytes;
        self.first_ns = 0;
        interval
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Written {
    sides: [Side; 2],
    updated_ns: u64,
}

/// The table. Keys are the kernel's connection ids, which nobody outside chooses.
#[derive(Debug)]
pub(super) struct Connections {
    cadences: Vec<Cadence>,
    open: HashMap<u64, [Written; CADENCES_MAX]>,
}

impl Connections {
    pub(super) fn new(mut cadences: Vec<Cadence>) -> Self {
        cadences.truncate(CADENCES_MAX);
        Self { cadences, open: HashMap::new() }
    }

    pub(super) const fn cadences(&self) -> usize {
        self.cadences.len()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// A report while the connection lives.
    pub(super) fn report(&mut self, report: &Report, clock: Clock, out: &mut Flows) {
        let written = self.open.entry(report.connection).or_insert_with(|| opened(report));
        let now_ns = report.directions.iter().map(|side| side.last_ns).max().unwrap_or(0);
        for ((number, cadence), (written, out)) in (0..).zip(&self.cadences).zip(written.iter_mut().zip(out))
        {
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
                out.extend(build(report, at, &interval, clock));
            }
        }
    }

    /// The last report of a connection.
    pub(super) fn end(&mut self, report: &Report, reason: EndReason, clock: Clock, out: &mut Flows) {
        let mut written = self.open.remove(&report.connection).unwrap_or_else(|| opened(report));
        for ((number, cadence), (written, out)) in (0..).zip(&self.cadences).zip(written.iter_mut().zip(out))
        {
            for (at, (now, side)) in report.directions.iter().zip(&mut written.sides).enumerate() {
                let first = meet(side, now);
                if now.packets == 0 {
                    continue;
                }
                if first && cadence.start {
                    let interval = side.next(now, number, Event::Start, None);
                    out.extend(build(report, at, &interval, clock));
                }
                if cadence.end {
                    let interval = side.next(now, number, Event::End, Some(reason));
                    out.extend(build(report, at, &interval, clock));
                }
            }
        }
    }

    /// A packet that found no place in the table: one record, the last its cadence would have written.
    pub(super) fn alone(&self, report: &Report, clock: Clock, out: &mut Flows) {
        for ((number, cadence), out) in (0..).zip(&self.cadences).zip(out) {
            let (event, reason) = match cadence {
                Cadence { end: true, .. } => (Event::End, Some(EndReason::TableFull)),
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

fn opened(report: &Report) -> [Written; CADENCES_MAX] {
    [Written { updated_ns: report.started_ns, ..Written::default() }; CADENCES_MAX]
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
