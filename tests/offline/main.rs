//! Tests that need no privilege: captures through the same rooms, and the binary's manners.
#![cfg(test)]

mod check;
mod readme;
mod replay;
