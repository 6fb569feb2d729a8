//! A task in the pipeline, and what it has taken of the batch at hand.

use bytes::Bytes;

use super::lines::Lines;
use crate::record::Format;
use crate::task::{Aggregator, Calls, Overflow, Phase, Planned, RateLimit, Running};
use crate::write::Chunk;

/// A task in the pipeline.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) planned: Planned,
    /// Which [`Lines`] it shares.
    pub(super) lines: usize,
    pub(super) kept: Kept,
    pub(super) running: Running,
    /// It is shown nothing for now: its end has come, or it is not meant.
    pub(super) is_left_out: bool,
    /// It has taken something of the batch at hand.
    is_touched: bool,
    /// Of the lines, those that it has taken.
    taken: Vec<u32>,
    times: Option<Times>,
    /// Taken by the filter, limited ones included, since counters were last settled.
    matched: u64,
    limited: u64,
    /// How many records were shown to its cadence when counters were last settled.
    settled: u64,
    /// Records that were shown to it, and not to all of its cadence.
    alone: u64,
}

/// What a task remembers from batch to batch.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The change with which it joined its cadence.
    pub(super) joined: u32,
    pub(super) rate: Option<RateLimit>,
    pub(super) aggregator: Option<Aggregator>,
}

impl Kept {
    /// Of a task that joins with this change.
    pub(super) fn new(joined: u32) -> Self {
        Self { joined, ..Self::default() }
    }
}

/// When a record was: its time, and when its interval began.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) time_ns: i64,
    pub(super) from_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    first_ns: i64,
    last_ns: i64,
    from_ns: i64,
}

impl Lane {
    pub(super) fn new(
        planned: Planned,
        lines: usize,
        mut kept: Kept,
        running: Running,
        overflow: Overflow,
    ) -> Self {
        // A limit that stays has been used up to where it was.
        let asked = planned.spec.rate_limit;
        let rate = kept.rate.filter(|rate| Some(rate.per_second()) == asked).or(asked.map(RateLimit::new));
        // What was added up in another way is written as it was begun.
        let asked = planned.spec.aggregation;
        let stays = |aggregator: &Aggregator| Some(*aggregator.aggregation()) == asked;
        if let Some(old) = kept.aggregator.take_if(|aggregator| !stays(aggregator)) {
            give_out(Some(old), &running, overflow);
        }
        let format = planned.spec.file.format;
        let begun = kept.aggregator.or(asked.map(|asked| Aggregator::new(asked, format)));
        let aggregator = begun.map(|sums| sums.written_as(format));
        Self {
            planned,
            lines,
            kept: Kept { joined: kept.joined, rate, aggregator },
            running,
            is_left_out: false,
            is_touched: false,
            taken: Vec::new(),
            times: None,
            matched: 0,
            limited: 0,
            settled: 0,
            alone: 0,
        }
    }

    /// Whether a record that the filter takes passes the limit too; counts it. `clock_ns`: the time by which limits are
    /// kept.
    pub(super) fn admits(&mut self, clock_ns: i64) -> bool {
        self.matched += 1;
        let admits = self.kept.rate.as_mut().is_none_or(|rate| rate.passes(clock_ns));
        self.limited += u64::from(!admits);
        admits
    }

    /// What its file holds.
    pub(super) const fn format(&self) -> Format {
        self.planned.spec.file.format
    }

    /// What its records are encoded as: those that are added up are told apart by their JSON.
    pub(super) const fn line_format(&self) -> Format {
        if self.kept.aggregator.is_some() { Format::Json } else { self.format() }
    }

    /// Counts a record that is added up instead of being written.
    pub(super) const fn add(&mut self) {
        self.matched += 1;
    }

    /// True the first time in a batch.
    pub(super) const fn touch(&mut self) -> bool {
        !std::mem::replace(&mut self.is_touched, true)
    }

    /// Takes a line.
    pub(super) fn take(&mut self, line: u32, at: At) {
        self.taken.push(line);
        let At { time_ns, from_ns } = at;
        let times = self.times.get_or_insert(Times { first_ns: time_ns, last_ns: time_ns, from_ns });
        times.first_ns = times.first_ns.min(time_ns);
        times.last_ns = times.last_ns.max(time_ns);
        times.from_ns = times.from_ns.min(from_ns);
    }

    /// Hands what was taken to the writer, which is called with the others.
    pub(super) fn hand_on(&mut self, lines: &mut Lines, overflow: Overflow, calls: &mut Calls) {
        self.is_touched = false;
        // Before the writer counts what it has written of them.
        self.count_matched();
        let Some(Times { first_ns, last_ns, from_ns }) = self.times.take() else { return };
        let bytes: Bytes = lines.bytes(&self.taken);
        let records = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
        self.taken.clear();
        let chunk =
            Chunk { format: self.format(), lines: bytes, records, first_ns, last_ns, seen_from_ns: from_ns };
        self.running.write_with(chunk, overflow, calls);
    }

    fn count_matched(&mut self) {
        let counters = self.running.counters();
        counters.matched.add(self.matched);
        counters.rate_limited.add(std::mem::take(&mut self.limited));
        // Each was shown.
        counters.decoded.add(self.matched);
        self.settled += std::mem::take(&mut self.matched);
    }

    /// Brings the counters up to date; `shown` records have been shown to its cadence.
    pub(super) fn settle(&mut self, shown: u64) {
        self.count_matched();
        let shown = shown + self.alone;
        let before = std::mem::replace(&mut self.settled, shown);
        if !self.is_left_out {
            let counters = self.running.counters();
            counters.decoded.add(shown - before);
            counters.not_matched.add(shown - before);
        }
    }

    /// Counts anew from no record shown.
    pub(super) const fn restart(&mut self) {
        (self.settled, self.alone) = (0, 0);
    }

    /// Counts a record that is not shown to all of its cadence.
    pub(super) const fn show_alone(&mut self) {
        self.alone += 1;
    }

    /// Whether its end has come by that time.
    pub(super) fn has_ended(&self, now_ns: i64) -> bool {
        self.planned.spec.phase(now_ns) == Phase::Ended
    }
}

/// Writes what a task has added up.
pub(super) fn give_out(aggregator: Option<Aggregator>, running: &Running, overflow: Overflow) {
    if let Some(mut aggregator) = aggregator {
        write(aggregator.flush(running.counters()), running, overflow);
    }
}

pub(super) fn write(chunks: Vec<Chunk>, running: &Running, overflow: Overflow) {
    for chunk in chunks {
        running.write(chunk, overflow);
    }
}
