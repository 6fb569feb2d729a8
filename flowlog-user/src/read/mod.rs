//! The room `read`: files back into records, for `flowlog cat`.
//!
//! In: paths of files and folders, live or finished, compressed in whatever way their first bytes say. Out: the
//! records as they were written, or a table, in time order across tasks; and what was found damaged, by file and
//! offset. What never happens here: writing to a file, locking one, holding more than a line per task in memory. To
//! add a compression: an arm of [`content::Content`]; to add an output: a file beside [`table`] and an arm of
//! [`Output`].

mod cat;
mod content;
mod error;
mod group;
mod lines;
mod sources;
mod table;

pub use cat::{Output, Summary, cat};
pub use error::{Damage, Error};

#[cfg(test)]
mod tests;
