//! Tests that need no privilege.
fn main() {}
