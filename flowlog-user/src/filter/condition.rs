//! `where`: what Hubble's filters cannot say. It stands beside them, never inside, so that a Hubble configuration stays
//! portable; all of it must hold, together with the include filters.

use std::ops::RangeInclusive;

use jiff::SignedDuration;

use super::json::{self, Name};
use super::pool::InPools;
use super::{shape, tcp_flags};
use crate::record::{AddressSet, End, Facts, Pools, TunnelKind};
use crate::tree::{Key, Problem, Problems, Shape, Tree, Value, hint};

/// Conditions, all of which must hold.
#[derive(Clone, Debug, Default)]
pub struct Conditions(Vec<(&'static str, Condition)>);

/// Their order says nothing, and each stands once.
impl PartialEq for Conditions {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|condition| other.0.contains(condition))
    }
}

impl Eq for Conditions {}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Condition {
    /// A port in one of the ranges, if there are any, and in none of the negated ones.
    Port(End, Ranges),
    /// One of the pairs: flags that are set, and flags that are not.
    TcpFlags(Vec<(u16, u16)>),
    /// A VLAN in one of the ranges, if there are any, and none in the negated ones; 0 stands for no tag.
    Vlan(Ranges),
    /// A tunnel like one of these, if there are any, and not like one of the negated ones.
    Tunnel { within: Vec<TunnelPattern>, outside: Vec<TunnelPattern> },
    /// All of the bounds.
    Amount(Amount, Vec<RangeInclusive<u64>>),
    /// An address of the pools.
    Pool(End, Box<InPools>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ranges {
    within: Vec<RangeInclusive<u32>>,
    outside: Vec<RangeInclusive<u32>>,
}

/// Tunnels of a kind, or none at all, with some network identifiers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TunnelPattern {
    /// Empty stands for no tunnel.
    kind: &'static str,
    vnis: Option<RangeInclusive<u32>>,
}

/// What a record counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Amount {
    Packets,
    Bytes,
    DurationNs,
}

impl Conditions {
    /// Reads `where`, noting everything that is wrong with it.
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Self {
        let Shape::Map(known, _) = shape::CONDITIONS else { return Self::default() };
        let known: Vec<&'static str> = known.iter().map(|(name, _)| *name).collect();
        let find =
            |key: &str| known.iter().find(|name| **name == key).map_or(Key::Unknown, |name| Key::Known(name));
        let mut conditions = Vec::new();
        let entries = if let Value::Map(entries) = &tree.value { entries.as_slice() } else { &[] };
        for entry in entries.iter().filter(|entry| says_nothing(&entry.value)) {
            // Of a list in Hubble's filters this means any; here it is more likely what a template has left.
            problems.error(&entry.place, "names nothing; write what it asks for, or remove it");
        }
        for (name, entry) in tree.fields("condition", &known, find, problems).iter() {
            let tree = &entry.value;
            let condition = match name {
                "source_port" => ranges(tree, problems).map(|ranges| Condition::Port(End::Source, ranges)),
                "destination_port" => {
                    ranges(tree, problems).map(|ranges| Condition::Port(End::Destination, ranges))
                }
                "tcp_flags" => json::list(tree, problems, |item, problems| Some(flags(item, problems)))
                    .map(Condition::TcpFlags),
                "vlan" => numbers(tree, VLANS, problems).map(Condition::Vlan),
                "tunnel" => tunnels(tree, problems),
                "packets" => {
                    bounds(tree, problems, number).map(|all| Condition::Amount(Amount::Packets, all))
                }
                "bytes" => bounds(tree, problems, number).map(|all| Condition::Amount(Amount::Bytes, all)),
                "duration" => {
                    bounds(tree, problems, duration_ns).map(|all| Condition::Amount(Amount::DurationNs, all))
                }
                "source_pool" => {
                    InPools::read(tree, problems).map(|pools| Condition::Pool(End::Source, pools.into()))
                }
                "destination_pool" => {
                    InPools::read(tree, problems).map(|pools| Condition::Pool(End::Destination, pools.into()))
                }
                _ => {
                    problems.error(&entry.place, "not served by this version yet; remove it");
                    None
                }
            };
            conditions.extend(condition.map(|condition| (name, condition)));
        }
        Self(conditions)
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// Each of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter().map(|(_, condition)| condition)
    }

    /// The first condition that does not hold.
    pub(super) fn failing(&self, facts: &impl Facts) -> Option<&'static str> {
        self.0.iter().find(|(_, condition)| !condition.holds(facts)).map(|(name, _)| *name)
    }

    /// Whether they ask for pools.
    pub(super) fn name_pools(&self) -> bool {
        self.pools().next().is_some()
    }

    /// Finds the addresses of the pools they name; `before` is what stays in force where one is not there.
    pub(super) fn resolve(&mut self, pools: &Pools, before: Option<&Self>, problems: &mut Vec<Problem>) {
        for (end, named) in self.pools_mut() {
            let before = before.and_then(|before| before.pools().find(|(other, _)| *other == end));
            named.resolve(pools, before.map(|(_, named)| named), problems);
        }
    }

    /// What is asked for of each end's pool.
    pub(super) fn pools(&self) -> impl Iterator<Item = (End, &InPools)> {
        self.0.iter().filter_map(|(_, condition)| match condition {
            Condition::Pool(end, named) => Some((*end, &**named)),
            _ => None,
        })
    }

    pub(super) fn pools_mut(&mut self) -> impl Iterator<Item = (End, &mut InPools)> {
        self.0.iter_mut().filter_map(|(_, condition)| match condition {
            Condition::Pool(end, named) => Some((*end, &mut **named)),
            _ => None,
        })
    }

    /// Where sender and receiver must lie, negations apart; `None` where they may lie anywhere.
    pub(super) fn within(&self, of: End) -> Option<&AddressSet> {
        self.pools().find(|(end, _)| *end == of).and_then(|(_, pools)| pools.within())
    }

    pub(super) fn hold(&self, facts: &impl Facts) -> bool {
        self.0.is_empty() || self.failing(facts).is_none()
    }
}

impl Condition {
    pub(super) fn holds(&self, facts: &impl Facts) -> bool {
        match self {
            Self::Port(end, ranges) => facts.port(*end).is_some_and(|port| {
                let inside =
                    |ranges: &[RangeInclusive<u32>]| ranges.iter().any(|range| range.contains(&port));
                (ranges.within.is_empty() || inside(&ranges.within)) && !inside(&ranges.outside)
            }),
            Self::TcpFlags(wanted) => facts.tcp_flags().is_some_and(|flags| {
                wanted.iter().any(|(set, unset)| flags & set == *set && flags & unset == 0)
            }),
            Self::Vlan(ranges) => facts.vlans().is_some_and(|[outer, inner]| {
                let (outer, inner) = (u32::from(outer), u32::from(inner));
                let any = |ranges: &[RangeInclusive<u32>]| {
                    ranges.iter().any(|range| range.contains(&outer) || inner != 0 && range.contains(&inner))
                };
                (ranges.within.is_empty() || any(&ranges.within)) && !any(&ranges.outside)
            }),
            Self::Tunnel { within, outside } => {
                let (kind, vni) = facts.tunnel();
                let any = |patterns: &[TunnelPattern]| {
                    patterns.iter().any(|pattern| {
                        pattern.kind == kind && pattern.vnis.as_ref().is_none_or(|vnis| vnis.contains(&vni))
                    })
                };
                (within.is_empty() || any(within)) && !any(outside)
            }
            Self::Amount(amount, bounds) => facts.counters().is_some_and(|counters| {
                let number = match amount {
                    Amount::Packets => counters.packets,
                    Amount::Bytes => counters.bytes,
                    Amount::DurationNs => counters.duration_ns,
                };
                bounds.iter().all(|bound| bound.contains(&number))
            }),
            Self::Pool(end, pools) => pools.holds(facts.address(*end)),
        }
    }
}

fn says_nothing(tree: &Tree) -> bool {
    matches!(&tree.value, Value::Null) || matches!(&tree.value, Value::List(items) if items.is_empty())
}

/// Ports, ranges of them, and both negated: `80`, `1024-65535`, `!443`.
fn ranges(tree: &Tree, problems: &mut Problems) -> Option<Ranges> {
    numbers(tree, PORTS, problems)
}

/// The largest number, what it is called, and what a list may hold.
type Kind = (u32, &'static str, &'static str);
const PORTS: Kind = (65_535, "port", "\"80\", \"1024-65535\" or \"!443\"");
const VLANS: Kind = (4094, "VLAN", "\"7\", \"100-199\", \"!42\", or \"0\" for no tag");

fn numbers(tree: &Tree, (most, what, such): Kind, problems: &mut Problems) -> Option<Ranges> {
    let mut ranges = Ranges::default();
    json::list(tree, problems, |item, problems| {
        let text = item.text(problems)?;
        let (positive, into) = match text.strip_prefix('!') {
            Some(rest) => (rest, &mut ranges.outside),
            None => (text, &mut ranges.within),
        };
        match range(positive, most) {
            Some(range) => into.push(range),
            None => {
                let message = format!("`{text}` is no {what} or range; expected one like {such}");
                problems.error(&item.place, message);
            }
        }
        Some(())
    })?;
    Some(ranges)
}

/// `80` or `1024-65535`.
fn range(text: &str, most: u32) -> Option<RangeInclusive<u32>> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| digits && *number <= most)
    };
    let (low, high) = (number(low)?, number(high)?);
    (low <= high).then_some(low..=high)
}

/// Kinds of tunnels, with or without network identifiers, and both negated: `vxlan`, `geneve:42`, `!gre`, `none`.
fn tunnels(tree: &Tree, problems: &mut Problems) -> Option<Condition> {
    let (mut within, mut outside) = (Vec::new(), Vec::new());
    let kinds: Vec<&'static str> =
        TunnelKind::ALL.into_iter().map(TunnelKind::name).chain([NO_TUNNEL]).collect();
    json::list(tree, problems, |item, problems| {
        let text = item.text(problems)?;
        let (positive, into) = match text.strip_prefix('!') {
            Some(rest) => (rest, &mut outside),
            None => (text, &mut within),
        };
        let (word, vnis) =
            positive.split_once(':').map_or((positive, None), |(word, vnis)| (word, Some(vnis)));
        let Some(kind) = kinds.iter().find(|kind| **kind == word) else {
            problems.error(&item.place, format!("unknown tunnel `{word}`; {}", hint(word, &kinds)));
            return None;
        };
        let kind = if *kind == NO_TUNNEL { "" } else { *kind };
        let range = vnis.map(|vnis| range(vnis, u32::MAX).filter(|_| !kind.is_empty()));
        match range {
            Some(None) => {
                let message = format!(
                    "`{text}` is no tunnel; expected one like vxlan, \"geneve:42\", \"vxlan:1-9\" or none"
                );
                problems.error(&item.place, message);
                return None;
            }
            Some(vnis) => into.push(TunnelPattern { kind, vnis }),
            None => into.push(TunnelPattern { kind, vnis: None }),
        }
        Some(())
    })?;
    Some(Condition::Tunnel { within, outside })
}

/// The word for flows that came in no tunnel.
const NO_TUNNEL: &str = "none";

/// Flags that must be set (`true`) and that must not be (`false`), as bits.
fn flags(item: &Tree, problems: &mut Problems) -> (u16, u16) {
    const NAMES: &[Name] = tcp_flags::NAMES;
    let (mut set, mut unset) = (0, 0);
    for (name, entry) in json::message(item, "TCP flag", NAMES, problems).iter() {
        let bit = NAMES.iter().position(|(known, _)| *known == name).map_or(0, |bit| 1 << bit);
        match entry.value.boolean(problems) {
            Some(true) => set |= bit,
            Some(false) => unset |= bit,
            None => {}
        }
    }
    (set, unset)
}

/// Comparisons, a list or a single one: `>=1000`, `<10`, `=1`.
fn bounds(
    tree: &Tree,
    problems: &mut Problems,
    parse: fn(&str) -> Option<u64>,
) -> Option<Vec<RangeInclusive<u64>>> {
    let read = |item: &Tree, problems: &mut Problems| {
        let text = item.text(problems)?;
        let bound = bound(text, parse);
        if bound.is_none() {
            let message = format!(
                "`{text}` is no comparison; expected one like \">=1000\" or \"<10\" (for a duration \">=1m\")"
            );
            problems.error(&item.place, message);
        }
        bound
    };
    match &tree.value {
        Value::Scalar { .. } => read(tree, problems).map(|bound| vec![bound]),
        _ => json::list(tree, problems, read),
    }
}

fn bound(text: &str, parse: fn(&str) -> Option<u64>) -> Option<RangeInclusive<u64>> {
    let after = |operator: &str| text.strip_prefix(operator).map(|rest| parse(rest.trim()));
    if let Some(number) = after(">=") {
        return Some(number?..=u64::MAX);
    }
    if let Some(number) = after("<=") {
        return Some(0..=number?);
    }
    if let Some(number) = after(">") {
        return Some(number?.checked_add(1)?..=u64::MAX);
    }
    if let Some(number) = after("<") {
        return Some(0..=number?.checked_sub(1)?);
    }
    let number = after("=")??;
    Some(number..=number)
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

fn duration_ns(text: &str) -> Option<u64> {
    let duration: SignedDuration = text.parse().ok()?;
    u64::try_from(duration.as_nanos()).ok()
}
