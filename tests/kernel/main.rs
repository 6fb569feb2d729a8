//! Tests that load the programs into the running kernel and feed them packets by `BPF_PROG_TEST_RUN`; they need
//! root. `end_to_end` and `lifecycle` run the daemon between hosts of their own; the rest attaches nothing.
#![cfg(test)]

mod confined;
mod counting;
mod draining;
mod end_to_end;
mod fragments;
mod generations;
mod headers;
mod lifecycle;
mod loaded;
mod loading;
mod memory;
mod packets;
mod perf;
mod pinned;
mod racing;
mod rejecting;
mod reload;
mod removal;
mod reporting;
mod reusing;
mod serving;
mod tunnels;
