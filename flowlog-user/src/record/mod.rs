//! The noun everyone speaks: [`Flow`], the node it was seen on, and the table of its fields. Beside it [`Foreign`], an
//! event that somebody else recorded, which may hold whatever Hubble's messages can ([`schema`]); [`Facts`] is what a
//! filter may ask of either.
//!
//! In: nothing. Out: plain values that every room reads. What never happens here: I/O, parsing, encoding.
//! To add a field: a line in [`fields`], a member of [`Flow`] or [`Node`], and the compiler and the tests of the
//! field table name the rest.

mod addresses;
mod aggregate;
pub mod columns;
pub mod container;
mod derived;
mod drops;
mod facts;
pub mod fields;
mod flow;
mod flow_message;
mod foreign;
/// Formats, and how records are told apart.
pub mod format;
mod icmp;
mod json;
/// What flowlog measures and Hubble has no field for.
pub mod measured;
mod message;
mod node;
mod pools;
mod ranked;
pub mod rules;
pub mod schema;
mod spelling;
mod summary;
mod uuid;

pub use addresses::AddressSet;
pub use aggregate::Aggregate;
pub use derived::{EVENT_TYPE_DROP, EVENT_TYPE_TRACE, IpVersion, VERDICT_DROPPED, VERDICT_FORWARDED};
pub use drops::{DropKind, Dropped, ForeignName};
pub use facts::{Address, Counters, End, EventKind, Facts, Layer, Seen, Texts};
pub use flow::{EndReason, Event, Flow, Hook, Identity, Joined, L4, TrafficDirection, Tunnel, TunnelKind};
pub use flow_message::flow_message;
pub use foreign::Foreign;
pub use format::{Format, Framing};
pub use json::{Json, json_string, rfc3339};
pub use measured::{Measured, Names};
pub use message::{Message, NO_FLOW, Value};
pub use node::{Interface, Node, Role};
pub use pools::{Block, Overlap, POOL_LABEL, Pool, PoolTag, Pools};
pub use ranked::Ranked;
pub use spelling::{AGENT_EVENTS, EVENT_TYPES, RESERVED_IDENTITIES, TRACE_POINTS};

#[cfg(test)]
mod published_tests;
