//! The room `task`.
