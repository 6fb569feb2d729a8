//! What systemd is told, where it has started the daemon (`Type=notify-reload`); nothing elsewhere.

use flowlog_user::server::audit::Cause;
use sd_notify::{NotifyState, notify};

/// Everything is attached and the tasks are in force.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The files are read again because a signal asked for it: systemd waits for the next [`ready`].
pub(crate) fn reloading(cause: Cause) {
    if cause != Cause::Signal {
        return;
    }
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// The orderly stop has begun.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    // Without NOTIFY_SOCKET this does nothing.
    if let Err(error) = notify(states) {
        tracing::debug!(%error, "systemd could not be told");
    }
}
