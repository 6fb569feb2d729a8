//! The keys of a task file.

use std::path::Path;
use std::sync::Arc;

use super::memory::Hash;
use super::pools::{self, Defined};
use super::raw;
use super::resources;
use super::versions::{self, Form, Mark, mark};
use crate::task::Spec;
use crate::tree::{Key, Place, Problems, Tree};

const KEYS: &[&str] = &["apiVersion", "kind", "flowLogs", mark::KEY];

/// What a file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) tasks: Vec<Arc<Spec>>,
    pub(super) pools: Vec<Defined>,
    /// How it was written.
    pub(super) form: Form,
    /// Of what it was made, where it says so, and where.
    pub(super) mark: Option<(Place, Mark)>,
    /// SHA-256 of the text.
    pub(super) hash: Option<Hash>,
}

/// What a file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Tasks or pools.
    Anything,
    /// Pools: it is named by `--pools`.
    Pools,
}

impl Holds {
    /// In a sentence.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Anything => "tasks",
            Self::Pools => "pools",
        }
    }
}

/// Reads one file: either tasks, or pools in any number of documents. Tasks in an older form are made into those of v1
/// first; `folder` is where they write when their form cannot say it.
pub(super) fn read(file: &str, text: &str, holds: Holds, folder: &Path, problems: &mut Problems) -> Content {
    let mut content = content(file, text, holds, folder, problems);
    content.hash = Some(Hash::of(text));
    problems.close(file);
    content
}

fn content(file: &str, text: &str, holds: Holds, folder: &Path, problems: &mut Problems) -> Content {
    let mut content = Content::default();
    let documents = match raw::parse(file, text) {
        Ok(documents) => documents,
        Err(problem) => {
            problems.errors.push(problem);
            return content;
        }
    };
    let errors = problems.errors.len();
    let Some(roots) = resources::all(&documents, problems) else { return content };
    if problems.errors.len() > errors {
        return content;
    }
    if !roots.is_empty() && roots.iter().all(|root| pools::is_one(root)) {
        content.pools = roots.iter().filter_map(|root| pools::read(root, problems)).collect();
        return content;
    }
    let drafts = roots.iter().all(|root| Form::of(root, &mut Problems::default()) == Some(Form::Draft));
    if let Some((place, _)) = documents.get(1).filter(|_| !drafts || roots.is_empty()) {
        problems.error(place, "a second document begins here; put each into a file of its own");
        return content;
    }
    let Some(first) = roots.first() else {
        let message = match holds {
            Holds::Anything => "nothing stands in this file; write `flowLogs: []` for no tasks",
            Holds::Pools => "nothing stands in this file; add a pool, or remove the file",
        };
        problems.error(&Place::file(file), message);
        return content;
    };
    if holds == Holds::Pools {
        problems.error(
            &first.place,
            "expected pools, found tasks; name this file with --tasks instead of --pools",
        );
        return content;
    }
    let Some(form) = Form::of(first, problems) else { return content };
    content.form = form;
    if let Some(newest) = versions::to_v1(&roots, form, folder, problems) {
        tasks(&newest, &mut content, problems);
    }
    content
}

/// Reads the tasks of a document of v1.
fn tasks(tree: &Tree, content: &mut Content, problems: &mut Problems) {
    let errors = problems.errors.len();
    let known: Vec<&str> = KEYS.iter().copied().filter(|key| *key != mark::KEY).collect();
    let fields = tree.fields("key", &known, find, problems);
    content.mark = fields
        .entry(mark::KEY)
        .and_then(|entry| Some((entry.place.clone(), Mark::read(&entry.value, problems)?)));
    match fields.get("flowLogs") {
        Some(list) => {
            let tasks = list.list(problems).iter().filter_map(|task| Spec::read(task, problems));
            content.tasks = tasks.map(Arc::new).collect();
        }
        None => {
            if problems.errors.len() == errors {
                problems.error(&tree.place, "flowLogs is required; write `flowLogs: []` for no tasks");
            }
        }
    }
}

/// Hubble ignores the case of keys.
fn find(key: &str) -> Key {
    match KEYS.iter().find(|name| **name == key) {
        Some(name) => Key::Known(name),
        None if key.eq_ignore_ascii_case("flowLogs") => Key::Respelt("flowLogs"),
        None => Key::Unknown,
    }
}
