use super::compiled::Check;
use super::lists::Lists;
use super::space::Divisions;

/// As many filters as a word has bits: what an address or a port says of all of them is one word, so that nothing is
/// searched and nothing branches.
#[derive(Clone, Debug, Default)]
pub(super) struct Few {
    /// By the division of the flow's address.
    source: Words,
    destination: Words,
    source_port: PortWords,
    destination_port: PortWords,
}

impl Few {
    pub(super) const MAX: usize = 64;

    /// `filters`: what each asks of addresses and ports, all of which must hold. `sets` are the ports and `addresses` the
    /// divisions that checks name by number.
    pub(super) fn new(
        filters: &[&[Check]],
        divisions: u32,
        sets: &[Vec<u16>],
        addresses: &Lists<Divisions>,
    ) -> Self {
        let mut all = Self::default();
        let (mut source, mut destination) = (Vec::new(), Vec::new());
        for (at, checks) in filters.iter().take(Self::MAX).enumerate() {
            let bit = 1_u64 << at;
            for check in *checks {
                match check {
                    Check::Source(one) => only(&mut source, divisions, bit, &[*one]),
                    Check::Destination(one) => only(&mut destination, divisions, bit, &[*one]),
                    Check::Sources(set) => only(&mut source, divisions, bit, addresses.get(*set)),
                    Check::Destinations(set) => {
                        only(&mut destination, divisions, bit, addresses.get(*set));
                    }
                    Check::SourcePort(few) => all.source_port.only(bit, few),
                    Check::DestinationPort(few) => all.destination_port.only(bit, few),
                    Check::SourcePorts(set) => all.source_port.only(bit, ports(sets, *set)),
                    Check::DestinationPorts(set) => all.destination_port.only(bit, ports(sets, *set)),
                    Check::Profile(_) | Check::Identities(_) | Check::Flow(_) | Check::Enriched(_) => {}
                }
            }
        }
        (all.source, all.destination) = (Words::new(source), Words::new(destination));
        all
    }

    /// The filters that the ports do not speak against.
    #[inline]
    pub(super) fn of_ports(&self, ports: Option<(u16, u16)>) -> u64 {
        let (source, destination) = ports.unzip();
        self.source_port.get(source) & self.destination_port.get(destination)
    }

    /// The filters that addresses which lie in these divisions do not speak against.
    #[inline]
    pub(super) fn of_addresses(&self, source: u32, destination: u32) -> u64 {
        self.source.get(source) & self.destination.get(destination)
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.source.bytes()
            + self.destination.bytes()
            + self.source_port.bytes()
            + self.destination_port.bytes()
    }
}

/// A word for each division, by a number of few bits where few words are distinct: pools divide the address space into
/// tens of thousands of parts, and what is looked up for each record should stay in the processor's cache.
#[derive(Clone, Debug)]
enum Words {
    Own(Vec<u64>),
    Shared { numbers: Vec<u8>, words: Vec<u64> },
}

impl Default for Words {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl Words {
    fn new(words: Vec<u64>) -> Self {
        let mut distinct = words.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let number = |word: &u64| distinct.binary_search(word).ok().and_then(|at| u8::try_from(at).ok());
        match words.iter().map(number).collect() {
            Some(numbers) => Self::Shared { numbers, words: distinct },
            None => Self::Own(words),
        }
    }

    /// All filters where none asks.
    #[inline]
    fn get(&self, division: u32) -> u64 {
        let word = match self {
            Self::Own(words) => words.get(division as usize),
            Self::Shared { numbers, words } => {
                numbers.get(division as usize).and_then(|number| words.get(usize::from(*number)))
            }
        };
        word.copied().unwrap_or(u64::MAX)
    }

    const fn bytes(&self) -> usize {
        match self {
            Self::Own(words) => words.capacity() * size_of::<u64>(),
            Self::Shared { numbers, words } => numbers.capacity() + words.capacity() * size_of::<u64>(),
        }
    }
}

fn ports(sets: &[Vec<u16>], set: u32) -> &[u16] {
    sets.get(set as usize).map_or(&[], Vec::as_slice)
}

/// Takes a filter out of the words of all divisions but these.
fn only(words: &mut Vec<u64>, divisions: u32, bit: u64, spans: &[Divisions]) {
    words.resize(divisions as usize, u64::MAX);
    let mut from = 0;
    // In order and apart, as they are kept.
    for (first, last) in spans.iter().copied().chain([(divisions, divisions)]) {
        if let Some(outside) = words.get_mut(from as usize..first as usize) {
            outside.iter_mut().for_each(|word| *word &= !bit);
        }
        from = last + 1;
    }
}

/// A word for each port, in pages of 64; most ports are told apart by no filter and share the first page.
#[derive(Clone, Debug)]
struct PortWords {
    page_of: Vec<u16>,
    pages: Vec<[u64; 64]>,
    /// That of flows without ports.
    none: u64,
}

impl Default for PortWords {
    fn default() -> Self {
        Self { page_of: vec![0; 1024], pages: vec![[u64::MAX; 64]], none: u64::MAX }
    }
}

impl PortWords {
    const fn place(port: u16) -> (usize, usize) {
        ((port >> 6) as usize, (port & 63) as usize)
    }

    #[inline]
    fn get(&self, port: Option<u16>) -> u64 {
        if self.pages.len() == 1 && self.none == u64::MAX {
            // No filter asks.
            return u64::MAX;
        }
        let Some((page, at)) = port.map(Self::place) else { return self.none };
        let page = self.page_of.get(page).copied().unwrap_or(0);
        self.pages.get(usize::from(page)).and_then(|page| page.get(at)).copied().unwrap_or(0)
    }

    /// Takes a filter out of the words of all ports but these.
    fn only(&mut self, bit: u64, ports: &[u16]) {
        for port in ports {
            let Some(page) = self.page_of.get_mut(Self::place(*port).0) else { continue };
            if *page == 0 {
                // There are 1,024 pages at most.
                *page = u16::try_from(self.pages.len()).unwrap_or(0);
                self.pages.extend_from_within(..1);
            }
        }
        let kept: Vec<(usize, u64)> = ports
            .iter()
            .map(|port| {
                let (page, at) = Self::place(*port);
                let page = self.page_of.get(page).copied().unwrap_or(0);
                (usize::from(page) * 64 + at, self.get(Some(*port)) & bit)
            })
            .collect();
        let words = self.pages.as_flattened_mut();
        words.iter_mut().for_each(|word| *word &= !bit);
        self.none &= !bit;
        for (at, was) in kept {
            if let Some(word) = words.get_mut(at) {
                *word |= was;
            }
        }
    }

    const fn bytes(&self) -> usize {
        self.page_of.capacity() * size_of::<u16>() + self.pages.capacity() * size_of::<[u64; 64]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The divisions and the ports of a filter.
    type Asked = (Vec<Divisions>, Vec<u16>);

    /// Every word is what each filter says of the division or port by itself, however many words are distinct.
    #[test]
    fn words_are_what_each_filter_says() {
        const DIVISIONS: u32 = 3000;
        let mut seed = 7_u64;
        let mut below = move |end: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from((seed >> 33) % end).unwrap()
        };
        for filters in [1_usize, 3, 64] {
            let (mut addresses, mut sets) = (Lists::default(), Vec::new());
            let mut asked: Vec<Asked> = Vec::new();
            for _ in 0..filters {
                let mut spans: Vec<Divisions> = Vec::new();
                while let first = spans.last().map_or(0, |(_, last)| last + 1) + below(90)
                    && first + 40 < DIVISIONS
                {
                    spans.push((first, first + below(40)));
                }
                let ports: Vec<u16> = (0..20).map(|_| u16::try_from(below(65_536)).unwrap()).collect();
                addresses.push(spans.iter().copied());
                sets.push(ports.clone());
                asked.push((spans, ports));
            }
            let checks: Vec<[Check; 2]> = (0..u32::try_from(filters).unwrap())
                .map(|at| [Check::Destinations(at), Check::SourcePorts(at)])
                .collect();
            let checks: Vec<&[Check]> = checks.iter().map(<[Check; 2]>::as_slice).collect();
            let few = Few::new(&checks, DIVISIONS, &sets, &addresses);
            assert_eq!(
                matches!(few.destination, Words::Own(_)),
                filters == 64,
                "distinct words are few or not"
            );
            let word = |says: &dyn Fn(&Asked) -> bool| {
                let bits = asked.iter().enumerate().map(|(at, filter)| u64::from(says(filter)) << at);
                let others = if filters == 64 { 0 } else { u64::MAX << filters };
                bits.fold(others, |word, bit| word | bit)
            };
            for division in 0..DIVISIONS {
                let wanted = word(&|(spans, _)| spans.iter().any(|(a, b)| (*a..=*b).contains(&division)));
                assert_eq!(few.of_addresses(DIVISIONS - division, division), wanted, "{division}");
            }
            for port in 0..=u16::MAX {
                let wanted = word(&|(_, ports)| ports.contains(&port));
                assert_eq!(few.of_ports(Some((port, 9))), wanted, "{port}");
            }
            assert_eq!(few.of_ports(None), word(&|_| false));
        }
    }
}
