//! Compressors, shared by all tasks: memory is bounded however many tasks there are.
//!
//! A task with an open frame keeps a compressor as long as all of them together stay below the limit; a task beyond
//! it collects lines and takes a shared one for the moment it needs to make a frame of them.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use zstd::stream::raw::{CParameter, Encoder as Context, Operation};

use crate::limits::{COMPRESSORS_BYTES_MAX, COMPRESSORS_SHARED, FRAME_BYTES_MAX};

struct Pool {
    /// Compressors that nobody uses, with their level.
    idle: Vec<(i32, Context<'static>)>,
    kept_bytes: usize,
    shared: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { idle: Vec::new(), kept_bytes: 0, shared: 0 });
static RETURNED: Condvar = Condvar::new();

/// A compressor on loan; it goes back when dropped.
pub(super) struct Lease {
    context: Option<Context<'static>>,
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
        Some(context) => context.reinit()?,
        None => lease.context = Some(context(level)?),
    }
    Ok(lease)
}

fn context(level: i32) -> io::Result<Context<'static>> {
    let mut context = Context::new(level)?;
    context.set_parameter(CParameter::ChecksumFlag(true))?;
    // A frame holds hardly more than this, so a larger window would only cost memory.
    context.set_parameter(CParameter::WindowLog(FRAME_BYTES_MAX.ilog2()))?;
    Ok(context)
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
    pub(super) fn context(&mut self) -> io::Result<&mut Context<'static>> {
        self.context.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
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
