use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Slots of the per-hook counters. Two hooks that share a slot add up there; the sums still close.
pub const SLOTS: u32 = 1024;

/// The slot of an interface's hook.
#[must_use]
#[inline(always)]
pub const fn slot(ifindex: u32, egress: bool) -> u32 {
    ((ifindex << 1) | egress as u32) & (SLOTS - 1)
}

/// What became of the packets of one hook on one CPU. Each packet (segments on the wire, layer-2 bytes) is in
/// `seen` and in exactly one of the others: `seen = counted + elsewhere + rejected + unparsed + not_ip + alone + lost`.
/// Only where a tunnel's outer and inner packet both count (`--tunnel both`) it is in two of them, and the second time
/// in `inner` beside `seen`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Counters {
    /// Everything the hook was shown.
    pub seen_packets: u64,
    /// Layer-2 bytes of the same.
    pub seen_bytes: u64,
    /// Added to an entry of the table.
    pub counted_packets: u64,
    /// Layer-2 bytes of the same.
    pub counted_bytes: u64,
    /// Counted at another hook that this packet crossed before.
    pub elsewhere_packets: u64,
    /// Layer-2 bytes of the same.
    pub elsewhere_bytes: u64,
    /// No task wants the connection.
    pub rejected_packets: u64,
    /// Layer-2 bytes of the same.
    pub rejected_bytes: u64,
    /// IP, but not to be understood; [`Reason`] says why.
    pub unparsed_packets: u64,
    /// Layer-2 bytes of the same.
    pub unparsed_bytes: u64,
    /// Frames that carry no IP (ARP, LLDP, ...).
    pub not_ip_packets: u64,
    /// Layer-2 bytes of the same.
    pub not_ip_bytes: u64,
    /// No place in the table: reported alone through the ring.
    pub alone_packets: u64,
    /// Layer-2 bytes of the same.
    pub alone_bytes: u64,
    /// No place in the table and none in the ring: lost.
    pub lost_packets: u64,
    /// Layer-2 bytes of the same.
    pub lost_bytes: u64,
    /// Packets inside others that count beside these.
    pub inner_packets: u64,
    /// Layer-2 bytes of the same.
    pub inner_bytes: u64,
}

/// The kernel's side of the ledger on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Ledger {
    /// Reports that reached the ring, packets reported alone included.
    pub ring_records: u64,
    /// Reports that found the ring full; their counts stay in the table and are reported later.
    pub ring_full: u64,
    /// Packets in the deltas of reports that reached the ring (without those alone).
    pub reported_packets: u64,
    /// Layer-2 bytes of the same.
    pub reported_bytes: u64,
    /// Connections that began; also this CPU's share of the connection ids.
    pub connections: u64,
    /// Those of them that took over the entry of a closed one with the same key.
    pub reopened: u64,
    /// Inserts that failed because the table was full.
    pub table_full: u64,
    /// Inserts that failed for another reason.
    pub insert_failed: u64,
    /// Packets that met an entry in removal (and went alone or were lost).
    pub removed: u64,
}

/// Why a packet was not parsed, or of what kind a non-IP frame was: index into the map of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The frame ends before its link header does.
    TruncatedLink = 0,
    /// The frame ends before its IP header does.
    TruncatedIp = 1,
    /// IP version, header length or total length contradict themselves.
    BadIp = 2,
    /// The packet ends before its TCP, UDP, SCTP or ICMP header does.
    TruncatedTransport = 3,
    /// A transport header that contradicts itself (a TCP data offset below 5).
    BadTransport = 4,
    /// More IPv6 extension headers or VLAN tags than are followed.
    TooManyHeaders = 5,
    /// A device without link header gave neither IPv4 nor IPv6.
    BadVersion = 6,
    /// Not IP: ARP.
    Arp = 7,
    /// Not IP: a frame with a length instead of an EtherType (LLC: STP, IS-IS, ...).
    Llc = 8,
    /// Not IP: any other EtherType.
    OtherEthertype = 9,
    /// Of an interface of a capture whose link type is not read.
    LinkType = 10,
}

/// How many reasons there are, and the name of each as metrics and summaries give it.
pub const REASONS: [(Reason, &str); 11] = [
    (Reason::TruncatedLink, "truncated_link"),
    (Reason::TruncatedIp, "truncated_ip"),
    (Reason::BadIp, "bad_ip"),
    (Reason::TruncatedTransport, "truncated_transport"),
    (Reason::BadTransport, "bad_transport"),
    (Reason::TooManyHeaders, "too_many_headers"),
    (Reason::BadVersion, "bad_version"),
    (Reason::Arp, "arp"),
    (Reason::Llc, "llc"),
    (Reason::OtherEthertype, "other_ethertype"),
    (Reason::LinkType, "link_type"),
];
