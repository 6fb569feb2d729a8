//! Room 5, project: which fields of a record a task wants.
//!
//! In: a task's `fieldMask`, Hubble's paths (`source.pod_name`, `IP`, `l4.TCP.destination_port`). Out: a [`Mask`] that
//! encoders obey. What never happens here: touching a record; a mask is only a set of fields, so records with the same
//! mask are encoded once. To add a path: a line in the table of [`fields`](crate::record::fields).

mod mask;

pub use mask::{Error, compile, read};
