//! What the daemon says about itself: the ledger, today printed at the end of a run; the state of each task; and
//! `audit.log`, what became of every task and file.
//!
//! In: counters of every stage. Out: sums that close, as text and JSON. What never happens here: counting. To add a
//! view (metrics, status), add a file that reads the same [`ledger::Books`].

pub mod audit;
pub mod ledger;
pub mod tasks;
