//! The threads on which tasks write: few for many tasks, and one more wherever one of them hangs.
//!
//! A task takes its turn on any thread, never on two at once. When turns wait and fewer threads than usual are moving,
//! because a disk keeps the others, another thread is started; so what hangs holds up nobody else. Threads that have
//! nothing to do for a while end. A file system that hangs gets only so many of them, and then holds up its own tasks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, available_parallelism};
use std::time::{Duration, Instant};

use crate::limits::{WRITER_STUCK_MS, WRITER_THREADS_DEVICE_MAX, WRITER_THREADS_MAX};

/// What has turns.
pub(super) trait Work: Send {
    /// Does what is to be done, for about a millisecond unless something hangs. Must not panic.
    fn turn(&mut self) -> Next;
}

/// What comes after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// There is more to do.
    Again,
    /// Nothing until it is woken, or until that moment.
    Sleep(Option<Instant>),
    /// Nothing any more.
    Done,
}

/// Somebody who has turns; [`Post::wake`] asks for one.
pub(super) struct Post {
    work: Mutex<Box<dyn Work>>,
    state: AtomicU8,
    /// Which file system it writes to.
    device: u64,
    number: u64,
    crew: Arc<Crew>,
}

/// States of a post.
const IDLE: u8 = 0;
/// Waits for its turn.
const WAITING: u8 = 1;
/// Has its turn.
const RUNNING: u8 = 2;
/// The same, and was woken meanwhile.
const WOKEN: u8 = 3;
const DONE: u8 = 4;

/// The threads of all tasks.
pub(super) static WRITERS: LazyLock<Writers> = LazyLock::new(Writers::default);

/// A set of threads; they end when it is dropped.
#[derive(Default)]
pub(super) struct Writers(Arc<Crew>);

#[derive(Default)]
struct Crew {
    roster: Mutex<Roster>,
    /// There is a turn to take.
    ready: Condvar,
    /// Turns wait and nobody is free, or a moment is nearer than those before.
    alarm: Condvar,
}

#[derive(Default)]
struct Roster {
    ready: VecDeque<Arc<Post>>,
    /// Posts that have asked for a turn at a moment, and each one's moment.
    due: BTreeMap<(Instant, u64), Arc<Post>>,
    due_at: HashMap<u64, Instant>,
    devices: HashMap<u64, Device>,
    /// When the turn of each busy thread began.
    busy: HashMap<u64, Instant>,
    free: usize,
    /// Of the free ones, those that were called and have not come yet: a call costs more than many a turn.
    called: usize,
    /// The watch looks within moments anyway, and there are as many threads as usual.
    watches: bool,
    threads: usize,
    /// Numbers given to posts and turns.
    number: u64,
    watched: bool,
    closed: bool,
}

/// Turns at one file system.
#[derive(Default)]
struct Device {
    running: usize,
    parked: VecDeque<Arc<Post>>,
}

/// How long a thread without work stays.
const PATIENCE: Duration = Duration::from_secs(10);
const STUCK: Duration = Duration::from_millis(WRITER_STUCK_MS);

impl Writers {
    /// Adds somebody, who sleeps until woken.
    pub(super) fn post(&self, device: u64, work: Box<dyn Work>) -> Arc<Post> {
        let mut roster = self.0.roster();
        roster.number += 1;
        let number = roster.number;
        drop(roster);
        Arc::new(Post {
            work: Mutex::new(work),
            state: AtomicU8::new(IDLE),
            device,
            number,
            crew: Arc::clone(&self.0),
        })
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.0.roster().closed = true;
        self.0.ready.notify_all();
        self.0.alarm.notify_all();
    }
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post")
            .field("number", &self.number)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl Post {
    /// Asks for a turn.
    pub(super) fn wake(self: &Arc<Self>) {
        self.wake_with(&mut Calls::default());
    }

    /// Asks for a turn, when the others are called too.
    pub(super) fn wake_with(self: &Arc<Self>, calls: &mut Calls) {
        let woken = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| match state {
            IDLE => Some(WAITING),
            RUNNING => Some(WOKEN),
            _ => None,
        });
        if woken == Ok(IDLE) {
            calls.0.push(Arc::clone(self));
        }
        if calls.0.len() >= CALLS_MAX {
            calls.make();
        }
    }
}

/// Posts that ask for turns, called when there are enough of them, or when this is dropped: each call for itself would
/// cost a thousand tasks more than what they have to do.
#[derive(Debug, Default)]
pub struct Calls(Vec<Arc<Post>>);

/// So many that those who wait for it are not late.
const CALLS_MAX: usize = 32;

impl Calls {
    /// Calls them now.
    pub(super) fn make(&mut self) {
        let Some(crew) = self.0.first().map(|post| Arc::clone(&post.crew)) else { return };
        let mut roster = crew.roster();
        for post in self.0.drain(..) {
            roster.ready.push_back(post);
            crew.call(&mut roster);
        }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.make();
    }
}

impl Crew {
    fn roster(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that a turn which has just become ready is taken.
    fn call(self: &Arc<Self>, roster: &mut Roster) {
        if !roster.watched {
            roster.watched = true;
            let crew = Arc::clone(self);
            let started = Builder::new()
                .name("flowlog-turns".into())
                .stack_size(STACK_BYTES)
                .spawn(move || crew.watch());
            if let Err(error) = started {
                // The next call tries again.
                roster.watched = false;
                tracing::error!(%error, "no thread for the writers could be started");
            }
        }
        self.rouse(roster);
    }

    /// Calls somebody for a turn that waits, unless whoever was called already will take it.
    fn rouse(&self, roster: &mut Roster) {
        if roster.free > roster.called {
            roster.called += 1;
            self.ready.notify_one();
        } else if roster.free == 0 && !roster.watches {
            self.alarm.notify_one();
        }
    }

    /// Wakes posts at their moments, and starts threads where turns wait that nobody takes.
    fn watch(self: Arc<Self>) {
        let usual = usual();
        let mut roster = self.roster();
        while !roster.closed {
            let now = Instant::now();
            while let Some(entry) = roster.due.first_entry().filter(|entry| entry.key().0 <= now) {
                let post = entry.remove();
                roster.due_at.remove(&post.number);
                if post.state.compare_exchange(IDLE, WAITING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                    roster.ready.push_back(post);
                    self.rouse(&mut roster);
                }
            }
            let moving = roster.busy.values().filter(|began| now.duration_since(**began) < STUCK).count();
            let waits = roster.ready.len() > roster.free;
            if waits && roster.free + moving < usual && roster.threads < WRITER_THREADS_MAX {
                self.hire(&mut roster);
            }
            let next = roster.due.first_key_value().map(|((at, _), _)| at.saturating_duration_since(now));
            let soon = (!roster.ready.is_empty()).then_some(STUCK / 4);
            roster.watches = soon.is_some() && roster.free + moving >= usual;
            roster = match next.into_iter().chain(soon).min() {
                Some(pause) => {
                    self.alarm.wait_timeout(roster, pause).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.alarm.wait(roster).unwrap_or_else(PoisonError::into_inner),
            };
            roster.watches = false;
        }
    }

    fn hire(self: &Arc<Self>, roster: &mut Roster) {
        let crew = Arc::clone(self);
        // Counted as free from now on, so that it is not hired twice.
        let started =
            Builder::new().name("flowlog-write".into()).stack_size(STACK_BYTES).spawn(move || crew.serve());
        match started {
            Ok(_) => {
                roster.threads += 1;
                roster.free += 1;
                roster.called += 1;
            }
            Err(error) => tracing::error!(%error, "no further thread for the writers could be started"),
        }
    }

    /// A thread: takes turns until there have been none for a while.
    fn serve(self: Arc<Self>) {
        let mut roster = self.roster();
        roster.called = roster.called.saturating_sub(1);
        while !roster.closed {
            let Some(post) = roster.next() else {
                let (again, waited) =
                    self.ready.wait_timeout(roster, PATIENCE).unwrap_or_else(PoisonError::into_inner);
                roster = again;
                roster.called = roster.called.saturating_sub(1);
                if waited.timed_out() && roster.ready.is_empty() && roster.free > 1 {
                    break;
                }
                continue;
            };
            roster.free -= 1;
            roster.number += 1;
            let turn = roster.number;
            roster.busy.insert(turn, Instant::now());
            if !roster.ready.is_empty() {
                self.rouse(&mut roster);
            }
            drop(roster);
            post.state.store(RUNNING, Ordering::Release);
            let next = post.work.lock().unwrap_or_else(PoisonError::into_inner).turn();
            roster = self.roster();
            roster.busy.remove(&turn);
            roster.free += 1;
            self.settle(&mut roster, &post, next);
        }
        roster.free -= 1;
        roster.threads -= 1;
    }

    /// After a turn.
    fn settle(&self, roster: &mut Roster, post: &Arc<Post>, next: Next) {
        let device = roster.devices.entry(post.device).or_default();
        device.running -= 1;
        if let Some(parked) = device.parked.pop_front() {
            roster.ready.push_front(parked);
        }
        if let Some(at) = roster.due_at.remove(&post.number) {
            roster.due.remove(&(at, post.number));
        }
        let sleeps =
            |to| post.state.compare_exchange(RUNNING, to, Ordering::AcqRel, Ordering::Acquire).is_ok();
        match next {
            Next::Done => post.state.store(DONE, Ordering::Release),
            Next::Sleep(at) if sleeps(IDLE) => {
                let Some(at) = at else { return };
                let is_next = roster.due.first_key_value().is_none_or(|((first, _), _)| at < *first);
                roster.due.insert((at, post.number), Arc::clone(post));
                roster.due_at.insert(post.number, at);
                if is_next {
                    self.alarm.notify_one();
                }
            }
            // Woken meanwhile, or with more to do: behind all others.
            Next::Sleep(_) | Next::Again => {
                post.state.store(WAITING, Ordering::Release);
                roster.ready.push_back(Arc::clone(post));
            }
        }
    }
}

impl Roster {
    /// The next turn; those of a file system that has too many running wait until one of them ends.
    fn next(&mut self) -> Option<Arc<Post>> {
        while let Some(post) = self.ready.pop_front() {
            let device = self.devices.entry(post.device).or_default();
            if device.running < WRITER_THREADS_DEVICE_MAX {
                device.running += 1;
                return Some(post);
            }
            device.parked.push_back(post);
        }
        None
    }
}

const STACK_BYTES: usize = 512 << 10;

/// Threads that are moving while there is work: compressing keeps processors busy.
fn usual() -> usize {
    available_parallelism().map_or(2, usize::from).clamp(2, 8)
}

#[cfg(test)]
#[path = "writers_tests.rs"]
mod tests;
