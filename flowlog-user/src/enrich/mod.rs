//! The room `enrich`.
