use std::collections::HashMap;

use super::super::address::{Addresses, Span};
use super::super::condition::Condition;
use super::super::matcher::Matcher;
use super::super::port::Ports;
use super::super::{FlowFilter, Spec};
use super::access::{Access, Key, outermost};
use super::compiled::{Check, Compiled, FEW, Item, Many, Rule, Search, Side, Task};
use super::few::Few;
use super::lists::index;
use super::predicate::{Basis, Predicate};
use super::rows::{PortRows, Row};
use super::space::{Divisions, Space};
use crate::record::{AddressSet, End};

/// Exclude filters of a task that are tested one by one; more of them are looked for like include filters.
const EXCLUDES_TESTED: usize = 8;

#[derive(Default)]
struct Builder<'a> {
    compiled: Compiled,
    /// By the conditions too that their tasks ask for.
    filters: HashMap<(&'a FlowFilter, Vec<u32>), Option<u32>>,
    conditions: Distinct<'a>,
    predicates: HashMap<Predicate, Check>,
    port_sets: HashMap<Vec<u16>, u32>,
    /// The same by number.
    sets: Vec<Vec<u16>>,
    keys: Vec<Key>,
    /// Of each filter: tasks that have it as include filter, and as exclude filter that is looked for.
    owners: Vec<[Vec<u32>; 2]>,
}

/// Conditions of tasks, each distinct one once: those of pools may be long.
#[derive(Default)]
struct Distinct<'a> {
    numbers: HashMap<&'a Condition, u32>,
    all: Vec<&'a Condition>,
}

impl<'a> Distinct<'a> {
    fn number(&mut self, condition: &'a Condition) -> u32 {
        *self.numbers.entry(condition).or_insert_with(|| {
            self.all.push(condition);
            index(self.all.len() - 1)
        })
    }
}

/// A filter without fields takes everything, as no include filter at all does.
static EVERYTHING: FlowFilter = FlowFilter(Vec::new());

/// A part of a filter: how it is tested, how many of 2^32 flows pass it, and how it would be looked for.
type Part = (Check, u64, Key);

impl Compiled {
    pub(super) fn new<'a>(specs: impl IntoIterator<Item = &'a Spec>) -> Self {
        let specs: Vec<&Spec> = specs.into_iter().collect();
        let mut conditions = Distinct::default();
        for condition in specs.iter().flat_map(|spec| spec.conditions.iter()) {
            conditions.number(condition);
        }
        let filters = specs.iter().flat_map(|spec| spec.include.iter().chain(&spec.exclude));
        let spans = filters.flat_map(|filter| &filter.0).filter_map(addresses).flat_map(Addresses::spans);
        let pools = conditions.all.iter().filter_map(|condition| pool(condition));
        let space = Space::new(spans.chain(pools.flat_map(|(_, pool)| spans_of(pool).0)));
        let compiled = Self { space, ..Self::default() };
        let mut builder = Builder { compiled, conditions, ..Builder::default() };
        for (task, spec) in specs.into_iter().enumerate() {
            builder.task(index(task), spec);
        }
        builder.build()
    }
}

impl<'a> Builder<'a> {
    fn task(&mut self, task: u32, spec: &'a Spec) {
        let include = if spec.include.is_empty() { std::slice::from_ref(&EVERYTHING) } else { &spec.include };
        let mut conditions: Vec<u32> =
            spec.conditions.iter().map(|condition| self.conditions.number(condition)).collect();
        conditions.sort_unstable();
        for filter in include {
            let number = self.filter(filter, conditions.clone());
            self.own(number, 0, task);
        }
        let excludes: Vec<u32> =
            spec.exclude.iter().filter_map(|filter| self.filter(filter, Vec::new())).collect();
        let excluded_by_search = excludes.len() > EXCLUDES_TESTED;
        if excluded_by_search {
            excludes.iter().for_each(|filter| self.own(Some(*filter), 1, task));
        }
        let is_plain = excludes.is_empty();
        let excludes = if excluded_by_search { Vec::new() } else { excludes };
        let excludes = self.compiled.excludes.push(excludes);
        self.compiled.tasks.push(Task { excludes, excluded_by_search, is_plain });
    }

    fn own(&mut self, filter: Option<u32>, side: usize, task: u32) {
        let owners = filter.and_then(|filter| self.owners.get_mut(filter as usize)?.get_mut(side));
        if let Some(owners) = owners.filter(|owners| owners.last() != Some(&task)) {
            owners.push(task);
        }
    }

    /// The number of a filter with these conditions; none where no flow of ours can match.
    fn filter(&mut self, filter: &'a FlowFilter, conditions: Vec<u32>) -> Option<u32> {
        let key = (filter, conditions);
        if let Some(number) = self.filters.get(&key) {
            return *number;
        }
        let number = self.add(filter, &key.1);
        self.filters.insert(key, number);
        number
    }

    fn add(&mut self, filter: &FlowFilter, conditions: &[u32]) -> Option<u32> {
        let mut parts: Vec<Part> = Vec::with_capacity(filter.0.len() + conditions.len());
        for matcher in &filter.0 {
            parts.push(match matcher {
                Matcher::Ip(end, addresses) => self.addresses(*end, addresses)?,
                Matcher::Port(end, ports) => self.ports(*end, ports)?,
                other => (self.predicate(Predicate::Field(other.clone())), u64::MAX, Key::None),
            });
        }
        for number in conditions {
            let condition = *self.conditions.all.get(*number as usize)?;
            parts.push(match pool(condition) {
                Some((end, pool)) => self.pool(end, pool)?,
                None => (self.predicate(Predicate::Where(condition.clone())), u64::MAX, Key::None),
            });
        }
        let found = parts.iter().enumerate().filter(|(_, (.., key))| !matches!(key, Key::None));
        let best = found.min_by_key(|(_, (_, frequency, _))| *frequency).map(|(at, _)| at);
        let best = best.map(|at| parts.swap_remove(at));
        let mut checks: Vec<Check> = parts.into_iter().map(|(check, ..)| check).collect();
        // Those of the profile come first.
        checks.sort_unstable();
        let profile = checks.iter().take_while(|check| matches!(check, Check::Profile(_))).count();
        let rest = profile + usize::from(best.is_some());
        let key = best.map_or(Key::None, |(check, _, key)| {
            checks.insert(profile, check);
            key
        });
        let short = |len: usize| u16::try_from(len).unwrap_or(u16::MAX);
        let compiled = &mut self.compiled;
        compiled.rules.push(Rule {
            checks: index(compiled.checks.len()),
            profile: short(profile),
            rest: short(rest),
            count: short(checks.len()),
        });
        compiled.checks.extend(checks);
        self.keys.push(key);
        self.owners.push(Default::default());
        Some(index(self.compiled.rules.len() - 1))
    }

    fn addresses(&mut self, end: End, addresses: &Addresses) -> Option<Part> {
        let frequency = addresses.spans().map(frequency).sum();
        let space = &self.compiled.space;
        let spans = outermost(addresses.spans().map(|span| space.divisions(span)).collect());
        let check = self.within(end, &spans)?;
        let key = match end {
            End::Source => Key::Source(spans),
            End::Destination => Key::Destination(spans),
        };
        Some((check, frequency, key))
    }

    fn pool(&mut self, end: End, pool: &AddressSet) -> Option<Part> {
        let space = &self.compiled.space;
        let (spans, are_prefixes) = spans_of(pool);
        let divisions = outermost(spans.iter().map(|span| space.divisions(*span)).collect());
        let check = self.within(end, &divisions)?;
        Some(match end {
            // Other ranges may overlap with prefixes, so nothing is looked up by them.
            _ if !are_prefixes => (check, u64::MAX, Key::None),
            End::Source => (check, spans.into_iter().map(frequency).sum(), Key::Source(divisions)),
            End::Destination => (check, spans.into_iter().map(frequency).sum(), Key::Destination(divisions)),
        })
    }

    /// Of spans in order.
    fn within(&mut self, end: End, spans: &[Divisions]) -> Option<Check> {
        let compiled = &mut self.compiled;
        match end {
            End::Source => compiled.asks_source = true,
            End::Destination => compiled.asks_destination = true,
        }
        Some(match (spans, end) {
            ([], _) => return None,
            ([one], End::Source) => Check::Source(*one),
            ([one], End::Destination) => Check::Destination(*one),
            (many, End::Source) => Check::Sources(compiled.addresses.push(many.iter().copied())),
            (many, End::Destination) => Check::Destinations(compiled.addresses.push(many.iter().copied())),
        })
    }

    fn ports(&mut self, end: End, ports: &Ports) -> Option<Part> {
        let mut numbers: Vec<u16> = ports.numbers().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let last = *numbers.last()?;
        let check = if numbers.len() <= FEW {
            let few = std::array::from_fn(|at| numbers.get(at).copied().unwrap_or(last));
            match end {
                End::Source => Check::SourcePort(few),
                End::Destination => Check::DestinationPort(few),
            }
        } else {
            let set = *self.port_sets.entry(numbers.clone()).or_insert_with_key(|numbers| {
                self.sets.push(numbers.clone());
                self.compiled.port_sets.push(numbers)
            });
            match end {
                End::Source => Check::SourcePorts(set),
                End::Destination => Check::DestinationPorts(set),
            }
        };
        // Services' ports are few; a look-up, however many, is better than a test for each flow.
        let frequency = (u64::from(index(numbers.len())) << 27).min((1 << 32) - 1);
        Some(match end {
            End::Source => (check, frequency, Key::SourcePort(numbers)),
            End::Destination => (check, frequency, Key::DestinationPort(numbers)),
        })
    }

    fn predicate(&mut self, predicate: Predicate) -> Check {
        if let Some(check) = self.predicates.get(&predicate) {
            return *check;
        }
        let compiled = &mut self.compiled;
        compiled.asks_flags |= predicate.asks_flags();
        let basis = predicate.basis();
        let predicates = match basis {
            Basis::Profile => &mut compiled.profile,
            Basis::Identities => &mut compiled.identities,
            Basis::Flow | Basis::Enriched => &mut compiled.flow,
        };
        let number = index(predicates.len());
        predicates.push(predicate.clone());
        let check = match basis {
            Basis::Profile => Check::Profile(number),
            Basis::Identities => Check::Identities(number),
            Basis::Flow => Check::Flow(number),
            Basis::Enriched => Check::Enriched(number),
        };
        self.predicates.insert(predicate, check);
        check
    }

    fn build(mut self) -> Compiled {
        let keys = std::mem::take(&mut self.keys);
        let owners = std::mem::take(&mut self.owners);
        self.compiled.include = self.side(&keys, owners.iter().map(|[include, _]| include));
        self.compiled.exclude = self.side(&keys, owners.iter().map(|[_, exclude]| exclude));
        self.compiled
    }

    /// The filters that any task has on one side.
    fn side<'b>(&mut self, keys: &[Key], owners: impl Iterator<Item = &'b Vec<u32>>) -> Side {
        let compiled = &mut self.compiled;
        let mut of = vec![(0, 0..0, true); keys.len()];
        let mut found: Vec<(Key, u32)> = Vec::new();
        for (((number, key), owners), of) in (0..).zip(keys).zip(owners).zip(&mut of) {
            if let [first, others @ ..] = owners.as_slice() {
                let begin = index(compiled.owners.len());
                compiled.owners.extend(others);
                let is_plain =
                    |task: &u32| compiled.tasks.get(*task as usize).is_some_and(|task| task.is_plain);
                *of = (*first, begin..index(compiled.owners.len()), owners.iter().all(is_plain));
                found.push((key.clone(), number));
            }
        }
        let few = found.len() <= Few::MAX;
        let parts = |filter: u32| {
            let rule = compiled.rules.get(filter as usize);
            rule.map_or(0..0, |rule| rule.checks + u32::from(rule.rest)..rule.end())
        };
        // Filters that are tested alike stand together.
        found.sort_by_key(|(_, filter)| compiled.part(parts(*filter)).first());
        let mut row = Row::default();
        let search = if few {
            let filters: Vec<u32> = found.iter().map(|(_, filter)| *filter).collect();
            row.push(&filters);
            let checks: Vec<&[Check]> = filters.iter().map(|filter| compiled.whole(*filter)).collect();
            Search::Few(Few::new(&checks, compiled.space.len(), &self.sets, &compiled.addresses))
        } else {
            let access = Access::new(&found, compiled.space.len(), &mut row);
            let ports = |filter: Option<u32>, end: End| {
                let checks = filter.map_or(&[][..], |filter| compiled.part(parts(filter))).iter();
                let ports = checks.filter_map(|check| asked(*check, end, &self.sets));
                ports.reduce(|a, b| a.into_iter().filter(|port| b.contains(port)).collect())
            };
            let rows = |end| {
                let asked: Vec<_> = row.iter().map(|filter| ports(filter, end)).collect();
                PortRows::new(&asked)
            };
            let (source_ports, destination_ports) = (rows(End::Source), rows(End::Destination));
            Search::Many(Box::new(Many { access, source_ports, destination_ports }))
        };
        let item = |filter: Option<u32>| {
            let filter = filter.unwrap_or(u32::MAX);
            // What a word of few filters has not decided yet comes last.
            let mut rest = parts(filter);
            let decided = |check: &&Check| few && **check < Check::Identities(0);
            rest.start += index(compiled.part(rest.clone()).iter().take_while(decided).count());
            let first = compiled.part(rest.clone()).first().copied();
            let more = (rest.start + u32::from(first.is_some())).min(rest.end)..rest.end;
            let (owner, owners, is_plain) = of.get(filter as usize).cloned().unwrap_or_default();
            Item { first, more, owner, owners, is_plain }
        };
        let items = row.iter().map(item).collect();
        Side { search, row, items }
    }
}

fn addresses(matcher: &Matcher) -> Option<&Addresses> {
    match matcher {
        Matcher::Ip(_, addresses) => Some(addresses),
        _ => None,
    }
}

/// The addresses that a condition asks for and nothing else.
fn pool(condition: &Condition) -> Option<(End, &AddressSet)> {
    match condition {
        Condition::Pool(end, pools) => pools.within_only().map(|pool| (*end, pool)),
        _ => None,
    }
}

/// Prefixes of a pool at most by which it is looked up.
const POOL_PREFIXES_MAX: usize = 64;

/// The ranges of a pool, and whether they are prefixes: where it is made of few.
fn spans_of(pool: &AddressSet) -> (Vec<Span>, bool) {
    let ranges: Vec<Span> = pool.ranges().filter_map(|(first, last)| Span::new(first, last)).collect();
    if ranges.len() <= POOL_PREFIXES_MAX {
        let prefixes = pool.cover(POOL_PREFIXES_MAX).into_iter().filter_map(|prefix| {
            let (first, last) = prefix.range();
            Span::new(first, last)
        });
        let prefixes: Vec<Span> = prefixes.collect();
        let whole = AddressSet::of_ranges(prefixes.iter().map(|span| span.ends()));
        if whole == *pool {
            return (prefixes, true);
        }
    }
    (ranges, false)
}

/// The ports of one end of which a check asks for one.
fn asked(check: Check, end: End, sets: &[Vec<u16>]) -> Option<Vec<u16>> {
    match (check, end) {
        (Check::SourcePort(few), End::Source) | (Check::DestinationPort(few), End::Destination) => {
            Some(few.to_vec())
        }
        (Check::SourcePorts(set), End::Source) | (Check::DestinationPorts(set), End::Destination) => {
            sets.get(set as usize).cloned()
        }
        _ => None,
    }
}

/// How many of 2^32 flows have an address in a span. A guess, since networks are not used evenly: it only has to tell
/// rare from frequent.
fn frequency(span: Span) -> u64 {
    let halvings = match span {
        Span::V4(first, last) => (first ^ last).leading_zeros() / 2,
        Span::V6(first, last) => (first ^ last).leading_zeros() / 4,
    };
    (1 << 32) >> halvings
}
