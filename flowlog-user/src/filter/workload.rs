use super::json::{self, Name};
use crate::record::{Message, Value};
use crate::tree::{Problems, Tree};

/// Workloads, one of which must be one of the endpoint's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workloads(Vec<Pair>);

/// HTTP headers, one of which must be one of the request's, letter for letter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Headers(Vec<Pair>);

type Pair = (String, String);

pub(super) const WORKLOAD: &[Name] = &[("name", "name"), ("kind", "kind")];
pub(super) const HEADER: &[Name] = &[("key", "key"), ("value", "value")];

impl Workloads {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        pairs(tree, "workload key", WORKLOAD, problems).map(Self)
    }

    /// An empty part stands for any.
    pub(super) fn matches(&self, workloads: &[Value]) -> bool {
        messages(workloads).any(|workload| {
            self.0.iter().any(|(name, kind)| {
                (name.is_empty() || name == workload.text("name"))
                    && (kind.is_empty() || kind == workload.text("kind"))
            })
        })
    }
}

impl Headers {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        pairs(tree, "header key", HEADER, problems).map(Self)
    }

    pub(super) fn matches(&self, headers: &[Value]) -> bool {
        messages(headers).any(|header| {
            self.0.iter().any(|(key, value)| key == header.text("key") && value == header.text("value"))
        })
    }
}

fn pairs(tree: &Tree, what: &str, names: &'static [Name], problems: &mut Problems) -> Option<Vec<Pair>> {
    json::list(tree, problems, |item, problems| {
        let fields = json::message(item, what, names, problems);
        let mut part = |at: usize| {
            let (name, _) = names.get(at)?;
            fields.get(name).map_or(Some(""), |tree| tree.text(problems)).map(str::to_owned)
        };
        Some((part(0)?, part(1)?))
    })
}

fn messages(values: &[Value]) -> impl Iterator<Item = &Message> {
    values.iter().filter_map(|value| match value {
        Value::Message(message) => Some(message),
        _ => None,
    })
}
