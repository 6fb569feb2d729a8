//! Tests that load the programs into the running kernel and feed them packets by `BPF_PROG_TEST_RUN`; they need
//! root. Nothing is attached anywhere.
#![cfg(test)]

mod counting;
mod headers;
mod loaded;
mod end_to_end;
mod lifecycle;
mod loading;
mod packets;
mod racing;
mod removal;
mod reporting;
