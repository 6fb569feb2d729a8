//! The room `project`.
