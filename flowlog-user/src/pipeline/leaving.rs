use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::give_out;
use super::lane::Lane;
use crate::clock::wall_ns;
use crate::metrics::TaskCounters;
use crate::task::{Closing, Overflow, Planned};

/// A task whose file is still another's: its place in the swap, and what it goes on with.
pub(super) type Late = (usize, Planned, Arc<TaskCounters>);

/// Tells every task that is not in the swap to close. Waits only for those whose file one of `late` wants: files change
/// hands seldom, and the one has to be closed before the other is opened. A task that is not in `staying` nor among
/// `late` is gone for good.
pub(super) fn close(
    gone: HashMap<String, Lane>,
    staying: &HashSet<String>,
    late: &[Late],
    overflow: Overflow,
) -> Vec<Closing> {
    let mut all = Vec::with_capacity(gone.len());
    let mut awaited = Vec::new();
    for lane in gone.into_values() {
        let why = if lane.has_ended(wall_ns()) {
            "the task's end has come"
        } else {
            "the task was removed or its file moved"
        };
        give_out(lane.kept.aggregator, &lane.running, overflow);
        let spec = &lane.planned.spec;
        let stays =
            staying.contains(&spec.name) || late.iter().any(|(_, other, _)| other.spec.name == spec.name);
        let path = spec.file.live_path();
        if late.iter().any(|(_, other, _)| other.spec.file.live_path() == path) {
            awaited.push(all.len());
        }
        all.push(if stays { lane.running.close_because(why) } else { lane.running.remove(why) });
    }
    while awaited.iter().any(|at| all.get(*at).is_some_and(|closing: &Closing| !closing.is_done())) {
        std::thread::sleep(Duration::from_millis(1));
    }
    all
}
