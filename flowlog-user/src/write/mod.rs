//! The room `write`.
