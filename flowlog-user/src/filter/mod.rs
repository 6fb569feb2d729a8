//! The room `filter`.
