use crate::Around;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The kernel's spin lock, known to the verifier by this very name and shape (linux/bpf.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct bpf_spin_lock {
    /// Opaque to everyone but the kernel.
    pub val: u32,
}

/// One direction of a connection. Totals only grow, what has been reported stands beside them; only the end of a
/// connection whose entry goes to the next one takes what it has told of away from them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Direction {
    /// Packets (segments on the wire) since the connection started.
    pub packets: u64,
    /// Layer-2 bytes without FCS since the connection started.
    pub bytes: u64,
    /// Last packet, nanoseconds of CLOCK_MONOTONIC; 0 before the first.
    pub last_ns: u64,
    /// First packet since the last report, nanoseconds of CLOCK_MONOTONIC; 0 when none.
    pub first_ns: u64,
    /// `packets` as of the last report that reached the ring.
    pub reported_packets: u64,
    /// `bytes` as of the last report that reached the ring.
    pub reported_bytes: u64,
    /// Interface at which this direction was first counted.
    pub ifindex: u32,
    /// One of [`crate::hook`]: where this direction was first counted.
    pub hook: u8,
    /// 1 once a packet of this direction has been counted at an ingress hook.
    pub arrived: u8,
    /// 1 once a report has told of this direction.
    pub announced: u8,
    /// Always 0.
    pub zero: u8,
    /// TCP: one byte for each flag seen (index = bit number), so that no CPU loses another's; ICMP: type, code.
    pub l4: [u8; 8],
}

/// A connection in the kernel's table.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct FlowEntry {
    /// Made from the key (never 0); 0 = being removed, add nothing. A packet adds only where it equals the tag
    /// of its own key, since a removed element is reused at once.
    pub tag: u32,
    /// Guards `lease`, never held across a helper call.
    pub lock: bpf_spin_lock,
    /// Generation of the rules that let the connection pass.
    pub generation: u32,
    /// From SYN to SYN-ACK as seen here, nanoseconds; 0 = not known.
    pub rtt_ns: u32,
    /// Low to high side first, then high to low.
    pub directions: [Direction; 2],
    /// First packet of the connection, nanoseconds of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// Last report that reached the ring (or the start), nanoseconds of CLOCK_MONOTONIC.
    pub last_report_ns: u64,
    /// Connection id, unique on this boot, below 2^53.
    pub connection: u64,
    /// Interfaces the connection crossed, in the order seen; 0 = none.
    pub interfaces: [u32; 4],
    /// Reports made so far.
    pub number: u32,
    /// 1 while one CPU makes a report of this entry.
    pub lease: u8,
    /// Index into `directions` of the side that opened the connection.
    pub opener: u8,
    /// 1 when the opening of a TCP connection was not seen.
    pub midstream: u8,
    /// Always 0.
    pub zero: u8,
    /// What was around the packets of each direction; at the end, since most packets never touch it.
    pub around: [Around; 2],
}
