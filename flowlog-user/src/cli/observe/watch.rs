//! Attaches, shows, and stops.

use std::collections::BTreeSet;
use std::io::{Write, stderr, stdout};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::bail;
use flowlog_user::capture::live::{HookKind, InterfaceState, Live, Waker};
use flowlog_user::enrich::Enricher;
use flowlog_user::metrics::{Tally, TaskCounters};
use flowlog_user::pipeline::Pipeline;
use flowlog_user::record::Role;
use flowlog_user::server::board::Board;
use flowlog_user::task::{Overflow, Planned, Running, rules};
use flowlog_user::write::{Lock, Roots, STDOUT, Sink, Spec, namespace_lock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::signal::unix::{SignalKind, signal};

use super::{ObserveArgs, summary};
use crate::cli::data_plane::{Control, DataPlane};
use crate::cli::live_line::{QUIET, nothing_passes};
use crate::cli::privileged::Privileged;
use crate::cli::{Names, confine, full_name, tasks};

/// Between two looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// What is known while it runs, by everybody.
pub(super) struct Session {
    pub(super) began: Instant,
    pub(super) counters: Arc<TaskCounters>,
    pub(super) tally: Arc<Mutex<Tally>>,
    control: Arc<Control>,
    /// Set when the end was asked for.
    over: Arc<AtomicBool>,
}

/// Shows flows until something says stop.
pub(super) async fn watch(arguments: &ObserveArgs, task: Planned) -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Otherwise a terminal that is closed would leave filters on clsact attached.
    let mut hangup = signal(SignalKind::hangup())?;
    confine::keep_what_is_needed()?;
    let mut session = Session {
        began: Instant::now(),
        counters: Arc::default(),
        tally: Arc::default(),
        control: Arc::new(Control::new(Arc::new(Board::default()))),
        over: Arc::default(),
    };
    // As long as it is held, no daemon takes these filters for those of a killed one.
    let _lock = share_lock();
    let (plane, waker) = start(arguments, task, &session)?;
    session.began = Instant::now();
    let end = arguments.time.and_then(|time| Duration::try_from(time).ok()).unwrap_or(Duration::MAX);
    let ended = tokio::time::sleep(end);
    tokio::pin!(ended);
    let mut tick = tokio::time::interval(LOOK);
    let mut hints = Hints::new(arguments);
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => break,
            () = &mut ended => break,
            _ = tick.tick() => {
                if session.is_over(arguments.first) {
                    break;
                }
                hints.look(&session);
            }
        }
    }
    session.over.store(true, Ordering::Relaxed);
    session.control.stop.store(true, Ordering::Relaxed);
    waker.wake();
    let joined = tokio::task::spawn_blocking(move || plane.join());
    tokio::select! {
        done = joined => summary::print(&session, done??),
        urgent = crate::cli::run::asked_again() => {
            urgent?;
            bail!("asked twice to stop, so the summary is missing")
        }
    }
}

/// Attaches with the rights for it, and gives them up.
fn start(arguments: &ObserveArgs, task: Planned, session: &Session) -> anyhow::Result<(DataPlane, Waker)> {
    let names = names();
    let node = full_name(&names)?;
    let options = flowlog_user::capture::live::Options {
        interfaces: arguments.filters.interfaces.clone(),
        exclude: arguments.filters.exclude.clone(),
        ..arguments.attach.options(&arguments.capture, rules([&task.spec]))
    };
    let privileged = Privileged::start()?;
    confine::keep_nothing()?;
    confine::write_only_below([])?;
    let live = privileged.run(move || Live::start(&options)).wait()??;
    privileged.run(|| confine::only_capture(None)).wait()??;

    let spec = Spec { path: STDOUT.into(), ..task.spec.file.clone() };
    let sink = Sink::shown(&spec, &node, arguments.show(&session.over))?;
    let roots = Arc::new(Roots::new(&[])?.with_node(&node));
    let running = Running::onto(sink, &spec, &roots, Arc::clone(&session.counters));
    let active_ns = arguments.capture.timeouts().active_ns;
    let cadences = tasks::cadences(&[Some(task.spec.cadence)], active_ns);
    let enricher = Enricher::new(arguments.capture.cluster_cidr.clone());
    let pipeline = Pipeline::of(vec![(task, running)], &roots, enricher, Overflow::Drop)
        .tallied(Arc::clone(&session.tally));
    announce(&live.interfaces());
    let waker = live.waker();
    // No other tasks ever come.
    let (_, obeyed) = channel();
    let control = Arc::clone(&session.control);
    let plane = DataPlane::start(&privileged, live, pipeline, cadences, names, control, obeyed)?;
    Ok((plane, waker))
}

/// As a daemon in the same container is named; the flag of that name is a filter here.
fn names() -> Names {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    (name("FLOWLOG_NODE_NAME"), name("FLOWLOG_CLUSTER_NAME"))
}

fn share_lock() -> Option<Lock> {
    let lock = namespace_lock().and_then(|(folder, name)| Lock::take_shared(&folder, &name));
    lock.inspect_err(
        |error| tracing::debug!(%error, "a daemon that starts now may take these filters for old"),
    )
    .ok()
    .flatten()
}

impl Session {
    /// Whether everything was shown that was asked for, or nobody looks any more, or nothing more comes.
    fn is_over(&self, first: Option<u64>) -> bool {
        let TaskCounters { written, dropped_write_error, dropped_queue_full, .. } = &*self.counters;
        let settled = written.get() + dropped_write_error.get() + dropped_queue_full.get();
        self.control.failed.load(Ordering::Relaxed)
            || first.is_some_and(|first| settled >= first)
            || stdout_is_gone()
    }
}

/// Whether nobody will ever read stdout again.
fn stdout_is_gone() -> bool {
    let stdout = stdout();
    let mut fds = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds.iter().any(|fd| fd.revents().intersects(gone))
}

/// Says something to the person, not to whoever reads the flows.
pub(super) fn say(text: &str) {
    // Nothing is left to do when even this cannot be written.
    let _ = writeln!(stderr(), "{text}");
}

/// Which interfaces are watched, and which not and why.
fn announce(states: &[InterfaceState]) {
    let watched: Vec<String> = states
        .iter()
        .filter_map(|state| {
            let hook = state.hook.map(HookKind::name)?;
            Some(format!("{} ({}, {hook})", state.name, state.role.map_or("-", Role::name)))
        })
        .collect();
    say(&match watched.is_empty() {
        true => "watching no interface yet; name one with --interface GLOB".to_owned(),
        false => format!("watching {}", watched.join(", ")),
    });
    for state in states.iter().filter(|state| state.hook.is_none()) {
        say(&format!("not watching {}: {}", state.name, state.reason.as_deref().unwrap_or("not chosen")));
    }
    say("Ctrl-C ends it");
}

/// What is said while it runs: interfaces that come and go, and once why there may be nothing to see.
struct Hints {
    watched: Option<BTreeSet<String>>,
    hinted: bool,
    filtered: bool,
}

impl Hints {
    fn new(arguments: &ObserveArgs) -> Self {
        let filtered = arguments.filters.filters.filter().is_some();
        Self { watched: None, hinted: false, filtered }
    }

    fn look(&mut self, session: &Session) {
        let Some(view) = session.control.board.view() else { return };
        let names = view.interfaces.iter().filter(|state| state.hook.is_some());
        let now: BTreeSet<String> = names.map(|state| state.name.clone()).collect();
        if let Some(before) = self.watched.replace(now.clone()) {
            now.difference(&before).for_each(|name| say(&format!("now watching {name} too")));
            before.difference(&now).for_each(|name| say(&format!("no longer watching {name}")));
        }
        if self.hinted || session.began.elapsed() < QUIET || session.counters.matched.get() > 0 {
            return;
        }
        self.hinted = true;
        match (session.control.seen().shown, self.filtered) {
            (0, _) => say(&nothing_passes()),
            (shown, true) => say(&format!(
                "{shown} packets have passed, and the filters take none of them; --print-raw-filters shows what they are"
            )),
            (shown, false) => say(&format!("{shown} packets have passed, and none of them is IP")),
        }
    }
}
