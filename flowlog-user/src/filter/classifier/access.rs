use std::collections::BTreeMap;

use super::Spot;
use super::lists::index;
use super::paged::Paged;
use super::rows::{Places, Row};
use super::space::Divisions;

/// Filters by the one thing of a flow under which each is looked for: what does not show up here need not be tested.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    source: Prefixes,
    destination: Prefixes,
    source_port: Ports,
    destination_port: Ports,
    /// Those that nothing is looked up for.
    others: Places,
}

/// Under what a filter is looked for.
#[derive(Clone, Debug)]
pub(super) enum Key {
    Source(Vec<Divisions>),
    Destination(Vec<Divisions>),
    SourcePort(Vec<u16>),
    DestinationPort(Vec<u16>),
    /// Nothing that a look-up would find.
    None,
}

impl Access {
    /// Of filters, in the order in which those that are found together are to stand in the row.
    pub(super) fn new(keys: &[(Key, u32)], divisions: u32, row: &mut Row) -> Self {
        let mut spans: [Vec<(Divisions, u32)>; 2] = Default::default();
        let mut ports: [BTreeMap<u16, Vec<u32>>; 2] = Default::default();
        let mut others = Vec::new();
        let [source, destination] = &mut spans;
        let [source_port, destination_port] = &mut ports;
        for (at, (key, filter)) in (0..).zip(keys) {
            match key {
                Key::Source(of) => source.extend(of.iter().map(|span| (*span, at))),
                Key::Destination(of) => destination.extend(of.iter().map(|span| (*span, at))),
                Key::SourcePort(of) => {
                    of.iter().for_each(|port| source_port.entry(*port).or_default().push(*filter));
                }
                Key::DestinationPort(of) => {
                    of.iter().for_each(|port| destination_port.entry(*port).or_default().push(*filter));
                }
                Key::None => others.push(*filter),
            }
        }
        let of = |at: u32| keys.get(at as usize).map_or(0, |(_, filter)| *filter);
        let [source, destination] = spans.map(|spans| Prefixes::new(spans, divisions, of, row));
        let [source_port, destination_port] = ports.map(|ports| Ports::new(ports, row));
        let others = row.push(&others);
        Self { source, destination, source_port, destination_port, others }
    }

    /// Shows the places of the filters that a flow at this spot can pass.
    pub(super) fn places(&self, spot: &Spot, mut show: impl FnMut(Places)) {
        self.source.places(spot.source, &mut show);
        self.destination.places(spot.destination, &mut show);
        if let Some((source, destination)) = spot.ports {
            show(self.source_port.places(source));
            show(self.destination_port.places(destination));
        }
        show(self.others);
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.source.bytes()
            + self.destination.bytes()
            + self.source_port.bytes()
            + self.destination_port.bytes()
    }
}

/// Filters of a prefix up to which those of the one around it are copied to them, so that a flow meets fewer lists; and
/// how many copies there may be in all, for each filter that stands there anyway.
const COPIED_MAX: usize = 64;
const COPIES_MAX: usize = 4;

/// Filters by prefix. Prefixes lie within each other or apart, so those around an address are a chain.
#[derive(Clone, Debug, Default)]
struct Prefixes {
    /// The innermost prefix at each division, from 1; 0 for none.
    innermost: Vec<u32>,
    prefixes: Vec<Prefix>,
}

#[derive(Clone, Debug)]
struct Prefix {
    places: Places,
    /// The next one around it whose filters are not among its own, from 1.
    around: u32,
}

impl Prefixes {
    fn new(mut spans: Vec<(Divisions, u32)>, divisions: u32, of: impl Fn(u32) -> u32, row: &mut Row) -> Self {
        let mut all = Self::default();
        if spans.is_empty() {
            return all;
        }
        // A prefix comes before those within it.
        spans.sort_unstable_by_key(|((first, last), at)| (*first, u32::MAX - last, *at));
        all.innermost = vec![0; divisions as usize];
        let (mut copies_left, mut lens) = (spans.len() * COPIES_MAX, Vec::new());
        let mut open: Vec<(u32, u32)> = Vec::new();
        for same in spans.chunk_by(|(a, _), (b, _)| a == b) {
            let Some(((first, last), _)) = same.first().copied() else { continue };
            while open.last().is_some_and(|(_, end)| *end < first) {
                open.pop();
            }
            let mut around = open.last().map_or(0, |(number, _)| *number);
            let mut filters: Vec<u32> = same.iter().map(|(_, at)| of(*at)).collect();
            if let Some(outer) = around.checked_sub(1).and_then(|at| all.prefixes.get(at as usize))
                && let copied = lens.get(around as usize - 1).copied().unwrap_or(usize::MAX)
                && copied <= copies_left.min(COPIED_MAX)
                && copied + filters.len() <= COPIED_MAX
            {
                copies_left -= copied;
                filters.extend(row.at(outer.places));
                around = outer.around;
            }
            lens.push(filters.len());
            all.prefixes.push(Prefix { places: row.push(&filters), around });
            let number = index(all.prefixes.len());
            open.push((number, last));
            if let Some(within) = all.innermost.get_mut(first as usize..=last as usize) {
                within.fill(number);
            }
        }
        all
    }

    fn places(&self, division: u32, show: &mut impl FnMut(Places)) {
        let mut number = self.innermost.get(division as usize).copied().unwrap_or(0);
        while let Some(prefix) = number.checked_sub(1).and_then(|at| self.prefixes.get(at as usize)) {
            show(prefix.places);
            number = prefix.around;
        }
    }

    const fn bytes(&self) -> usize {
        self.innermost.capacity() * size_of::<u32>() + self.prefixes.capacity() * size_of::<Prefix>()
    }
}

/// Filters by port.
#[derive(Clone, Debug, Default)]
struct Ports {
    /// Each port's places, from 1.
    numbers: Paged,
    places: Vec<Places>,
}

impl Ports {
    fn new(ports: BTreeMap<u16, Vec<u32>>, row: &mut Row) -> Self {
        let mut all = Self::default();
        for (port, filters) in ports {
            all.places.push(row.push(&filters));
            all.numbers.set(port, index(all.places.len()));
        }
        all
    }

    fn places(&self, port: u16) -> Places {
        let number = self.numbers.get(port).checked_sub(1);
        number.and_then(|number| self.places.get(number as usize)).copied().unwrap_or_default()
    }

    const fn bytes(&self) -> usize {
        self.numbers.bytes() + self.places.capacity() * size_of::<Places>()
    }
}

/// The spans that lie in no other of them.
pub(super) fn outermost(mut spans: Vec<Divisions>) -> Vec<Divisions> {
    spans.sort_unstable_by_key(|(first, last)| (*first, u32::MAX - last));
    let mut kept: Vec<Divisions> = Vec::with_capacity(spans.len());
    for span in spans {
        if kept.last().is_none_or(|(_, last)| *last < span.0) {
            kept.push(span);
        }
    }
    kept
}
