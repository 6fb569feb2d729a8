//! A capture of a command's own, beside any daemon: it writes no file, gives up what it does not need, and ends in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::bail;
use flowlog_user::capture::live::{InterfaceState, Live, Options, Waker};
use flowlog_user::decode::Cadences;
use flowlog_user::pipeline::Pipeline;
use flowlog_user::record::Pools;
use flowlog_user::server::board::Board;
use flowlog_user::write::{Lock, namespace_lock};
use jiff::SignedDuration;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::data_plane::{Control, DataPlane, Done};
use super::privileged::Privileged;
use super::{Names, confine};

/// What asks for the end.
pub(crate) struct Ends {
    signals: [Signal; 3],
    at: Option<Instant>,
}

impl Ends {
    /// From now on signals mean an orderly stop. Of a terminal that is closed too: otherwise filters on clsact would stay
    /// attached.
    ///
    /// # Errors
    /// They cannot be received.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Self { signals: [interrupt?, terminate?, hangup?], at: None })
    }

    /// The end comes by itself after this time, from now on.
    pub(crate) fn after(&mut self, time: Option<SignedDuration>) {
        let time = time.and_then(|time| Duration::try_from(time).ok());
        self.at = time.and_then(|time| Instant::now().checked_add(time));
    }

    /// How long until the end comes by itself.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Waits for it, `pause` at most: whether it has come.
    pub(crate) async fn come_within(&mut self, pause: Duration) -> bool {
        let left = self.left();
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => true,
            _ = terminate.recv() => true,
            _ = hangup.recv() => true,
            () = tokio::time::sleep(left.map_or(pause, |left| left.min(pause))) => {
                left.is_some_and(|left| left <= pause)
            }
        }
    }
}

/// What runs.
pub(crate) struct Session {
    plane: DataPlane,
    waker: Waker,
    /// Interfaces as of the beginning.
    pub(crate) interfaces: Vec<InterfaceState>,
    /// What the capture tells.
    pub(crate) control: Arc<Control>,
    /// When packets began to count.
    pub(crate) began: Instant,
    /// As long as it is held, no daemon takes these filters for those of a killed one.
    _lock: Option<Lock>,
}

impl Session {
    /// Attaches with the rights for it, and gives them up; `pipeline` is made once nothing can go wrong any more.
    ///
    /// # Errors
    /// When privileges or kernel are missing, or an interface cannot be attached.
    pub(crate) fn start(
        options: Options,
        names: Names,
        cadences: Cadences,
        pools: &Arc<Pools>,
        pipeline: impl FnOnce() -> anyhow::Result<Pipeline>,
    ) -> anyhow::Result<Self> {
        confine::keep_what_is_needed()?;
        let lock = share_lock();
        let privileged = Privileged::start()?;
        confine::keep_nothing()?;
        confine::write_only_below([])?;
        let live = privileged.run(move || Live::start(&options)).wait()??;
        let began = Instant::now();
        privileged.run(|| confine::only_capture(None)).wait()??;
        let control = Arc::new(Control::new(Arc::new(Board::default())));
        control.set_pools(pools);
        let (interfaces, waker) = (live.interfaces(), live.waker());
        // No other tasks ever come.
        let (_, obeyed) = channel();
        let plane =
            DataPlane::start(&privileged, live, pipeline()?, cadences, names, Arc::clone(&control), obeyed)?;
        Ok(Self { plane, waker, interfaces, control, began, _lock: lock })
    }

    /// Whether the capture has ended by itself.
    pub(crate) fn has_failed(&self) -> bool {
        self.control.failed.load(Ordering::Relaxed)
    }

    /// Detaches and drains; `missing` is what there will not be when somebody asks again.
    ///
    /// # Errors
    /// When a thread has died, or somebody asked again.
    pub(crate) async fn stop(self, missing: &str) -> anyhow::Result<Done> {
        self.control.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        let joined = tokio::task::spawn_blocking(move || self.plane.join());
        tokio::select! {
            done = joined => done?,
            urgent = super::run::asked_again() => {
                urgent?;
                bail!("asked twice to stop, so {missing} is missing")
            }
        }
    }
}

fn share_lock() -> Option<Lock> {
    let lock = namespace_lock().and_then(|(folder, name)| Lock::take_shared(&folder, &name));
    lock.inspect_err(
        |error| tracing::debug!(%error, "a daemon that starts now may take these filters for old"),
    )
    .ok()
    .flatten()
}

/// Runs a command's work to its end, on this thread.
///
/// # Errors
/// Those of the work.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    // Not waiting for a thread that a second signal gave up.
    runtime.shutdown_background();
    outcome
}
