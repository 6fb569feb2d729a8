//! The keys of a task file.

use std::sync::Arc;

use super::pools::{self, Defined};
use super::raw::{self, Document};
use crate::task::Spec;
use crate::tree::{Fields, Key, Place, Problems, Tree};

const API_VERSION: &str = "flowlog.io/v1";
const KIND: &str = "FlowLogs";
const KEYS: &[&str] = &["apiVersion", "kind", "flowLogs"];

/// What a file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) tasks: Vec<Arc<Spec>>,
    pub(super) pools: Vec<Defined>,
}

/// What a file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Tasks or pools.
    Anything,
    /// Pools: it is named by `--pools`.
    Pools,
}

/// Reads one file: either tasks, in one document, or pools, in any number of them.
pub(super) fn read(file: &str, text: &str, holds: Holds, problems: &mut Problems) -> Content {
    let mut content = Content::default();
    let documents = match raw::parse(file, text) {
        Ok(documents) => documents,
        Err(problem) => {
            problems.errors.push(problem);
            return content;
        }
    };
    let is_pools = |(_, root): &Document| root.as_ref().is_none_or(pools::is_one);
    let some = documents.iter().any(|(_, root)| root.is_some());
    if some && documents.iter().all(is_pools) {
        let roots = documents.iter().filter_map(|(_, root)| root.as_ref());
        content.pools = roots.flat_map(|root| pools::read(root, problems)).collect();
        return content;
    }
    if let Some((place, _)) = documents.get(1) {
        problems.error(place, "a second document begins here; put each into a file of its own");
        return content;
    }
    let Some(tree) = documents.first().and_then(|(_, root)| root.as_ref()) else {
        problems.error(&Place::file(file), "nothing stands in this file; write `flowLogs: []` for no tasks");
        return content;
    };
    if holds == Holds::Pools {
        problems.error(
            &tree.place,
            "expected pools, found tasks; name this file with --tasks instead of --pools",
        );
        return content;
    }
    content.tasks = tasks(tree, problems).into_iter().map(Arc::new).collect();
    content
}

/// Reads the tasks of one document. Without `apiVersion` and `kind` it is Hubble's form; our keys work in both.
fn tasks(tree: &Tree, problems: &mut Problems) -> Vec<Spec> {
    let errors = problems.errors.len();
    let fields = tree.fields("key", KEYS, find, problems);
    form(tree, &fields, problems);
    match fields.get("flowLogs") {
        Some(list) => list.list(problems).iter().filter_map(|task| Spec::read(task, problems)).collect(),
        None => {
            if problems.errors.len() == errors {
                problems.error(&tree.place, "flowLogs is required; write `flowLogs: []` for no tasks");
            }
            Vec::new()
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

fn form(tree: &Tree, fields: &Fields<'_>, problems: &mut Problems) {
    let expected = [("apiVersion", API_VERSION), ("kind", KIND)];
    if expected.iter().all(|(key, _)| fields.get(key).is_none()) {
        return;
    }
    for (key, value) in expected {
        match fields.get(key) {
            None => problems.error(&tree.place, format!("{key} is missing; add `{key}: {value}`")),
            Some(given) => {
                if let Some(text) = given.text(problems)
                    && text != value
                {
                    problems.error(&given.place, format!("expected `{value}`, found `{text}`"));
                }
            }
        }
    }
}
