use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Chunk;
use super::pieces::{pieces, pieces_of};
use crate::limits::WAITING_ALL_BYTES_MAX;

/// Records that are not in the file yet, as they came: should the file fail them, they go into the next one.
#[derive(Default)]
pub(super) struct Waiting {
    chunks: VecDeque<Chunk>,
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// Bytes that wait for all files.
static ALL_BYTES: AtomicU64 = AtomicU64::new(0);

impl Waiting {
    /// Keeps records, unless too much waits already for all tasks together.
    pub(super) fn push(&mut self, chunk: &Chunk) -> bool {
        let bytes = chunk.lines.len() as u64;
        if ALL_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes > WAITING_ALL_BYTES_MAX {
            ALL_BYTES.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.records += u64::from(chunk.records);
        self.bytes += bytes;
        self.chunks.push_back(chunk.clone());
        true
    }

    /// From now on they are taken piece by piece.
    pub(super) fn cut(&mut self) {
        self.chunks = std::mem::take(&mut self.chunks).iter().flat_map(pieces).collect();
    }

    /// The oldest.
    pub(super) fn front(&self) -> Option<&Chunk> {
        self.chunks.front()
    }

    /// Divides the oldest, unless they are few. Gives whether it did.
    pub(super) fn halve_front(&mut self, bytes_min: usize) -> bool {
        let Some(chunk) =
            self.chunks.front().filter(|chunk| chunk.records > 1 && chunk.lines.len() > bytes_min)
        else {
            return false;
        };
        let halves: Vec<_> = pieces_of(chunk, chunk.lines.len() / 2).collect();
        if halves.len() < 2 {
            return false;
        }
        self.chunks.pop_front();
        halves.into_iter().rev().for_each(|half| self.chunks.push_front(half));
        true
    }

    /// The oldest are in the file.
    pub(super) fn pop_front(&mut self) {
        let Some(chunk) = self.chunks.pop_front() else { return };
        let bytes = chunk.lines.len() as u64;
        self.records = self.records.saturating_sub(chunk.records.into());
        self.bytes = self.bytes.saturating_sub(bytes);
        ALL_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// All are in the file, or lost. Gives the time of the first and of the last.
    pub(super) fn clear(&mut self) -> Option<(i64, i64)> {
        let times = |chunk: &Chunk| (chunk.first_ns, chunk.last_ns);
        let join = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
        let found = self.chunks.iter().map(times).reduce(join);
        self.chunks.clear();
        self.records = 0;
        ALL_BYTES.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
        found
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tasks_together_keep_no_more_than_they_may() {
        let lines = bytes::Bytes::from(vec![b'\n'; 1 << 20]);
        let format = crate::record::Format::Json;
        let chunk = Chunk { format, lines, records: 2, first_ns: 1, last_ns: 2, seen_from_ns: 1 };
        let mut tasks: Vec<Waiting> = (0..1000).map(|_| Waiting::default()).collect();
        let kept = tasks.iter_mut().filter_map(|task| task.push(&chunk).then_some(())).count();
        // Other tests may keep something at the same time.
        assert!((32..=64).contains(&kept), "{kept} tasks keep a mebibyte each");
        assert!(ALL_BYTES.load(Ordering::Relaxed) <= WAITING_ALL_BYTES_MAX);
        drop(tasks);
        let mut task = Waiting::default();
        assert!(task.push(&chunk), "what is written makes room");
        assert_eq!((task.records, task.bytes, task.clear()), (2, 1 << 20, Some((1, 2))));
    }
}
