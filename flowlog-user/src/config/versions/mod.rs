//! Versions of the task file: every form that was ever written is read, and made into the newest one.
//!
//! In: a document as a tree, or a file as a text. Out: the same tasks in `flowlog.io/v1`. As trees that happens each time
//! an older file is loaded ([`to_v1`]), with every node where its author wrote it; as texts when somebody asks for it
//! ([`text`]), with everything kept that is not part of the form, comments above all. What never happens here: a file
//! changed, an older form read without having been made a newer one.
//!
//! To add a version: a [`Form`], its way to v1 in `tree`, and its way there and back in `text`.

mod comments;
mod edit;
mod layout;
pub(super) mod mark;
mod migrate;
mod part;
mod render;
mod text;
mod tree;
mod twins;

use std::fmt;

use crate::tree::{Problems, Tree, Value};

pub use mark::Mark;
pub use migrate::{Migration, Outcome, migrations};
pub(super) use migrate::{bare_stem, migrated, newest};
#[cfg(test)]
pub(super) use text::convert;
pub(super) use tree::DEFAULT_FOLDER;
pub(super) use tree::{draft_name, to_v1};
pub(super) use twins::{Twin, difference, same};

/// The forms of a task file, older ones first: of several forms of one task the newest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// `flowlog.io/v1alpha1`, kind `FlowLog`: a resource for each task, as it was first proposed for Hubble.
    Draft,
    /// Hubble's own file: `flowLogs` and nothing beside it.
    Hubble,
    /// `flowlog.io/v1alpha1`, kind `FlowLogs`: Hubble's keys.
    V1alpha1,
    /// `flowlog.io/v1`, kind `FlowLogs`: ours.
    #[default]
    V1,
}

/// The newest version.
pub(super) const V1: &str = "flowlog.io/v1";
const V1ALPHA1: &str = "flowlog.io/v1alpha1";
pub(super) const KIND: &str = "FlowLogs";
const DRAFT_KIND: &str = "FlowLog";

impl Form {
    /// Every form.
    pub const ALL: [Self; 4] = [Self::V1, Self::V1alpha1, Self::Draft, Self::Hubble];

    /// Its name as an argument and in marks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "v1alpha1-flowlog",
            Self::Hubble => "hubble",
            Self::V1alpha1 => "v1alpha1",
            Self::V1 => "v1",
        }
    }

    /// `apiVersion` and `kind`, where it has them.
    const fn header(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Draft => Some((V1ALPHA1, DRAFT_KIND)),
            Self::Hubble => None,
            Self::V1alpha1 => Some((V1ALPHA1, KIND)),
            Self::V1 => Some((V1, KIND)),
        }
    }

    /// The form of a document. One that is no map has Hubble's, as far as can be said.
    pub(super) fn of(document: &Tree, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &document.value else { return Some(Self::Hubble) };
        let get = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let (version, kind) = match (get("apiVersion"), get("kind")) {
            (None, None) => return Some(Self::Hubble),
            (version, kind) => (version, kind),
        };
        if let (Some(Tree { value: Value::Scalar { text, .. }, .. }), Some(_)) = (kind, get("data"))
            && text == "ConfigMap"
        {
            let message = "a ConfigMap is no task file; take the text out of its `data` into a file of its own, without the spaces \
                           before each line";
            problems.error(&document.place, message);
            return None;
        }
        let errors = problems.errors.len();
        let known = format!(
            "this flowlog knows {V1}, {V1ALPHA1}, and Hubble's form, which has neither apiVersion nor kind"
        );
        let version = match version {
            None => {
                problems.error(&document.place, format!("apiVersion is missing; add `apiVersion: {V1}`"));
                None
            }
            Some(tree) => tree.text(problems).and_then(|text| match text {
                V1 | V1ALPHA1 => Some(text),
                _ => {
                    problems.error(&tree.place, format!("unknown version `{text}`; {known}"));
                    None
                }
            }),
        };
        let kind = match kind {
            None => {
                problems.error(&document.place, format!("kind is missing; add `kind: {KIND}`"));
                None
            }
            Some(tree) => tree.text(problems).and_then(|text| {
                let found = Self::ALL.into_iter().find(|form| form.header() == version.map(|of| (of, text)));
                if found.is_none() && version.is_some() {
                    let kinds = match version {
                        Some(V1) => "`FlowLogs` (or `AddressPool`)",
                        _ => "`FlowLogs` or `FlowLog`",
                    };
                    problems.error(&tree.place, format!("expected {kinds}, found `{text}`"));
                }
                found
            }),
        };
        kind.filter(|_| problems.errors.len() == errors)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draft => "flowlog.io/v1alpha1 (FlowLog)",
            Self::Hubble => "Hubble's form",
            Self::V1alpha1 => "flowlog.io/v1alpha1",
            Self::V1 => "flowlog.io/v1",
        })
    }
}
