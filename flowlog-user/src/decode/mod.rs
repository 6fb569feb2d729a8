//! The room `decode`.
