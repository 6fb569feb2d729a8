use std::io;

use bytes::Bytes;
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;

use super::Compression;
use super::pool::{self, Lease};
use crate::limits::{FRAME_BYTES_MAX, UNCOMPRESSED_BYTES_MAX};

/// Turns lines into the bytes of the live file. Bytes collect in `out` until they are written.
///
/// Lines of a frame wait as they came until a flush asks for them. A frame that is full before that is compressed in one
/// piece, which is faster: nothing is copied into zstd's window, and no block refers across its end.
pub(super) struct Encoder {
    level: Option<i32>,
    /// The open frame's compressor.
    lease: Option<Lease>,
    /// Lines of the open frame that no compressor was given yet.
    waiting: Vec<Bytes>,
    waiting_bytes: usize,
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
        Self {
            level,
            lease: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            frame_bytes: 0,
            out: Vec::new(),
            done: 0,
        }
    }

    /// Whether lines wait inside the compressor rather than in `out`.
    pub(super) const fn buffers(&self) -> bool {
        self.level.is_some()
    }

    /// Whether the frame should end.
    pub(super) const fn is_full(&self) -> bool {
        self.frame_bytes >= FRAME_BYTES_MAX
            || self.lease.is_none() && self.waiting_bytes >= UNCOMPRESSED_BYTES_MAX
    }

    /// Takes lines. With zstd they stay inside until [`Self::flush`] or [`Self::end`].
    pub(super) fn add(&mut self, lines: &Bytes) -> io::Result<()> {
        let Some(level) = self.level else {
            self.out.extend_from_slice(lines);
            return Ok(());
        };
        if self.frame_bytes == 0 {
            self.lease = pool::keep(level)?;
        }
        self.frame_bytes += lines.len();
        self.waiting_bytes += lines.len();
        self.waiting.push(lines.clone());
        Ok(())
    }

    /// Moves everything taken into `out`, so that it can be read once written. Without a compressor of its own that
    /// ends the frame.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.frame_bytes == 0 {
            return Ok(());
        }
        let Some(lease) = &mut self.lease else { return self.end() };
        self.waiting_bytes = 0;
        for lines in self.waiting.drain(..) {
            lease.compress(&lines, &mut self.out, ZSTD_EndDirective::ZSTD_e_continue)?;
        }
        lease.compress(&[], &mut self.out, ZSTD_EndDirective::ZSTD_e_flush)
    }

    /// Ends the frame, with its checksum, and gives the compressor back.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let Some(level) = self.level.filter(|_| self.frame_bytes > 0) else { return Ok(()) };
        let mut lease = match self.lease.take() {
            Some(lease) => lease,
            None => pool::share(level)?,
        };
        lease.compress_whole(&self.waiting, &mut self.out)?;
        self.forget();
        Ok(())
    }

    /// No frame is open.
    fn forget(&mut self) {
        self.lease = None;
        self.waiting = Vec::new();
        (self.waiting_bytes, self.frame_bytes) = (0, 0);
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
        self.forget();
        self.out = Vec::new();
        self.done = 0;
    }
}
