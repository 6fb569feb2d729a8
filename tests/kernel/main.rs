//! Tests that load the programs into the running kernel and feed them packets by `BPF_PROG_TEST_RUN`; they need
//! root. Nothing is attached anywhere.
#![cfg(test)]

mod counting;
mod end_to_end;
mod headers;
mod lifecycle;
mod loaded;
mod loading;
mod packets;
mod racing;
mod reload;
mod removal;
mod reporting;
