//! Programs of the tests whose packages would start a service when they are installed: unpacked below `target/`.

use std::path::PathBuf;

use crate::{packages, say, system};

/// Checks rules and metrics.
const PROMTOOL: &str = "promtool";
const PACKAGE: &str = "prometheus";

/// promtool of the system, or the unpacked one, which is fetched when there is none. Without it the tests that use it
/// say so.
pub(crate) fn promtool() -> Option<PathBuf> {
    if let Some(found) = system::find_program(PROMTOOL) {
        return Some(found);
    }
    let root = system::target_dir().join("tools");
    let program = root.join("usr/bin").join(PROMTOOL);
    if !program.exists()
        && let Err(error) = packages::unpack(PACKAGE, &[], &root.join("packages"), &root)
    {
        say::warn(&format!("{error:#}; the tests that ask promtool are SKIPPED"));
    }
    system::is_executable(&program).then_some(program)
}
