//! Tests that need no privilege: captures through the same rooms, and the binary's manners.
#![cfg(test)]

mod aggregate;
mod allocations;
mod any_bytes;
mod cat;
mod check;
mod classifier;
mod company;
mod corpus;
mod deployment;
mod explain;
mod files;
mod formats;
mod fuzz;
mod hubble;
mod limits;
mod migrate;
mod pools;
mod prefilter;
mod rate_limit;
mod readme;
mod replay;
mod stdout;
mod tunnels;
