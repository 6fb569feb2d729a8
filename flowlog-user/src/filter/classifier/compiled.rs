use std::collections::HashMap;

use super::super::address::{Addresses, Span};
use super::super::matcher::Matcher;
use super::super::port::Ports;
use super::super::{FlowFilter, Spec};
use super::access::{Access, Key, outermost};
use super::lists::{Lists, index};
use super::predicate::{Basis, Predicate};
use super::space::{Divisions, Space};
use crate::record::End;

/// Exclude filters of a task that are tested one by one; more of them are looked for like include filters.
const EXCLUDES_TESTED: usize = 8;

/// The filters of all tasks, each distinct one once.
#[derive(Clone, Debug, Default)]
pub(super) struct Compiled {
    pub(super) space: Space,
    rules: Vec<Rule>,
    checks: Vec<Check>,
    /// Tasks of the filters that more than one task has.
    owners: Lists<u32>,
    pub(super) tasks: Vec<Task>,
    conditions: Lists<Check>,
    excludes: Lists<u32>,
    pub(super) include: Access,
    pub(super) exclude: Access,
    pub(super) include_by_profile: Vec<u32>,
    pub(super) exclude_by_profile: Vec<u32>,
    pub(super) ports: Lists<u16>,
    pub(super) addresses: Lists<Divisions>,
    /// Predicates by what decides about them.
    pub(super) profile: Vec<Predicate>,
    pub(super) identities: Vec<Predicate>,
    pub(super) flow: Vec<Predicate>,
    /// Whether any predicate asks for TCP flags.
    pub(super) asks_flags: bool,
}

/// A distinct filter.
#[derive(Clone, Copy, Debug)]
struct Rule {
    checks: u32,
    /// Checks that hold for whatever is found under the filter's key.
    implied: u16,
    count: u16,
    include: Owner,
    exclude: Owner,
}

/// Whose filter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    One(u32),
    Many(u32),
}

/// What a task asks beside one of its include filters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Task {
    conditions: u32,
    excludes: u32,
    /// Its exclude filters are looked for.
    pub(super) excluded_by_search: bool,
    /// Neither conditions nor exclude filters.
    pub(super) is_plain: bool,
}

/// A part of a filter. In the order in which they are tested: what costs least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Check {
    Profile(u32),
    SourcePort(u16),
    DestinationPort(u16),
    Source(Divisions),
    Destination(Divisions),
    SourcePorts(u32),
    DestinationPorts(u32),
    Sources(u32),
    Destinations(u32),
    Identities(u32),
    Flow(u32),
    Enriched(u32),
}

impl Compiled {
    pub(super) fn new<'a>(specs: impl IntoIterator<Item = &'a Spec>) -> Self {
        let specs: Vec<&Spec> = specs.into_iter().collect();
        let all = specs.iter().flat_map(|spec| spec.include.iter().chain(&spec.exclude));
        let spans = all.flat_map(|filter| &filter.0).filter_map(addresses).flat_map(Addresses::spans);
        let space = Space::new(spans);
        let mut builder = Builder { compiled: Self { space, ..Self::default() }, ..Builder::default() };
        for (task, spec) in specs.into_iter().enumerate() {
            builder.task(index(task), spec);
        }
        builder.build()
    }

    /// The parts of a filter that its key does not imply.
    pub(super) fn rest(&self, filter: u32) -> &[Check] {
        self.part(filter, |rule| rule.implied)
    }

    /// All parts of a filter.
    pub(super) fn whole(&self, filter: u32) -> &[Check] {
        self.part(filter, |_| 0)
    }

    fn part(&self, filter: u32, from: impl Fn(&Rule) -> u16) -> &[Check] {
        let Some(rule) = self.rules.get(filter as usize) else { return &[] };
        let begin = rule.checks as usize;
        self.checks.get(begin + usize::from(from(rule))..begin + usize::from(rule.count)).unwrap_or_default()
    }

    /// Tasks that have it as an include filter.
    pub(super) fn including(&self, filter: u32) -> (Option<u32>, &[u32]) {
        self.owners(filter, |rule| rule.include)
    }

    /// Tasks that have it as an exclude filter that is looked for.
    pub(super) fn excluding(&self, filter: u32) -> (Option<u32>, &[u32]) {
        self.owners(filter, |rule| rule.exclude)
    }

    fn owners(&self, filter: u32, of: impl Fn(&Rule) -> Owner) -> (Option<u32>, &[u32]) {
        match self.rules.get(filter as usize).map(of) {
            Some(Owner::One(task)) => (Some(task), &[]),
            Some(Owner::Many(list)) => (None, self.owners.get(list)),
            None => (None, &[]),
        }
    }

    pub(super) fn conditions(&self, task: Task) -> &[Check] {
        self.conditions.get(task.conditions)
    }

    pub(super) fn excludes(&self, task: Task) -> &[u32] {
        self.excludes.get(task.excludes)
    }

    /// Whether nothing in a profile speaks against a filter.
    pub(super) fn passes_profile(&self, filter: u32, holds: impl Fn(u32) -> bool) -> bool {
        self.whole(filter).iter().all(|check| match check {
            Check::Profile(predicate) => holds(*predicate),
            _ => true,
        })
    }

    /// Bytes on the heap, beside what single predicates hold.
    pub(super) fn bytes(&self) -> usize {
        self.space.bytes()
            + self.rules.capacity() * size_of::<Rule>()
            + self.checks.capacity() * size_of::<Check>()
            + self.tasks.capacity() * size_of::<Task>()
            + [self.owners.bytes(), self.excludes.bytes(), self.conditions.bytes()].iter().sum::<usize>()
            + [self.include.bytes(), self.exclude.bytes()].iter().sum::<usize>()
            + [self.ports.bytes(), self.addresses.bytes()].iter().sum::<usize>()
            + [&self.profile, &self.identities, &self.flow]
                .iter()
                .map(|predicates| predicates.capacity() * size_of::<Predicate>())
                .sum::<usize>()
    }
}

#[derive(Default)]
struct Builder<'a> {
    compiled: Compiled,
    filters: HashMap<&'a FlowFilter, Option<u32>>,
    predicates: HashMap<Predicate, Check>,
    keys: Vec<Key>,
    /// Of each filter: tasks that have it as include filter, and as exclude filter that is looked for.
    owners: Vec<[Vec<u32>; 2]>,
}

/// A filter without fields takes everything, as no include filter at all does.
static EVERYTHING: FlowFilter = FlowFilter(Vec::new());

impl<'a> Builder<'a> {
    fn task(&mut self, task: u32, spec: &'a Spec) {
        let include = if spec.include.is_empty() { std::slice::from_ref(&EVERYTHING) } else { &spec.include };
        for filter in include {
            let number = self.filter(filter);
            self.own(number, 0, task);
        }
        let excludes: Vec<u32> = spec.exclude.iter().filter_map(|filter| self.filter(filter)).collect();
        let excluded_by_search = excludes.len() > EXCLUDES_TESTED;
        if excluded_by_search {
            excludes.iter().for_each(|filter| self.own(Some(*filter), 1, task));
        }
        let mut conditions: Vec<Check> =
            spec.conditions.iter().map(|one| self.predicate(Predicate::Where(one.clone()))).collect();
        conditions.sort_unstable();
        let is_plain = conditions.is_empty() && excludes.is_empty();
        let excludes = if excluded_by_search { Vec::new() } else { excludes };
        let (conditions, excludes) =
            (self.compiled.conditions.push(conditions), self.compiled.excludes.push(excludes));
        self.compiled.tasks.push(Task { conditions, excludes, excluded_by_search, is_plain });
    }

    fn own(&mut self, filter: Option<u32>, side: usize, task: u32) {
        let owners = filter.and_then(|filter| self.owners.get_mut(filter as usize)?.get_mut(side));
        if let Some(owners) = owners.filter(|owners| owners.last() != Some(&task)) {
            owners.push(task);
        }
    }

    /// The number of a filter; none where no flow of ours can match.
    fn filter(&mut self, filter: &'a FlowFilter) -> Option<u32> {
        if let Some(number) = self.filters.get(filter) {
            return *number;
        }
        let number = self.add(filter);
        self.filters.insert(filter, number);
        number
    }

    fn add(&mut self, filter: &FlowFilter) -> Option<u32> {
        let mut parts = Vec::with_capacity(filter.0.len());
        for matcher in &filter.0 {
            parts.push(match matcher {
                Matcher::Ip(end, addresses) => self.addresses(*end, addresses)?,
                Matcher::Port(end, ports) => self.ports(*end, ports),
                other => (self.predicate(Predicate::Field(other.clone())), 1 << 32, Key::Profile),
            });
        }
        let best = parts.iter().enumerate().min_by_key(|(_, (_, frequency, _))| *frequency).map(|(at, _)| at);
        let (mut implied, mut rest, mut key) = (Vec::new(), Vec::new(), Key::Profile);
        let frequent =
            best.and_then(|at| parts.get(at)).is_none_or(|(_, frequency, _)| *frequency >= 1 << 32);
        for (at, (check, _, of)) in parts.into_iter().enumerate() {
            let is_implied = if frequent { matches!(check, Check::Profile(_)) } else { Some(at) == best };
            if is_implied {
                implied.push(check);
                key = of;
            } else {
                rest.push(check);
            }
        }
        rest.sort_unstable();
        let short = |len: usize| u16::try_from(len).unwrap_or(u16::MAX);
        let (checks, count) = (index(self.compiled.checks.len()), short(implied.len() + rest.len()));
        let none = Owner::Many(u32::MAX);
        let rule = Rule { checks, implied: short(implied.len()), count, include: none, exclude: none };
        self.compiled.checks.extend(implied.into_iter().chain(rest));
        self.compiled.rules.push(rule);
        self.keys.push(key);
        self.owners.push(Default::default());
        Some(index(self.compiled.rules.len() - 1))
    }

    fn addresses(&mut self, end: End, addresses: &Addresses) -> Option<(Check, u64, Key)> {
        let frequency = addresses.spans().map(frequency).sum();
        let space = &self.compiled.space;
        let spans = outermost(addresses.spans().map(|span| space.divisions(span)).collect());
        let check = match (spans.as_slice(), end) {
            ([], _) => return None,
            ([one], End::Source) => Check::Source(*one),
            ([one], End::Destination) => Check::Destination(*one),
            (many, End::Source) => Check::Sources(self.compiled.addresses.push(many.iter().copied())),
            (many, End::Destination) => {
                Check::Destinations(self.compiled.addresses.push(many.iter().copied()))
            }
        };
        Some(match end {
            End::Source => (check, frequency, Key::Source(spans)),
            End::Destination => (check, frequency, Key::Destination(spans)),
        })
    }

    fn ports(&mut self, end: End, ports: &Ports) -> (Check, u64, Key) {
        let mut numbers: Vec<u16> = ports.numbers().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let check = match (numbers.as_slice(), end) {
            ([one], End::Source) => Check::SourcePort(*one),
            ([one], End::Destination) => Check::DestinationPort(*one),
            (many, End::Source) => Check::SourcePorts(self.compiled.ports.push(many.iter().copied())),
            (many, End::Destination) => {
                Check::DestinationPorts(self.compiled.ports.push(many.iter().copied()))
            }
        };
        // Services' ports are few; a look-up, however many, is better than a test for each flow.
        let frequency = (u64::from(index(numbers.len())) << 27).min((1 << 32) - 1);
        match end {
            End::Source => (check, frequency, Key::SourcePort(numbers)),
            End::Destination => (check, frequency, Key::DestinationPort(numbers)),
        }
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

    fn build(self) -> Compiled {
        let Self { mut compiled, keys, owners, .. } = self;
        let mut found: [Vec<(Key, u32)>; 2] = Default::default();
        for ((number, key), (rule, [include, exclude])) in
            (0..).zip(keys).zip(compiled.rules.iter_mut().zip(owners))
        {
            let [includes, excludes] = &mut found;
            if !exclude.is_empty() {
                excludes.push((key.clone(), number));
            }
            if !include.is_empty() {
                includes.push((key, number));
            }
            rule.include = owner(include, &mut compiled.owners);
            rule.exclude = owner(exclude, &mut compiled.owners);
        }
        let by_profile = |keys: &[(Key, u32)]| {
            let keys = keys.iter().filter(|(key, _)| matches!(key, Key::Profile));
            keys.map(|(_, number)| *number).collect()
        };
        let [include, exclude] = &found;
        (compiled.include_by_profile, compiled.exclude_by_profile) =
            (by_profile(include), by_profile(exclude));
        compiled.include = Access::new(include, compiled.space.len());
        compiled.exclude = Access::new(exclude, compiled.space.len());
        compiled
    }
}

fn owner(tasks: Vec<u32>, owners: &mut Lists<u32>) -> Owner {
    match tasks.as_slice() {
        [one] => Owner::One(*one),
        _ => Owner::Many(owners.push(tasks)),
    }
}

fn addresses(matcher: &Matcher) -> Option<&Addresses> {
    match matcher {
        Matcher::Ip(_, addresses) => Some(addresses),
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
