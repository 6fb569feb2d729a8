//! Tests that load programs into the running kernel.
fn main() {}
