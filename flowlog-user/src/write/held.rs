use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{WAITING_ALL_BYTES_MAX, WAITING_BYTES_MAX};

/// Bytes of lines that all tasks keep whose files cannot be written.
static ALL: AtomicU64 = AtomicU64::new(0);

/// Those of one task, from an error until it writes again.
#[derive(Debug, Default)]
pub(super) struct Held(u64);

impl Held {
    /// Takes note that the task keeps so many; false, and nothing is changed, where that is more than it may, or more
    /// than all of them may.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.0);
        if bytes > WAITING_BYTES_MAX {
            return false;
        }
        if ALL.fetch_add(more, Ordering::Relaxed) + more > WAITING_ALL_BYTES_MAX {
            ALL.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.0 += more;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        ALL.fetch_sub(self.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_in_trouble_keep_no_more_than_all_of_them_may() {
        let mut tasks: Vec<Held> = (0..1000).map(|_| Held::default()).collect();
        let took = |tasks: &mut Vec<Held>| {
            tasks.iter_mut().filter_map(|task| task.grow(1 << 20).then_some(())).count()
        };
        // Other tests may be in trouble at the same time.
        let first = took(&mut tasks);
        assert!((32..=64).contains(&first), "{first} tasks keep a mebibyte each");
        assert!(ALL.load(Ordering::Relaxed) <= WAITING_ALL_BYTES_MAX);
        assert!(!tasks.iter_mut().any(|task| task.grow(WAITING_BYTES_MAX + 1)));
        drop(tasks);
        assert!(Held::default().grow(1 << 20), "what is written again makes room");
    }
}
