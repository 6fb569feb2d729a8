//! The room `write`.

mod spec;

pub use spec::{Compression, Spec};
