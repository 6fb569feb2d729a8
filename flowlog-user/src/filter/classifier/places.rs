use std::net::IpAddr;

use super::space::Space;

/// Slots for addresses, of each version: a node talks to few at a time.
const SLOTS: usize = 1 << 10;

/// Where addresses lie that were asked for lately, each in the one slot that it can have.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u32)>,
}

impl Places {
    /// For a space; none are kept where searching it costs no more.
    pub(super) fn new(space: &Space) -> Self {
        // Every slot is right from the beginning: it holds the place of address 0.
        let of = |kept: bool, zero: IpAddr| if kept { vec![space.place(zero); SLOTS] } else { Vec::new() };
        let v4 = of(space.is_deep_v4(), [0_u8; 4].into()).into_iter().map(|division| (0, division));
        let v6 = of(space.is_deep_v6(), [0_u16; 8].into()).into_iter().map(|division| (0, division));
        Self { v4: v4.collect(), v6: v6.collect() }
    }

    /// The division of an address.
    pub(super) fn place(&mut self, space: &Space, address: IpAddr) -> u32 {
        match address {
            IpAddr::V4(v4) => {
                let bits = v4.to_bits();
                let Some(slot) = self.v4.get_mut(slot(u64::from(bits))) else { return space.place(address) };
                if slot.0 != bits {
                    *slot = (bits, space.place(address));
                }
                slot.1
            }
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                // Both halves: networks differ in the one, hosts in the other.
                let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
                let folded = half(bits >> 64) ^ half(bits).rotate_left(32);
                let Some(slot) = self.v6.get_mut(slot(folded)) else { return space.place(address) };
                if slot.0 != bits {
                    *slot = (bits, space.place(address));
                }
                slot.1
            }
        }
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.v4.capacity() * size_of::<(u32, u32)>() + self.v6.capacity() * size_of::<(u128, u32)>()
    }
}

/// Fibonacci hashing: the upper bits of the product.
fn slot(bits: u64) -> usize {
    usize::try_from(bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())).unwrap_or(0)
}
