//! Tasks: what someone wants logged, where to and for how long.
//!
//! In: an entry of `flowLogs` ([`Spec::read`]). Out: a [`Plan`], in which every task has its compiled filter, its mask
//! and the number of its cadence. What never happens here: I/O, YAML, running anything. To add a key: an entry in
//! `keys`, a member of [`Spec`], and its reading in `spec` (or `file` when it concerns files).

mod aggregation;
mod aggregator;
mod cadence;
mod condition;
mod desk;
mod duration;
mod file;
mod keys;
mod memory;
mod plan;
mod rate;
mod running;
mod spec;
mod writers;

pub use aggregation::Aggregation;
pub use aggregator::Aggregator;
pub use cadence::{Cadence, Events};
pub use condition::{Condition, ConditionKind, Conditions};
pub(crate) use desk::note_salvaged;
pub use keys::{KEYS, Key, is_hubbles_key, is_own_key};
pub use memory::Memory;
pub use plan::{Claims, Plan, Planned, rules};
pub use rate::RateLimit;
pub use running::{Closing, Earlier, Finished, Overflow, Running};
pub use spec::{Phase, Spec};
pub use writers::Calls;
