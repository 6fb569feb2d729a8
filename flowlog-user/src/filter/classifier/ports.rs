/// Sets of ports of which each is too large to be compared port by port.
#[derive(Clone, Debug, Default)]
pub(super) struct PortSets(Vec<PortSet>);

/// A bit for each port, in pages of 512, of which one that is empty takes no room.
#[derive(Clone, Debug)]
struct PortSet {
    page_of: [u8; 128],
    pages: Vec<[u64; 8]>,
}

/// Page, word and bit of a port.
const fn place(port: u16) -> (usize, usize, u64) {
    ((port >> 9) as usize, (port >> 6 & 7) as usize, 1 << (port & 63))
}

impl PortSets {
    /// Adds a set and gives its number.
    pub(super) fn push(&mut self, ports: &[u16]) -> u32 {
        let mut set = PortSet { page_of: [0; 128], pages: vec![[0; 8]] };
        for port in ports {
            let (page, word, bit) = place(*port);
            let Some(page) = set.page_of.get_mut(page) else { continue };
            if *page == 0 {
                *page = u8::try_from(set.pages.len()).unwrap_or(0);
                set.pages.push([0; 8]);
            }
            let words = set.pages.get_mut(usize::from(*page));
            if let Some(word) = words.and_then(|words| words.get_mut(word)) {
                *word |= bit;
            }
        }
        self.0.push(set);
        super::lists::index(self.0.len() - 1)
    }

    /// Whether a port is in a set.
    pub(super) fn has(&self, set: u32, port: u16) -> bool {
        let (page, word, bit) = place(port);
        let Some(set) = self.0.get(set as usize) else { return false };
        let page = set.page_of.get(page).copied().unwrap_or(0);
        set.pages.get(usize::from(page)).and_then(|words| words.get(word)).is_some_and(|word| word & bit != 0)
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        let pages = |set: &PortSet| set.pages.capacity() * size_of::<[u64; 8]>();
        self.0.capacity() * size_of::<PortSet>() + self.0.iter().map(pages).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_holds_its_ports_and_no_others(
            ports in prop::collection::btree_set(any::<u16>(), 0..300),
            asked in prop::collection::vec(any::<u16>(), 50),
        ) {
            let mut sets = PortSets::default();
            sets.push(&[0, 511, 512, u16::MAX]);
            let number = sets.push(&ports.iter().copied().collect::<Vec<_>>());
            let ports: BTreeSet<u16> = ports;
            for port in asked.into_iter().chain(ports.iter().copied()) {
                prop_assert_eq!(sets.has(number, port), ports.contains(&port));
                prop_assert_eq!(sets.has(0, port), [0, 511, 512, u16::MAX].contains(&port));
            }
        }
    }
}
