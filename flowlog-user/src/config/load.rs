use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use super::document::{self, Content, Holds};
use super::files::NoText;
use super::forms::{Origin, origin, settle};
use super::pools::{Joined, join};
use super::{Sources, files};
use crate::record::Pools;
use crate::task::{Plan, Spec};
use crate::tree::{Place, Problem, Problems};

/// A valid configuration.
#[derive(Debug)]
pub struct Loaded {
    /// Its tasks, ready to run.
    pub plan: Plan,
    /// Its pools.
    pub pools: Joined,
    /// By task: from which form it comes.
    pub origins: BTreeMap<String, Origin>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Problem>,
}

/// Why a configuration was not accepted. Both hold everything that is wrong, and display it a line each.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("{0}")]
    Unreadable(Problems),
    /// Everything could be read, but not everything is valid.
    #[error("{0}")]
    Invalid(Problems),
}

impl Error {
    /// Everything that was found.
    #[must_use]
    pub const fn problems(&self) -> &Problems {
        match self {
            Self::Unreadable(problems) | Self::Invalid(problems) => problems,
        }
    }
}

/// Reads the tasks and pools of all files and folders. Nothing is accepted unless everything is valid.
///
/// # Errors
///
/// Everything that cannot be read or is wrong, in the order of files and lines.
pub fn load(sources: impl Into<Sources>) -> Result<Loaded, Error> {
    let sources = sources.into();
    let mut problems = Problems::default();
    let mut unreadable = Vec::new();
    let mut contents: Vec<(PathBuf, Content, bool)> = Vec::new();
    for path in sources.paths() {
        let found = files::find(path).unwrap_or_else(|problem| {
            unreadable.push(problem);
            Vec::new()
        });
        if found.is_empty() && path.is_dir() {
            let what = sources.holds(path).what();
            let message = format!("no *.yaml, *.yml or *.json in this folder, so it has no {what}");
            problems.warning(&Place::file(&path.to_string_lossy()), message);
        }
        for file in found {
            match files::read(&file) {
                Ok(text) => {
                    let (name, holds) = (file.to_string_lossy(), sources.holds(&file));
                    let errors = problems.errors.len();
                    let content = document::read(&name, &text, holds, sources.folder(), &mut problems);
                    contents.push((file, content, problems.errors.len() == errors));
                }
                Err(NoText::Unreadable(problem)) => unreadable.push(problem),
                Err(NoText::Wrong(problem)) => problems.errors.push(problem),
            }
        }
    }
    let pools = pools(&contents, &mut problems);
    let files = contents.iter().map(|(file, content, is_valid)| (file.as_path(), content, *is_valid));
    let settled = settle(files, &sources, &pools.pools, |_| None);
    problems.warnings.extend(settled.warnings);
    problems.errors.extend(settled.refused.into_iter().flat_map(|(_, problems)| problems));
    let (mut specs, mut origins) = (Vec::new(), BTreeMap::new());
    for ((file, content, is_valid), (_, kept)) in contents.iter().zip(&settled.specs) {
        for spec in kept {
            let forms = settled.forms.of(&spec.name, file);
            let trouble = (!is_valid).then(|| format!("the errors of {} are corrected", file.display()));
            let origin = || origin(file, content, trouble.as_deref(), forms, None, &sources);
            origins.entry(spec.name.clone()).or_insert_with(origin);
            specs.push(Spec::clone(spec));
        }
    }
    let plan = Plan::new(specs, &mut problems);
    let readable = unreadable.is_empty();
    problems.errors.append(&mut unreadable);
    problems.errors.sort_by(|one, other| one.place.cmp(&other.place));
    if !readable {
        return Err(Error::Unreadable(problems));
    }
    if !problems.errors.is_empty() {
        return Err(Error::Invalid(problems));
    }
    Ok(Loaded { plan, pools, origins, warnings: problems.warnings })
}

/// The pools of all files. Of a file that is not valid as a whole nothing would be in force, so that what it says of a pool
/// counts only where no other file says anything: no task is told that such a pool is missing.
fn pools(contents: &[(PathBuf, Content, bool)], problems: &mut Problems) -> Joined {
    let of = |valid: bool| contents.iter().filter(move |(.., is_valid)| *is_valid == valid);
    let names = of(true).flat_map(|(_, content, _)| &content.pools).map(|defined| &*defined.pool.name);
    let valid: HashSet<&str> = names.collect();
    let mut names = valid.clone();
    let mut broken = Vec::new();
    for (file, content, _) in of(false) {
        for defined in &content.pools {
            if names.insert(&defined.pool.name) {
                broken.push((file.as_path(), vec![defined.clone()]));
            }
        }
    }
    let pools = of(true).map(|(file, content, _)| (file.as_path(), content.pools.as_slice()));
    let pools = join(pools.chain(broken.iter().map(|(file, one)| (*file, one.as_slice()))), |_, _| None);
    problems.errors.extend(pools.refused.iter().cloned());
    problems.warnings.extend(pools.warnings.iter().cloned());
    let newer = of(false).flat_map(|(_, content, _)| &content.pools);
    for newer in newer.filter(|newer| valid.contains(&*newer.pool.name)) {
        let Some((_, counts)) = pools.defined.get(&newer.pool.name) else { continue };
        problems.warnings.extend(counts.instead_of(newer));
    }
    pools
}

/// Reads tasks from a text instead of a file, as [`load`] does; `name` stands for the file in messages.
///
/// # Errors
///
/// Everything that is wrong.
pub fn read(name: &str, text: &str) -> Result<(Plan, Vec<Problem>), Error> {
    let (mut problems, sources) = (Problems::default(), Sources::default());
    let content = document::read(name, text, Holds::Anything, sources.folder(), &mut problems);
    let plan = Plan::new(content.tasks.iter().map(|spec| Spec::clone(spec)).collect(), &mut problems);
    if !problems.errors.is_empty() {
        return Err(Error::Invalid(problems));
    }
    let unseen = plan.tasks.iter().flat_map(|task| task.spec.filter.unseen(&Pools::default()));
    problems.warnings.extend(unseen);
    Ok((plan, problems.warnings))
}
