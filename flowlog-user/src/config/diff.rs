//! Which tasks are to run, given what the files say and what runs: a pure function.
//!
//! Every name and every file is one task's. Where two ask for the same, the task that runs keeps it; among new ones the
//! first in byte order of their files gets it. Only the other task is refused: a new one does not start, a changed one
//! stays as it was.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::task::{Claims, Spec};
use crate::tree::Problem;

/// A task and the file it stands in.
#[derive(Clone, Debug)]
pub struct Owned {
    /// The task.
    pub spec: Arc<Spec>,
    /// Its file.
    pub file: Arc<Path>,
}

/// Tasks by name.
pub type Tasks = BTreeMap<String, Owned>;

/// Other forms of a task that counts, by its name and file; the newest first.
pub type Others = BTreeMap<(String, PathBuf), Vec<Owned>>;

/// What is to be.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// The tasks from now on.
    pub tasks: Tasks,
    /// What was asked for and is not given: the task, its file, and what somebody else has already.
    pub refused: Vec<(Owned, Vec<Problem>)>,
}

/// A task that is asked for, with the version of it that runs.
struct Candidate<'a> {
    asked: Owned,
    /// Under another name, where that has changed.
    runs: Option<&'a Owned>,
}

impl Candidate<'_> {
    /// It runs, and asks for nothing that it does not have.
    fn is_settled(&self) -> bool {
        self.runs.is_some_and(|runs| asks_for_no_more(&self.asked.spec, &runs.spec))
    }
}

/// Whether a task can be what it asks for without anything of what tasks share that it does not have already.
fn asks_for_no_more(new: &Spec, old: &Spec) -> bool {
    new.unmet.is_empty()
        && new.cadence == old.cadence
        && new.file.path == old.file.path
        && new.file.live_path() == old.file.live_path()
}

/// Decides. `files` holds the tasks of each accepted file in their order; `now` is the decision before. Where a task cannot
/// start in the form that counts, one of its `others` does.
#[must_use]
pub fn decide(files: &BTreeMap<PathBuf, Vec<Arc<Spec>>>, others: &Others, now: &Tasks) -> Decision {
    let mut decision = Decision::default();
    let candidates = by_name(files, others, now, &mut decision.refused);
    let held = held_back(&candidates);
    let mut claims = Claims::default();
    // Whoever runs comes first, with what it has or may have.
    for (at, candidate) in candidates.iter().enumerate().filter(|(_, candidate)| candidate.runs.is_some()) {
        let given = match (held.get(&at), candidate.runs) {
            (Some(problems), Some(runs)) => {
                decision.refused.push((candidate.asked.clone(), problems.clone()));
                runs
            }
            _ => &candidate.asked,
        };
        let problems = claims.take(&given.spec);
        if problems.is_empty() {
            decision.tasks.insert(given.spec.name.clone(), given.clone());
        } else {
            decision.refused.push((candidate.asked.clone(), problems));
        }
    }
    for candidate in candidates.iter().filter(|candidate| candidate.runs.is_none()) {
        let problems = claims.take(&candidate.asked.spec);
        if problems.is_empty() {
            decision.tasks.insert(candidate.asked.spec.name.clone(), candidate.asked.clone());
        } else {
            decision.refused.push((candidate.asked.clone(), problems));
            let other = of(others, &candidate.asked).iter().find(|other| claims.take(&other.spec).is_empty());
            decision.tasks.extend(other.map(|other| (other.spec.name.clone(), other.clone())));
        }
    }
    decision
}

fn of<'a>(others: &'a Others, task: &Owned) -> &'a [Owned] {
    others.get(&(task.spec.name.clone(), task.file.to_path_buf())).map_or(&[], Vec::as_slice)
}

/// One candidate for each name: that of the file which owns the running task or has it in the form that counts, else that of the first file.
fn by_name<'a>(
    files: &BTreeMap<PathBuf, Vec<Arc<Spec>>>,
    others: &Others,
    now: &'a Tasks,
    refused: &mut Vec<(Owned, Vec<Problem>)>,
) -> Vec<Candidate<'a>> {
    let mut winners: HashMap<&str, &Path> = HashMap::new();
    for (file, specs) in files {
        for spec in specs {
            let owner = now.get(&spec.name).map(|runs| &*runs.file);
            let inherits = |owner: &Path| {
                let others = others.get(&(spec.name.clone(), file.clone()));
                others.is_some_and(|others| others.iter().any(|other| *other.file == *owner))
            };
            let winner = winners.entry(&spec.name).or_insert(file);
            if owner.is_some_and(|owner| owner == file || inherits(owner)) {
                *winner = file;
            }
        }
    }
    let mut claims = HashMap::new();
    for (file, specs) in files {
        for spec in specs.iter().filter(|spec| winners.get(&*spec.name) == Some(&&**file)) {
            claims.insert(&*spec.name, &**spec);
        }
    }
    let renamed = leaving(now, |name| claims.contains_key(name));
    let mut candidates = Vec::new();
    for (file, specs) in files {
        let file: Arc<Path> = file.as_path().into();
        for spec in specs {
            let asked = Owned { spec: Arc::clone(spec), file: Arc::clone(&file) };
            match claims.get(&*spec.name) {
                Some(first) if !std::ptr::eq(*first, &raw const **spec) => {
                    refused.push((asked, vec![spec.name_taken_by(first)]));
                }
                _ => {
                    // One that asks for more than another name is new.
                    let renamed = renamed.get(&(&*file, spec.file.path.as_path())).copied();
                    let renamed = renamed.filter(|before| asks_for_no_more(spec, &before.spec));
                    candidates.push(Candidate { asked, runs: now.get(&spec.name).or(renamed) });
                }
            }
        }
    }
    candidates
}

/// Tasks that run and that nobody asks for, by their files and those that they write: what has both has another name now.
fn leaving(now: &Tasks, is_asked: impl Fn(&str) -> bool) -> HashMap<(&Path, &Path), &Owned> {
    let leaving = now.values().filter(|owned| !owned.spec.file.is_stdout() && !is_asked(&owned.spec.name));
    leaving.map(|owned| ((&*owned.file, owned.spec.file.path.as_path()), owned)).collect()
}

/// Changed tasks that cannot have what they ask for, with the reasons. Two tasks may swap their files, so this is not
/// decided one by one: whoever is held back keeps what it has, which may hold back another.
fn held_back(candidates: &[Candidate<'_>]) -> HashMap<usize, Vec<Problem>> {
    let mut held: HashMap<usize, Vec<Problem>> = HashMap::new();
    'again: loop {
        let mut claims = Claims::default();
        for (at, candidate) in candidates.iter().enumerate() {
            match candidate.runs {
                Some(_) if candidate.is_settled() => drop(claims.take(&candidate.asked.spec)),
                Some(runs) if held.contains_key(&at) => drop(claims.take(&runs.spec)),
                _ => {}
            }
        }
        for (at, candidate) in candidates.iter().enumerate() {
            if candidate.runs.is_none() || candidate.is_settled() || held.contains_key(&at) {
                continue;
            }
            let problems = claims.take(&candidate.asked.spec);
            if !problems.is_empty() {
                held.insert(at, problems);
                continue 'again;
            }
        }
        return held;
    }
}
