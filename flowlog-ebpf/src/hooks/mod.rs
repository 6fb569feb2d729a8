//! One short file per attach point; names as in `flowlog_abi::names`.

mod bench;
mod drop;
mod ethernet;
mod mark;
mod raw_ip;
mod self_test;
mod symbol;
mod tunnel;
