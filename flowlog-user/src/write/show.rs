use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::Chunk;

/// How many records are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All.
    #[default]
    All,
    /// So many from the beginning.
    First(u64),
    /// So many from the end, which is when they are shown.
    Last(usize),
}

type Layout = dyn FnMut(&[u8], &mut Vec<u8>) + Send;

/// How one task's records are shown on stdout, instead of being written there as they are: layouts are another room's.
pub struct Show {
    layout: Box<Layout>,
    extent: Extent,
    taken: u64,
    /// Set when nothing more is to be shown.
    over: Option<Arc<AtomicBool>>,
    /// With [`Extent::Last`]: lines with their times.
    held: VecDeque<(Bytes, i64)>,
}

/// What is printed of some records.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) bytes: Bytes,
    pub(super) records: u64,
    /// Where each record ends, where that is not to be seen from the bytes.
    pub(super) ends: Vec<usize>,
    pub(super) times_ns: (i64, i64),
}

impl Show {
    /// Shows records, which come as lines, as `layout` appends them.
    #[must_use]
    pub fn new(extent: Extent, layout: impl FnMut(&[u8], &mut Vec<u8>) + Send + 'static) -> Self {
        Self { layout: Box::new(layout), extent, taken: 0, over: None, held: VecDeque::new() }
    }

    /// Passes over whatever comes once `over` is set.
    #[must_use]
    pub fn until(self, over: Arc<AtomicBool>) -> Self {
        Self { over: Some(over), ..self }
    }

    /// What is printed of a chunk, and how many records were passed over for good.
    pub(super) fn take(&mut self, chunk: &Chunk) -> (Shown, u64) {
        if self.over.as_ref().is_some_and(|over| over.load(Ordering::Relaxed)) {
            return (Shown::default(), chunk.records.into());
        }
        let lines = chunk.lines.split_inclusive(|byte| *byte == b'\n');
        match self.extent {
            Extent::All => (self.lay_out(lines, (chunk.first_ns, chunk.last_ns)), 0),
            Extent::First(most) => {
                let room = most.saturating_sub(self.taken).min(chunk.records.into());
                self.taken += room;
                let room_lines = usize::try_from(room).unwrap_or(usize::MAX);
                let shown = self.lay_out(lines.take(room_lines), (chunk.first_ns, chunk.last_ns));
                (shown, u64::from(chunk.records) - room)
            }
            Extent::Last(most) => {
                // A copy each, so that one line does not keep its whole chunk in memory.
                self.held.extend(lines.map(|line| (Bytes::copy_from_slice(line), chunk.last_ns)));
                let over = self.held.len().saturating_sub(most);
                self.held.drain(..over);
                (Shown::default(), over as u64)
            }
        }
    }

    /// What was held back, at the end.
    pub(super) fn rest(&mut self) -> Shown {
        let held = std::mem::take(&mut self.held);
        let times = held.front().zip(held.back()).map_or((0, 0), |(first, last)| (first.1, last.1));
        self.lay_out(held.iter().map(|(line, _)| &**line), times)
    }

    /// What is printed of lines about the task itself.
    pub(super) fn notices(&mut self, lines: &[u8]) -> Bytes {
        self.lay_out(lines.split_inclusive(|byte| *byte == b'\n'), (0, 0)).bytes
    }

    fn lay_out<'a>(&mut self, lines: impl Iterator<Item = &'a [u8]>, times_ns: (i64, i64)) -> Shown {
        let (mut out, mut ends) = (Vec::new(), Vec::new());
        for line in lines {
            (self.layout)(line, &mut out);
            ends.push(out.len());
        }
        Shown { bytes: out.into(), records: ends.len() as u64, ends, times_ns }
    }
}

impl fmt::Debug for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Show").field("extent", &self.extent).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Format;

    fn chunk(lines: &'static str) -> Chunk {
        let records = u32::try_from(lines.lines().count()).unwrap();
        let lines = Bytes::from_static(lines.as_bytes());
        Chunk { format: Format::Json, lines, records, first_ns: 1, last_ns: 2, seen_from_ns: 1 }
    }

    fn show(extent: Extent) -> Show {
        Show::new(extent, |line, out| {
            out.push(b'>');
            out.extend_from_slice(line);
        })
    }

    #[test]
    fn no_more_is_shown_than_asked_for_and_the_rest_is_counted() {
        let mut first = show(Extent::First(3));
        let (shown, over) = first.take(&chunk("a\nb\n"));
        assert_eq!((&*shown.bytes, shown.records, shown.ends, over), (&b">a\n>b\n"[..], 2, vec![3, 6], 0));
        let (shown, over) = first.take(&chunk("c\nd\n"));
        assert_eq!((&*shown.bytes, shown.records, over), (&b">c\n"[..], 1, 1));
        assert_eq!(first.take(&chunk("e\n")).1, 1);

        let mut last = show(Extent::Last(3));
        assert_eq!(last.take(&chunk("a\nb\n")).1, 0);
        let (shown, over) = last.take(&chunk("c\nd\ne\n"));
        assert_eq!((shown.records, over), (0, 2));
        let shown = last.rest();
        assert_eq!((&*shown.bytes, shown.records), (&b">c\n>d\n>e\n"[..], 3));
        assert_eq!(last.rest().records, 0);

        let over = Arc::new(AtomicBool::new(false));
        let mut all = show(Extent::All).until(Arc::clone(&over));
        assert_eq!(all.take(&chunk("a\n")).0.records, 1);
        over.store(true, Ordering::Relaxed);
        let (shown, passed_over) = all.take(&chunk("b\nc\n"));
        assert_eq!((shown.records, passed_over), (0, 2));
    }
}
