//! What the daemon says about itself: the ledger, today printed at the end of a run.
//!
//! In: counters of every stage. Out: sums that close, as text and JSON. What never happens here: counting. To add a
//! view (metrics, status), add a file that reads the same [`ledger::Books`].

pub mod ledger;
