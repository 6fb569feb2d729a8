use std::io;

use zstd::stream::raw::{CParameter, Encoder as Context, InBuffer, Operation, OutBuffer};

use super::Compression;
use crate::limits::FRAME_BYTES_MAX;

/// Room made for zstd's output at a time: a block (128 KiB) and its header always fit.
const OUTPUT_STEP_BYTES: usize = (128 << 10) + 64;

/// Turns lines into the bytes of the live file. Bytes collect in `out` until they are written.
pub(super) struct Encoder {
    frames: Option<Context<'static>>,
    /// Record bytes in the frame that is open; 0 when none is.
    pub(super) frame_bytes: usize,
    /// What is to be written next.
    pub(super) out: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(compression: Compression) -> io::Result<Self> {
        let frames = match compression {
            Compression::Zstd { level } => {
                let mut context = Context::new(level)?;
                context.set_parameter(CParameter::ChecksumFlag(true))?;
                // A frame holds hardly more than this, so a larger window would only cost memory.
                context.set_parameter(CParameter::WindowLog(FRAME_BYTES_MAX.ilog2()))?;
                Some(context)
            }
            Compression::Gzip | Compression::None => None,
        };
        Ok(Self { frames, frame_bytes: 0, out: Vec::new() })
    }

    /// Whether lines wait inside the compressor rather than in `out`.
    pub(super) const fn buffers(&self) -> bool {
        self.frames.is_some()
    }

    /// Takes lines. With zstd most of them stay inside until [`Self::flush`] or [`Self::end`].
    pub(super) fn add(&mut self, lines: &[u8]) -> io::Result<()> {
        let Some(frames) = &mut self.frames else {
            self.out.extend_from_slice(lines);
            return Ok(());
        };
        self.frame_bytes += lines.len();
        let mut input = InBuffer::around(lines);
        while input.pos < lines.len() {
            step(&mut self.out, |output| frames.run(&mut input, output))?;
        }
        Ok(())
    }

    /// Moves everything taken into `out`, so that it can be read once written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(frames) = &mut self.frames else { return Ok(()) };
        if self.frame_bytes > 0 {
            while step(&mut self.out, |output| frames.flush(output))? > 0 {}
        }
        Ok(())
    }

    /// Ends the frame, with its checksum.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let Some(frames) = &mut self.frames else { return Ok(()) };
        if self.frame_bytes > 0 {
            while step(&mut self.out, |output| frames.finish(output, true))? > 0 {}
            frames.reinit()?;
            self.frame_bytes = 0;
        }
        Ok(())
    }

    /// Forgets everything taken and not yet written.
    pub(super) fn reset(&mut self) -> io::Result<()> {
        self.out.clear();
        self.frame_bytes = 0;
        self.frames.as_mut().map_or(Ok(()), Operation::reinit)
    }
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
