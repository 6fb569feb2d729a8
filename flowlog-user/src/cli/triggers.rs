//! What makes the control plane look at its tasks.

use std::future::pending;
use std::os::fd::AsRawFd;
use std::time::Duration;

use flowlog_user::clock::Alarm;
use flowlog_user::config::{Config, Watch};
use flowlog_user::limits::{CONFIG_GONE_MS, CONFIG_POLL_MS, CONFIG_SETTLE_MS_MAX};
use flowlog_user::server::audit::Cause;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

/// Signals, notifications, timers.
pub(crate) struct Triggers {
    watch: Option<AsyncFd<Watch>>,
    alarm: AsyncFd<Alarm>,
    hangup: Signal,
    poll: Interval,
    /// When the files are read next, and when they are in any case.
    settle: Option<(Instant, Instant)>,
    unwatched: bool,
}

impl Triggers {
    /// Watches nothing yet but signals and time.
    ///
    /// # Errors
    /// The system gives no timer or signal.
    pub(crate) fn new() -> std::io::Result<Self> {
        let watch = Watch::new().and_then(register);
        if let Err(error) = &watch {
            let seconds = CONFIG_POLL_MS / 1_000;
            tracing::warn!(%error, seconds, "folders cannot be watched; changes are found by looking now and then");
        }
        let mut poll = interval(Duration::from_millis(CONFIG_POLL_MS));
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        poll.reset();
        Ok(Self {
            watch: watch.ok(),
            alarm: register(Alarm::new()?)?,
            hangup: signal(SignalKind::hangup())?,
            poll,
            settle: None,
            unwatched: false,
        })
    }

    /// Prepares for a look at the files: what changes from now on will be told.
    pub(crate) fn before(&mut self, config: &Config) {
        self.settle = None;
        let Some(watch) = &mut self.watch else { return };
        let watch = watch.get_mut();
        watch.settled();
        let failed = watch.set(&config.folders());
        if let (Some((folder, error)), false) = (failed.first(), self.unwatched) {
            tracing::warn!(folder = %folder.display(), %error, "cannot be watched; its changes are found by looking now and then");
        }
        self.unwatched = !failed.is_empty();
    }

    /// After a look: when the next one is due.
    pub(crate) fn after(&mut self, again: bool, next_phase_ns: Option<i64>) {
        if again {
            self.settle_in(Duration::from_millis(CONFIG_GONE_MS));
        }
        if let Err(error) = self.alarm.get_ref().set(next_phase_ns) {
            tracing::warn!(%error, "no timer for the next start or end; it comes with the next look");
        }
    }

    fn settle_in(&mut self, pause: Duration) {
        let now = Instant::now();
        let latest =
            self.settle.map_or(now + Duration::from_millis(CONFIG_SETTLE_MS_MAX), |(_, latest)| latest);
        self.settle = Some(((now + pause).min(latest), latest));
    }

    /// Waits for the next reason to look.
    pub(crate) async fn next(&mut self, config: &Config) -> Cause {
        loop {
            let at = self.settle.map(|(at, _)| at);
            tokio::select! {
                _ = self.hangup.recv() => return Cause::Signal,
                _ = self.poll.tick() => return Cause::Poll,
                ready = self.alarm.readable() => {
                    self.alarm.get_ref().take();
                    if let Ok(mut ready) = ready {
                        ready.clear_ready();
                    }
                    return Cause::Clock;
                }
                pause = notified(&mut self.watch, config) => {
                    if let Some(pause) = pause {
                        self.settle_in(pause);
                    }
                }
                () = reached(at) => return Cause::Watch,
            }
        }
    }
}

async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

async fn notified(watch: &mut Option<AsyncFd<Watch>>, config: &Config) -> Option<Duration> {
    let Some(watch) = watch else { return pending().await };
    let Ok(mut ready) = watch.readable_mut().await else { return pending().await };
    // Cleared first: what comes while the queue is read makes it ready again.
    ready.clear_ready();
    ready.get_inner_mut().take(|folder, name| config.concerns(folder, name))
}

#[expect(
    deprecated,
    reason = "its successor is unsafe; both types own their descriptor and never give another one"
)]
fn register<T: AsRawFd>(watched: T) -> std::io::Result<AsyncFd<T>> {
    AsyncFd::new(watched)
}
