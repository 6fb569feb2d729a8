//! What the daemon says about itself: the ledger, the state of each task, `audit.log`, metrics, health and status.
//!
//! In: counters of every stage, on the [`board`]. Out: sums that close, as text, JSON and metrics, over HTTP. What
//! never happens here: counting, or anything the data plane could wait for. To add a metric, add it to [`families`];
//! to add a route, an arm in [`http`].

pub mod audit;
pub mod board;
pub mod busiest;
mod disk;
pub mod exposition;
pub mod families;
pub mod http;
pub mod ledger;
pub mod listen;
pub mod process;
pub mod status;
pub mod tasks;
