//! The noun everyone speaks: [`Flow`], the node it was seen on, and the table of its fields.
//!
//! In: nothing. Out: plain values that every room reads. What never happens here: I/O, parsing, encoding.
//! To add a field: a line in [`fields`], a member of [`Flow`] or [`Node`], and the compiler and the tests of the
//! field table name the rest.

pub mod container;
mod derived;
pub mod fields;
mod flow;
mod node;

pub use derived::{EVENT_TYPE_TRACE, IpVersion, VERDICT_FORWARDED};
pub use flow::{EndReason, Event, Flow, Hook, Identity, L4, TrafficDirection};
pub use node::{Interface, Node, Role};
