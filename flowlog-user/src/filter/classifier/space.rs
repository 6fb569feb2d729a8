use std::collections::BTreeSet;
use std::net::IpAddr;

use super::super::address::Span;
use super::lists::index;
use crate::record::Ranked;

/// All addresses, divided where a prefix of any filter begins or ends: within a division all filters agree.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    v4: Ranked<u32>,
    v6: Ranked<u128>,
}

/// The first and the last division of a span.
pub(super) type Divisions = (u32, u32);

impl Space {
    pub(super) fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        let (mut v4, mut v6) = (BTreeSet::new(), BTreeSet::new());
        for span in spans {
            match span {
                Span::V4(first, last) => {
                    v4.insert(first);
                    v4.extend(last.checked_add(1));
                }
                Span::V6(first, last) => {
                    v6.insert(first);
                    v6.extend(last.checked_add(1));
                }
            }
        }
        Self { v4: Ranked::new(v4.into_iter().collect()), v6: Ranked::new(v6.into_iter().collect()) }
    }

    /// The division an address lies in.
    #[inline]
    pub(super) fn place(&self, address: IpAddr) -> u32 {
        match address {
            IpAddr::V4(address) => self.place_v4(address.to_bits()),
            IpAddr::V6(address) => self.place_v6(address.to_bits()),
        }
    }

    #[inline]
    fn place_v4(&self, bits: u32) -> u32 {
        index(self.v4.rank(bits))
    }

    #[inline]
    fn place_v6(&self, bits: u128) -> u32 {
        index(self.v4.len() + 1 + self.v6.rank(bits))
    }

    /// The divisions of a span from which the space was made.
    pub(super) fn divisions(&self, span: Span) -> Divisions {
        match span {
            Span::V4(first, last) => (self.place_v4(first), self.place_v4(last)),
            Span::V6(first, last) => (self.place_v6(first), self.place_v6(last)),
        }
    }

    /// How many divisions there are.
    pub(super) fn len(&self) -> u32 {
        index(self.v4.len() + self.v6.len() + 2)
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.v4.bytes() + self.v6.bytes()
    }
}
