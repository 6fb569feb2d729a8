use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

const BUFFER_BYTES: usize = 128 << 10;
/// The first bytes tell whether any more are wanted.
const FIRST_BYTES: usize = 4 << 10;

/// Where bytes come from.
enum From {
    File(File),
    /// A pipe, which gives its bytes only once.
    Pipe(Box<dyn Read>),
}

/// A file or pipe that knows where it is, and can be read on when it has grown.
pub(super) struct Input {
    from: From,
    buffer: Vec<u8>,
    taken: usize,
    /// Where the next byte stands.
    offset: u64,
    /// Bytes that were read, skipped ones not counted.
    pub(super) read_bytes: u64,
}

impl Input {
    /// A file, or whatever a path or descriptor leads to: what is no regular file is a pipe.
    pub(super) fn file(file: File) -> Self {
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return Self::pipe(file);
        }
        Self { from: From::File(file), buffer: Vec::new(), taken: 0, offset: 0, read_bytes: 0 }
    }

    pub(super) fn pipe(pipe: impl Read + 'static) -> Self {
        Self { from: From::Pipe(Box::new(pipe)), buffer: Vec::new(), taken: 0, offset: 0, read_bytes: 0 }
    }

    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// What is there without reading.
    pub(super) fn ready(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Reads until at least `len` bytes are ready or nothing more comes.
    pub(super) fn ready_for(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.ready().len() < len && self.fill()? > 0 {}
        Ok(self.ready())
    }

    /// Reads more. 0 means that there is nothing at the moment.
    pub(super) fn fill(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let before = self.buffer.len();
        let step = if self.offset == 0 && before == 0 { FIRST_BYTES } else { BUFFER_BYTES };
        self.buffer.resize(before + step, 0);
        let into = self.buffer.get_mut(before..).unwrap_or_default();
        let result = loop {
            let result = match &mut self.from {
                From::File(file) => file.read(into),
                From::Pipe(pipe) => pipe.read(into),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(before + result.as_ref().map_or(0, |n| *n));
        let n = result?;
        self.read_bytes += n as u64;
        Ok(n)
    }

    pub(super) fn take(&mut self, len: usize) {
        let len = len.min(self.ready().len());
        self.taken += len;
        self.offset += len as u64;
    }

    /// Goes forward to a place; false when there are fewer bytes.
    pub(super) fn skip_to(&mut self, offset: u64) -> io::Result<bool> {
        loop {
            let left = offset.saturating_sub(self.offset);
            let ready = self.ready().len() as u64;
            if left <= ready {
                self.take(usize::try_from(left).unwrap_or(usize::MAX));
                return Ok(true);
            }
            if let From::File(file) = &mut self.from {
                if file.metadata()?.len() < offset {
                    return Ok(false);
                }
                self.seek(offset)?;
                return Ok(true);
            }
            self.take(usize::MAX);
            if self.fill()? == 0 {
                return Ok(false);
            }
        }
    }

    /// Goes back to a place, where the input can.
    pub(super) fn back_to(&mut self, offset: u64) -> io::Result<()> {
        if matches!(self.from, From::File(_)) { self.seek(offset) } else { Ok(()) }
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        if let From::File(file) = &mut self.from {
            file.seek(SeekFrom::Start(offset))?;
            self.buffer.clear();
            self.taken = 0;
            self.offset = offset;
        }
        Ok(())
    }

    /// Up to `len` bytes of a file from a place on, without moving; none of a pipe.
    pub(super) fn at(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let From::File(file) = &self.from else { return Ok(Vec::new()) };
        let mut bytes = vec![0; len];
        let read = file.read_at(&mut bytes, offset)?;
        bytes.truncate(read);
        self.read_bytes += read as u64;
        Ok(bytes)
    }

    /// The file's last bytes, without moving; `None` for a pipe or a shorter file.
    pub(super) fn last(&mut self, len: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
        let From::File(file) = &mut self.from else { return Ok(None) };
        let size = file.metadata()?.len();
        let Some(start) = size.checked_sub(len) else { return Ok(None) };
        let at = file.stream_position()?;
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        (&*file).take(len).read_to_end(&mut bytes)?;
        file.seek(SeekFrom::Start(at))?;
        self.read_bytes += bytes.len() as u64;
        Ok(Some((start, bytes)))
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(into)?;
        self.take(n);
        Ok(n)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.ready_for(1)
    }

    fn consume(&mut self, n: usize) {
        self.take(n);
    }
}
