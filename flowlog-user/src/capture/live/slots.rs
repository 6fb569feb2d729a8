//! Which of the kernel's hook counters are whose. The programs find a slot by the interface's index alone, so one that
//! comes long after another counts on in the same slot, and two of a thousand can share one.

use std::collections::BTreeMap;

use flowlog_abi::{Counters, slot};

use super::attach::Side;

/// What interfaces counted that are gone, and whose slot has another since.
const GONE: &str = "(gone)";

#[derive(Default)]
pub(super) struct Slots {
    slots: BTreeMap<u32, Slot>,
    gone: BTreeMap<Side, Counters>,
}

struct Slot {
    side: Side,
    owners: Vec<Owner>,
    /// What was counted before these owners came.
    base: Counters,
}

struct Owner {
    ifindex: u32,
    name: String,
    is_here: bool,
}

impl Slots {
    /// A hook counts from now on; `now`: what its slot holds.
    pub(super) fn take(&mut self, ifindex: u32, name: &str, side: Side, now: impl Fn() -> Counters) {
        let owner = Owner { ifindex, name: name.to_owned(), is_here: true };
        let Some(slot) = self.slots.get_mut(&slot(ifindex, side == Side::Egress)) else {
            // Tables that were there before this process count on from where they are.
            let new = Slot { side, owners: vec![owner], base: Counters::default() };
            self.slots.insert(slot(ifindex, side == Side::Egress), new);
            return;
        };
        if let Some(again) = slot.owners.iter_mut().find(|own| own.ifindex == ifindex && own.name == name) {
            again.is_here = true;
            return;
        }
        slot.owners.retain(|owner| owner.is_here);
        if slot.owners.is_empty() {
            let now = now();
            let gone = self.gone.entry(side).or_default();
            *gone = each(gone, &less(&now, &slot.base), u64::wrapping_add);
            slot.base = now;
        }
        slot.owners.push(owner);
    }

    /// An interface is no longer watched.
    pub(super) fn leave(&mut self, ifindex: u32) {
        self.owners(ifindex).for_each(|owner| owner.is_here = false);
    }

    pub(super) fn rename(&mut self, ifindex: u32, name: &str) {
        self.owners(ifindex).filter(|owner| owner.is_here).for_each(|owner| name.clone_into(&mut owner.name));
    }

    fn owners(&mut self, ifindex: u32) -> impl Iterator<Item = &mut Owner> {
        let all = self.slots.values_mut().flat_map(|slot| &mut slot.owners);
        all.filter(move |owner| owner.ifindex == ifindex)
    }

    /// Each hook's interface and side with its counters; `read` reads a slot.
    pub(super) fn counters<E>(
        &self,
        mut read: impl FnMut(u32) -> Result<Counters, E>,
    ) -> Result<Vec<(String, &'static str, Counters)>, E> {
        let gone = self.gone.iter().map(|(side, counters)| Ok((GONE.to_owned(), side.name(), *counters)));
        let here = self.slots.iter().map(|(number, slot)| {
            let counters = less(&read(*number)?, &slot.base);
            let names: Vec<&str> = slot.owners.iter().map(|owner| owner.name.as_str()).collect();
            Ok((names.join("+"), slot.side.name(), counters))
        });
        here.chain(gone).collect()
    }
}

fn less(all: &Counters, base: &Counters) -> Counters {
    each(all, base, u64::wrapping_sub)
}

fn each(one: &Counters, other: &Counters, join: fn(u64, u64) -> u64) -> Counters {
    type Words = [u64; size_of::<Counters>() / size_of::<u64>()];
    let (mut words, other): (Words, Words) = (zerocopy::transmute!(*one), zerocopy::transmute!(*other));
    for (word, other) in words.iter_mut().zip(other) {
        *word = join(*word, other);
    }
    zerocopy::transmute!(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(seen_packets: u64) -> Counters {
        Counters { seen_packets, seen_bytes: 10 * seen_packets, ..Counters::default() }
    }

    fn told(slots: &Slots, now: u64) -> Vec<(String, &'static str, u64)> {
        let all = slots.counters(|_| Ok::<_, ()>(counted(now))).unwrap();
        all.into_iter().map(|(name, side, counters)| (name, side, counters.seen_packets)).collect()
    }

    #[test]
    fn one_that_comes_after_another_begins_at_zero_and_the_sum_stays() {
        let mut slots = Slots::default();
        slots.take(3, "one", Side::Ingress, || counted(0));
        slots.rename(3, "uno");
        assert_eq!(told(&slots, 5), [("uno".into(), "ingress", 5)]);
        slots.leave(3);
        assert_eq!(told(&slots, 5), [("uno".into(), "ingress", 5)]);
        // 512 later: the same slot; then the index itself again.
        slots.take(515, "two", Side::Ingress, || counted(5));
        assert_eq!(told(&slots, 12), [("two".into(), "ingress", 7), (GONE.into(), "ingress", 5)]);
        slots.leave(515);
        slots.take(515, "three", Side::Ingress, || counted(12));
        assert_eq!(told(&slots, 13), [("three".into(), "ingress", 1), (GONE.into(), "ingress", 12)]);
    }

    #[test]
    fn two_at_once_are_told_together() {
        let mut slots = Slots::default();
        slots.take(3, "one", Side::Egress, || counted(0));
        slots.take(515, "two", Side::Egress, || counted(5));
        assert_eq!(told(&slots, 9), [("one+two".into(), "egress", 9)]);
        slots.leave(3);
        slots.take(3, "one", Side::Egress, || counted(9));
        assert_eq!(told(&slots, 9), [("one+two".into(), "egress", 9)]);
    }
}
