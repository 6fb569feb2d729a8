use std::ops::Range;

use super::Spot;
use super::access::Access;
use super::few::Few;
use super::lists::Lists;
use super::ports::PortSets;
use super::predicate::Predicate;
use super::rows::{PortRows, Row, Rows, each_bit};
use super::space::{Divisions, Space};

/// The filters of all tasks, each distinct one once.
#[derive(Clone, Debug, Default)]
pub(super) struct Compiled {
    pub(super) space: Space,
    pub(super) rules: Vec<Rule>,
    pub(super) checks: Vec<Check>,
    /// Tasks of filters, one filter's behind another's.
    pub(super) owners: Vec<u32>,
    pub(super) tasks: Vec<Task>,
    pub(super) excludes: Lists<u32>,
    /// What is looked for among include filters, and among exclude filters.
    pub(super) include: Side,
    pub(super) exclude: Side,
    pub(super) port_sets: PortSets,
    pub(super) addresses: Lists<Divisions>,
    /// Predicates by what decides about them.
    pub(super) profile: Vec<Predicate>,
    pub(super) identities: Vec<Predicate>,
    pub(super) flow: Vec<Predicate>,
    /// Whether any predicate asks for TCP flags.
    pub(super) asks_flags: bool,
    /// Whether any filter asks for the division of a flow's source, and of its destination.
    pub(super) asks_source: bool,
    pub(super) asks_destination: bool,
}

/// Filters that are looked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    pub(super) search: Search,
    pub(super) row: Row,
    /// By their places in the row.
    pub(super) items: Vec<Item>,
}

/// How filters are found.
#[derive(Clone, Debug)]
pub(super) enum Search {
    /// All at once.
    Few(Few),
    /// Under one of their fields.
    Many(Box<Many>),
}

#[derive(Clone, Debug)]
pub(super) struct Many {
    pub(super) access: Access,
    /// What the source port decides, and the destination port.
    pub(super) source_ports: PortRows,
    pub(super) destination_ports: PortRows,
}

impl Default for Search {
    fn default() -> Self {
        Self::Few(Few::default())
    }
}

/// A filter in its row: what is to be tested when it is found and its profile holds, and whose it is.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Beside the filters themselves, so that most are decided without a look elsewhere.
    pub(super) first: Option<Check>,
    pub(super) more: Range<u32>,
    /// Its first task, and the others.
    pub(super) owner: u32,
    pub(super) owners: Range<u32>,
    /// No task of it asks for anything else.
    pub(super) is_plain: bool,
}

/// A distinct filter's parts: those that a profile decides, the one it is looked for under, the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) checks: u32,
    pub(super) profile: u16,
    /// Where the others begin.
    pub(super) rest: u16,
    pub(super) count: u16,
}

/// What a task asks beside one of its include filters, of which its conditions have become parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Task {
    pub(super) excludes: u32,
    /// Its exclude filters are looked for.
    pub(super) excluded_by_search: bool,
    /// No exclude filters.
    pub(super) is_plain: bool,
}

/// A part of a filter. In the order in which they are tested: what costs least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Check {
    Profile(u32),
    /// One of these, which repeat where they are fewer.
    SourcePort([u16; FEW]),
    DestinationPort([u16; FEW]),
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

/// Ports that are compared one by one.
pub(super) const FEW: usize = 4;

impl Compiled {
    /// All parts of a filter.
    pub(super) fn whole(&self, filter: u32) -> &[Check] {
        self.rules.get(filter as usize).map_or(&[], |rule| self.part(rule.checks..rule.end()))
    }

    pub(super) fn part(&self, places: Range<u32>) -> &[Check] {
        self.checks.get(places.start as usize..places.end as usize).unwrap_or_default()
    }

    /// Tasks that have a filter, beside the first.
    pub(super) fn owners(&self, item: &Item) -> &[u32] {
        self.owners.get(item.owners.start as usize..item.owners.end as usize).unwrap_or_default()
    }

    pub(super) fn excludes(&self, task: Task) -> &[u32] {
        self.excludes.get(task.excludes)
    }

    /// Whether nothing in a profile speaks against a filter.
    pub(super) fn passes_profile(&self, filter: u32, holds: impl Fn(u32) -> bool) -> bool {
        let Some(rule) = self.rules.get(filter as usize) else { return false };
        let asked = self.part(rule.checks..rule.checks + u32::from(rule.profile));
        asked.iter().all(|check| !matches!(check, Check::Profile(predicate) if !holds(*predicate)))
    }

    /// Bytes on the heap, beside what single predicates hold.
    pub(super) fn bytes(&self) -> usize {
        self.space.bytes()
            + self.rules.capacity() * size_of::<Rule>()
            + self.checks.capacity() * size_of::<Check>()
            + self.tasks.capacity() * size_of::<Task>()
            + self.owners.capacity() * size_of::<u32>()
            + self.excludes.bytes()
            + [self.include.bytes(), self.exclude.bytes()].iter().sum::<usize>()
            + [self.port_sets.bytes(), self.addresses.bytes()].iter().sum::<usize>()
            + [&self.profile, &self.identities, &self.flow]
                .iter()
                .map(|predicates| predicates.capacity() * size_of::<Predicate>())
                .sum::<usize>()
    }
}

impl Side {
    /// What is known of the filters before addresses are looked at; nothing of a flow for which it is 0 can pass any.
    #[inline]
    pub(super) fn open(&self, profile: &[u64], ports: Option<(u16, u16)>) -> u64 {
        match &self.search {
            Search::Few(few) => first(profile) & few.of_ports(ports),
            Search::Many(_) => u64::MAX,
        }
    }

    /// What is known of them, `open` from before, once addresses were looked at.
    #[inline]
    pub(super) fn narrow(&self, open: u64, spot: &Spot) -> u64 {
        match &self.search {
            Search::Few(few) => open & few.of_addresses(spot.source, spot.destination),
            Search::Many(_) => open,
        }
    }

    /// Shows the places of the filters that nothing of a flow speaks against which is known here. `open`: what is known of
    /// them by ports and addresses.
    #[inline]
    pub(super) fn each(&self, open: u64, profile: &[u64], spot: &Spot, mut show: impl FnMut(u32)) {
        match &self.search {
            Search::Few(_) => each_bit(open, show),
            Search::Many(many) => {
                let (source, destination) = spot.ports.unzip();
                let rows =
                    Rows([profile, many.source_ports.get(source), many.destination_ports.get(destination)]);
                many.access.places(spot, |places| rows.each(places, &mut show));
            }
        }
    }

    const fn bytes(&self) -> usize {
        let search = match &self.search {
            Search::Few(few) => few.bytes(),
            Search::Many(many) => {
                many.access.bytes() + many.source_ports.bytes() + many.destination_ports.bytes()
            }
        };
        search + self.row.bytes() + self.items.capacity() * size_of::<Item>()
    }
}

fn first(row: &[u64]) -> u64 {
    row.first().copied().unwrap_or(0)
}

impl Rule {
    pub(super) fn end(&self) -> u32 {
        self.checks + u32::from(self.count)
    }
}
