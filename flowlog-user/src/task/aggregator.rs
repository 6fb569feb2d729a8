//! A task's records added up by what they have in common, and given out as lines when the interval is over.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::Aggregation;
use crate::encode::{self, aggregate};
use crate::limits::{AGGREGATE_BYTES_MAX, AGGREGATE_CHUNK_BYTES};
use crate::metrics::TaskCounters;
use crate::record::fields::Mask;
use crate::record::{Aggregate, Facts, Format};
use crate::write::Chunk;

/// What a key takes beside its text, and what a connection of a key takes, in bytes: values, hash tables half empty.
const KEY_BYTES: usize = 2 * (size_of::<Aggregate>() + size_of::<(Box<[u8]>, usize)>() + 16);
const CONNECTION_BYTES: usize = 2 * (size_of::<(usize, u64)>() + 8);

/// The lines that are to come.
#[derive(Debug)]
pub struct Aggregator {
    aggregation: Aggregation,
    /// How lines are written.
    format: Format,
    /// Common line of the records to their place in `sums`.
    keys: HashMap<Box<[u8]>, usize>,
    sums: Vec<Aggregate>,
    /// Which connections were met under which key.
    connections: HashSet<(usize, u64)>,
    bytes: usize,
    bytes_max: usize,
    /// Records for whose key, or connection, there was no room, by node.
    overflow: HashMap<Box<str>, Aggregate>,
    /// When the interval is over, nanoseconds of whatever clock the caller goes by.
    until_ns: Option<i64>,
}

impl Aggregator {
    /// Nothing is added up yet.
    #[must_use]
    pub fn new(aggregation: Aggregation, format: Format) -> Self {
        Self {
            aggregation,
            format,
            keys: HashMap::new(),
            sums: Vec::new(),
            connections: HashSet::new(),
            bytes: 0,
            bytes_max: AGGREGATE_BYTES_MAX,
            overflow: HashMap::new(),
            until_ns: None,
        }
    }

    /// The same, with lines written in that format.
    #[must_use]
    pub fn written_as(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// How it adds up.
    #[must_use]
    pub const fn aggregation(&self) -> &Aggregation {
        &self.aggregation
    }

    /// Adds a record; `common` is its line under the mask of the common fields.
    pub fn add(
        &mut self,
        common: &[u8],
        facts: &impl Facts,
        (time_ns, from_ns): (i64, i64),
        counters: &TaskCounters,
    ) {
        counters.aggregated.add(1);
        let connection = facts.counters().and_then(|counters| counters.connection);
        let known = self.keys.get(common).copied();
        let place = known.unwrap_or(self.sums.len());
        let met = connection.is_none_or(|connection| self.connections.contains(&(place, connection)));
        let key_bytes = if known.is_none() { common.len() + KEY_BYTES } else { 0 };
        let more_bytes = key_bytes + if met { 0 } else { CONNECTION_BYTES };
        if self.bytes + more_bytes > self.bytes_max {
            counters.aggregate_overflow.add(1);
            // As many as there are nodes: one, but for records of others that are replayed.
            let sums = self.overflow.entry(facts.node_name().into()).or_default();
            sums.overflow = true;
            sums.add(facts, time_ns, from_ns);
            return;
        }
        self.bytes += more_bytes;
        if known.is_none() {
            self.keys.insert(common.into(), place);
            self.sums.push(Aggregate::default());
        }
        let Some(sums) = self.sums.get_mut(place) else { return };
        if let (Some(connection), false) = (connection, met) {
            self.connections.insert((place, connection));
            sums.connections += 1;
        }
        sums.add(facts, time_ns, from_ns);
    }

    /// The lines of an interval that is over at that moment. The first call begins the first interval.
    pub fn due(&mut self, now_ns: i64, counters: &TaskCounters) -> Vec<Chunk> {
        let interval_ns = i64::try_from(self.aggregation.interval.as_nanos()).unwrap_or(i64::MAX);
        let until_ns = *self.until_ns.get_or_insert(now_ns.saturating_add(interval_ns));
        if now_ns < until_ns {
            return Vec::new();
        }
        // In step, however late this is and however many intervals were empty.
        let passed = now_ns.saturating_sub(until_ns) / interval_ns.max(1);
        let next_ns = until_ns.saturating_add(interval_ns.saturating_mul(passed.saturating_add(1)));
        self.until_ns = Some(next_ns);
        self.flush(counters)
    }

    /// When the interval is over by the clock of [`Self::due`].
    #[must_use]
    pub const fn until_ns(&self) -> Option<i64> {
        self.until_ns
    }

    /// The lines of what has been added up, in order of time.
    pub fn flush(&mut self, counters: &TaskCounters) -> Vec<Chunk> {
        let mut lines: Vec<(Vec<u8>, Aggregate)> = Vec::with_capacity(self.keys.len());
        for (common, place) in self.keys.drain() {
            lines.extend(self.sums.get(place).map(|sums| (common.into_vec(), *sums)));
        }
        lines.extend(self.overflow.drain().map(|(node, sums)| (aggregate::overflow(&node), sums)));
        self.sums.clear();
        self.connections.clear();
        // An interval with many keys is not a reason to hold their memory for good.
        self.keys.shrink_to(64);
        self.connections.shrink_to(64);
        self.sums.shrink_to(64);
        self.bytes = 0;
        lines.sort_unstable_by(|(one, a), (other, b)| (a.time_ns, one).cmp(&(b.time_ns, other)));
        counters.aggregates.add(lines.len() as u64);
        chunks(&lines, self.format)
    }
}

fn chunks(lines: &[(Vec<u8>, Aggregate)], format: Format) -> Vec<Chunk> {
    let (mut chunks, mut text): (Vec<Chunk>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut line = Vec::new();
    let mut open: Option<Chunk> = None;
    for (common, sums) in lines {
        line.clear();
        aggregate::encode(common, sums, &mut line);
        match format {
            Format::Json => text.extend_from_slice(&line),
            other => {
                if let Ok(event) = crate::read::event(&line) {
                    encode::event(other, &event, &Mask::ALL, &mut text);
                }
            }
        }
        let chunk = open.get_or_insert(Chunk {
            format,
            lines: Bytes::new(),
            records: 0,
            first_ns: sums.time_ns,
            last_ns: sums.last_ns,
            seen_from_ns: sums.first_ns,
        });
        chunk.records += 1;
        chunk.last_ns = chunk.last_ns.max(sums.last_ns);
        chunk.seen_from_ns = chunk.seen_from_ns.min(sums.first_ns);
        if text.len() >= AGGREGATE_CHUNK_BYTES {
            chunks
                .extend(open.take().map(|chunk| Chunk { lines: std::mem::take(&mut text).into(), ..chunk }));
        }
    }
    chunks.extend(open.map(|chunk| Chunk { lines: text.into(), ..chunk }));
    chunks
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::read::event;

    fn aggregator(bytes_max: usize) -> Aggregator {
        let aggregation = Aggregation { common: Mask::ALL, interval: Duration::from_secs(10) };
        Aggregator { bytes_max, ..Aggregator::new(aggregation, Format::Json) }
    }

    /// Records: key, connection, direction, packets.
    type Record = (u8, u64, u8, u64);

    fn add(
        aggregator: &mut Aggregator,
        (name, connection, direction, packets): Record,
        counters: &TaskCounters,
    ) {
        let direction = ["TRAFFIC_DIRECTION_UNKNOWN", "INGRESS", "EGRESS"][usize::from(direction)];
        let text = format!(
            r#"{{"flow":{{"traffic_direction":"{direction}","node_name":"n","extensions":{{"@type":"type.googleapis.com/google.protobuf.Struct","value":{{"connection":{connection},"packets":{packets},"bytes":{}}}}}}}}}"#,
            packets * 100
        );
        let common = format!("{{\"flow\":{{\"uuid\":\"{name}\"}}}}\n");
        aggregator.add(common.as_bytes(), &event(text.as_bytes()).unwrap(), (5, 3), counters);
    }

    fn lines(chunks: &[Chunk]) -> Vec<serde_json::Value> {
        let lines = chunks.iter().flat_map(|chunk| {
            let text = String::from_utf8(chunk.lines.to_vec()).unwrap();
            let lines: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.len(), chunk.records as usize);
            lines
        });
        lines.collect()
    }

    fn number(line: &serde_json::Value, pointer: &str) -> u64 {
        line["flow"].pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or(0)
    }

    const COUNTS: [&str; 3] = [
        "/aggregate/unknown_direction_flow_count",
        "/aggregate/ingress_flow_count",
        "/aggregate/egress_flow_count",
    ];

    proptest! {
        /// Whatever comes and however little room there is: each record is in exactly one line, and no line counts a
        /// connection twice.
        #[test]
        fn every_record_is_in_one_line(
            records in prop::collection::vec((0..20_u8, 0..6_u64, 0..3_u8, 0..1000_u64), 0..120),
            room in prop_oneof![Just(usize::MAX), 0..40_usize],
        ) {
            let bytes_max = room.saturating_mul(KEY_BYTES);
            let (mut aggregator, counters) = (aggregator(bytes_max), TaskCounters::default());
            for record in &records {
                add(&mut aggregator, *record, &counters);
                prop_assert!(aggregator.bytes <= bytes_max);
            }
            let lines = lines(&aggregator.flush(&counters));
            prop_assert_eq!(counters.aggregated.get(), records.len() as u64);
            prop_assert_eq!(counters.aggregates.get(), lines.len() as u64);
            for (direction, pointer) in COUNTS.iter().enumerate() {
                let expected = records.iter().filter(|record| usize::from(record.2) == direction).count();
                let found: u64 = lines.iter().map(|line| number(line, pointer)).sum();
                prop_assert_eq!(found, expected as u64);
            }
            let packets: u64 = records.iter().map(|record| record.3).sum();
            let sum = |pointer| lines.iter().map(|line| number(line, pointer)).sum::<u64>();
            prop_assert_eq!(sum("/extensions/value/packets"), packets);
            prop_assert_eq!(sum("/extensions/value/bytes"), packets * 100);
            let overflow: u64 = lines
                .iter()
                .filter(|line| line["flow"]["extensions"]["value"]["overflow"] == true)
                .flat_map(|line| COUNTS.map(|pointer| number(line, pointer)))
                .sum();
            prop_assert_eq!(overflow, counters.aggregate_overflow.get());
            if bytes_max == usize::MAX {
                prop_assert_eq!(overflow, 0);
                let mut keys: Vec<(u8, u64)> = records.iter().map(|record| (record.0, record.1)).collect();
                keys.sort_unstable();
                keys.dedup();
                prop_assert_eq!(sum("/extensions/value/connections"), keys.len() as u64);
                keys.dedup_by_key(|key| key.0);
                prop_assert_eq!(lines.len(), keys.len());
            }
            prop_assert!(aggregator.flush(&counters).is_empty());
        }
    }

    #[test]
    fn intervals_keep_step() {
        let (mut aggregator, counters) = (aggregator(usize::MAX), TaskCounters::default());
        let second = 1_000_000_000;
        assert!(aggregator.due(100 * second, &counters).is_empty());
        add(&mut aggregator, (1, 1, 1, 1), &counters);
        assert!(aggregator.due(110 * second - 1, &counters).is_empty());
        assert_eq!(lines(&aggregator.due(110 * second, &counters)).len(), 1);
        assert_eq!(aggregator.until_ns(), Some(120 * second));
        assert!(aggregator.due(155 * second, &counters).is_empty());
        assert_eq!(aggregator.until_ns(), Some(160 * second));
    }
}
