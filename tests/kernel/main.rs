//! Tests that load the programs into the running kernel and feed them packets by `BPF_PROG_TEST_RUN`; they need
//! root. `end_to_end` and `lifecycle` run the daemon between hosts of their own; the rest attaches nothing.
#![cfg(test)]

use flowlog_tests::{loaded, packets};

mod adding_up;
mod arrivals;
mod auditing;
mod bad_input;
mod company;
mod confined;
mod counting;
mod demo;
mod draining;
mod dropping;
mod drops;
mod end_to_end;
mod estimating;
mod flooding;
mod fragments;
mod framings;
mod generations;
mod guests;
mod headers;
mod lifecycle;
mod loading;
mod memory;
mod observing;
mod offloads;
mod openings;
mod overload;
mod perf;
mod pinned;
mod pools;
mod racing;
mod rejecting;
mod reload;
mod removal;
mod reporting;
mod reusing;
mod serving;
mod site;
mod stepping;
mod thousand;
mod topologies;
mod tunnels;
mod unchanged;
mod versions;
mod watching;
