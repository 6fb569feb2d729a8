//! What the running daemon tells about itself, for whoever looks: written by the data and control planes, read by
//! metrics and status.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::busiest::Busiest;
use super::ledger::{Books, Sum, drops_imbalance};
use super::tasks::TaskStates;
use crate::capture::live::InterfaceState;
use crate::metrics::{Counter, TaskCounters};

/// A view this old means that the capture thread hangs: it tells twice a second.
pub const STALE: Duration = Duration::from_secs(10);

/// The capture's side at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Kernel, table, ring and decoder; `tasks` is empty, since tasks are read live.
    pub books: Books,
    /// Every interface with its role and hook, or why it is left out.
    pub interfaces: Vec<InterfaceState>,
    /// When it was taken.
    pub taken: Instant,
}

/// How often the tasks' files changed something.
#[derive(Debug, Default)]
pub struct Reloads {
    /// Tasks that came.
    pub added: Counter,
    /// Tasks that changed.
    pub updated: Counter,
    /// Tasks that went.
    pub removed: Counter,
    /// Files that were not accepted, and tasks that were refused.
    pub failed: Counter,
    /// When a look at the files last succeeded, nanoseconds since the Unix epoch.
    pub last_applied_ns: Mutex<i64>,
}

/// What does not change while the daemon runs.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// `node_name` of the records.
    pub node: String,
    /// Connections the kernel's table holds at most.
    pub table_entries_max: u32,
    /// Bytes of the ring buffer.
    pub ring_bytes: u32,
    /// When the daemon began, nanoseconds since the Unix epoch.
    pub started_ns: i64,
}

/// The board everything is told to.
#[derive(Debug, Default)]
pub struct Board {
    /// Fixed at the start.
    pub facts: Facts,
    /// Every task with its conditions and counters.
    pub tasks: Arc<Mutex<TaskStates>>,
    /// Changes of the tasks.
    pub reloads: Arc<Reloads>,
    /// What is not in force as it stands in the files, a line each: it may concern tasks that never ran.
    pub refused: Mutex<Vec<String>>,
    /// Who speaks most, while somebody asks.
    pub busiest: Busiest,
    views: Mutex<Views>,
}

#[derive(Debug, Default)]
struct Views {
    last: Option<Arc<View>>,
    before: Option<Arc<View>>,
}

impl Board {
    /// Nothing told yet.
    #[must_use]
    pub fn new(facts: Facts) -> Self {
        Self { facts, ..Self::default() }
    }

    /// Takes a newer view.
    pub fn tell(&self, view: View) {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.before = views.last.replace(Arc::new(view));
    }

    /// The newest view; nothing before the capture has begun.
    #[must_use]
    pub fn view(&self) -> Option<Arc<View>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    /// Packets and records that stand in no counter or in two, as far as it can be said while packets pass; 0 always.
    ///
    /// Sums over what is in flight are not judged, only what no flight explains: a hook where no packet has passed
    /// between two views and whose packets still do not add up, more decoded than was sent, a task that has answered
    /// for more records than it was shown.
    #[must_use]
    pub fn imbalance(&self) -> u64 {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(last), Some(before)) = (&views.last, &views.before) else { return 0 };
        imbalance(&last.books, &before.books)
    }

    /// The tasks' counters by name.
    #[must_use]
    pub fn counters(&self) -> Vec<(Arc<str>, Arc<TaskCounters>)> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks
            .iter()
            .filter_map(|(name, state)| Some((name.as_str().into(), Arc::clone(state.counters.as_ref()?))))
            .collect()
    }
}

fn imbalance(last: &Books, before: &Books) -> u64 {
    let hooks: u64 = last
        .capture
        .hooks
        .iter()
        .filter_map(|hook| {
            let then = before.capture.hooks.iter().find(|then| then.0 == hook.0 && then.1 == hook.1)?;
            let idle = then.2.seen_packets == hook.2.seen_packets && then.2.seen_bytes == hook.2.seen_bytes;
            idle.then(|| Books::of_hook(hook).iter().map(Sum::gap).sum::<u64>())
        })
        .sum();
    let decoded = last.decode.decoded + last.decode.malformed;
    let drops = drops_imbalance(&last.capture.drops, &before.capture.drops);
    hooks + drops + decoded.saturating_sub(last.capture.kernel.ring_records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowlog_abi::Counters;

    fn books(seen: u64, counted: u64) -> Books {
        let counters = Counters { seen_packets: seen, counted_packets: counted, ..Counters::default() };
        let mut books = Books::default();
        books.capture.hooks.push(("eth0".into(), "ingress", counters));
        books
    }

    #[test]
    fn only_a_hook_at_rest_is_judged() {
        assert_eq!(imbalance(&books(10, 10), &books(10, 10)), 0);
        assert_eq!(imbalance(&books(10, 9), &books(8, 8)), 0, "a packet is in flight");
        assert_eq!(imbalance(&books(10, 9), &books(10, 8)), 1, "nothing has passed, and one is missing");
    }

    #[test]
    fn more_decoded_than_was_sent_is_an_imbalance() {
        let mut last = books(0, 0);
        last.capture.kernel.ring_records = 5;
        last.decode.decoded = 7;
        assert_eq!(imbalance(&last, &books(0, 0)), 2);
    }
}
