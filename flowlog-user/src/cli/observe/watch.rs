//! Attaches, shows, and stops.

use std::collections::BTreeSet;
use std::io::{Write, stderr, stdout};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flowlog_user::capture::live::{HookKind, InterfaceState, Options};
use flowlog_user::enrich::Enricher;
use flowlog_user::metrics::{Tally, TaskCounters};
use flowlog_user::pipeline::Pipeline;
use flowlog_user::record::Role;
use flowlog_user::task::{Overflow, Planned, Running, rules};
use flowlog_user::write::{Roots, STDOUT, Sink, Spec};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{ObserveArgs, summary};
use crate::cli::live_line::{QUIET, nothing_passes};
use crate::cli::session::{Ends, Session};
use crate::cli::{Names, full_name, tasks};

/// Between two looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// What is known of the flows, by everybody.
pub(super) struct Known {
    pub(super) counters: Arc<TaskCounters>,
    pub(super) tally: Arc<Mutex<Tally>>,
    /// Set when the end was asked for.
    over: Arc<AtomicBool>,
}

/// Shows flows until something says stop.
pub(super) async fn watch(arguments: &ObserveArgs, task: Planned) -> anyhow::Result<ExitCode> {
    let mut ends = Ends::new()?;
    let known = Known { counters: Arc::default(), tally: Arc::default(), over: Arc::default() };
    let session = start(arguments, task, &known)?;
    announce(&session.interfaces);
    ends.after(arguments.time);
    let mut hints = Hints::new(arguments);
    while !ends.come_within(LOOK).await && !session.has_failed() && !known.is_enough(arguments.first) {
        hints.look(&session, &known);
    }
    known.over.store(true, Ordering::Relaxed);
    let took = session.began.elapsed();
    let done = session.stop("the summary").await?;
    summary::print(&known, done, took)
}

fn start(arguments: &ObserveArgs, task: Planned, known: &Known) -> anyhow::Result<Session> {
    let names = names();
    let node = full_name(&names)?;
    let options = Options {
        interfaces: arguments.filters.interfaces.clone(),
        exclude: arguments.filters.exclude.clone(),
        ..arguments.attach.options(&arguments.capture, rules([&task.spec]))
    };
    let cadences = tasks::cadences(&[Some(task.spec.cadence)], arguments.capture.timeouts().active_ns);
    Session::start(options, names, cadences, &Arc::default(), || {
        let spec = Spec { path: STDOUT.into(), ..task.spec.file.clone() };
        let sink = Sink::shown(&spec, &node, arguments.show(&known.over))?;
        let roots = Arc::new(Roots::new(&[])?.with_node(&node));
        let running = Running::onto(sink, &spec, &roots, Arc::clone(&known.counters));
        let enricher = Enricher::new(arguments.capture.cluster_cidr.clone());
        let pipeline = Pipeline::of(vec![(task, running)], &roots, enricher, Overflow::Drop);
        Ok(pipeline.tallied(Arc::clone(&known.tally)))
    })
}

/// As a daemon in the same container is named; the flag of that name is a filter here.
fn names() -> Names {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    (name("FLOWLOG_NODE_NAME"), name("FLOWLOG_CLUSTER_NAME"))
}

impl Known {
    /// Whether everything was shown that was asked for, or nobody looks any more.
    fn is_enough(&self, first: Option<u64>) -> bool {
        let TaskCounters { written, dropped_write_error, dropped_queue_full, .. } = &*self.counters;
        let settled = written.get() + dropped_write_error.get() + dropped_queue_full.get();
        first.is_some_and(|first| settled >= first) || stdout_is_gone()
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
    /// Interfaces of which it was said that packets may pass unseen.
    blind: BTreeSet<String>,
    hinted: bool,
    filtered: bool,
}

impl Hints {
    fn new(arguments: &ObserveArgs) -> Self {
        let filtered = arguments.filters.filters.filter().is_some();
        Self { watched: None, blind: BTreeSet::new(), hinted: false, filtered }
    }

    fn look(&mut self, session: &Session, known: &Known) {
        let Some(view) = session.control.board.view() else { return };
        let names = view.interfaces.iter().filter(|state| state.hook.is_some());
        let now: BTreeSet<String> = names.map(|state| state.name.clone()).collect();
        if let Some(before) = self.watched.replace(now.clone()) {
            now.difference(&before).for_each(|name| say(&format!("now watching {name} too")));
            before.difference(&now).for_each(|name| say(&format!("no longer watching {name}")));
        }
        for state in &view.interfaces {
            if let Some(why) = &state.blind
                && self.blind.insert(state.name.clone())
            {
                say(&format!("{}: {why}", state.name));
            }
        }
        if self.hinted || session.began.elapsed() < QUIET || known.counters.matched.get() > 0 {
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
