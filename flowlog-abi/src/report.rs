use crate::{Around, FlowKey};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// [`Report::what`]: the state of a connection in the table.
pub const REPORT_FLOW: u8 = 0;
/// [`Report::what`]: one packet that found the table full; only one direction is filled.
pub const REPORT_ALONE: u8 = 1;

/// [`Report::what`]: the last state of a connection whose five-tuple and entry have gone to a new one.
pub const REPORT_END: u8 = 2;

/// [`Report::what`]: as [`REPORT_ALONE`], but the table had room: the packet came while the entry of its connection was
/// being taken out, or the kernel refused it an entry for another reason.
pub const REPORT_APART: u8 = 3;

/// One direction in a [`Report`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct DirectionReport {
    /// Packets since the connection started.
    pub packets: u64,
    /// Layer-2 bytes without FCS since the connection started.
    pub bytes: u64,
    /// `packets` at the report before this one: the delta is `packets - reported_packets`.
    pub reported_packets: u64,
    /// `bytes` at the report before this one.
    pub reported_bytes: u64,
    /// First packet since the report before this one, nanoseconds of CLOCK_MONOTONIC; 0 when none.
    pub first_ns: u64,
    /// Last packet, nanoseconds of CLOCK_MONOTONIC; 0 when there was none at all.
    pub last_ns: u64,
    /// Interface at which this direction was first counted.
    pub ifindex: u32,
    /// One of [`crate::hook`].
    pub hook: u8,
    /// TCP flags seen since the connection started, as in the header's flag byte.
    pub tcp_flags: u8,
    /// ICMP type of the first packet.
    pub icmp_type: u8,
    /// ICMP code of the first packet.
    pub icmp_code: u8,
}

/// What the kernel says of one connection: totals, and what it had said before.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Report {
    /// The connection.
    pub key: FlowKey,
    /// Low to high side first, then high to low.
    pub directions: [DirectionReport; 2],
    /// First packet of the connection, nanoseconds of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// Connection id, unique on this boot, below 2^53.
    pub connection: u64,
    /// Interfaces crossed, in the order seen; 0 = none.
    pub interfaces: [u32; 4],
    /// Generation of the rules that let the connection pass.
    pub generation: u32,
    /// From SYN to SYN-ACK as seen here, nanoseconds; 0 = not known.
    pub rtt_ns: u32,
    /// 1 for the connection's first report.
    pub number: u32,
    /// One of `REPORT_*`.
    pub what: u8,
    /// Index into `directions` of the side that opened the connection.
    pub opener: u8,
    /// 1 when the opening of a TCP connection was not seen.
    pub midstream: u8,
    /// Always 0.
    pub zero: u8,
    /// What was around the packets of each direction, the last of them that had something around it.
    pub around: [Around; 2],
}
