//! The `flowlog` command.
fn main() {}
