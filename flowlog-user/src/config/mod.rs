//! Configuration: task files in, tasks out.
//!
//! In: paths of files and folders ([`load`] for once, [`Config`] over time). Out: a [`Plan`] of tasks, or everything that
//! is wrong with them, each with file, line, column and key path. Pools of addresses come the same way (`pools`). What never happens here: applying anything, guessing,
//! skipping what is invalid.
//! Tasks are those of the newest version; older ones are converted first (`versions`). Only `raw`, and `versions` where it
//! edits texts, know YAML. To add a key of a file: a line in `document`; a task's keys belong to `task`.

mod diff;
mod document;
mod escapes;
mod files;
mod forms;
mod heirs;
mod held;
mod incumbents;
mod lineage;
mod load;
mod memory;
mod news;
mod normal;
mod owners;
mod pools;
mod raw;
mod resources;
mod schema;
mod sources;
mod superseded;
mod versions;
mod watch;

pub use diff::{Decision, Others, Owned, Tasks, decide};
pub use forms::Origin;
pub use load::{Error, Loaded, load, read};
pub use memory::{Hash, Unwritten};
pub use news::{Look, News};
pub use normal::{Normal, normal, yaml};
pub use owners::Config;
pub use pools::{Defined, Joined, PoolForm};
pub use schema::{schema, table};
pub use sources::Sources;
pub use versions::{Form, Mark, Migration, Outcome, migrations};
pub use watch::Watch;

#[cfg(test)]
mod tests;
