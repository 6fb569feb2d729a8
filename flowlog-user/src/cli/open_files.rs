//! How many files may be open: a task takes two, a folder of logs one for each task in it.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit to what this user may have. Most systems start programs with 1,024 for the sake of `select`, which
/// nothing here uses.
pub(crate) fn raise() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
