use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use super::content::Content;

/// Bytes of a line that are taken at most: Hubble's own readers stop at 64 KiB, so a longer one is no record.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What a file gives next.
pub(super) enum Step {
    /// A whole line stands in the buffer, newline included.
    Line,
    /// Nothing more.
    End,
    /// The rest cannot be read: where, and what is wrong.
    Damage(u64, String),
}

/// A file's lines.
pub(super) struct Lines {
    content: BufReader<Content>,
    /// Still being written: that its end is missing is no damage.
    live: bool,
}

impl Lines {
    pub(super) fn new(file: File, live: bool) -> io::Result<Self> {
        Ok(Self { content: BufReader::with_capacity(64 << 10, Content::new(file)?), live })
    }

    /// Puts the next line into the buffer.
    pub(super) fn next(&mut self, line: &mut Vec<u8>) -> Step {
        line.clear();
        let result = (&mut self.content).take(LINE_BYTES_MAX).read_until(b'\n', line);
        match result {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.live => Step::End,
            Err(error) => self.damage(&error.to_string()),
            Ok(0) => Step::End,
            Ok(_) if line.ends_with(b"\n") => {
                if line.starts_with(b"{") && line.ends_with(b"}\n") {
                    Step::Line
                } else {
                    self.damage("this line is no record")
                }
            }
            Ok(n) if n as u64 >= LINE_BYTES_MAX => self.damage("a line without an end is no record"),
            Ok(_) if self.live => Step::End,
            Ok(_) => self.damage("the file ends within a record"),
        }
    }

    fn damage(&self, what: &str) -> Step {
        Step::Damage(self.content.get_ref().offset(), what.into())
    }
}
