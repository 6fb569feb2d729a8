//! The filters of all tasks as one: which tasks want a flow, at a cost that grows with those that do.
//!
//! Filters are distinct, however many tasks have them. Each is looked for under the one of its fields that is rarest (a
//! prefix, a port), so that a flow meets only filters that it is likely to pass; what else they ask is a test that is
//! shared: addresses are compared once, as the number of the division of the address space they lie in, and whatever
//! does not depend on addresses and ports is found out once for all flows of a kind, as a bit for each filter: of those
//! that are found, the ones that would fail by it are never looked at. As few filters as fit a word are not searched at
//! all: each address and each port has the word of those it lets pass. The plain evaluation of [`Filter`](super::Filter)
//! is the reference that a test compares with.

mod access;
mod builder;
mod compiled;
mod few;
mod lists;
mod paged;
mod ports;
mod predicate;
mod profile;
mod rows;
mod space;

use self::compiled::{Check, Compiled, FEW, Item, Task};
use self::profile::{Profiles, evaluate, holds};
use super::Spec;
use crate::record::{Flow, Identity, Node, Seen};

/// Says which of many tasks want a flow. Tasks are numbers: their places in what it was made from.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    compiled: Compiled,
    profiles: Profiles,
    memory: Memory,
}

/// What is known of the flow at hand; each member counts only with the flow's number.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// The flow's number.
    flow: u32,
    /// Tasks that were taken.
    taken: Vec<u32>,
    /// Tasks that were taken and are excluded by search.
    excluded: Vec<u32>,
    /// Predicates that were tested: twice the flow's number, and 1 where it holds.
    tested: Vec<u32>,
    /// By who the two sides are: which predicates hold. Not of a flow, but of all.
    identities: [Option<Box<[u64]>>; IDENTITIES * IDENTITIES],
}

const IDENTITIES: usize = 3;

/// Where a flow is among the filters' addresses and ports.
#[derive(Clone, Copy, Debug)]
struct Spot {
    source: u32,
    destination: u32,
    ports: Option<(u16, u16)>,
}

impl Classifier {
    /// Compiles the filters of tasks. Cannot fail: [`Spec::read`] has checked everything.
    #[must_use]
    pub fn new<'a>(tasks: impl IntoIterator<Item = &'a Spec>) -> Self {
        let compiled = Compiled::new(tasks);
        let memory = Memory {
            taken: vec![0; compiled.tasks.len()],
            excluded: vec![0; compiled.tasks.len()],
            tested: vec![0; compiled.flow.len()],
            ..Memory::default()
        };
        Self { compiled, profiles: Profiles::default(), memory }
    }

    /// To be told before the flows of a batch.
    pub fn begin(&mut self, node: &Node) {
        self.profiles.begin(node);
    }

    /// Finds the tasks that want a flow, each once, in no order. The flow is enriched by `enrich` when a filter asks for
    /// what that fills in, and at the end when any task wants it; otherwise it stays as it is.
    pub fn classify(
        &mut self,
        flow: &mut Flow,
        node: &Node,
        enrich: impl FnOnce(&mut Flow),
        tasks: &mut Vec<u32>,
    ) {
        tasks.clear();
        let Self { compiled, profiles, memory } = self;
        memory.next();
        let profile = profiles.of(compiled, flow, node);
        let (row, ports) = (profiles.include(profile), flow.l4.ports());
        let open = compiled.include.open(row, ports);
        if open == 0 {
            return;
        }
        let place = |asked, address| if asked { compiled.space.place(address) } else { 0 };
        let spot = Spot {
            source: place(compiled.asks_source, flow.source),
            destination: place(compiled.asks_destination, flow.destination),
            ports,
        };
        let open = compiled.include.narrow(open, &spot);
        if open == 0 {
            return;
        }
        let enrich = Some(enrich);
        let mut look = Look { compiled, profiles, profile, spot, memory, flow, node, is_plain: true, enrich };
        compiled.include.each(open, row, &spot, |place| look.include(place, tasks));
        if tasks.is_empty() {
            return;
        }
        if !look.is_plain {
            look.exclude(tasks);
        }
        if !tasks.is_empty() {
            look.enrich();
        }
    }

    /// Bytes on the heap, beside what single predicates hold.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.compiled.bytes()
    }
}

impl Memory {
    #[inline]
    fn next(&mut self) {
        self.flow += 1;
        if self.flow >= u32::MAX / 2 {
            self.flow = 1;
            for numbers in [&mut self.taken, &mut self.excluded, &mut self.tested] {
                numbers.fill(0);
            }
        }
    }

    fn is_taken(&self, task: u32) -> bool {
        self.taken.get(task as usize).is_none_or(|flow| *flow == self.flow)
    }

    /// Notes a task; false when it was noted before.
    fn take(&mut self, task: u32) -> bool {
        let Some(taken) = self.taken.get_mut(task as usize) else { return false };
        std::mem::replace(taken, self.flow) != self.flow
    }

    fn exclude(&mut self, task: u32) {
        if let Some(excluded) = self.excluded.get_mut(task as usize) {
            *excluded = self.flow;
        }
    }

    fn is_excluded(&self, task: u32) -> bool {
        self.excluded.get(task as usize) == Some(&self.flow)
    }
}

/// A flow, looked at.
struct Look<'a, E> {
    compiled: &'a Compiled,
    profiles: &'a Profiles,
    profile: u32,
    spot: Spot,
    memory: &'a mut Memory,
    flow: &'a mut Flow,
    node: &'a Node,
    /// No task that was taken asks for anything but its include filters.
    is_plain: bool,
    /// Until it was done.
    enrich: Option<E>,
}

impl<E: FnOnce(&mut Flow)> Look<'_, E> {
    /// Takes the tasks of the filter at this place, if it holds.
    fn include(&mut self, place: u32, tasks: &mut Vec<u32>) {
        let Some(item) = self.compiled.include.items.get(place as usize) else { return };
        if item.owners.is_empty() && self.memory.is_taken(item.owner) || !self.passes(item) {
            return;
        }
        self.is_plain &= item.is_plain;
        if self.memory.take(item.owner) {
            tasks.push(item.owner);
        }
        for task in self.compiled.owners(item) {
            if self.memory.take(*task) {
                tasks.push(*task);
            }
        }
    }

    /// Whether what is not known yet of a filter holds.
    fn passes(&mut self, item: &Item) -> bool {
        let Some(first) = &item.first else { return true };
        self.check(first) && (item.more.is_empty() || self.holds(self.compiled.part(item.more.clone())))
    }

    /// Leaves out the tasks of which an exclude filter holds.
    fn exclude(&mut self, tasks: &mut Vec<u32>) {
        let compiled = self.compiled;
        let of = |task: u32| compiled.tasks.get(task as usize).copied().unwrap_or_default();
        if tasks.iter().any(|task| of(*task).excluded_by_search) {
            let spot = self.spot;
            let row = self.profiles.exclude(self.profile);
            let open = compiled.exclude.narrow(compiled.exclude.open(row, spot.ports), &spot);
            compiled.exclude.each(open, row, &spot, |place| self.search(place));
        }
        tasks.retain(|number| {
            let task = of(*number);
            task.is_plain || self.stays(*number, task)
        });
    }

    fn stays(&mut self, number: u32, task: Task) -> bool {
        if task.excluded_by_search && self.memory.is_excluded(number) {
            return false;
        }
        let compiled = self.compiled;
        !compiled.excludes(task).iter().any(|filter| self.holds(compiled.whole(*filter)))
    }

    /// Notes the tasks that the exclude filter at this place leaves out.
    fn search(&mut self, place: u32) {
        let compiled = self.compiled;
        let Some(item) = compiled.exclude.items.get(place as usize) else { return };
        let owners = || std::iter::once(&item.owner).chain(compiled.owners(item));
        let open = |task: &u32| self.memory.is_taken(*task) && !self.memory.is_excluded(*task);
        if owners().any(open) && self.passes(item) {
            owners().for_each(|task| self.memory.exclude(*task));
        }
    }

    fn holds(&mut self, checks: &[Check]) -> bool {
        checks.iter().all(|check| self.check(check))
    }

    fn check(&mut self, check: &Check) -> bool {
        let within = |(first, last): (u32, u32), at: u32| first <= at && at <= last;
        let (spot, compiled) = (self.spot, self.compiled);
        match *check {
            Check::Profile(predicate) => self.profiles.holds(self.profile, predicate),
            Check::SourcePort(few) => spot.ports.is_some_and(|(source, _)| is_one_of(few, source)),
            Check::DestinationPort(few) => {
                spot.ports.is_some_and(|(_, destination)| is_one_of(few, destination))
            }
            Check::SourcePorts(set) => {
                spot.ports.is_some_and(|(source, _)| compiled.port_sets.has(set, source))
            }
            Check::DestinationPorts(set) => {
                spot.ports.is_some_and(|(_, destination)| compiled.port_sets.has(set, destination))
            }
            Check::Source(span) => within(span, spot.source),
            Check::Destination(span) => within(span, spot.destination),
            Check::Sources(set) => is_among(compiled.addresses.get(set), spot.source),
            Check::Destinations(set) => is_among(compiled.addresses.get(set), spot.destination),
            Check::Identities(predicate) => self.identities(predicate),
            Check::Flow(predicate) => self.test(predicate),
            Check::Enriched(predicate) => {
                self.enrich();
                self.test(predicate)
            }
        }
    }

    fn enrich(&mut self) {
        if let Some(enrich) = self.enrich.take() {
            enrich(self.flow);
        }
    }

    fn identities(&mut self, predicate: u32) -> bool {
        self.enrich();
        let number = |identity| match identity {
            Identity::Host => 0,
            Identity::World => 1,
            Identity::Unmanaged => 2,
        };
        let at = number(self.flow.source_identity) * IDENTITIES + number(self.flow.destination_identity);
        let Some(known) = self.memory.identities.get_mut(at) else { return false };
        let facts = Seen { flow: self.flow, node: self.node };
        let bits = known.get_or_insert_with(|| evaluate(&self.compiled.identities, &facts).into());
        holds(bits, predicate)
    }

    fn test(&mut self, predicate: u32) -> bool {
        let Some(tested) = self.memory.tested.get_mut(predicate as usize) else { return false };
        if *tested / 2 != self.memory.flow {
            let facts = Seen { flow: self.flow, node: self.node };
            let held = self.compiled.flow.get(predicate as usize).is_some_and(|one| one.holds(&facts));
            *tested = self.memory.flow * 2 + u32::from(held);
        }
        *tested % 2 == 1
    }
}

/// All are compared: which of them it is cannot be foretold.
fn is_one_of(few: [u16; FEW], port: u16) -> bool {
    few.iter().fold(false, |any, one| any | (*one == port))
}

fn is_among(spans: &[(u32, u32)], at: u32) -> bool {
    let after = spans.partition_point(|(first, _)| *first <= at);
    after.checked_sub(1).and_then(|last| spans.get(last)).is_some_and(|(_, last)| at <= *last)
}
