use super::json;
use crate::record::{IpVersion, TrafficDirection, VERDICT_FORWARDED};
use crate::tree::{Problems, Tree, Value, hint};

/// Numbers of an enum, one of which must be the flow's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(Vec<i32>);

/// Names and numbers of Hubble's `Verdict`.
pub(super) const VERDICT: &[(&str, i32)] = &[
    ("VERDICT_UNKNOWN", 0),
    ("FORWARDED", VERDICT_FORWARDED),
    ("DROPPED", 2),
    ("ERROR", 3),
    ("AUDIT", 4),
    ("REDIRECTED", 5),
    ("TRACED", 6),
    ("TRANSLATED", 7),
];

/// Names and numbers of Hubble's `TrafficDirection`.
pub(super) const TRAFFIC_DIRECTION: &[(&str, i32)] = &[
    ("TRAFFIC_DIRECTION_UNKNOWN", 0),
    (TrafficDirection::Ingress.name(), TrafficDirection::Ingress.number()),
    (TrafficDirection::Egress.name(), TrafficDirection::Egress.number()),
];

/// Names and numbers of Hubble's `IPVersion`.
pub(super) const IP_VERSION: &[(&str, i32)] = &[
    ("IP_NOT_USED", 0),
    (IpVersion::V4.name(), IpVersion::V4.number()),
    (IpVersion::V6.name(), IpVersion::V6.number()),
];

impl Numbers {
    /// Reads names (case counts) or numbers.
    pub(super) fn read(tree: &Tree, names: &[(&str, i32)], problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| read(item, names, problems)).map(Self)
    }

    pub(super) fn matches(&self, number: i32) -> bool {
        self.0.contains(&number)
    }
}

fn read(item: &Tree, names: &[(&str, i32)], problems: &mut Problems) -> Option<i32> {
    let Value::Scalar { text, quoted } = &item.value else {
        problems.error(&item.place, format!("expected a name or number, found {}", item.kind()));
        return None;
    };
    if let Some((_, number)) = names.iter().find(|(name, _)| name == text) {
        return Some(*number);
    }
    // Enums are open: a number without a name is allowed and equals nothing.
    if !quoted && let Ok(number) = text.parse() {
        return Some(number);
    }
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    problems.error(&item.place, format!("unknown value `{text}`; {}", hint(text, &known)));
    None
}
