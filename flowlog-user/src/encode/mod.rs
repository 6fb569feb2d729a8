//! The room `encode`.
