//! The records of a batch under one mask, encoded once for all tasks that share it.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// Lines, each encoded when the first task takes it.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
    /// Which record the last line is of.
    last: Option<usize>,
    /// The whole, once a task has taken all of it.
    whole: Option<Bytes>,
}

impl Lines {
    /// Forgets the batch before.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.last = None;
        self.whole = None;
    }

    /// The number of a record's line; records come in their order.
    pub(super) fn line(&mut self, record: usize, encode: impl FnOnce(&mut Vec<u8>)) -> u32 {
        if self.last != Some(record) {
            self.last = Some(record);
            encode(&mut self.text);
            self.ends.push(self.text.len());
        }
        u32::try_from(self.ends.len() - 1).unwrap_or(u32::MAX)
    }

    /// The text of a line that has just been encoded.
    pub(super) fn text(&self, line: u32) -> &[u8] {
        self.text.get(self.range(line)).unwrap_or_default()
    }

    fn range(&self, line: u32) -> Range<usize> {
        let at = line as usize;
        let begin = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        begin..self.ends.get(at).copied().unwrap_or(begin)
    }

    /// The text of some lines, which are in order. Tasks that have taken all of them share it.
    pub(super) fn bytes(&mut self, lines: &[u32]) -> Bytes {
        if lines.len() == self.ends.len() {
            let text = &mut self.text;
            // The next batch will be about as large.
            let whole = self.whole.get_or_insert_with(|| {
                let next = Vec::with_capacity(text.len());
                let mut text = std::mem::replace(text, next);
                // After a much larger batch: what waits in a queue is counted by its length.
                if text.capacity() / 2 > text.len() {
                    text.shrink_to_fit();
                }
                Bytes::from(text)
            });
            return whole.clone();
        }
        let text = self.whole.as_deref().unwrap_or(&self.text);
        let runs = || lines.chunk_by(|a, b| a + 1 == *b);
        let span = |run: &[u32]| match (run.first(), run.last()) {
            (Some(first), Some(last)) => self.range(*first).start..self.range(*last).end,
            _ => 0..0,
        };
        let mut bytes = BytesMut::with_capacity(runs().map(|run| span(run).len()).sum());
        for run in runs() {
            bytes.extend_from_slice(text.get(span(run)).unwrap_or_default());
        }
        bytes.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_encoded_once_and_every_task_gets_its_lines() {
        let mut lines = Lines::default();
        for batch in 0..2 {
            lines.clear();
            let mut encoded = 0;
            for record in [0, 2, 2, 2, 5, 9, 9] {
                lines.line(record, |text| {
                    encoded += 1;
                    text.extend_from_slice(format!("{batch}:{record}\n").as_bytes());
                });
            }
            assert_eq!(encoded, 4);
            let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
            let of = |numbers: &[u32]| -> String {
                numbers.iter().map(|n| format!("{batch}:{}\n", [0, 2, 5, 9][*n as usize])).collect()
            };
            let tasks: [&[u32]; 6] = [&[1], &[0, 1, 2, 3], &[0, 2, 3], &[0, 1, 2, 3], &[3], &[]];
            let bytes = tasks.map(|numbers| lines.bytes(numbers));
            for (numbers, bytes) in tasks.iter().zip(&bytes) {
                assert_eq!(text(bytes), of(numbers), "{numbers:?}");
            }
            assert_eq!(bytes[1].as_ptr(), bytes[3].as_ptr(), "the whole is copied");
        }
    }

    #[test]
    fn what_waits_takes_no_more_memory_than_its_length_says() {
        let mut lines = Lines::default();
        for length in [1 << 20, 100, 1 << 20, 100] {
            lines.clear();
            lines.line(0, |text| text.extend(std::iter::repeat_n(b'x', length)));
            let bytes = lines.bytes(&[0]);
            assert_eq!(bytes.len(), length);
            // Alone it gives its memory back as it is.
            drop(std::mem::take(&mut lines.whole));
            let held = Vec::from(bytes).capacity();
            assert!(held <= 2 * length, "{held} bytes are held for {length}");
        }
    }
}
