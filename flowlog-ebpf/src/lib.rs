//! The part of flowlog's kernel side that needs no kernel: bytes to [`Packet`], packets to entries, entries to
//! reports. The programs in `main.rs` and the replay of captures on the host run this same code.
//!
//! In: the bytes of one packet and what is known beside them (length on the wire, offload, hook, time).
//! Out: a [`Packet`] or the [`flowlog_abi::Reason`] why there is none; the entry and the report of its connection.
//! What never happens here: I/O, allocation, `unsafe`, a look-up in a table, a panic.
//!
//! Where to change what: a link layer in `parse/link.rs`, an IP header in `parse/ip.rs`, a transport in
//! `parse/transport.rs`, what a packet weighs in `count.rs`, which connections are wanted in `prefilter.rs`, what is kept of a connection in `aggregate/`.
#![no_std]

pub mod aggregate;
pub mod count;
pub mod fragments;
pub mod parse;
pub mod prefilter;

pub use aggregate::{
    Add, Closed, Plain, Sight, Spacing, Timeouts, acknowledge, add, add_side, add_with, alone, closed, cross,
    expired, how, new_entry, note_around, pending, reopen, reopens, report, tag, wants_report, write_alone,
    write_entry, write_report,
};
pub use count::{measure, segments_and_bytes};
pub use parse::{Bytes, Captured, Packet, inside, parse_ethernet, parse_raw_ip, tunnel_kind, wants_inner};
pub use prefilter::{Lookup, wanted, wanted_dropped};
