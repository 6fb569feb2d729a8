//! The room `server`.
