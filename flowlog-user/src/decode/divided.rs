//! Connections that were open when tasks joined a cadence: the next record of each is divided, so that what was counted
//! before goes only to the tasks that ran before.

use std::collections::HashMap;

use flowlog_abi::Report;

use crate::clock::Clock;
use crate::limits::DIVIDED_MAX;
use crate::record::{Event, Flow, Joined};

/// What of one direction had been counted when tasks joined.
#[derive(Clone, Copy, Debug)]
struct Mark {
    cadence: u8,
    direction: usize,
    change: u32,
    /// Totals by then.
    packets: u64,
    bytes: u64,
    /// The last packet by then, nanoseconds since the Unix epoch.
    after_ns: i64,
}

/// The connections, as long as a record of theirs is to be divided.
#[derive(Debug, Default)]
pub(super) struct Divided {
    marks: HashMap<u64, Vec<Mark>>,
    count: usize,
}

impl Divided {
    /// Each connection has two marks or more, in a list that is at most twice as long; its place in the table is counted
    /// as that of the connections is.
    pub(super) const BYTES_MAX: u64 =
        (DIVIDED_MAX * (2 * size_of::<Mark>() + 2 * size_of::<(u64, Vec<Mark>)>())) as u64;

    /// Tasks join the cadence with this change; the connection stands as reported.
    pub(super) fn divide(&mut self, report: &Report, cadence: u8, change: u32, clock: Clock) {
        let room = DIVIDED_MAX.saturating_sub(self.count);
        if room < report.directions.len() {
            return;
        }
        let marks = self.marks.entry(report.connection).or_default();
        for (direction, side) in report.directions.iter().enumerate() {
            let after_ns = clock.to_wall_ns(side.last_ns);
            marks.push(Mark {
                cadence,
                direction,
                change,
                packets: side.packets,
                bytes: side.bytes,
                after_ns,
            });
            self.count += 1;
        }
    }

    /// Hands a record on: to all tasks of its cadence, or divided.
    pub(super) fn take(
        &mut self,
        flow: Option<Flow>,
        direction: usize,
        out: &mut Vec<Flow>,
        divided: &mut Vec<Flow>,
    ) {
        let Some(flow) = flow else { return };
        // Hardly ever is there any.
        if self.marks.is_empty() {
            return out.push(flow);
        }
        let Some(marks) = self.marks.get_mut(&flow.connection) else { return out.push(flow) };
        let concerns = |mark: &Mark| mark.cadence == flow.cadence && mark.direction == direction;
        let before = flow.packets_total.saturating_sub(flow.packets);
        let (mine, others): (Vec<_>, Vec<_>) = marks.drain(..).partition(concerns);
        self.count -= mine.len();
        *marks = others;
        if marks.is_empty() {
            self.marks.remove(&flow.connection);
        }
        // A mark at which nothing was pending divides nothing.
        let mine: Vec<_> = mine.into_iter().filter(|mark| mark.packets > before).collect();
        if mine.is_empty() {
            return out.push(flow);
        }
        // Nothing is written that says nothing new, but for an end.
        split(&flow, &mine, divided, |packets| packets > 0 || flow.event == Event::End);
    }

    /// The same of a record that tasks which move get before the others do: the marks stay.
    pub(super) fn part(&self, flow: Flow, direction: usize, divided: &mut Vec<Flow>) {
        split(&flow, &self.of(&flow, direction), divided, |packets| packets > 0);
    }

    /// The same of a record that tasks get which leave.
    pub(super) fn last(&self, flow: Flow, direction: usize, out: &mut Vec<Flow>, divided: &mut Vec<Flow>) {
        let mine = self.of(&flow, direction);
        if mine.is_empty() {
            return out.push(flow);
        }
        split(&flow, &mine, divided, |packets| packets > 0 || flow.event == Event::End);
    }

    /// The marks that divide a record.
    fn of(&self, flow: &Flow, direction: usize) -> Vec<Mark> {
        let before = flow.packets_total.saturating_sub(flow.packets);
        let marks = self.marks.get(&flow.connection).into_iter().flatten();
        let concerns = |mark: &&Mark| {
            mark.cadence == flow.cadence && mark.direction == direction && mark.packets > before
        };
        marks.filter(concerns).copied().collect()
    }

    /// The connection is over.
    pub(super) fn forget(&mut self, connection: u64) {
        if self.marks.is_empty() {
            return;
        }
        self.count -= self.marks.remove(&connection).map_or(0, |marks| marks.len());
    }
}

/// A record for those who ran before all marks, and for those who joined at each what came after it.
fn split(flow: &Flow, marks: &[Mark], divided: &mut Vec<Flow>, says: impl Fn(u64) -> bool) {
    let until = |at: usize| marks.get(at).map_or(u32::MAX, |mark| mark.change);
    divided.push(Flow { joined: Joined { from: 0, before: until(0) }, ..*flow });
    for (at, mark) in marks.iter().enumerate() {
        let packets = flow.packets_total.saturating_sub(mark.packets);
        let bytes = flow.bytes_total.saturating_sub(mark.bytes);
        if says(packets) {
            let joined = Joined { from: mark.change, before: until(at + 1) };
            // Which packet was the first after that is not known.
            let first_seen_ns = flow.first_seen_ns.max(mark.after_ns).min(flow.last_seen_ns);
            divided.push(Flow { joined, packets, bytes, first_seen_ns, ..*flow });
        }
    }
}
