//! Compressors, shared by all tasks: memory is bounded however many tasks there are.
//!
//! A task with an open frame keeps a compressor as long as all of them together stay below the limit; a task beyond
//! it collects lines and takes a shared one for the moment it needs to make a frame of them.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{
    CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, compress_bound, get_error_name,
};

use crate::limits::{COMPRESSORS_BYTES_MAX, COMPRESSORS_SHARED, FRAME_BYTES_MAX};

struct Pool {
    /// Compressors that nobody uses, with their level.
    idle: Vec<(i32, CCtx<'static>)>,
    kept_bytes: usize,
    shared: usize,
    /// Those that nobody uses.
    scratches: Vec<Scratch>,
}

static POOL: Mutex<Pool> =
    Mutex::new(Pool { idle: Vec::new(), kept_bytes: 0, shared: 0, scratches: Vec::new() });
static RETURNED: Condvar = Condvar::new();

/// Room made for zstd's output at a time: a block (128 KiB) and its header always fit.
const OUTPUT_STEP_BYTES: usize = (128 << 10) + 64;

/// Room for what goes into a compressor and what comes out of it. To make it for each frame anew would be as much work as
/// a part of the compressing.
#[derive(Default)]
struct Scratch {
    text: Vec<u8>,
    compressed: Vec<u8>,
}

/// What one of the two keeps at most: more than a frame is as a rule.
const SCRATCH_BYTES_MAX: usize = FRAME_BYTES_MAX + (FRAME_BYTES_MAX >> 2);

/// Bytes of the two that are kept.
pub const SCRATCH_BYTES: usize = 2 * SCRATCH_BYTES_MAX;

impl Scratch {
    fn take() -> Self {
        lock().scratches.pop().unwrap_or_default()
    }

    fn give_back(mut self) {
        self.text.shrink_to(SCRATCH_BYTES_MAX);
        self.compressed.shrink_to(SCRATCH_BYTES_MAX);
        let mut pool = lock();
        if pool.scratches.len() < COMPRESSORS_SHARED {
            pool.scratches.push(self);
        }
    }
}

/// A compressor on loan; it goes back when dropped.
pub(super) struct Lease {
    context: Option<CCtx<'static>>,
    level: i32,
    kept: bool,
}

/// A compressor for as long as a frame is open; `None` when the limit is reached.
pub(super) fn keep(level: i32) -> io::Result<Option<Lease>> {
    let mut pool = lock();
    let bytes = cost(level);
    if pool.kept_bytes + bytes > COMPRESSORS_BYTES_MAX {
        return Ok(None);
    }
    pool.kept_bytes += bytes;
    lend(pool, level, true).map(Some)
}

/// A compressor for a moment; waits until one is free. To be given back before anything that may take long.
pub(super) fn share(level: i32) -> io::Result<Lease> {
    let mut pool = lock();
    while pool.shared >= COMPRESSORS_SHARED {
        pool = RETURNED.wait(pool).unwrap_or_else(PoisonError::into_inner);
    }
    pool.shared += 1;
    lend(pool, level, false)
}

fn lend(mut pool: MutexGuard<'_, Pool>, level: i32, kept: bool) -> io::Result<Lease> {
    let at = pool.idle.iter().position(|(idle, _)| *idle == level);
    let found = at.map(|at| pool.idle.swap_remove(at).1);
    drop(pool);
    // From here on dropping the lease puts the books right, also after an error.
    let mut lease = Lease { context: found, level, kept };
    match &mut lease.context {
        Some(context) => drop(context.reset(ResetDirective::SessionOnly).map_err(failed)?),
        None => lease.context = Some(context(level)?),
    }
    Ok(lease)
}

fn context(level: i32) -> io::Result<CCtx<'static>> {
    let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::ChecksumFlag(true),
        // Whether a frame is made in one piece or several, its head is the same, and what mends one knows it.
        CParameter::ContentSizeFlag(false),
        // A frame holds hardly more than this, so a larger window would only cost memory.
        CParameter::WindowLog(FRAME_BYTES_MAX.ilog2()),
    ] {
        context.set_parameter(parameter).map_err(failed)?;
    }
    Ok(context)
}

fn failed(code: usize) -> io::Error {
    io::Error::other(get_error_name(code))
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes a compressor takes, rounded up; `ZSTD_sizeof_CCtx` with a window of 1 MiB.
#[must_use]
pub const fn cost(level: i32) -> usize {
    match level {
        ..=2 => 3 << 20,
        3..=5 => 6 << 20,
        6..=8 => 14 << 20,
        9..=14 => 64 << 20,
        _ => 96 << 20,
    }
}

impl Lease {
    /// Compresses lines behind what `out` holds already, up to `until`.
    pub(super) fn compress(
        &mut self,
        lines: &[u8],
        out: &mut Vec<u8>,
        until: ZSTD_EndDirective,
    ) -> io::Result<()> {
        let mut scratch = Scratch::take();
        let done = self.compress_by(&mut scratch.compressed, lines, out, until);
        scratch.give_back();
        done
    }

    /// Compresses all lines of a frame in one piece, behind what `out` holds already.
    pub(super) fn compress_whole(&mut self, pieces: &[Bytes], out: &mut Vec<u8>) -> io::Result<()> {
        let mut scratch = Scratch::take();
        let Scratch { text, compressed } = &mut scratch;
        let whole: &[u8] = match pieces {
            [whole] => whole,
            pieces => {
                text.clear();
                text.reserve(pieces.iter().map(Bytes::len).sum());
                pieces.iter().for_each(|piece| text.extend_from_slice(piece));
                text
            }
        };
        let done = self.compress_by(compressed, whole, out, ZSTD_EndDirective::ZSTD_e_end);
        scratch.give_back();
        done
    }

    fn compress_by(
        &mut self,
        compressed: &mut Vec<u8>,
        lines: &[u8],
        out: &mut Vec<u8>,
        until: ZSTD_EndDirective,
    ) -> io::Result<()> {
        let context = self.context.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let is_continued = until == ZSTD_EndDirective::ZSTD_e_continue;
        let room = if until == ZSTD_EndDirective::ZSTD_e_end { compress_bound(lines.len()) } else { 0 };
        compressed.clear();
        compressed.reserve(room.max(OUTPUT_STEP_BYTES));
        let mut input = InBuffer::around(lines);
        loop {
            let mut output = OutBuffer::around(compressed);
            let left = context.compress_stream2(&mut output, &mut input, until).map_err(failed)?;
            out.extend_from_slice(output.as_slice());
            let is_done = if is_continued { input.pos() == lines.len() } else { left == 0 };
            if is_done {
                return Ok(());
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut pool = lock();
        if self.kept {
            pool.kept_bytes = pool.kept_bytes.saturating_sub(cost(self.level));
        } else {
            pool.shared = pool.shared.saturating_sub(1);
        }
        if pool.idle.len() < COMPRESSORS_SHARED
            && let Some(context) = self.context.take()
        {
            pool.idle.push((self.level, context));
        }
        drop(pool);
        RETURNED.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_compressor_takes_more_than_is_reckoned() {
        for level in 1..=19 {
            let mut context = zstd::zstd_safe::CCtx::create();
            let set = |context: &mut zstd::zstd_safe::CCtx<'_>, parameter| {
                context.set_parameter(parameter).unwrap()
            };
            set(&mut context, CParameter::CompressionLevel(level));
            set(&mut context, CParameter::WindowLog(FRAME_BYTES_MAX.ilog2()));
            let text = vec![b'x'; 4 << 20];
            let mut out = Vec::with_capacity(1 << 20);
            let mut input = zstd::zstd_safe::InBuffer::around(&text);
            let mut output = zstd::zstd_safe::OutBuffer::around(&mut out);
            context.compress_stream(&mut output, &mut input).unwrap();
            let bytes = context.sizeof();
            assert!(bytes <= cost(level), "level {level}: {bytes} bytes");
            assert!(bytes * 8 > cost(level), "level {level}: only {bytes} bytes");
        }
    }
}
