//! Builds what is new before anything that runs is touched.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::open;
use crate::decode::Change;
use crate::filter::Classifier;
use crate::limits::CADENCES_MAX;
use crate::metrics::TaskCounters;
use crate::task::{Cadence, Closing, Finished, Planned, Running, Spec};
use crate::write::{Error, Roots};

/// How long a new task waits for one that is just closing the same file.
const CLOSING: Duration = Duration::from_secs(2);
/// Tasks that are gone and whose counters are still told at the end.
const FINISHED_MAX: usize = 4096;

/// A place in the pipeline.
#[derive(Debug)]
pub enum Seat {
    /// This task goes on exactly as it was.
    Keep(String),
    /// It runs and goes on with other filters, fields, events or settings of the same live file.
    Change(Box<Planned>),
    /// It begins, or goes on with another file, which is open.
    Open(Box<Planned>, Running),
    /// The same, but its file is still another task's.
    OpenLater(Box<Planned>, Arc<TaskCounters>),
}

impl Seat {
    /// The task's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Keep(name) => name,
            Self::Change(planned) | Self::Open(planned, _) | Self::OpenLater(planned, _) => {
                &planned.spec.name
            }
        }
    }
}

/// The tasks from now on.
#[derive(Debug, Default)]
pub struct Swap {
    /// In order, with the number of each task's cadence; what runs and has no seat closes.
    pub seats: Vec<(Seat, u8)>,
    /// Of each cadence's tasks, in the order of their seats.
    pub classifiers: [Classifier; CADENCES_MAX],
    /// The number of the change: what tasks that begin with it, or move, have joined with.
    pub number: u32,
    /// Tasks that go on with another filter or cadence: what was counted before goes to what they were.
    pub moving: HashSet<String>,
}

/// What was built.
#[derive(Debug, Default)]
pub struct Built {
    /// For [`super::Pipeline::apply`].
    pub swap: Swap,
    /// Cadences by number; those that stay have kept theirs.
    pub cadences: [Option<Cadence>; CADENCES_MAX],
    /// What concerns open connections.
    pub change: Change,
    /// A cadence begins.
    pub begins: bool,
    /// Counters of the tasks that will run.
    pub counters: Vec<Arc<TaskCounters>>,
    /// Tasks whose file could not be opened: a new one does not run, a changed one stays as it was.
    pub failed: Vec<(String, Error)>,
    /// Something changes at all.
    pub changes: bool,
}

/// What runs, as the control plane knows it.
#[derive(Debug)]
pub struct Stage {
    roots: Arc<Roots>,
    running: BTreeMap<String, Arc<Spec>>,
    cadences: [Option<Cadence>; CADENCES_MAX],
    /// Changes so far.
    changes: u32,
    counters: HashMap<String, Arc<TaskCounters>>,
    closing: Vec<(PathBuf, Closing)>,
    finished: Vec<Finished>,
}

impl Stage {
    /// Nothing runs yet.
    #[must_use]
    pub fn new(roots: Arc<Roots>) -> Self {
        Self {
            roots,
            running: BTreeMap::new(),
            cadences: [None; CADENCES_MAX],
            changes: 0,
            counters: HashMap::new(),
            closing: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// The tasks that run, by name.
    #[must_use]
    pub const fn running(&self) -> &BTreeMap<String, Arc<Spec>> {
        &self.running
    }

    /// A task's counters, from its first start until it is gone.
    #[must_use]
    pub fn counters_of(&self, name: &str) -> Option<Arc<TaskCounters>> {
        self.counters.get(name).map(Arc::clone)
    }

    /// Opens the files of tasks that begin or move. What runs is not touched.
    pub fn build(&mut self, wanted: &BTreeMap<String, Arc<Spec>>) -> Built {
        let mut built = Built::default();
        let given = self.ways(wanted, &mut built.failed);
        let cadences = next(&self.cadences, given.iter().map(|(spec, _)| spec.cadence));
        let mut running = BTreeMap::new();
        self.changes = self.changes.saturating_add(1);
        built.change.number = self.changes;
        built.swap.number = self.changes;
        for (spec, way) in given {
            let at = cadences.iter().position(|cadence| *cadence == Some(spec.cadence));
            let Some(number) = at.and_then(|at| u8::try_from(at).ok()) else {
                // Only when a move failed that would have freed a cadence: it is tried again.
                tracing::warn!(task = spec.name, "no cadence is free; the task waits for one");
                continue;
            };
            built.counters.push(self.counters(&spec.name));
            let before = self.running.get(&spec.name);
            let stays =
                before.is_some_and(|before| before.cadence == spec.cadence && before.filter == spec.filter);
            let runs =
                self.cadences.get(usize::from(number)).is_some_and(|before| *before == Some(spec.cadence));
            if let Some(joining) = built.change.joining.get_mut(usize::from(number)) {
                *joining |= runs && !stays;
            }
            if let Some(before) = before.filter(|_| !stays) {
                note(&mut built.change.moving, &self.cadences, before.cadence);
                built.swap.moving.insert(spec.name.clone());
            }
            let planned = || Box::new(Planned::new(number, Spec::clone(&spec)));
            let seat = match way {
                Way::Keep => Seat::Keep(spec.name.clone()),
                Way::Change => Seat::Change(planned()),
                Way::Open(running) => Seat::Open(planned(), *running),
                Way::Later => Seat::OpenLater(planned(), self.counters(&spec.name)),
            };
            built.changes |= !matches!(seat, Seat::Keep(_));
            built.swap.seats.push((seat, number));
            running.insert(spec.name.clone(), spec);
        }
        built.changes |= running.len() != self.running.len();
        for (_, gone) in self.running.iter().filter(|(name, _)| !running.contains_key(*name)) {
            note(&mut built.change.leaving, &self.cadences, gone.cadence);
        }
        built.begins = cadences.iter().zip(&self.cadences).any(|(new, old)| new.is_some() && new != old);
        if built.changes {
            // Here, beside the data plane: with thousands of filters it takes a while.
            built.swap.classifiers = classifiers(&running, &built.swap.seats);
        }
        built.cadences = cadences;
        self.cadences = cadences;
        self.running = running;
        built
    }

    /// How each task is to go on; one whose file cannot be opened goes on as it was, if it runs.
    fn ways(
        &mut self,
        wanted: &BTreeMap<String, Arc<Spec>>,
        failed: &mut Vec<(String, Error)>,
    ) -> Vec<(Arc<Spec>, Way)> {
        let roots = Arc::clone(&self.roots);
        let sharing = roots.share_listings();
        let mut given = Vec::with_capacity(wanted.len());
        let held: HashSet<PathBuf> = self.running.values().map(|spec| spec.file.live_path()).collect();
        for (name, spec) in wanted {
            let before = self.running.get(name).cloned();
            let way = match &before {
                Some(before) if Arc::ptr_eq(before, spec) || before.differences(spec).is_empty() => {
                    Ok(Way::Keep)
                }
                Some(before) if before.file.live_path() == spec.file.live_path() => Ok(Way::Change),
                _ if held.contains(&spec.file.live_path()) => Ok(Way::Later),
                _ => self.open(spec).map(|running| Way::Open(Box::new(running))),
            };
            match (way, before) {
                (Ok(way), _) => given.push((Arc::clone(spec), way)),
                (Err(error), before) => {
                    given.extend(before.map(|before| (before, Way::Keep)));
                    failed.push((name.clone(), error));
                }
            }
        }
        drop(sharing);
        given
    }

    /// Takes note of what [`super::Pipeline::apply`] has left.
    pub fn applied(
        &mut self,
        closing: Vec<Closing>,
        failed: &[(String, Error)],
        before: &BTreeMap<String, Arc<Spec>>,
    ) {
        for (name, _) in failed {
            self.running.remove(name);
        }
        for closing in closing {
            let path = before.get(&**closing.name()).map(|spec| spec.file.live_path()).unwrap_or_default();
            self.closing.push((path, closing));
        }
        self.collect();
    }

    /// Takes in tasks that have closed meanwhile.
    pub fn collect(&mut self) {
        let (done, open): (Vec<_>, Vec<_>) =
            self.closing.drain(..).partition(|(_, closing)| closing.is_done());
        self.closing = open;
        self.finished.extend(done.into_iter().map(|(_, closing)| closing.wait()));
        let names: HashSet<&str> = self.closing.iter().map(|(_, closing)| &**closing.name()).collect();
        self.counters.retain(|name, _| self.running.contains_key(name) || names.contains(name.as_str()));
        let excess = self.finished.len().saturating_sub(FINISHED_MAX);
        self.finished.drain(..excess);
    }

    /// Every task that has stopped while others ran; waits for those that are still closing.
    #[must_use]
    pub fn finish(&mut self) -> Vec<Finished> {
        self.finished.extend(self.closing.drain(..).map(|(_, closing)| closing.wait()));
        std::mem::take(&mut self.finished)
    }

    fn open(&mut self, spec: &Spec) -> Result<Running, Error> {
        let until = Instant::now() + CLOSING;
        let path = spec.file.live_path();
        let closes = |closing: &[(PathBuf, Closing)]| {
            closing.iter().any(|(closing, task)| *closing == path && !task.is_done())
        };
        while closes(&self.closing) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.closing.iter().any(|(closing, _)| *closing == path) {
            // What it has just finished is to be seen.
            self.roots.forget_listings();
        }
        let counters = self.counters(&spec.name);
        open(spec, &self.roots, counters)
    }

    /// A task that moves or returns while its old file closes goes on with its counters.
    fn counters(&mut self, name: &str) -> Arc<TaskCounters> {
        Arc::clone(self.counters.entry(name.to_owned()).or_default())
    }
}

/// Notes a cadence by its number.
fn note(noted: &mut [bool], cadences: &[Option<Cadence>], of: Cadence) {
    for (noted, cadence) in noted.iter_mut().zip(cadences) {
        *noted |= *cadence == Some(of);
    }
}

enum Way {
    Keep,
    Change,
    Open(Box<Running>),
    Later,
}

fn classifiers(tasks: &BTreeMap<String, Arc<Spec>>, seats: &[(Seat, u8)]) -> [Classifier; CADENCES_MAX] {
    std::array::from_fn(|cadence| {
        let seats = seats.iter().filter(|(_, number)| usize::from(*number) == cadence);
        Classifier::new(seats.filter_map(|(seat, _)| tasks.get(seat.name())).map(|spec| &*spec.filter))
    })
}

/// Cadences that are still wanted keep their numbers; new ones take what is free.
fn next(
    before: &[Option<Cadence>; CADENCES_MAX],
    wanted: impl Iterator<Item = Cadence>,
) -> [Option<Cadence>; CADENCES_MAX] {
    let wanted: Vec<Cadence> = wanted.collect();
    let mut cadences = before.map(|cadence| cadence.filter(|cadence| wanted.contains(cadence)));
    for cadence in wanted {
        if !cadences.contains(&Some(cadence))
            && let Some(free) = cadences.iter_mut().find(|slot| slot.is_none())
        {
            *free = Some(cadence);
        }
    }
    cadences
}
