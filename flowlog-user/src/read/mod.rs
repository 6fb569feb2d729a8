//! The room `read`: files back into records, for `flowlog cat`; and recorded events, Hubble's or ours, for
//! `flowlog replay --flows` ([`flows`]) and `flowlog explain` ([`event`]).
//!
//! In: paths of files and folders, live or finished, compressed in whatever way their first bytes say. Out: the
//! records as they were written, or a table, in time order across tasks; and what was found damaged, by file and
//! offset. What never happens here: writing to a file, locking one, holding more than a line per task in memory. To
//! add a compression: an arm of [`content::Content`]; to add an output: a file beside [`table`] and an arm of
//! [`Output`].

mod cat;
mod content;
mod error;
mod event;
mod flows;
mod group;
mod json;
mod lines;
mod sources;
mod table;

pub use cat::{Output, Summary, cat};
pub use error::{Damage, Error};
pub use event::{Malformed, event};
pub use flows::{BadLine, Counts, flows};

#[cfg(test)]
mod tests;
