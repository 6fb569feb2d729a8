//! Numbers of interfaces, where each counts for itself.

use std::collections::{BTreeMap, BTreeSet};

use flowlog_abi::NUMBER_MAX;

/// Each is used again as late as can be: entries of its last user may still be there.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    given: BTreeMap<u32, u32>,
    last: u32,
}

impl Numbers {
    pub(super) fn give(&mut self, ifindex: u32) -> Option<u32> {
        if let Some(number) = self.given.get(&ifindex) {
            return Some(*number);
        }
        let used: BTreeSet<u32> = self.given.values().copied().collect();
        let next = |number: u32| number % NUMBER_MAX + 1;
        let number = std::iter::successors(Some(next(self.last)), |number| Some(next(*number)))
            .take(NUMBER_MAX as usize)
            .find(|number| !used.contains(number))?;
        self.given.insert(ifindex, number);
        self.last = number;
        Some(number)
    }

    pub(super) fn take_back(&mut self, ifindex: u32) {
        self.given.remove(&ifindex);
    }
}
