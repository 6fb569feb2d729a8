//! `flowlog migrate`: which files are to be made into which, decided before anything is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Form, Mark, difference, same, text};
use crate::config::document::{self, Content, Holds};
use crate::config::files::{self, NoText};
use crate::config::{Error, Hash};
use crate::task::Spec;
use crate::tree::{Place, Problem, Problems};

/// A file and what is to become of it.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The file.
    pub file: PathBuf,
    /// Its form; none where it is not valid.
    pub form: Option<Form>,
    /// What is to become of it.
    pub outcome: Outcome,
}

/// What is to become of a file.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It has the form already.
    Current,
    /// It holds pools, whose versions are not ours to change.
    Pools,
    /// All of its tasks are in a file of that form already; what the two do not agree about.
    There {
        /// Where.
        file: PathBuf,
        /// What is not the same.
        difference: Option<String>,
    },
    /// This text is to be written.
    Convert {
        /// The new file.
        target: PathBuf,
        /// Its text.
        text: String,
    },
    /// It cannot be converted.
    Failed(Vec<Problem>),
}

/// Decides about each task file.
///
/// # Errors
/// A path that cannot be read.
pub fn migrations(paths: &[PathBuf], to: Form, folder: &Path) -> Result<Vec<Migration>, Error> {
    let mut problems = Problems::default();
    let mut read: Vec<(PathBuf, String, Result<Content, Vec<Problem>>)> = Vec::new();
    for path in paths {
        let found = files::find(path).unwrap_or_else(|problem| {
            problems.errors.push(problem);
            Vec::new()
        });
        for file in found {
            match files::read(&file) {
                Ok(text) => {
                    let content = content(&file, &text, folder);
                    read.push((file, text, content));
                }
                Err(NoText::Unreadable(problem) | NoText::Wrong(problem)) => problems.errors.push(problem),
            }
        }
    }
    if !problems.errors.is_empty() {
        return Err(Error::Unreadable(problems));
    }
    let mut there: BTreeMap<&str, (&Path, &Arc<Spec>)> = BTreeMap::new();
    for (file, _, content) in &read {
        let newer = content.as_ref().ok().filter(|content| content.form == to);
        for spec in newer.iter().flat_map(|content| &content.tasks) {
            there.insert(&spec.name, (file, spec));
        }
    }
    let decided = read.iter().map(|(file, text, content)| match content {
        Err(problems) => {
            Migration { file: file.clone(), form: None, outcome: Outcome::Failed(problems.clone()) }
        }
        Ok(content) => {
            let outcome = decide(file, text, content, to, folder, &there);
            Migration { file: file.clone(), form: Some(content.form), outcome }
        }
    });
    Ok(decided.collect())
}

fn content(file: &Path, text: &str, folder: &Path) -> Result<Content, Vec<Problem>> {
    let mut problems = Problems::default();
    let content = document::read(&file.to_string_lossy(), text, Holds::Anything, folder, &mut problems);
    if problems.errors.is_empty() { Ok(content) } else { Err(problems.errors) }
}

fn decide(
    file: &Path,
    text: &str,
    content: &Content,
    to: Form,
    folder: &Path,
    there: &BTreeMap<&str, (&Path, &Arc<Spec>)>,
) -> Outcome {
    if content.tasks.is_empty() && !content.pools.is_empty() {
        return Outcome::Pools;
    }
    if content.form == to {
        return Outcome::Current;
    }
    let twins: Vec<_> =
        content.tasks.iter().filter_map(|spec| Some((spec, there.get(spec.name.as_str())?))).collect();
    if let Some((_, (other, _))) = twins.first() {
        if twins.len() == content.tasks.len() {
            let differ = twins.iter().filter(|(old, (_, new))| !same(old, new));
            let lines: Vec<String> = differ
                .map(|(old, (_, new))| format!("task {}: {}", old.name, difference(old, new)))
                .collect();
            let difference = (!lines.is_empty()).then(|| lines.join("; "));
            return Outcome::There { file: other.to_path_buf(), difference };
        }
        let problem = |(old, (_, new)): &(&Arc<Spec>, &(&Path, &Arc<Spec>))| Problem {
            place: old.place.clone(),
            message: format!(
                "task `{}` is there as {to} already, at {}, and other tasks of this file are not; move those by hand",
                old.name,
                new.place.spot()
            ),
        };
        return Outcome::Failed(twins.iter().map(problem).collect());
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mark = Mark { file: name, form: content.form, hash: Hash::of(text).to_string() };
    let mark = (to == Form::V1).then_some(&mark);
    let converted = match text::convert(&file.to_string_lossy(), text, to, folder, mark) {
        Ok(converted) => converted,
        Err(problems) => return Outcome::Failed(problems),
    };
    let target = target(file, to);
    match files::read(&target) {
        Ok(existing) if existing == converted => Outcome::There { file: target, difference: None },
        Ok(_) => {
            let message = format!("{} is there and says something else; move it away", target.display());
            Outcome::Failed(vec![Problem { place: Place::file(&file.to_string_lossy()), message }])
        }
        Err(_) => Outcome::Convert { target, text: converted },
    }
}

/// `web.yaml` becomes `web.v1.yaml`, beside it.
fn target(file: &Path, to: Form) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bare = Form::ALL.iter().find_map(|form| stem.strip_suffix(&format!(".{}", form.name())));
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{}.{}.{extension}", bare.unwrap_or(&stem), to.name()))
}

/// The text of a file as v1, with its mark, for the daemon's own keeping.
pub(in crate::config) fn newest(file: &Path, text: &str, form: Form, folder: &Path) -> Option<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mark = Mark { file: name, form, hash: Hash::of(text).to_string() };
    text::convert(&file.to_string_lossy(), text, Form::V1, folder, Some(&mark)).ok()
}
