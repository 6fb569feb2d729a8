use std::collections::BTreeMap;

use super::Spot;
use super::lists::Lists;
use super::paged::Paged;
use super::space::Divisions;

/// Filters by the one thing of a flow under which each is looked for: what does not show up here need not be tested.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    source: Prefixes,
    destination: Prefixes,
    source_port: Ports,
    destination_port: Ports,
}

/// Under what a filter is looked for.
#[derive(Clone, Debug)]
pub(super) enum Key {
    Source(Vec<Divisions>),
    Destination(Vec<Divisions>),
    SourcePort(Vec<u16>),
    DestinationPort(Vec<u16>),
    /// Nothing that a look-up would find: it is tested for each distinct profile.
    Profile,
}

impl Access {
    pub(super) fn new(keys: &[(Key, u32)], divisions: u32) -> Self {
        let mut spans: [Vec<(Divisions, u32)>; 2] = Default::default();
        let mut ports: [BTreeMap<u16, Vec<u32>>; 2] = Default::default();
        let [source, destination] = &mut spans;
        let [source_port, destination_port] = &mut ports;
        for (key, filter) in keys {
            match key {
                Key::Source(of) => source.extend(of.iter().map(|span| (*span, *filter))),
                Key::Destination(of) => destination.extend(of.iter().map(|span| (*span, *filter))),
                Key::SourcePort(of) => {
                    of.iter().for_each(|port| source_port.entry(*port).or_default().push(*filter));
                }
                Key::DestinationPort(of) => {
                    of.iter().for_each(|port| destination_port.entry(*port).or_default().push(*filter));
                }
                Key::Profile => {}
            }
        }
        let [source, destination] = spans.map(|spans| Prefixes::new(spans, divisions));
        let [source_port, destination_port] = ports.map(Ports::new);
        Self { source, destination, source_port, destination_port }
    }

    /// Shows the filters that a flow at this spot can pass, beside those of its profile; lists of them.
    pub(super) fn lists<'a>(&'a self, spot: &Spot, mut show: impl FnMut(&'a [u32])) {
        self.source.lists(spot.source, &mut show);
        self.destination.lists(spot.destination, &mut show);
        if let Some((source, destination)) = spot.ports {
            show(self.source_port.list(source));
            show(self.destination_port.list(destination));
        }
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.source.bytes()
            + self.destination.bytes()
            + self.source_port.bytes()
            + self.destination_port.bytes()
    }
}

/// Filters by prefix. Prefixes lie within each other or apart, so those around an address are a chain.
#[derive(Clone, Debug, Default)]
struct Prefixes {
    /// The innermost prefix at each division, from 1; 0 for none.
    innermost: Vec<u32>,
    /// The next prefix around each, in the same numbers.
    around: Vec<u32>,
    filters: Lists<u32>,
}

impl Prefixes {
    fn new(mut spans: Vec<(Divisions, u32)>, divisions: u32) -> Self {
        let mut prefixes = Self::default();
        if spans.is_empty() {
            return prefixes;
        }
        // A prefix comes before those within it.
        spans.sort_unstable_by_key(|((first, last), filter)| (*first, u32::MAX - last, *filter));
        prefixes.innermost = vec![0; divisions as usize];
        let mut open: Vec<(u32, u32)> = Vec::new();
        for same in spans.chunk_by(|(a, _), (b, _)| a == b) {
            let Some(((first, last), _)) = same.first().copied() else { continue };
            while open.last().is_some_and(|(_, end)| *end < first) {
                open.pop();
            }
            prefixes.around.push(open.last().map_or(0, |(number, _)| *number));
            let number = prefixes.filters.push(same.iter().map(|(_, filter)| *filter)) + 1;
            open.push((number, last));
            if let Some(within) = prefixes.innermost.get_mut(first as usize..=last as usize) {
                within.fill(number);
            }
        }
        prefixes
    }

    fn lists<'a>(&'a self, division: u32, show: &mut impl FnMut(&'a [u32])) {
        let mut number = self.innermost.get(division as usize).copied().unwrap_or(0);
        while let Some(at) = number.checked_sub(1) {
            show(self.filters.get(at));
            number = self.around.get(at as usize).copied().unwrap_or(0);
        }
    }

    const fn bytes(&self) -> usize {
        (self.innermost.capacity() + self.around.capacity()) * size_of::<u32>() + self.filters.bytes()
    }
}

/// Filters by port.
#[derive(Clone, Debug, Default)]
struct Ports {
    /// Each port's list, from 1.
    numbers: Paged,
    filters: Lists<u32>,
}

impl Ports {
    fn new(ports: BTreeMap<u16, Vec<u32>>) -> Self {
        let mut all = Self::default();
        for (port, filters) in ports {
            let number = all.filters.push(filters);
            all.numbers.set(port, number + 1);
        }
        all
    }

    fn list(&self, port: u16) -> &[u32] {
        match self.numbers.get(port).checked_sub(1) {
            Some(number) => self.filters.get(number),
            None => &[],
        }
    }

    const fn bytes(&self) -> usize {
        self.numbers.bytes() + self.filters.bytes()
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
