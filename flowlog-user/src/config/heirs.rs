//! Owners whose file says nothing of what they have any more: somebody has renamed it, made another of it, or put what it
//! said elsewhere. What they have goes with them, whoever else waits for it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::diff::Owned;
use super::lineage::Said;
use super::memory::Hash;
use super::normal;
use super::pools::{Defined, PoolForm};
use crate::record::Pool;

/// By what a definition is known as the one that another file held; the surest sign last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// A task writes to the same filePath, or its file is called as a newer form of that one; a pool is Cilium's, too, where a
    /// name is there once.
    Alike,
    /// It says the same.
    Definition,
    /// Its file says that it was made of that text.
    Mark,
    /// Its file has that text.
    Text,
}

/// Who had a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolOwner<'a> {
    pub(super) file: &'a Path,
    pub(super) form: PoolForm,
    /// What it was, where that is known.
    pub(super) pool: Option<&'a Pool>,
}

/// The texts of all files, as they were at the last decision and as they are.
#[derive(Debug)]
pub(super) struct Texts<'a> {
    before: &'a HashMap<PathBuf, Hash>,
    all_before: HashSet<Hash>,
    /// Of a file of which nothing was accepted yet, none.
    now: HashMap<&'a Path, Option<Hash>>,
    all_now: HashSet<Hash>,
    unreachable: Vec<&'a Path>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(
        before: &'a HashMap<PathBuf, Hash>,
        now: impl Iterator<Item = (&'a Path, Option<Hash>)>,
        unreachable: impl Iterator<Item = &'a Path>,
    ) -> Self {
        let now: HashMap<&Path, Option<Hash>> = now.collect();
        Self {
            before,
            all_before: before.values().copied().collect(),
            all_now: now.values().copied().flatten().collect(),
            now,
            unreachable: unreachable.collect(),
        }
    }

    /// Gives a task that is in force the file that has its definition now; `all`: the definitions of its name, in the order
    /// of their files.
    pub(super) fn follow(&self, owned: &mut Owned, all: &[Said<'_>]) {
        if self.stays(&owned.file, all.iter().any(|said| *said.file == *owned.file)) {
            return;
        }
        let heirs = all.iter().filter_map(|said| Some(((self.of_task(owned, said)?, said.form), said.file)));
        if let Some(file) = first_of_best(heirs) {
            owned.file = file.into();
        }
    }

    /// The file that has the definition of a pool now, and its form there; `all`: the definitions of its name, in the order
    /// of their files.
    pub(super) fn pool_owner<'b>(
        &self,
        owner: PoolOwner<'b>,
        all: &[(&'b Path, &'b Defined)],
    ) -> (&'b Path, PoolForm) {
        let is_alike = |form: PoolForm| form.is_ciliums() == owner.form.is_ciliums();
        let is_said = all.iter().any(|(file, defined)| *file == owner.file && is_alike(defined.form));
        if self.stays(owner.file, is_said) {
            return (owner.file, owner.form);
        }
        let sign = |file: &Path, defined: &Defined| {
            let signs = [
                (is_alike(defined.form) && self.is_text_of(file, owner.file), Sign::Text),
                (owner.pool == Some(&defined.pool), Sign::Definition),
                (is_alike(defined.form) && defined.form.is_ciliums(), Sign::Alike),
            ];
            signs.into_iter().find(|(shows, _)| *shows).map(|(_, sign)| sign)
        };
        let heirs = all.iter().filter_map(|(file, defined)| {
            Some(((sign(file, defined)?, defined.form), (*file, defined.form)))
        });
        first_of_best(heirs).unwrap_or((owner.file, owner.form))
    }

    fn of_task(&self, owned: &Owned, said: &Said<'_>) -> Option<Sign> {
        let before = self.before.get(&*owned.file).map(ToString::to_string);
        if self.is_text_of(said.file, &owned.file) {
            Some(Sign::Text)
        } else if said.mark.is_some_and(|mark| before.as_ref() == Some(&mark.hash)) {
            Some(Sign::Mark)
        } else if normal(said.spec) == normal(&owned.spec) {
            Some(Sign::Definition)
        } else {
            let is_alike = said.spec.file.path == owned.spec.file.path || said.descends_from(&owned.file);
            is_alike.then_some(Sign::Alike)
        }
    }

    /// Whether an owner still has its file, or may have it where nobody can look.
    fn stays(&self, file: &Path, is_said: bool) -> bool {
        is_said && !self.is_another(file)
            || matches!(self.now.get(file), Some(None))
            || self.unreachable.iter().any(|path| file.starts_with(path))
    }

    /// Whether two files have changed places: a file has the text that another had, and its own stands elsewhere.
    fn is_another(&self, file: &Path) -> bool {
        let (Some(before), Some(Some(now))) = (self.before.get(file), self.now.get(file)) else {
            return false;
        };
        before != now && self.all_before.contains(now) && self.all_now.contains(before)
    }

    /// Whether a file has the text that an older one had.
    fn is_text_of(&self, file: &Path, old: &Path) -> bool {
        let now = self.now.get(file).copied().flatten();
        now.is_some() && self.before.get(old).copied() == now
    }
}

/// Of those with the greatest rank the first.
fn first_of_best<R: Ord, T>(all: impl Iterator<Item = (R, T)>) -> Option<T> {
    let better = |best: (R, T), next: (R, T)| if next.0 > best.0 { next } else { best };
    all.reduce(better).map(|(_, found)| found)
}
