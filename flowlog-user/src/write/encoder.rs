use std::io;

use zstd::stream::raw::{InBuffer, Operation, OutBuffer};

use super::Compression;
use super::pool::{self, Lease};
use crate::limits::{FRAME_BYTES_MAX, UNCOMPRESSED_BYTES_MAX};

/// Room made for zstd's output at a time: a block (128 KiB) and its header always fit.
const OUTPUT_STEP_BYTES: usize = (128 << 10) + 64;

/// Turns lines into the bytes of the live file. Bytes collect in `out` until they are written.
pub(super) struct Encoder {
    level: Option<i32>,
    /// The open frame's compressor.
    lease: Option<Lease>,
    /// Lines that wait for a shared compressor, where none could be kept.
    waiting: Vec<u8>,
    /// Record bytes in the frame that is open; 0 when none is.
    pub(super) frame_bytes: usize,
    /// What is to be written next.
    pub(super) out: Vec<u8>,
    /// How much of it is written.
    pub(super) done: usize,
}

impl Encoder {
    pub(super) const fn new(compression: Compression) -> Self {
        let level = match compression {
            Compression::Zstd { level } => Some(level),
            Compression::Gzip { .. } | Compression::None => None,
        };
        Self { level, lease: None, waiting: Vec::new(), frame_bytes: 0, out: Vec::new(), done: 0 }
    }

    /// Whether lines wait inside the compressor rather than in `out`.
    pub(super) const fn buffers(&self) -> bool {
        self.level.is_some()
    }

    /// Whether the frame should end.
    pub(super) const fn is_full(&self) -> bool {
        self.frame_bytes >= FRAME_BYTES_MAX || self.waiting.len() >= UNCOMPRESSED_BYTES_MAX
    }

    /// Takes lines. With zstd most of them stay inside until [`Self::flush`] or [`Self::end`].
    pub(super) fn add(&mut self, lines: &[u8]) -> io::Result<()> {
        let Some(level) = self.level else {
            self.out.extend_from_slice(lines);
            return Ok(());
        };
        if self.frame_bytes == 0 {
            self.lease = pool::keep(level)?;
        }
        self.frame_bytes += lines.len();
        match &mut self.lease {
            Some(lease) => compress(lease, lines, &mut self.out),
            None => {
                self.waiting.extend_from_slice(lines);
                Ok(())
            }
        }
    }

    /// Moves everything taken into `out`, so that it can be read once written. Without a compressor of its own that
    /// ends the frame.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.frame_bytes == 0 {
            return Ok(());
        }
        let Some(lease) = &mut self.lease else { return self.end() };
        let context = lease.context()?;
        while step(&mut self.out, |output| context.flush(output))? > 0 {}
        Ok(())
    }

    /// Ends the frame, with its checksum, and gives the compressor back.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let Some(level) = self.level.filter(|_| self.frame_bytes > 0) else { return Ok(()) };
        let mut lease = match self.lease.take() {
            Some(lease) => lease,
            None => {
                let mut lease = pool::share(level)?;
                compress(&mut lease, &self.waiting, &mut self.out)?;
                lease
            }
        };
        let context = lease.context()?;
        while step(&mut self.out, |output| context.finish(output, true))? > 0 {}
        self.waiting = Vec::new();
        self.frame_bytes = 0;
        Ok(())
    }

    /// Everything in `out` is written. Memory goes back when no frame is open.
    pub(super) fn written(&mut self) {
        self.done = 0;
        if self.frame_bytes == 0 {
            self.out = Vec::new();
        } else {
            self.out.clear();
        }
    }

    /// Forgets everything taken and not yet written.
    pub(super) fn reset(&mut self) {
        self.lease = None;
        self.waiting = Vec::new();
        self.frame_bytes = 0;
        self.out = Vec::new();
        self.done = 0;
    }
}

fn compress(lease: &mut Lease, lines: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let context = lease.context()?;
    let mut input = InBuffer::around(lines);
    while input.pos < lines.len() {
        step(out, |output| context.run(&mut input, output))?;
    }
    Ok(())
}

/// Lets zstd write behind what `out` holds already.
fn step(
    out: &mut Vec<u8>,
    run: impl FnOnce(&mut OutBuffer<'_, Vec<u8>>) -> io::Result<usize>,
) -> io::Result<usize> {
    out.reserve(OUTPUT_STEP_BYTES);
    let filled = out.len();
    run(&mut OutBuffer::around_pos(out, filled))
}
