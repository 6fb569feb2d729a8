//! The bytes that cross flowlog's kernel boundary and what they mean.
//!
//! In: nothing. Out: `repr(C)` structs that the eBPF programs write and the daemon reads, with the names of
//! the maps and programs that carry them. What never happens here: logic beyond naming, and any type whose
//! bytes are not all defined (zerocopy's derives refuse padding and enums).
//!
//! A change of any struct changes [`LAYOUT_ID`], which is compiled into the object and compared at load.
#![no_std]

mod around;
mod counters;
mod drops;
mod entry;
mod kept;
mod key;
mod layout;
mod report;
mod rules;

pub use around::{
    Around, KNOWN_TUNNEL_PORTS, TUNNEL_AUTO, TUNNEL_BOTH, TUNNEL_INNER, TUNNEL_OUTER, TUNNEL_PORTS,
    TunnelRules, tunnel,
};
pub use counters::{Counters, Ledger, REASONS, Reason, SLOTS, slot};
pub use drops::{DEVICE_NAME_BYTES, DropKey, Drops, Places, SHARED_BYTES, SKB_BYTES};
pub use entry::{Direction, FlowEntry, bpf_spin_lock};
pub use kept::{Kept, Told};
pub use key::{FlowKey, KIND_BITS, KIND_ECHO, KIND_FRAGMENT, KIND_VIEW, NUMBER_MAX};
pub use layout::LAYOUT_ID;
pub use report::{DirectionReport, REPORT_ALONE, REPORT_APART, REPORT_END, REPORT_FLOW, Report};
pub use rules::{
    CONTROL_TEST, CONTROL_TEST_DROPS, GROUPS_MAX, Groups, PREFIX_SET_BITS, REJECTED_SETS, REJECTED_WAYS,
    Rejected, RuleBase, port_key, prefix_data, protocol_index,
};

/// Where a packet was seen: role of the interface and side of the hook. One program for each.
pub mod hook {
    /// An endpoint's packets entering the node's stack (the endpoint sends).
    pub const ENDPOINT_INGRESS: u8 = 0;
    /// Packets leaving the node's stack towards an endpoint (the endpoint receives).
    pub const ENDPOINT_EGRESS: u8 = 1;
    /// Packets entering the node from the network.
    pub const UPLINK_INGRESS: u8 = 2;
    /// Packets leaving the node towards the network.
    pub const UPLINK_EGRESS: u8 = 3;
}

/// Values in the map of observed interfaces: a role in the low byte, and above it, where each interface counts for
/// itself, the interface's number (1 to [`NUMBER_MAX`]).
pub mod observed {
    /// Packets that enter here are counted here.
    pub const WATCHED: u32 = 1;
    /// The same, and it is an endpoint.
    pub const ENDPOINT: u32 = 2;
    /// Nothing is counted here, but packets that seem to enter here have been at a watched interface below.
    pub const CARRIER: u32 = 3;
    /// The bits of the role.
    pub const ROLE: u32 = 0xff;
    /// Where the number begins.
    pub const NUMBER_SHIFT: u32 = 8;
}

/// Bits of a TCP header's flag byte, in wire order; also the index of their byte in [`Direction::l4`].
pub mod tcp {
    /// No more data from sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// Acknowledgement is valid.
    pub const ACK: u8 = 0x10;
    /// Urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
}

/// IP protocol numbers (IANA) that flowlog looks into.
pub mod protocol {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// IPv4 inside another IP packet.
    pub const IPV4: u8 = 4;
    /// Transmission Control Protocol.
    pub const TCP: u8 = 6;
    /// User Datagram Protocol.
    pub const UDP: u8 = 17;
    /// IPv6 inside another IP packet.
    pub const IPV6: u8 = 41;
    /// Generic Routing Encapsulation.
    pub const GRE: u8 = 47;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// Stream Control Transmission Protocol.
    pub const SCTP: u8 = 132;
}

/// Names of maps and programs: at most 15 characters, so that the kernel shows them whole.
pub mod names {
    /// Hash of [`crate::FlowKey`] to [`crate::FlowEntry`].
    pub const FLOWS: &str = "FLOWLOG_FLOWS";
    /// Ring buffer of [`crate::Report`].
    pub const RING: &str = "FLOWLOG_RING";
    /// Per-CPU array of [`crate::Counters`], indexed by [`crate::slot`].
    pub const HOOKS: &str = "FLOWLOG_HOOKS";
    /// Per-CPU array with one [`crate::Ledger`].
    pub const LEDGER: &str = "FLOWLOG_LEDGER";
    /// Per-CPU array of packet counts (u64) by [`crate::Reason`].
    pub const REASONS: &str = "FLOWLOG_REASONS";
    /// Hash of ifindex (u32) to [`crate::observed`] for each interface observed at ingress, and for those that
    /// hand on what was.
    pub const OBSERVED: &str = "FLOWLOG_OBSERV";
    /// Array with one control word (u64): see [`crate::CONTROL_TEST`].
    pub const CONTROL: &str = "FLOWLOG_CONTROL";
    /// Array with one [`crate::RuleBase`] for each set.
    pub const RULES: &str = "FLOWLOG_RULES";
    /// Trie of prefixes ([`crate::prefix_data`]) to [`crate::Groups`]; each set has one of length 0.
    pub const PREFIXES: &str = "FLOWLOG_PREFIX";
    /// Hash of ports ([`crate::port_key`]) to [`crate::Groups`].
    pub const PORTS: &str = "FLOWLOG_PORTS";
    /// Array of groups (u64) by protocol ([`crate::protocol_index`]).
    pub const PROTOCOLS: &str = "FLOWLOG_PROTOS";
    /// Two hashes of [`crate::DropKey`] to [`crate::Direction`]: drops are added up in one while the other is read.
    pub const DROP_TABLES: [&str; 2] = ["FLOWLOG_DROP_A", "FLOWLOG_DROP_B"];
    /// Entries of each.
    pub const DROP_TABLE_ENTRIES: u32 = 8192;
    /// Array with one u64 whose low bit says which of them is added to.
    pub const DROP_TURN: &str = "FLOWLOG_DROP_T";
    /// Per-CPU array with one [`crate::Drops`].
    pub const DROPS: &str = "FLOWLOG_DROPS";
    /// Names of the interfaces where something was dropped: hash of [namespace, interface] (u32 each) to
    /// [`crate::DEVICE_NAME_BYTES`] bytes. The oldest go.
    pub const DROP_NAMES: &str = "FLOWLOG_DROP_N";
    /// Entries of it.
    pub const DROP_NAMES_ENTRIES: u32 = 1024;
    /// Adds drops up, on the raw tracepoint [`DROP_TRACEPOINT`].
    pub const DROP_PROGRAM: &str = "fl_drop";
    /// Where the kernel says that it drops a packet.
    pub const DROP_TRACEPOINT: &str = "kfree_skb";
    /// [`crate::Places`]; all 0 where they are not known, and then [`DROP_PROGRAM`] is of no use.
    pub const GLOBAL_PLACES: &str = "PLACES";
    /// Names the kernel's code at an address (run by `BPF_PROG_TEST_RUN`). Data: 14 bytes of Ethernet header, then the
    /// address as u64, then 2 bytes of nothing. The name is in [`SYMBOL`].
    pub const SYMBOL_PROGRAM: &str = "fl_symbol";
    /// Array with one name of [`SYMBOL_BYTES`], which ends with a zero byte.
    pub const SYMBOL: &str = "FLOWLOG_SYMBOL";
    /// Longest name, its end included.
    pub const SYMBOL_BYTES: usize = 128;
    /// Array with one [`crate::Kept`].
    pub const KEPT: &str = "FLOWLOG_KEPT";
    /// Array with one [`crate::TunnelRules`].
    pub const TUNNELS: &str = "FLOWLOG_TUNNEL";
    /// Hash of the node's own addresses (16 bytes) to 1 (u32), at most [`OWN_ADDRESSES_MAX`].
    pub const OWN_ADDRESSES: &str = "FLOWLOG_OWN";
    /// Entries of [`OWN_ADDRESSES`].
    pub const OWN_ADDRESSES_MAX: u32 = 4096;
    /// Array of the programs that packets are handed over to: [`HANDOVER_PROGRAMS`].
    pub const HANDOVER: &str = "FLOWLOG_HANDTO";
    /// Look for a packet inside another one; count what was found.
    pub const HANDOVER_PROGRAMS: [&str; 2] = ["fl_tunnel", "fl_inside"];
    /// Place of the first of them.
    pub const HANDOVER_TUNNEL: u32 = 0;
    /// Place of the second.
    pub const HANDOVER_INSIDE: u32 = 1;
    /// Programs in the order of [`crate::hook`], for devices with an Ethernet header.
    pub const ETHERNET_PROGRAMS: [&str; 4] = ["fl_ep_in", "fl_ep_out", "fl_up_in", "fl_up_out"];
    /// The same for devices whose packets begin with the IP header (tun, WireGuard).
    pub const RAW_IP_PROGRAMS: [&str; 4] = ["fl_ep_in_l3", "fl_ep_out_l3", "fl_up_in_l3", "fl_up_out_l3"];
    /// Sets the tag of the keys in its data to 0 and returns how many it found (run by `BPF_PROG_TEST_RUN`).
    /// Data: 14 bytes of Ethernet header, then [`crate::FlowKey`]s, at most [`MARK_KEYS_MAX`].
    pub const MARK_PROGRAM: &str = "fl_mark";
    /// Returns [`crate::LAYOUT_ID`] and logs one line through aya-log (run by `BPF_PROG_TEST_RUN` after load).
    pub const SELF_TEST_PROGRAM: &str = "fl_self_test";
    /// Floors for measurements: nothing at all, and the least that any flow counter must do. The daemon never loads
    /// them.
    pub const BENCH_PROGRAMS: [&str; 2] = ["fl_bench_empty", "fl_bench_ref"];
    /// Runs another program over packets from many sources in turn; for measurements only.
    pub const BENCH_TURN: &str = "fl_bench_turn";
    /// Most keys in one run of [`MARK_PROGRAM`]: test-run data holds about 3,500 bytes.
    pub const MARK_KEYS_MAX: usize = 80;
    /// Global u64: nanoseconds between two reports of a connection while traffic flows.
    pub const GLOBAL_ACTIVE_NS: &str = "ACTIVE_NS";
    /// Global u32: 1 when reports come rarer as a connection ages.
    pub const GLOBAL_REPORT_AGED: &str = "REPORT_AGED";
    /// Global u64: first connection id of this load.
    pub const GLOBAL_CONNECTION_BASE: &str = "CONNECTION_BASE";
    /// Global u32: 1 when some task wants `start` records.
    pub const GLOBAL_REPORT_START: &str = "REPORT_START";
    /// Global u32: 1 when each packet counts once at each interface (`--observation all`).
    pub const GLOBAL_OBSERVE_ALL: &str = "OBSERVE_ALL";
    /// Global u32: possible CPUs of this machine (connection ids are interleaved by CPU).
    pub const GLOBAL_CPUS: &str = "CPUS";
}
