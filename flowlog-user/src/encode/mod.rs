//! Room 6, encode: flows into the bytes of a format.
//!
//! In: a [`Flow`](crate::record::Flow), the [`Node`](crate::record::Node) it was seen on and a
//! [`Mask`](crate::record::fields::Mask). Out: bytes appended to a buffer, a whole record at a time. What never
//! happens here: I/O, an allocation per record, leaving out what the mask keeps. Facts that a record does not store
//! (numbers, names, identities) come from `record`, so that filters see the same. To add a format: a file beside
//! [`json`] with the same signature.

pub mod aggregate;
mod extensions;
pub mod foreign;
pub mod json;
mod l4;
mod text;
mod tunnel;
mod uuid;

#[cfg(test)]
mod foreign_tests;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
