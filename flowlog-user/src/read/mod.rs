//! The room `read`: files back into records, for `flowlog cat`; and recorded events, Hubble's or ours, for
//! `flowlog replay --flows` ([`flows`]) and `flowlog explain` ([`event`]).
//!
//! In: paths of files and folders, patterns, or stdin; live or finished, compressed in whatever way their first bytes say.
//! Out: the records as they were written, or a table, or compact lines, in time order across tasks, of a range of time if
//! asked; and what was found damaged, by file and offsets. What never happens here: writing to a file, locking one,
//! holding more than a line and a piece of text per task in memory. To add a compression: an arm of
//! [`content::Content`]; to add an output: a file beside [`table`] and an arm of [`Output`] and of [`Layout`].

mod cat;
mod client;
mod compact;
mod content;
mod convert;
mod dict;
mod error;
mod event;
mod flat;
mod flows;
mod follow;
mod frames;
mod group;
mod input;
mod json;
mod layout;
mod lines;
mod printer;
mod protobuf;
mod range;
mod shape;
mod sieve;
mod sources;
mod stats;
mod style;
mod table;
mod verify;

pub use cat::{Limit, Output, Request, Summary, ToLine, cat};
pub use convert::{Convert, Piece};
pub use error::{Damage, Error};
pub use event::{Malformed, event};
pub use flows::{BadLine, Counts, flows};
pub use follow::follow;
pub use layout::Layout;
pub use protobuf::event as protobuf_event;
pub use range::TimeRange;
pub use sieve::{Look, Sieve};
pub use stats::Stats;
pub use style::{Style, TimeFormat};
pub use verify::{Checked, Verdict, verify};

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod follow_tests;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod vouched_tests;
#[cfg(test)]
mod whole_tests;
