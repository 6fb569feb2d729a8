//! Tests that need no privilege: captures through the same rooms, and the binary's manners.
#![cfg(test)]

mod files;
mod readme;
mod replay;
