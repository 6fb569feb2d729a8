//! Tests that need no privilege: captures through the same rooms, and the binary's manners.
#![cfg(test)]

mod cat;
mod check;
mod explain;
mod files;
mod hubble;
mod limits;
mod prefilter;
mod rate_limit;
mod readme;
mod replay;
