use std::collections::HashMap;
use std::path::PathBuf;

use super::{Cadence, Spec};
use crate::filter::Filter;
use crate::limits::CADENCES_MAX;
use crate::record::fields::Mask;
use crate::record::rules::Rules;
use crate::tree::Problems;

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
    /// Its mask.
    pub mask: Mask,
    /// Index into [`Plan::cadences`].
    pub cadence: u8,
}

impl Plan {
    /// Joins tasks into a plan, noting names, files and cadences that do not go together.
    pub fn new(specs: Vec<Spec>, problems: &mut Problems) -> Self {
        unique_names(&specs, problems);
        unique_files(&specs, problems);
        let mut plan = Self::default();
        for spec in specs {
            let Some(cadence) = plan.cadence_of(&spec, problems) else { continue };
            plan.tasks.push(Planned { filter: Filter::new(&spec.filter), mask: spec.mask, cadence, spec });
        }
        plan
    }

    /// What all tasks together want of the kernel: never less than each of them.
    #[must_use]
    pub fn rules(&self) -> Rules {
        let mut rules = Rules::default();
        for task in &self.tasks {
            task.spec.filter.lower(&mut rules);
        }
        rules
    }

    fn cadence_of(&mut self, spec: &Spec, problems: &mut Problems) -> Option<u8> {
        let index = match self.cadences.iter().position(|cadence| *cadence == spec.cadence) {
            Some(index) => index,
            None if self.cadences.len() < CADENCES_MAX => {
                self.cadences.push(spec.cadence);
                self.cadences.len() - 1
            }
            None => {
                problems.error(&spec.place, self.too_many(spec));
                return None;
            }
        };
        u8::try_from(index).ok()
    }

    fn too_many(&self, spec: &Spec) -> String {
        let first_of = |index: usize| {
            let first = self.tasks.iter().find(|task| usize::from(task.cadence) == index);
            first.map_or_else(String::new, |task| format!("`{}` {}", task.spec.name, task.spec.cadence))
        };
        let taken: Vec<String> = (0..self.cadences.len()).map(first_of).collect();
        format!(
            "`{}` {} is one pair of events and updateInterval more than the {CADENCES_MAX} that can run at once; use \
             that of {}",
            spec.name,
            spec.cadence,
            taken.join(", or of ")
        )
    }
}

fn unique_names(specs: &[Spec], problems: &mut Problems) {
    let mut taken: HashMap<&str, &Spec> = HashMap::new();
    for spec in specs {
        if let Some(first) = taken.get(spec.name.as_str()) {
            let message =
                format!("task name `{}` is taken at {}; choose another", spec.name, first.place.spot());
            problems.error(&spec.place, message);
        } else {
            taken.insert(&spec.name, spec);
        }
    }
}

/// No two tasks write one file, however its path is spelt (`PathBuf` compares by parts: `/a//x` is `/a/x`).
fn unique_files(specs: &[Spec], problems: &mut Problems) {
    let mut taken: HashMap<PathBuf, &Spec> = HashMap::new();
    for spec in specs {
        let paths = [spec.file.path.clone(), spec.file.live_path()];
        if let Some(first) = paths.iter().find_map(|path| taken.get(path)) {
            let (path, place) = (spec.file.path.display(), first.path_place.spot());
            let message = format!("`{path}` is written by task `{}` at {place}; choose another", first.name);
            problems.error(&spec.path_place, message);
        }
        for path in paths {
            taken.entry(path).or_insert(spec);
        }
    }
}
