//! Whether hooks are shown their packets: ours should be the first program there, and its counters move as those of the
//! interface do. Others may come in front of us at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use flowlog_abi::slot;

use super::Watched;
use crate::capture::live::attach::{Attached, Side};
use crate::capture::live::bpf::tcx_programs;
use crate::capture::live::links::{self, Passed};
use crate::capture::live::load::Loaded;
use crate::capture::live::netlink::Netlink;
use crate::capture::live::{HookKind, filters, ledger};

/// Fewer packets than these in an interval say nothing: some are taken before any hook (LACP, LLDP).
const PACKETS_MIN: u64 = 100;

/// Where our program stands at its hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// It sees each packet first.
    First,
    /// What is before it may drop a packet, send it elsewhere or end the chain.
    Behind,
    /// Somebody removed it, or the device is another one of the same index.
    Absent,
}

/// Asks the kernel for the position of a program.
pub(super) fn position(
    netlink: &mut Netlink,
    ifindex: u32,
    side: Side,
    attached: &Attached,
) -> io::Result<Position> {
    let chain = tcx_programs(ifindex, side.chain());
    let Some((priority, handle)) = attached.filter() else {
        let chain = chain?;
        return Ok(match chain.iter().position(|id| *id == attached.program) {
            Some(0) => Position::First,
            Some(_) => Position::Behind,
            None => Position::Absent,
        });
    };
    // TCX runs before all filters; a kernel without it has none.
    let behind_tcx = chain.is_ok_and(|chain| !chain.is_empty());
    let all = filters::list(netlink, ifindex, side)?;
    let ours = |filter: &&filters::Filter| {
        (filter.priority, filter.handle, filter.program) == (priority, handle, Some(attached.program))
    };
    if !all.iter().any(|filter| ours(&filter)) {
        return Ok(Position::Absent);
    }
    // The head of our own priority is no filter.
    let mut before = all.iter().take_while(|filter| !ours(filter));
    let first = before.all(|filter| filter.priority == priority && filter.handle == 0);
    Ok(if first && !behind_tcx { Position::First } else { Position::Behind })
}

/// What a hook may not be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blindness {
    /// Somebody is in front.
    Behind,
    /// The interface passes packets, and the hook sees none.
    Still,
}

impl Blindness {
    pub(super) const fn says(self) -> &'static str {
        match self {
            Self::Behind => {
                "not first at this hook: packets that what is before it drops, redirects or ends the chain for are not seen"
            }
            Self::Still => {
                "the interface passes packets that its hook is not shown: something before it takes them (an XDP or tc \
                 program, an offload)"
            }
        }
    }
}

impl Watched {
    /// Looks whether each hook is where it should be and shown what its interface passes.
    pub(super) fn look_around(&mut self, loaded: &mut Loaded) {
        let hooks = self.devices.iter();
        let hooks: BTreeSet<_> = hooks
            .flat_map(|(ifindex, device)| device.hooks.iter().map(|(side, _)| (*ifindex, *side)))
            .collect();
        self.lookout.begin(&hooks);
        let passed = links::passed(&mut self.netlink).unwrap_or_default();
        let mut absent = BTreeSet::new();
        for (ifindex, device) in &self.devices {
            for (side, attached) in &device.hooks {
                let Ok(position) = position(&mut self.netlink, *ifindex, *side, attached) else { continue };
                if position == Position::Absent {
                    absent.insert(*ifindex);
                    continue;
                }
                let slot = slot(*ifindex, *side == Side::Egress);
                let seen = ledger::hook(&loaded.hooks, slot).map_or(0, |counters| counters.seen_packets);
                let (hook, is_behind) = ((*ifindex, *side), position == Position::Behind);
                if let Some(new) = self.lookout.note(hook, is_behind, passed.get(ifindex), seen) {
                    warn(self.name(*ifindex), *side, attached.kind, new);
                }
            }
        }
        for ifindex in &absent {
            tracing::warn!(interface = self.name(*ifindex), "its programs are gone, attaching them again");
            self.detach(*ifindex, loaded);
        }
        if !absent.is_empty() {
            self.queue_new();
        }
    }
}

/// What has been found, and what the counters were.
pub(super) struct Lookout {
    looked: Instant,
    counters: BTreeMap<(u32, Side), (u64, u64)>,
    blind: BTreeMap<(u32, Side), Blindness>,
}

impl Default for Lookout {
    fn default() -> Self {
        Self { looked: Instant::now(), counters: BTreeMap::new(), blind: BTreeMap::new() }
    }
}

impl Lookout {
    /// Whether it is time to look again.
    pub(super) fn is_due(&self, interval: Duration) -> bool {
        self.looked.elapsed() >= interval
    }

    /// A look at everything begins: what is not there any more is forgotten.
    pub(super) fn begin(&mut self, hooks: &BTreeSet<(u32, Side)>) {
        self.looked = Instant::now();
        self.counters.retain(|hook, _| hooks.contains(hook));
        self.blind.retain(|hook, _| hooks.contains(hook));
    }

    /// Notes what one look at a hook showed; gives what is newly wrong. `passed`: what the interface counted ever, where
    /// that is known; `seen`: packets that the hook was shown ever.
    pub(super) fn note(
        &mut self,
        hook: (u32, Side),
        is_behind: bool,
        passed: Option<&Passed>,
        seen: u64,
    ) -> Option<Blindness> {
        let passed = passed.map(|passed| match hook.1 {
            Side::Ingress => passed.received,
            Side::Egress => passed.sent,
        });
        // What the interface passed before it was looked at the first time is not held against the hook.
        let before = match passed {
            Some(passed) => self.counters.insert(hook, (passed, seen)),
            None => self.counters.get(&hook).copied(),
        };
        let is_still = before
            .zip(passed)
            .is_some_and(|((then, saw), passed)| saw == seen && passed.saturating_sub(then) >= PACKETS_MIN);
        // Less than that many packets say neither that it sees nor that it does not.
        let was_still =
            self.blind.get(&hook) == Some(&Blindness::Still) && before.is_some_and(|(_, saw)| saw == seen);
        let now = if is_still || was_still {
            Some(Blindness::Still)
        } else {
            is_behind.then_some(Blindness::Behind)
        };
        let was = match now {
            Some(blindness) => self.blind.insert(hook, blindness),
            None => self.blind.remove(&hook),
        };
        now.filter(|_| now != was)
    }

    /// What an interface's hooks may not see.
    pub(super) fn blindness(&self, ifindex: u32) -> Option<Blindness> {
        let hooks = self.blind.range((ifindex, Side::Ingress)..=(ifindex, Side::Egress));
        hooks.map(|(_, blindness)| *blindness).next()
    }
}

/// What is said of a hook that is attached a moment ago.
pub(super) fn warn(name: &str, side: Side, kind: HookKind, blindness: Blindness) {
    tracing::warn!(interface = name, side = side.name(), hook = kind.name(), "{}", blindness.says());
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: (u32, Side) = (7, Side::Ingress);

    fn passed(received: u64) -> Passed {
        Passed { received, sent: 0 }
    }

    #[test]
    fn a_hook_that_stands_still_while_its_interface_does_not_is_told_once() {
        let mut lookout = Lookout::default();
        assert_eq!(lookout.note(HOOK, false, Some(&passed(1_000)), 50), None);
        assert_eq!(lookout.note(HOOK, false, Some(&passed(1_099)), 50), None);
        assert_eq!(lookout.note(HOOK, false, Some(&passed(1_199)), 50), Some(Blindness::Still));
        assert_eq!(lookout.note(HOOK, false, Some(&passed(9_999)), 50), None);
        // A quiet interval does not make it see again, a packet that it is shown does.
        assert_eq!(lookout.note(HOOK, false, Some(&passed(9_999)), 50), None);
        assert_eq!(lookout.blindness(7), Some(Blindness::Still));
        assert_eq!(lookout.note(HOOK, false, Some(&passed(10_500)), 51), None);
        assert_eq!(lookout.blindness(7), None);
    }

    #[test]
    fn packets_from_before_the_first_look_accuse_nobody() {
        let mut lookout = Lookout::default();
        // As it is attached, and where the counters cannot be had.
        assert_eq!(lookout.note(HOOK, false, None, 0), None);
        assert_eq!(lookout.note(HOOK, false, Some(&passed(1_855)), 0), None);
        assert_eq!(lookout.note(HOOK, false, None, 0), None);
        assert_eq!(lookout.note(HOOK, false, Some(&passed(1_900)), 0), None);
        assert_eq!(lookout.blindness(7), None);
        assert_eq!(lookout.note(HOOK, false, Some(&passed(2_000)), 0), Some(Blindness::Still));
    }

    #[test]
    fn another_in_front_is_told_once_and_forgotten_with_the_device() {
        let mut lookout = Lookout::default();
        assert_eq!(lookout.note(HOOK, true, None, 0), Some(Blindness::Behind));
        assert_eq!(lookout.note(HOOK, true, None, 0), None);
        assert_eq!((lookout.blindness(7), lookout.blindness(8)), (Some(Blindness::Behind), None));
        lookout.begin(&BTreeSet::new());
        assert_eq!(lookout.blindness(7), None);
    }
}
