//! How much of what was taken from the kernel has arrived in files: one point in the stream at a time is followed, from
//! the capture through the worker to the tasks' writers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flowlog_abi::Told;
use flowlog_user::metrics::TaskCounters;

/// Where the point is.
#[derive(Debug)]
enum Stage {
    /// None is followed.
    Free,
    /// Until the worker has taken so many batches.
    Working { batches: u64 },
    /// Until each task has written, or dropped by name, so many records.
    Writing { records: Vec<(Arc<TaskCounters>, u64)> },
}

/// Follows one point after another.
#[derive(Debug)]
pub(super) struct Settling {
    /// Batches given to the worker.
    pub(super) sent: u64,
    done: Arc<AtomicU64>,
    stage: Stage,
    /// The point: what had been taken, and how much of that was on its way nowhere.
    point: (Told, Told),
    /// The last point.
    pub(super) last: Told,
}

impl Default for Settling {
    fn default() -> Self {
        Self {
            sent: 0,
            done: Arc::default(),
            stage: Stage::Free,
            point: (Told::default(), Told::default()),
            last: Told::default(),
        }
    }
}

impl Settling {
    /// Counts the batches that the worker has taken.
    pub(super) fn done(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.done)
    }

    /// Whether another point may be followed.
    pub(super) const fn is_free(&self) -> bool {
        matches!(self.stage, Stage::Free)
    }

    /// Follows this point: all that was taken is with the worker, but for what is held.
    pub(super) fn begin(&mut self, taken: Told, held: Told) {
        self.point = (taken, held);
        self.last = taken;
        self.stage = Stage::Working { batches: self.sent };
    }

    /// The point, once it has arrived.
    pub(super) fn settled(&mut self, tasks: impl FnOnce() -> Vec<Arc<TaskCounters>>) -> Option<(Told, Told)> {
        if let Stage::Working { batches } = self.stage {
            if self.done.load(Ordering::Acquire) < batches {
                return None;
            }
            let records = tasks().into_iter().map(|task| (Arc::clone(&task), taken(&task))).collect();
            self.stage = Stage::Writing { records };
        }
        let Stage::Writing { records } = &self.stage else { return None };
        if !records.iter().all(|(task, records)| arrived(task) >= *records) {
            return None;
        }
        self.stage = Stage::Free;
        Some(self.point)
    }
}

/// Records that a task has taken; those that went into aggregated lines are counted by the line.
fn taken(task: &TaskCounters) -> u64 {
    (task.matched.get() + task.aggregates.get()).saturating_sub(task.aggregated.get())
}

fn arrived(task: &TaskCounters) -> u64 {
    task.written.get()
        + task.dropped_queue_full.get()
        + task.dropped_write_error.get()
        + task.rate_limited.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_arrives_when_the_worker_and_every_writer_have_passed_it() {
        let mut settling = Settling::default();
        let tasks = [Arc::new(TaskCounters::default()), Arc::new(TaskCounters::default())];
        let taken = Told { records: 3, packets: 9, bytes: 900 };
        settling.sent = 2;
        settling.begin(taken, Told::default());
        assert!(!settling.is_free() && settling.settled(|| tasks.to_vec()).is_none());
        settling.done().store(2, Ordering::Release);
        tasks[0].matched.add(3);
        tasks[1].matched.add(1);
        tasks[0].written.add(2);
        assert!(settling.settled(|| tasks.to_vec()).is_none());
        // What comes later is not waited for.
        tasks[1].matched.add(5);
        tasks[1].dropped_queue_full.add(1);
        tasks[0].rate_limited.add(1);
        assert_eq!(settling.settled(|| tasks.to_vec()), Some((taken, Told::default())));
        assert!(settling.is_free() && settling.settled(|| tasks.to_vec()).is_none());
    }
}
