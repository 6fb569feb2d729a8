//! Two forms of one task: the newer one is the truth, and what they do not agree about is said.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::Form;
use crate::config::normal;
use crate::task::Spec;
use crate::tree::Problem;
use crate::write::Definition;

/// An older form of a task that is there in a newer one too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Twin {
    /// The task.
    pub(in crate::config) task: String,
    /// The older file.
    pub(in crate::config) file: PathBuf,
    /// Its form.
    pub(in crate::config) form: Form,
    /// What the two do not agree about; `None` when nothing.
    pub(in crate::config) difference: Option<String>,
    /// The same as a warning, at the place of the older one.
    pub(in crate::config) warning: Option<Problem>,
    /// Other tasks of its file, of which there is nothing newer.
    pub(in crate::config) needed_for: Vec<String>,
}

impl Twin {
    pub(in crate::config) fn new(
        file: PathBuf,
        form: Form,
        older: &Spec,
        newer_form: Form,
        newer: &Spec,
    ) -> Self {
        let difference = (!same(older, newer)).then(|| difference(older, newer));
        let warning = difference.as_ref().map(|difference| Problem {
            place: older.place.clone(),
            message: format!(
                "task `{}` is there as {newer_form} at {} too, which counts, and this one says something else: {difference}; \
                 make them agree, or remove this one",
                older.name,
                newer.place.spot()
            ),
        });
        Self { task: older.name.clone(), file, form, difference, warning, needed_for: Vec::new() }
    }
}

/// Whether two tasks do the same, however they were written.
pub(in crate::config) fn same(one: &Spec, other: &Spec) -> bool {
    let bare = |spec: &Spec| {
        let mut spec = spec.clone();
        spec.file.definition = Definition::default();
        spec
    };
    one.name == other.name && bare(one).differences(&bare(other)).is_empty()
}

/// Characters of a value that are shown.
const CHARS_MAX: usize = 200;

/// What two tasks do not agree about, key by key.
pub(in crate::config) fn difference(older: &Spec, newer: &Spec) -> String {
    let keys = |spec: &Spec| -> Map<String, Value> {
        serde_json::from_str(&spec.file.definition.0).unwrap_or_default()
    };
    // By the proper names, without what is no difference: spellings, and what is the same when it is left out.
    let normal = |spec: &Spec| -> Map<String, Value> {
        normal(spec).into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    };
    let (mut old, mut new) = (normal(older), normal(newer));
    if old == new {
        (old, new) = (keys(older), keys(newer));
    }
    let mut all: Vec<&String> = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).collect();
    all.retain(|key| old.get(*key) != new.get(*key));
    let shown = |value: Option<&Value>| match value {
        None => "nothing".to_owned(),
        Some(value) => {
            let text = value.to_string();
            let cut = text.char_indices().nth(CHARS_MAX).map(|(at, _)| at);
            cut.and_then(|at| text.get(..at)).map_or(text.clone(), |start| format!("{start}…"))
        }
    };
    let lines = all.iter().map(|key| format!("`{key}`: -{} +{}", shown(old.get(*key)), shown(new.get(*key))));
    lines.collect::<Vec<_>>().join(", ")
}
