//! From one decision to the next: who had something before has it now.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::{Config, Known, read};
use crate::config::diff::Owned;
use crate::config::heirs::{PoolOwner, Texts};
use crate::config::lineage::Said;
use crate::config::memory::Hash;
use crate::config::news::News;
use crate::config::pools::{Defined, Joined, Other, join};

impl Config {
    /// Takes the texts that were accepted last for those of the decision before, with the pools that they defined.
    pub(super) fn recall(&mut self, kept: &[(PathBuf, String)]) {
        self.before = kept.iter().map(|(file, text)| (file.clone(), Hash::of(text))).collect();
        let files: HashSet<&Path> = self.incumbents.files_of_pools().collect();
        let of_pools = kept.iter().filter(|(file, _)| files.contains(file.as_path()));
        let is_same = |(file, _): &&(PathBuf, String)| {
            self.files.get(file).and_then(Known::hash).as_ref() == self.before.get(file)
        };
        if of_pools.clone().all(|kept| is_same(&kept)) {
            return;
        }
        let read = |(file, text): &'_ (PathBuf, String)| {
            let (content, _) = read(file, text, &self.sources).ok()?;
            Some((file.clone(), content.pools))
        };
        let pools: Vec<(PathBuf, Vec<Defined>)> = of_pools.filter_map(read).collect();
        let files = pools.iter().map(|(file, pools)| (file.as_path(), pools.as_slice()));
        self.joined = join(files, |name, all| {
            let (owner, form) = self.incumbents.pool(name)?;
            all.iter().find(|(file, _)| *file == owner).map(|(file, _)| (*file, form))
        });
    }

    /// Gives what is in force, and whose file says nothing of it any more, to the file that does.
    pub(super) fn follow<'a>(&self, owners: impl Iterator<Item = &'a mut Owned>) {
        let mut said: HashMap<&str, Vec<Said<'_>>> = HashMap::new();
        for (file, known) in &self.files {
            let Some((_, content)) = &known.accepted else { continue };
            let (form, mark) = (content.form, content.mark.as_ref().map(|(_, mark)| mark));
            for spec in &content.tasks {
                said.entry(&spec.name).or_default().push(Said { file, form, mark, spec, is_valid: true });
            }
        }
        let texts = self.texts();
        for owned in owners {
            let all = said.get(&*owned.spec.name).map_or(&[][..], Vec::as_slice);
            texts.follow(owned, all);
        }
    }

    pub(super) fn texts(&self) -> Texts<'_> {
        let now = self.files.iter().map(|(file, known)| (file.as_path(), known.hash()));
        Texts::new(&self.before, now, self.unreachable.keys().map(PathBuf::as_path))
    }

    /// Who has, or had before the start, the name of a pool.
    pub(super) fn pool_owner(&self, name: &str) -> Option<PoolOwner<'_>> {
        let now = self.joined.defined.get(name);
        let now = now.map(|(file, of)| PoolOwner { file, form: of.form, pool: Some(&of.pool) });
        now.or_else(|| self.incumbents.pool(name).map(|(file, form)| PoolOwner { file, form, pool: None }))
    }

    /// Says which pools are not there any more, or in an older version only, or elsewhere and with other addresses.
    pub(super) fn tell_gone(&self, before: &Joined, news: &mut Vec<News>) {
        let naming = |name: &str| -> Vec<String> {
            let named = self.tasks.values().filter(|owned| owned.spec.filter.names_pool(name));
            named.map(|owned| owned.spec.name.clone()).collect()
        };
        for Other { name, file, what, is_older } in self.joined.other_than(before) {
            let (file, tasks) = (file.to_owned(), naming(name));
            news.push(News::PoolOther { name: name.into(), file, what, is_older, tasks });
        }
        let gone = before.defined.iter().filter(|(name, _)| !self.joined.defined.contains_key(*name));
        for (name, (file, _)) in gone {
            news.push(News::PoolGone { name: name.clone(), file: file.clone(), tasks: naming(name) });
        }
    }
}
