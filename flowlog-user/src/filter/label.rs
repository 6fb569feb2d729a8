use std::net::IpAddr;

use ipnet::IpNet;

use super::{json, label_parser, pool};
use crate::record::{Pools, Texts};
use crate::tree::{Place, Placed, Problem, Problems, Tree};

/// Kubernetes label selectors, one of which must select the labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selectors(Vec<Placed<Vec<Requirement>>>);

/// One requirement of a selector; all must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Requirement {
    pub(super) key: Key,
    pub(super) test: Test,
}

/// A label's key with its source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// `None` stands for any source.
    pub(super) source: Option<String>,
    pub(super) name: String,
    /// Of the source `cidr`: the prefix in which a label's must lie.
    pub(super) prefix: Option<IpNet>,
}

/// What a requirement asks of the key's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Test {
    In(Vec<String>),
    /// Also holds where the key is missing.
    NotIn(Vec<String>),
    Exists,
    Missing,
    Above(i64),
    Below(i64),
}

impl Selectors {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            label_parser::parse(text)
                .map_err(|what| {
                    problems.error(&item.place, format!("`{text}` is no label selector: {what}"));
                })
                .ok()
                .map(|value| Placed { place: item.place.clone(), value })
        })
        .map(Self)
    }

    /// Whether one of them asks only for labels that records of ours have.
    pub(super) fn are_recorded(&self, pools: &Pools) -> bool {
        self.unrecorded(pools).count() < self.0.len()
    }

    /// Where selectors stand that ask for labels which no record of ours has.
    pub(super) fn unrecorded(&self, pools: &Pools) -> impl Iterator<Item = &Place> {
        let is_recorded = |requirement: &Requirement| requirement.key.is_recorded(pools);
        let all = self.0.iter().filter(move |selector| !selector.value.iter().all(is_recorded));
        all.map(|selector| &selector.place)
    }

    fn requirements(&self) -> impl Iterator<Item = (&Place, &Requirement)> {
        self.0
            .iter()
            .flat_map(|Placed { place, value }| value.iter().map(move |requirement| (place, requirement)))
    }

    /// Labels of pools that no flow is given.
    pub(super) fn vain(&self, pools: &Pools, problems: &mut Vec<Problem>) {
        for (place, requirement) in self.requirements() {
            let name = &requirement.key.name;
            if !requirement.key.is_a_pool_s(pools) {
                continue;
            }
            let of_value = |value: &String| match value.as_str() {
                "" => pool::vain(name, false, pools),
                RESERVED => pool::vain(name, true, pools),
                _ => Some(format!("the label of a pool has the value `{RESERVED}` or none, not `{value}`")),
            };
            let why = match &requirement.test {
                Test::Exists | Test::Missing => pool::vain(name, false, pools),
                Test::In(values) | Test::NotIn(values) => {
                    let all: Option<Vec<String>> = values.iter().map(of_value).collect();
                    all.and_then(|all| all.into_iter().next())
                }
                Test::Above(_) | Test::Below(_) => Some("the label of a pool has no number".to_owned()),
            };
            let effect = match requirement.test {
                Test::Missing | Test::NotIn(_) => "holds for every flow",
                _ => "matches nothing",
            };
            let message = |why| format!("`{POOL}:{name}` {effect}: {why}");
            problems.extend(why.map(|why| Problem { place: place.clone(), message: message(why) }));
        }
    }

    pub(super) fn matches(&self, labels: Texts<'_>) -> bool {
        self.0.iter().any(|selector| selector.value.iter().all(|requirement| requirement.holds(labels)))
    }
}

impl Requirement {
    fn holds(&self, labels: Texts<'_>) -> bool {
        let found = labels.iter().map(split).find(|label| self.key.is_of(label)).map(|(_, _, value)| value);
        match (&self.test, found) {
            (Test::In(values), Some(found)) => values.iter().any(|value| value == found),
            (Test::NotIn(values), Some(found)) => values.iter().all(|value| value != found),
            (Test::Exists, found) => found.is_some(),
            (Test::Missing, found) => found.is_none(),
            (Test::NotIn(_), None) => true,
            (Test::In(_) | Test::Above(_) | Test::Below(_), None) => false,
            (Test::Above(bound), Some(found)) => found.parse::<i64>().is_ok_and(|number| number > *bound),
            (Test::Below(bound), Some(found)) => found.parse::<i64>().is_ok_and(|number| number < *bound),
        }
    }
}

impl Key {
    /// Whether records of ours have such labels: `reserved:` and `pool:`, also where any source will do.
    fn is_recorded(&self, pools: &Pools) -> bool {
        match self.source.as_deref() {
            Some("reserved") => true,
            None if RESERVED_NAMES.contains(&&*self.name) => true,
            _ => self.is_a_pool_s(pools),
        }
    }

    /// Whether it can only be the label of a pool.
    fn is_a_pool_s(&self, pools: &Pools) -> bool {
        match self.source.as_deref() {
            None => pools.addresses(&self.name).is_some() && !RESERVED_NAMES.contains(&&*self.name),
            Some(source) => source == POOL,
        }
    }

    fn is_of(&self, (source, name, _): &(&str, &str, &str)) -> bool {
        match &self.source {
            None => self.name == *name,
            Some(own) if own == CIDR && *source == CIDR => {
                let within = self.prefix.zip(prefix(name)).is_some_and(|(own, other)| own.contains(&other));
                within || self.name == *name
            }
            Some(own) => own == source && self.name == *name,
        }
    }
}

/// Names of the labels with the source `reserved` that records of ours have.
const RESERVED_NAMES: [&str; 3] = ["host", "world", "unmanaged"];

/// The source of the labels of pools, and the value that such a label may have.
const POOL: &str = "pool";
const RESERVED: &str = "reserved";

/// The source of labels that stand for prefixes.
const CIDR: &str = "cidr";

/// A label as source, key and value: `k8s:app=cart`. Without a source it has one that no selector names.
fn split(label: &str) -> (&str, &str, &str) {
    let (source, rest) = match (label.strip_prefix('$'), label.split_once(':')) {
        (Some(rest), _) => ("reserved", rest),
        (None, Some((source, rest))) if !source.is_empty() => (source, rest),
        (None, Some((_, rest))) => ("unspec", rest),
        (None, None) => ("unspec", label),
    };
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    (source, key, value)
}

/// The prefix in a key of the source `cidr`, in which `-` stands for `:`.
pub(super) fn prefix(name: &str) -> Option<IpNet> {
    let text = name.replace('-', ":");
    match text.split_once('/') {
        Some(_) => text.parse().ok(),
        None => text.parse::<IpAddr>().ok().map(IpNet::from),
    }
}

/// A key by what a selector says of its source.
pub(super) fn key(source: Option<&str>, name: &str) -> Key {
    let source = source.filter(|source| *source != "any").map(str::to_owned);
    let prefix = if source.as_deref() == Some(CIDR) { prefix(name) } else { None };
    Key { source, name: name.to_owned(), prefix }
}
