use std::path::Path;

use super::{Form, KIND, V1};
use crate::task::is_hubbles_key;
use crate::tree::{Entry, Key, Place, Problems, Tree, Value};

/// Where a task of the draft writes, which says nothing about it.
pub(in crate::config) const DEFAULT_FOLDER: &str = "/var/log/flowlog";

const DRAFT: &[&str] = &["apiVersion", "kind", "metadata", "spec", "status"];
const DRAFT_SPEC: &[&str] = &["filters", "excludeFilters", "fieldMask", "expiration"];

/// The documents of a file as one of v1, each node where it stood; `folder` is where tasks write that do not say where.
pub(in crate::config) fn to_v1(
    documents: &[&Tree],
    form: Form,
    folder: &Path,
    problems: &mut Problems,
) -> Option<Tree> {
    let first = *documents.first()?;
    match form {
        Form::V1 => Some(first.clone()),
        Form::Hubble => Some(headed(first, |_| true)),
        Form::V1alpha1 => {
            foreign_keys(first, problems);
            Some(headed(first, |key| !matches!(key, "apiVersion" | "kind")))
        }
        Form::Draft => {
            let tasks = documents.iter().filter_map(|document| task(document, folder, problems)).collect();
            let list = Tree { place: first.place.clone(), value: Value::List(tasks) };
            Some(with_header(first, vec![entry("flowLogs", first, list)]))
        }
    }
}

/// The same entries under the header of v1.
fn headed(document: &Tree, keep: impl Fn(&str) -> bool) -> Tree {
    match &document.value {
        Value::Map(entries) => {
            let rest = entries.iter().filter(|entry| keep(&entry.key)).cloned().collect();
            with_header(document, rest)
        }
        _ => document.clone(),
    }
}

fn with_header(document: &Tree, rest: Vec<Entry>) -> Tree {
    let text = |text: &str| Tree {
        place: document.place.clone(),
        value: Value::Scalar { text: text.into(), quoted: false },
    };
    let mut entries = vec![entry("apiVersion", document, text(V1)), entry("kind", document, text(KIND))];
    entries.extend(rest);
    Tree { place: document.place.clone(), value: Value::Map(entries) }
}

fn entry(key: &str, at: &Tree, value: Tree) -> Entry {
    Entry { key: key.into(), place: at.place.clone(), value }
}

/// Notes keys that the version does not have yet.
fn foreign_keys(document: &Tree, problems: &mut Problems) {
    let Value::Map(entries) = &document.value else { return };
    let lists = entries.iter().filter(|entry| entry.key.eq_ignore_ascii_case("flowLogs"));
    for task in lists.flat_map(|entry| match &entry.value.value {
        Value::List(tasks) => tasks.as_slice(),
        _ => &[],
    }) {
        let Value::Map(keys) = &task.value else { continue };
        for key in keys.iter().filter(|key| crate::task::is_own_key(&key.key) && !is_hubbles_key(&key.key)) {
            problems.error(&key.place, format!("is a key of {V1}; write `apiVersion: {V1}` above"));
        }
    }
}

/// The name of a task of the draft.
pub(in crate::config) fn draft_name(document: &Tree) -> Option<&Entry> {
    let Value::Map(entries) = &document.value else { return None };
    let metadata = entries.iter().find(|entry| entry.key == "metadata")?;
    let Value::Map(entries) = &metadata.value.value else { return None };
    entries.iter().find(|entry| entry.key == "name" && !matches!(entry.value.value, Value::Null))
}

/// A resource of the draft as an entry of `flowLogs`.
fn task(document: &Tree, folder: &Path, problems: &mut Problems) -> Option<Tree> {
    let known = |keys: &'static [&'static str]| {
        move |key: &str| keys.iter().find(|name| **name == key).map_or(Key::Unknown, |name| Key::Known(name))
    };
    let fields = document.fields("key", DRAFT, known(DRAFT), problems);
    let Some(name) = draft_name(document) else {
        problems.error(&document.place, "metadata.name is required; add one");
        return None;
    };
    left_out(document, problems);
    let text = name.value.text(problems)?;
    let spec = fields.get("spec");
    let place = spec.map_or(&document.place, |spec| &spec.place).clone();
    let mut entries = vec![
        Entry { key: "name".into(), ..name.clone() },
        Entry { key: "filePath".into(), place: place.clone(), value: path(text, folder, &place) },
    ];
    if let Some(spec) = spec {
        for (key, entry) in spec.fields("key", DRAFT_SPEC, known(DRAFT_SPEC), problems).iter() {
            entries.push(Entry { key: renamed(key).into(), ..entry.clone() });
        }
    }
    Some(Tree { place, value: Value::Map(entries) })
}

/// Where the annotation stands that `kubectl apply` makes of the whole resource.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Warns of what somebody has written into `metadata` and a task has no place for.
fn left_out(document: &Tree, problems: &mut Problems) {
    let inside = |tree: &Tree| match &tree.value {
        Value::Map(entries) => entries.clone(),
        _ => Vec::new(),
    };
    let metadata = inside(document).into_iter().find(|entry| entry.key == "metadata");
    for entry in metadata.iter().flat_map(|metadata| inside(&metadata.value)) {
        let says = match (entry.key.as_str(), &entry.value.value) {
            ("labels" | "annotations", _) => inside(&entry.value).iter().any(|entry| entry.key != APPLIED),
            ("namespace", Value::Scalar { text, .. }) => text != "default",
            _ => false,
        };
        if says {
            let what = match entry.key.as_str() {
                "namespace" => "tasks have no namespaces: of one name there is one task, whatever this says",
                _ => {
                    "a task has no place for this; what matters of it can stand under `team` and `description`"
                }
            };
            let message = format!("{what}; it is left out when this is made into {V1}");
            problems.warning(&entry.place, message);
        }
    }
}

/// The key of v1 for one of the draft.
pub(super) fn renamed(key: &str) -> &str {
    match key {
        "filters" => "includeFilters",
        "expiration" => "end",
        same => same,
    }
}

/// Where the task of this name writes.
pub(super) fn file_path(name: &str, folder: &Path) -> String {
    // A name is no path; `fill` does the same with `{task}`.
    folder.join(format!("{}.log", name.replace(['/', '\0'], "-"))).to_string_lossy().into_owned()
}

fn path(name: &str, folder: &Path, place: &Place) -> Tree {
    Tree { place: place.clone(), value: Value::Scalar { text: file_path(name, folder), quoted: true } }
}
