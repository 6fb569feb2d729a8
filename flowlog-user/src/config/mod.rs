//! Configuration: task files in, tasks out.
//!
//! In: paths of files and folders ([`load`] for once, [`Config`] over time). Out: a [`Plan`] of tasks, or everything that
//! is wrong with them, each with file, line, column and key path. What never happens here: applying anything, guessing,
//! skipping what is invalid.
//! Only `raw` knows YAML. To add a key of a file: a line in `document`; a task's keys belong to `task`.

mod diff;
mod document;
mod files;
mod load;
mod memory;
mod normal;
mod owners;
mod raw;
mod schema;
mod watch;

pub use diff::{Decision, Owned, Tasks, decide};
pub use load::{Error, Loaded, load};
pub use memory::{Hash, Unwritten};
pub use normal::{Normal, normal, yaml};
pub use owners::{Config, Look, News};
pub use schema::{schema, table};
pub use watch::Watch;

#[cfg(test)]
mod tests;
