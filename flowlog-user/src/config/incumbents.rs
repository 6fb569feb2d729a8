//! Who had what when the daemon ran last: names and files of tasks, names of pools. Kept in the state folder, so that a
//! start decides as the daemon did, and nobody takes a name over by a restart.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::diff::{Owned, Tasks};
use super::held;
use super::pools::PoolForm;
use crate::task::Spec;
use crate::write::Roots;

/// What is in force of a file: its tasks, and names and forms of its pools.
#[derive(Clone, Debug, Default)]
pub(super) struct InForce {
    pub(super) tasks: Vec<Arc<Spec>>,
    pub(super) pools: Vec<(Box<str>, PoolForm)>,
}

impl InForce {
    /// Whether it is the same without looking closely.
    pub(super) fn is_plainly(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Spec>, &Arc<Spec>)| Arc::ptr_eq(one, other);
        self.tasks.len() == other.tasks.len()
            && self.tasks.iter().zip(&other.tasks).all(same)
            && self.pools == other.pools
    }

    /// As a text to be kept.
    pub(super) fn text(&self, file: &Path) -> String {
        let definition =
            |spec: &Arc<Spec>| -> Value { serde_json::from_str(&spec.file.definition.0).unwrap_or_default() };
        let tasks: Vec<Value> = self.tasks.iter().map(definition).collect();
        let pool = |(name, form): &(Box<str>, PoolForm)| json!({ "name": &**name, "form": form.to_string() });
        let pools: Vec<Value> = self.pools.iter().map(pool).collect();
        json!({ "file": file.to_string_lossy(), "tasks": tasks, "pools": pools }).to_string()
    }
}

/// What is in force of all files, by file.
pub(super) fn in_force<'a>(
    tasks: &Tasks,
    pools: impl Iterator<Item = (&'a str, &'a Path, PoolForm)>,
) -> BTreeMap<Arc<Path>, InForce> {
    let mut all: BTreeMap<Arc<Path>, InForce> = BTreeMap::new();
    for owned in tasks.values() {
        all.entry(Arc::clone(&owned.file)).or_default().tasks.push(Arc::clone(&owned.spec));
    }
    for (name, file, form) in pools {
        match all.get_mut(file) {
            Some(of) => of.pools.push((name.into(), form)),
            None => {
                all.insert(file.into(), InForce { pools: vec![(name.into(), form)], ..InForce::default() });
            }
        }
    }
    all
}

/// What was in force, by name.
#[derive(Debug, Default)]
pub(super) struct Incumbents {
    /// File and definition of each task.
    tasks: HashMap<String, (PathBuf, Value)>,
    pools: HashMap<String, (PathBuf, PoolForm)>,
}

impl Incumbents {
    /// Takes in a text that was kept, and gives its file; what cannot be read was nobody's.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Option<PathBuf> {
        let kept: Value = serde_json::from_slice(bytes).ok()?;
        let file = PathBuf::from(kept.get("file")?.as_str()?);
        let list = |key: &str| kept.get(key).and_then(Value::as_array).into_iter().flatten();
        for task in list("tasks") {
            let name = task
                .as_object()
                .and_then(|keys| keys.iter().find(|(key, _)| key.eq_ignore_ascii_case("name"))?.1.as_str());
            self.tasks.extend(name.map(|name| (name.to_owned(), (file.clone(), task.clone()))));
        }
        for pool in list("pools") {
            let text = |key: &str| pool.get(key).and_then(Value::as_str);
            let form = PoolForm::ALL.into_iter().find(|form| Some(&*form.to_string()) == text("form"));
            if let (Some(name), Some(form)) = (text("name"), form) {
                self.pools.insert(name.to_owned(), (file.clone(), form));
            }
        }
        Some(file)
    }

    /// Who had the name of a pool.
    pub(super) fn pool(&self, name: &str) -> Option<(&Path, PoolForm)> {
        self.pools.get(name).map(|(file, form)| (file.as_path(), *form))
    }

    /// The files that had pools.
    pub(super) fn files_of_pools(&self) -> impl Iterator<Item = &Path> {
        self.pools.values().map(|(file, _)| file.as_path())
    }

    /// Whether there is nothing to go by.
    pub(super) fn have_no_tasks(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The tasks that ran, but for those that are asked for by somebody who cannot have what is asked; `held`: those that name
    /// pools, with addresses. A task that may not write where it did is not among them.
    pub(super) fn of(
        &self,
        asked: &BTreeMap<PathBuf, Vec<Arc<Spec>>>,
        held: &HashMap<String, Owned>,
        roots: Option<&Roots>,
    ) -> Tasks {
        let mut can_be: HashMap<&str, bool> = HashMap::new();
        for asked in asked.values().flatten() {
            *can_be.entry(&asked.name).or_default() |= asked.unmet.is_empty();
        }
        let mut tasks = Tasks::new();
        for (name, (file, definition)) in &self.tasks {
            if can_be.get(&**name) == Some(&false) {
                continue;
            }
            let spec = match held.get(name) {
                Some(held) => Some(Arc::clone(&held.spec)),
                None => held::spec(&file.to_string_lossy(), &json!({ "task": definition })).map(Arc::new),
            };
            let may = |spec: &Arc<Spec>| {
                let held = held.contains_key(&spec.name) || !spec.filter.names_pools();
                held && roots.is_none_or(|roots| roots.allow(&spec.name, &spec.file.path).is_ok())
            };
            if let Some(spec) = spec.filter(may) {
                tasks.insert(name.clone(), Owned { spec, file: file.as_path().into() });
            }
        }
        tasks
    }
}
