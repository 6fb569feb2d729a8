//! The only place that asks for the time of day.
//!
//! Kernel time stamps are CLOCK_MONOTONIC; [`Clock`] turns them into wall time with an offset measured anew for each
//! batch, so that a step of the wall clock reaches records within one batch.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

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

/// A moment as in records: RFC 3339 in UTC.
#[must_use]
pub fn rfc3339(ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(ns.into()).unwrap_or_default().to_string()
}

/// Wakes at a moment of wall time, and when the wall clock is set.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// One that is not set.
    ///
    /// # Errors
    /// The system has no more of them.
    pub fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?))
    }

    /// Sets it to a moment, nanoseconds since the Unix epoch. Without one it wakes only when the clock is set.
    ///
    /// # Errors
    /// The system refuses the moment.
    pub fn set(&self, at_ns: Option<i64>) -> io::Result<()> {
        // A day far away instead of none: a disarmed timer does not hear of a step.
        let at_ns = at_ns.unwrap_or(i64::MAX).max(1);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let at = Timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&self.0, flags, &Itimerspec { it_interval: zero, it_value: at })?;
        Ok(())
    }

    /// Takes the wake-up in, so that it can be waited for again.
    pub fn take(&self) {
        // Fails when the clock was set (ECANCELED) or nothing has come: both are what the caller looks at the time for.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn an_alarm_wakes_at_its_moment_and_not_before() {
        let alarm = Alarm::new().unwrap();
        let woken = |ms: i64| {
            let timeout = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
            poll(&mut [PollFd::new(&alarm, PollFlags::IN)], Some(&timeout)).unwrap() > 0
        };
        alarm.set(None).unwrap();
        assert!(!woken(1));
        let at_ns = wall_ns() + 50_000_000;
        alarm.set(Some(at_ns)).unwrap();
        assert!(woken(900));
        assert!(wall_ns() >= at_ns);
        alarm.take();
        assert!(!woken(1));
        alarm.set(Some(0)).unwrap();
        assert!(woken(900));
    }

    /// 1,773,480,414 is 2026-03-14T09:26:54Z by `date -u -d ... +%s`.
    #[test]
    fn moments_are_rfc_3339() {
        assert_eq!(rfc3339(1_773_480_414_000_000_000), "2026-03-14T09:26:54Z");
        assert_eq!(rfc3339(1_773_480_414_120_000_000), "2026-03-14T09:26:54.12Z");
    }

    #[test]
    fn only_a_step_moves_the_offset() {
        let first = Clock::measure();
        let moved = Clock { offset_ns: first.offset_ns - 50_000 };
        assert_eq!(moved.again(), moved, "the measurement's own difference");
        let stepped = Clock { offset_ns: first.offset_ns - 3_600_000_000_000 };
        assert!(stepped.again().step_ns(first).abs() < 1_000_000, "an hour's step");
    }
}
