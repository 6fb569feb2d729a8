//! The room `read`.
