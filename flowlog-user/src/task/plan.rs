use std::collections::HashMap;
use std::path::PathBuf;

use super::{Cadence, Spec};
use crate::filter::Filter;
use crate::limits::CADENCES_MAX;
use crate::record::fields::Mask;
use crate::record::rules::Rules;
use crate::tree::{Problem, Problems};

/// All tasks, ready to run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In the order in which they were configured.
    pub tasks: Vec<Planned>,
    /// The distinct cadences of the tasks, at most [`CADENCES_MAX`].
    pub cadences: Vec<Cadence>,
}

/// A task with what is made of its spec.
#[derive(Clone, Debug)]
pub struct Planned {
    /// As configured.
    pub spec: Spec,
    /// Its filter, compiled.
    pub filter: Filter,
    /// Its mask; of a task that adds records up, that of what they have in common.
    pub mask: Mask,
    /// Index into [`Plan::cadences`].
    pub cadence: u8,
}

impl Plan {
    /// Joins tasks into a plan, noting names, files and cadences that do not go together.
    pub fn new(specs: Vec<Spec>, problems: &mut Problems) -> Self {
        let mut claims = Claims::default();
        let mut refused = vec![false; specs.len()];
        for (spec, refused) in specs.iter().zip(&mut refused) {
            for problem in claims.take(spec) {
                *refused = true;
                problems.errors.push(problem);
            }
        }
        let cadences: Vec<Cadence> = claims.cadences.iter().map(|(cadence, _)| *cadence).collect();
        let kept = specs.into_iter().zip(refused).filter(|(_, refused)| !refused);
        let of = |spec: &Spec| cadences.iter().position(|cadence| *cadence == spec.cadence);
        let number = |spec: &Spec| of(spec).and_then(|at| u8::try_from(at).ok());
        let tasks = kept.filter_map(|(spec, _)| Some(Planned::new(number(&spec)?, spec))).collect();
        Self { tasks, cadences }
    }
}

/// What these tasks together want of the kernel: never less than each of them.
#[must_use]
pub fn rules<'a>(tasks: impl IntoIterator<Item = &'a Spec>) -> Rules {
    let mut rules = Rules::default();
    for task in tasks {
        task.filter.lower(task.drops, &mut rules);
    }
    rules
}

impl Planned {
    /// Compiles a task whose cadence has this number.
    #[must_use]
    pub fn new(cadence: u8, spec: Spec) -> Self {
        let mask = spec.aggregation.map_or(spec.mask, |aggregation| aggregation.common);
        Self { filter: Filter::new(&spec.filter), mask, cadence, spec }
    }
}

/// What tasks have taken: each name and each file is one task's, and there are few cadences.
#[derive(Debug, Default)]
pub struct Claims<'a> {
    names: HashMap<&'a str, &'a Spec>,
    files: HashMap<PathBuf, &'a Spec>,
    cadences: Vec<(Cadence, &'a Spec)>,
}

impl<'a> Claims<'a> {
    /// Takes what the task needs, or says what is not there or somebody else has already; then nothing is taken.
    pub fn take(&mut self, spec: &'a Spec) -> Vec<Problem> {
        if !spec.unmet.is_empty() {
            return spec.unmet.clone();
        }
        let name = self.names.get(spec.name.as_str()).map(|first| spec.name_taken_by(first));
        // `PathBuf` compares by parts: `/a//x` is `/a/x`.
        let paths = [spec.file.filled_path(), spec.file.live_path()];
        let file = paths.iter().find_map(|path| self.files.get(path)).map(|first| taken_file(spec, first));
        let shared = self.cadences.iter().any(|(cadence, _)| *cadence == spec.cadence);
        let cadence = (!shared && self.cadences.len() >= CADENCES_MAX).then(|| self.too_many(spec));
        let problems: Vec<Problem> = [name, file, cadence].into_iter().flatten().collect();
        if problems.is_empty() {
            self.names.insert(&spec.name, spec);
            for path in paths {
                self.files.insert(path, spec);
            }
            if !shared {
                self.cadences.push((spec.cadence, spec));
            }
        }
        problems
    }

    fn too_many(&self, spec: &Spec) -> Problem {
        let taken: Vec<String> =
            self.cadences.iter().map(|(cadence, first)| format!("`{}` {cadence}", first.name)).collect();
        let message = format!(
            "`{}` {} is one pair of events and updateInterval more than the {CADENCES_MAX} that can run at once; use \
             that of {}",
            spec.name,
            spec.cadence,
            taken.join(", or of ")
        );
        Problem { place: spec.place.clone(), message }
    }
}

impl Spec {
    /// What to say when another task has the name.
    #[must_use]
    pub fn name_taken_by(&self, first: &Self) -> Problem {
        let message = format!("task name `{}` is taken at {}; choose another", self.name, first.place.spot());
        Problem { place: self.place.clone(), message }
    }
}

fn taken_file(spec: &Spec, first: &Spec) -> Problem {
    let (path, place) = (spec.file.path.display(), first.path_place.spot());
    let message = format!("`{path}` is written by task `{}` at {place}; choose another", first.name);
    Problem { place: spec.path_place.clone(), message }
}
