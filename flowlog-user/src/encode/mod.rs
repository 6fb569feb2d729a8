//! Room 6, encode: flows into the bytes of a format.
//!
//! In: a [`Flow`](crate::record::Flow), the [`Node`](crate::record::Node) it was seen on and a
//! [`Mask`](crate::record::fields::Mask). Out: bytes appended to a buffer, a whole record at a time. What never
//! happens here: I/O, an allocation per record of ours, leaving out what the mask keeps. Facts that a record does not
//! store (numbers, names, identities) come from `record`, so that filters see the same. Events recorded elsewhere, and
//! lines about the log itself, are encoded from their message ([`event`]). To add a format: a file beside [`flat`], an
//! arm of [`flow`] and of [`event`], and its name in `record::format`.

pub use sheet::{Shape, Sheet};

use crate::record::fields::Mask;
use crate::record::{Flow, Foreign, Format, Node, PoolTag, flow_message};

pub mod aggregate;
mod csv;
mod extensions;
pub mod flat;
pub mod foreign;
pub mod json;
mod l4;
mod masked;
mod parquet;
pub mod protobuf;
mod protobuf_event;
mod sheet;
mod text;
mod tunnel;
mod uuid;
mod wire;

/// Appends a flow of ours, with the fields that the mask keeps.
pub fn flow(format: Format, flow: &Flow, node: &Node, mask: &Mask, out: &mut Vec<u8>) {
    let named = flow.source_pool != PoolTag::NONE || flow.destination_pool != PoolTag::NONE;
    // What pools add is in the message of the flow; only the JSON encoder knows it by itself so far.
    if named
        && format != Format::Json
        && let Some(event) = Foreign::new(flow_message(flow, node))
    {
        return self::event(format, &event, mask, out);
    }
    match format {
        Format::Json => json::encode(flow, node, mask, out),
        Format::Flat => flat::encode(flow, node, mask, out),
        Format::Protobuf => protobuf::encode(flow, node, mask, out),
    }
}

/// Appends any event, of whose flow the mask keeps what it does.
pub fn event(format: Format, event: &Foreign, mask: &Mask, out: &mut Vec<u8>) {
    match format {
        Format::Json => foreign::encode(event, mask, out),
        Format::Flat => flat::event(event, mask, out),
        Format::Protobuf => protobuf::event(event, mask, out),
    }
}

/// Appends a line about the log itself.
pub fn notice(format: Format, event: &Foreign, out: &mut Vec<u8>) {
    self::event(format, event, &Mask::ALL, out);
}

#[cfg(test)]
mod foreign_tests;
#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
