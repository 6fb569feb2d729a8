//! The keys of a task file.

use super::raw;
use crate::task::Spec;
use crate::tree::{Fields, Key, Place, Problems, Tree};

pub(super) const API_VERSION: &str = "flowlog.io/v1";
pub(super) const KIND: &str = "FlowLogs";
const KEYS: &[&str] = &["apiVersion", "kind", "flowLogs"];

/// Reads the tasks of one file. Without `apiVersion` and `kind` it is Hubble's form; our keys work in both.
pub(super) fn read(file: &str, text: &str, problems: &mut Problems) -> Vec<Spec> {
    let tree = match raw::parse(file, text) {
        Ok(Some(tree)) => tree,
        Ok(None) => {
            problems
                .error(&Place::file(file), "nothing stands in this file; write `flowLogs: []` for no tasks");
            return Vec::new();
        }
        Err(problem) => {
            problems.errors.push(problem);
            return Vec::new();
        }
    };
    let errors = problems.errors.len();
    let fields = tree.fields("key", KEYS, find, problems);
    form(&tree, &fields, problems);
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
