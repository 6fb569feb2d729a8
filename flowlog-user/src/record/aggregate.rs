use super::{Facts, TrafficDirection};

/// What records with the same key add up to. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// Records that go into the node or endpoint.
    pub ingress: u64,
    /// Records that go out of it.
    pub egress: u64,
    /// Records that say neither.
    pub unknown: u64,
    /// Distinct connections, as far as the records are numbered.
    pub connections: u64,
    /// Packets, those of duplicates not among them.
    pub packets: u64,
    /// Layer-2 bytes of the same.
    pub bytes: u64,
    /// Packets of records that are there twice, at another endpoint of this node.
    pub duplicate_packets: u64,
    /// Layer-2 bytes of the same.
    pub duplicate_bytes: u64,
    /// Some record had counters, so that packets and bytes say something.
    pub counted: bool,
    /// Time of the first record to come, as Hubble gives it.
    pub time_ns: i64,
    /// The earliest beginning of any interval.
    pub first_ns: i64,
    /// The latest time of any record.
    pub last_ns: i64,
    /// These are records for whose keys there was no room.
    pub overflow: bool,
}

impl Aggregate {
    /// Adds a record with this time, whose interval began then.
    pub fn add(&mut self, facts: &impl Facts, time_ns: i64, from_ns: i64) {
        if self.records() == 0 {
            (self.time_ns, self.first_ns, self.last_ns) = (time_ns, from_ns, time_ns);
        }
        self.first_ns = self.first_ns.min(from_ns);
        self.last_ns = self.last_ns.max(time_ns);
        match facts.traffic_direction() {
            n if n == TrafficDirection::Ingress.number() => self.ingress += 1,
            n if n == TrafficDirection::Egress.number() => self.egress += 1,
            _ => self.unknown += 1,
        }
        let Some(counters) = facts.counters() else { return };
        self.counted = true;
        let (packets, bytes) = if counters.duplicate {
            (&mut self.duplicate_packets, &mut self.duplicate_bytes)
        } else {
            (&mut self.packets, &mut self.bytes)
        };
        *packets = packets.saturating_add(counters.packets);
        *bytes = bytes.saturating_add(counters.bytes);
    }

    /// Records in it.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.ingress + self.egress + self.unknown
    }
}
