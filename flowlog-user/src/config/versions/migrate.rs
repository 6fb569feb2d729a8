//! `flowlog migrate`: which files are to be made into which, decided before anything is written.
//!
//! Of a task the definition that counts is converted, and only where there is none in the form yet. So whatever is written,
//! each task stands in each form once, and a folder that was valid stays so. Which definitions are one task's is what
//! `lineage` says, as for the daemon.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Form, Mark, difference, same, text};
use crate::config::document::{self, Content, Holds};
use crate::config::files::{self, NoText};
use crate::config::lineage::{Said, families};
use crate::config::superseded::{self, Superseded};
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
    /// What it says and no other form has a place for, and comments that are left out.
    pub lost: Vec<Problem>,
}

/// What is to become of a file.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It has the form already.
    Current,
    /// It holds pools, whose versions are not ours to change.
    Pools,
    /// All of its tasks are in other files, in that form or one that counts; what the two do not agree about.
    There {
        /// The file of the first.
        file: PathBuf,
        /// What is not the same.
        difference: Option<String>,
        /// Tasks that were taken out of that since this was made into it: a line each.
        removed: Vec<String>,
    },
    /// This text is to be written.
    Convert {
        /// The new file.
        target: PathBuf,
        /// Its text.
        text: String,
        /// Tasks that are left out, since they are in other files, in that form or one that counts, or were removed from
        /// there: a line each.
        without: Vec<String>,
    },
    /// It cannot be converted.
    Failed(Vec<Problem>),
}

/// A file as it was read.
struct Read {
    file: PathBuf,
    text: String,
    content: Result<Content, Vec<Problem>>,
    /// It is to be converted, and not only known about.
    is_asked: bool,
}

/// Decides about each task file. Other files in the folder of a file that is named are known about, too.
///
/// # Errors
/// A path that cannot be read.
pub fn migrations(paths: &[PathBuf], to: Form, folder: &Path) -> Result<Vec<Migration>, Error> {
    let mut read = read(paths, to, folder)?;
    // The newest form first, as it counts; each form in the order of the files.
    read.sort_by_key(|one| std::cmp::Reverse(one.content.as_ref().ok().map(|content| content.form)));
    let valid = read.iter().filter_map(|one| Some((one.file.as_path(), one.content.as_ref().ok()?)));
    let superseded = Superseded::new(valid.clone().map(|(file, content)| (file, content, true)));
    let mut said: HashMap<&str, Vec<Said<'_>>> = HashMap::new();
    for (file, content) in valid {
        let (form, mark) = (content.form, content.mark.as_ref().map(|(_, mark)| mark));
        for spec in &content.tasks {
            said.entry(&spec.name).or_default().push(Said { file, form, mark, spec, is_valid: true });
        }
    }
    let mut plans = Plans { to, folder, superseded, said, planned: HashMap::new(), targets: BTreeSet::new() };
    let mut decided: Vec<Migration> =
        read.iter().filter(|one| one.is_asked).map(|one| plans.migration(one)).collect();
    decided.sort_by(|one, other| one.file.as_os_str().cmp(other.file.as_os_str()));
    Ok(decided)
}

/// The files behind the paths, and those beside them.
fn read(paths: &[PathBuf], to: Form, folder: &Path) -> Result<Vec<Read>, Error> {
    let mut problems = Problems::default();
    // By a path that each has once, however it is named.
    let mut found: BTreeMap<PathBuf, (PathBuf, bool)> = BTreeMap::new();
    let key = |file: &Path| std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    for path in paths {
        match files::find(path) {
            Ok(files) => found.extend(files.into_iter().map(|file| (key(&file), (file, true)))),
            Err(problem) => problems.errors.push(problem),
        }
    }
    for path in paths.iter().filter(|path| !path.is_dir()) {
        for file in files::find(files::parent(path)).unwrap_or_default() {
            found.entry(key(&file)).or_insert((file, false));
        }
        // No folder shows those of a file that is not called as a task file is.
        let written = (1..).map(|number| numbered(path, to, number)).take_while(|file| file.is_file());
        for file in written {
            found.entry(key(&file)).or_insert((file, false));
        }
    }
    let mut read = Vec::new();
    for (file, is_asked) in found.into_values() {
        match files::read(&file) {
            Ok(text) => {
                let content = content(&file, &text, folder);
                read.push(Read { file, text, content, is_asked });
            }
            Err(NoText::Unreadable(problem) | NoText::Wrong(problem)) if is_asked => {
                problems.errors.push(problem);
            }
            Err(_) => {}
        }
    }
    if problems.errors.is_empty() { Ok(read) } else { Err(Error::Unreadable(problems)) }
}

fn content(file: &Path, text: &str, folder: &Path) -> Result<Content, Vec<Problem>> {
    let mut problems = Problems::default();
    let content = document::read(&file.to_string_lossy(), text, Holds::Anything, folder, &mut problems);
    if problems.errors.is_empty() { Ok(content) } else { Err(problems.errors) }
}

/// What a draft says in its metadata that is lost on the way.
fn lost(file: &Path, text: &str, folder: &Path) -> Vec<Problem> {
    let mut problems = Problems::default();
    document::read(&file.to_string_lossy(), text, Holds::Anything, folder, &mut problems);
    problems.warnings.retain(|warning| warning.place.path.contains("metadata."));
    problems.warnings
}

/// Where a task stands in a definition that counts.
enum Standing {
    /// In the file itself.
    Here,
    /// In another one, where it says this.
    There(PathBuf, Arc<Spec>),
    /// Nowhere: it was taken out of this file, which is the truth for it.
    Removed(PathBuf),
}

/// What is known while files are decided about one by one.
struct Plans<'a> {
    to: Form,
    folder: &'a Path,
    superseded: Superseded<'a>,
    /// The definitions of each task, the newest form first.
    said: HashMap<&'a str, Vec<Said<'a>>>,
    /// Those that are to be written.
    planned: HashMap<String, Vec<(PathBuf, Arc<Spec>)>>,
    /// New files.
    targets: BTreeSet<PathBuf>,
}

impl Plans<'_> {
    fn migration(&mut self, Read { file, text, content, .. }: &Read) -> Migration {
        let (form, outcome) = match content {
            Err(problems) => (None, Outcome::Failed(problems.clone())),
            Ok(content) if content.tasks.is_empty() && !content.pools.is_empty() => {
                (Some(content.form), Outcome::Pools)
            }
            Ok(content) if content.form == self.to => (Some(content.form), Outcome::Current),
            Ok(content) => (Some(content.form), self.decide(file, text, content)),
        };
        let mut lost = match (&outcome, form) {
            (Outcome::Convert { .. }, Some(Form::Draft)) => lost(file, text, self.folder),
            _ => Vec::new(),
        };
        if let Outcome::Convert { text: new, .. } = &outcome {
            lost.extend(text::comments_left_out(&file.to_string_lossy(), text, new));
        }
        Migration { file: file.clone(), form, outcome, lost }
    }

    /// Where a task of this file stands in a definition that counts.
    fn standing(&self, file: &Path, name: &str) -> Standing {
        let planned = self.planned.get(name).into_iter().flatten();
        let planned =
            planned.map(|(file, spec)| Said { file, form: self.to, mark: None, spec, is_valid: true });
        let all = self.said.get(name).into_iter().flatten().copied().chain(planned).collect();
        let own = families(all).into_iter().find(|family| family.iter().any(|said| said.file == file));
        let (family, removed) = self.superseded.living(own.unwrap_or_default());
        if let Some((_, newer)) = removed.iter().find(|(said, _)| said.file == file) {
            return Standing::Removed((*newer).to_owned());
        }
        let there = family.iter().find(|said| said.form == self.to).or(family.first());
        match there.filter(|said| said.file != file) {
            Some(said) => Standing::There(said.file.to_owned(), Arc::clone(said.spec)),
            None => Standing::Here,
        }
    }

    fn decide(&mut self, file: &Path, text: &str, content: &Content) -> Outcome {
        let (mut left, mut others, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = None;
        for spec in &content.tasks {
            match self.standing(file, &spec.name) {
                Standing::Here => left.push(spec),
                Standing::There(other, new) => {
                    first.get_or_insert_with(|| other.clone());
                    others.push((spec, other, new));
                }
                Standing::Removed(newer) => {
                    removed.push(superseded::removed(std::slice::from_ref(&spec.name), file, &newer));
                    first.get_or_insert(newer);
                }
            }
        }
        if let (true, Some(other)) = (left.is_empty(), first) {
            let differ = others.iter().filter(|(old, _, new)| !same(old, new));
            let lines: Vec<String> =
                differ.map(|(old, _, new)| format!("task {}: {}", old.name, difference(old, new))).collect();
            let difference = (!lines.is_empty()).then(|| lines.join("; "));
            return Outcome::There { file: other, difference, removed };
        }
        let without = others.iter().map(|(old, other, new)| left_out(old, other, new));
        let without: Vec<String> = without.chain(removed).collect();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mark = Mark { file: name, form: content.form, hash: Hash::of(text).to_string() };
        let mark = (self.to == Form::V1).then_some(&mark);
        let names: Vec<&str> = left.iter().map(|spec| spec.name.as_str()).collect();
        let only = (!without.is_empty()).then_some(names.as_slice());
        let new = text::convert(&file.to_string_lossy(), text, self.to, self.folder, mark, only);
        match new.and_then(|new| Ok((self.target(file)?, new))) {
            Ok((target, text)) => {
                self.targets.insert(target.clone());
                for spec in left {
                    let planned = self.planned.entry(spec.name.clone()).or_default();
                    planned.push((target.clone(), Arc::clone(spec)));
                }
                Outcome::Convert { target, text, without }
            }
            Err(problems) => Outcome::Failed(problems),
        }
    }

    /// `web.yaml` becomes `web.v1.yaml`, beside it, or `web-2.v1.yaml` where that is another file with other tasks.
    fn target(&self, file: &Path) -> Result<PathBuf, Vec<Problem>> {
        let mut number = 1;
        loop {
            let target = numbered(file, self.to, number);
            number += 1;
            if self.targets.contains(&target) {
                continue;
            }
            match files::read(&target) {
                // What is there is left alone; it must not hold the same tasks once it is put right.
                Ok(text) => {
                    if let Err(problems) = content(&target, &text, self.folder) {
                        return Err(in_the_way(file, &target, problems.first()));
                    }
                }
                Err(NoText::Unreadable(_)) if std::fs::symlink_metadata(&target).is_err() => {
                    return Ok(target);
                }
                Err(NoText::Unreadable(problem) | NoText::Wrong(problem)) => {
                    return Err(in_the_way(file, &target, Some(&problem)));
                }
            }
        }
    }
}

/// The name of a file without the ending that a form has in it.
pub(in crate::config) fn bare_stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bare = Form::ALL.iter().find_map(|form| stem.strip_suffix(&format!(".{}", form.name())));
    bare.map_or_else(|| stem.clone(), str::to_owned)
}

/// What a file in this form is called beside another.
pub(in crate::config) fn migrated(file: &Path, to: Form) -> PathBuf {
    numbered(file, to, 1)
}

fn numbered(file: &Path, to: Form, number: usize) -> PathBuf {
    let more = if number > 1 { format!("-{number}") } else { String::new() };
    let extension = file.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    file.with_file_name(format!("{}{more}.{}{}", bare_stem(file), to.name(), extension.unwrap_or_default()))
}

fn left_out(old: &Spec, other: &Path, new: &Spec) -> String {
    let is = format!("task `{}` is in {} already", old.name, other.display());
    if same(old, new) { is } else { format!("{is} and says something else: {}", difference(old, new)) }
}

/// A file that has the name of the new one and cannot be read.
fn in_the_way(file: &Path, target: &Path, why: Option<&Problem>) -> Vec<Problem> {
    let why = why.map(|problem| format!(" ({})", problem.message)).unwrap_or_default();
    let message = format!("{} is there and is not valid{why}; correct it or move it away", target.display());
    vec![Problem { place: Place::file(&file.to_string_lossy()), message }]
}

/// The text of a file as v1, with its mark, for the daemon's own keeping.
pub(in crate::config) fn newest(file: &Path, text: &str, form: Form, folder: &Path) -> Option<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mark = Mark { file: name, form, hash: Hash::of(text).to_string() };
    text::convert(&file.to_string_lossy(), text, Form::V1, folder, Some(&mark), None).ok()
}
