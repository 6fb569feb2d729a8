//! The only place that asks for the time of day.
//!
//! Kernel time stamps are CLOCK_MONOTONIC; [`Clock`] turns them into wall time with an offset measured anew for each
//! batch, so that a step of the wall clock reaches records within one batch.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the Unix epoch.
#[must_use]
pub fn wall_ns() -> i64 {
    ns(ClockId::Realtime)
}

/// Nanoseconds of CLOCK_MONOTONIC, the kernel side's clock.
#[must_use]
pub fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic).unsigned_abs()
}

fn ns(id: ClockId) -> i64 {
    let now = clock_gettime(id);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// Measurements of one offset differ by less than this, nanoseconds.
const JITTER_NS: u64 = 100_000;

/// Offset from CLOCK_MONOTONIC to wall time, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    offset_ns: i64,
}

impl Clock {
    /// Measures: wall time between two readings of the monotonic clock.
    #[must_use]
    pub fn measure() -> Self {
        let before = ns(ClockId::Monotonic);
        let wall = ns(ClockId::Realtime);
        let after = ns(ClockId::Monotonic);
        Self { offset_ns: wall - (before + (after - before) / 2) }
    }

    /// Measures again. Both clocks run at one speed, so the offset moves only when the wall clock is set: a smaller
    /// difference is the measurement's own and would make two records of one moment disagree.
    #[must_use]
    pub fn again(self) -> Self {
        let now = Self::measure();
        if now.step_ns(self).unsigned_abs() < JITTER_NS { self } else { now }
    }

    /// Time stamps are wall time already (a replayed capture).
    #[must_use]
    pub const fn wall() -> Self {
        Self { offset_ns: 0 }
    }

    /// Wall time of a kernel time stamp, nanoseconds since the Unix epoch.
    #[must_use]
    pub fn to_wall_ns(self, kernel_ns: u64) -> i64 {
        i64::try_from(kernel_ns).unwrap_or(i64::MAX).saturating_add(self.offset_ns)
    }

    /// How far the wall clock was stepped since `earlier`, nanoseconds.
    #[must_use]
    pub const fn step_ns(self, earlier: Self) -> i64 {
        self.offset_ns - earlier.offset_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_step_moves_the_offset() {
        let first = Clock::measure();
        let moved = Clock { offset_ns: first.offset_ns - 50_000 };
        assert_eq!(moved.again(), moved, "the measurement's own difference");
        let stepped = Clock { offset_ns: first.offset_ns - 3_600_000_000_000 };
        assert!(stepped.again().step_ns(first).abs() < 1_000_000, "an hour's step");
    }
}
