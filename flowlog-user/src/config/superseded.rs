//! Older files whose text was made into a file of v1, which is the truth for each task of theirs from then on: a task that
//! was taken out of that one since was removed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::document::Content;
use super::lineage::Said;
use super::versions::Form;
use crate::tree::Problem;

/// Which files were converted, found by the marks of the files that were made of them.
#[derive(Debug, Default)]
pub(super) struct Superseded<'a> {
    /// By older file, the one that was made of its present text.
    newer: HashMap<&'a Path, &'a Path>,
    /// Marks of another text than the file that they name has now, or of another form.
    pub(super) wrong: Vec<Problem>,
}

impl<'a> Superseded<'a> {
    /// From what all files say; those that are not valid supersede nothing.
    pub(super) fn new(files: impl Iterator<Item = (&'a Path, &'a Content, bool)> + Clone) -> Self {
        let mut superseded = Self::default();
        let mut older: HashMap<&Path, &Content> = HashMap::new();
        older.extend(
            files
                .clone()
                .filter(|(_, content, _)| content.form != Form::V1)
                .map(|(file, content, _)| (file, content)),
        );
        let of_v1 = files.filter(|(_, content, is_valid)| *is_valid && content.form == Form::V1);
        for (file, content, _) in of_v1 {
            let Some((place, mark)) = &content.mark else { continue };
            // The mark names a file beside its own one.
            let named = Path::new(&mark.file).file_name().filter(|name| **name == *mark.file);
            let Some((old, its)) = named.and_then(|name| older.get_key_value(&*file.with_file_name(name)))
            else {
                continue;
            };
            let is_that_text = its.hash.is_some_and(|hash| hash.to_string() == mark.hash);
            if is_that_text {
                superseded.newer.entry(old).or_insert(file);
            }
            let message = match is_that_text {
                // That nothing is made from v1 is said already.
                true if its.form == mark.form || mark.form == Form::V1 => continue,
                // The text is the proof.
                true => format!(
                    "{} is in {}, not in {}: write `form: {}`",
                    old.display(),
                    its.form,
                    mark.form,
                    its.form.name()
                ),
                false => format!(
                    "{} is another text than the one that this was made of: its tasks that stand nowhere else run as it says, \
                     of the others this file counts; `flowlog migrate` writes down those, or remove `convertedFrom`",
                    old.display()
                ),
            };
            superseded.wrong.push(Problem { place: place.clone(), message });
        }
        superseded
    }

    /// The forms of a task without those that were removed since they were converted; and these, each with the file that is
    /// the truth for it. Whatever v1 has is not removed.
    pub(super) fn living(&self, family: Vec<Said<'a>>) -> (Vec<Said<'a>>, Vec<(Said<'a>, &'a Path)>) {
        let mut removed = Vec::new();
        if family.iter().any(|said| said.form == Form::V1) {
            return (family, removed);
        }
        let lives = |said: &Said<'a>| match self.newer.get(said.file) {
            None => true,
            Some(newer) => {
                removed.push((*said, *newer));
                false
            }
        };
        (family.into_iter().filter(lives).collect(), removed)
    }
}

/// Says of tasks that they were removed, where they still stand, and from where.
pub(super) fn removed(names: &[String], old: &Path, newer: &Path) -> String {
    let all = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let (old, newer) = (old.display(), newer.display());
    match names {
        [_] => format!(
            "{all} stands in {old} only, which was converted into {newer}: it was removed there and does not run; to have it \
             back, copy it into {newer}"
        ),
        _ => format!(
            "{all} stand in {old} only, which was converted into {newer}: they were removed there and do not run; to have them \
             back, copy them into {newer}"
        ),
    }
}

/// Names of removed tasks, by the file that is the truth for them and the one in which they still stand.
pub(super) type Removed = std::collections::BTreeMap<PathBuf, Vec<(PathBuf, Vec<String>)>>;

/// Notes a task that was removed, and gives what to say of it.
pub(super) fn note(all: &mut Removed, Said { file, spec, .. }: &Said<'_>, newer: &Path) -> Problem {
    let of_newer = all.entry(newer.to_owned()).or_default();
    match of_newer.iter_mut().find(|(old, _)| old == file) {
        Some((_, names)) => names.push(spec.name.clone()),
        None => of_newer.push(((*file).to_owned(), vec![spec.name.clone()])),
    }
    Problem { place: spec.place.clone(), message: removed(std::slice::from_ref(&spec.name), file, newer) }
}
