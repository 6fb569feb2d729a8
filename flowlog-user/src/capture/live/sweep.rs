//! Walks the flow table in slices, so that it is passed about once a second, and finds what is over.

use std::os::fd::AsFd;

use flowlog_abi::{FlowEntry, FlowKey, names};
use zerocopy::FromZeros as _;

use super::Error;
use super::bpf::{Cursor, lookup_batch};
use crate::record::EndReason;

/// Entries of a slice as long as the table is small.
const SLICE_ENTRIES: usize = 4096;
/// Slices that one pass is cut into at most.
const SLICES_MAX: u64 = 20;
/// Packets and layer-2 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Totals {
    /// What an entry holds beyond what has been reported.
    pub(super) fn unreported(entry: &FlowEntry) -> Self {
        entry.directions.iter().fold(Self::default(), |sum, side| Self {
            packets: sum.packets + side.packets.saturating_sub(side.reported_packets),
            bytes: sum.bytes + side.bytes.saturating_sub(side.reported_bytes),
        })
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

#[derive(Default)]
pub(super) struct Sweep {
    cursor: Option<Cursor>,
    keys: Vec<FlowKey>,
    entries: Vec<FlowEntry>,
    due_ns: u64,
    /// Entries are read under their locks.
    locked: bool,
    pass: Totals,
    /// Entries met in this pass.
    met: usize,
    /// How many connections had ever begun when a whole pass began that met none.
    empty_at: Option<u64>,
    /// The same of the pass that is under way.
    began_at: u64,
    /// Unreported in the table as of the last whole pass.
    pub(super) unreported: Totals,
}

/// How a pass over so many entries is cut: entries of a slice, slices of a pass.
fn cut(live: u64) -> (usize, u64) {
    let slices = (live / SLICE_ENTRIES as u64 + 1).min(SLICES_MAX);
    (usize::try_from(live / slices).unwrap_or(usize::MAX).max(SLICE_ENTRIES), slices)
}

impl Sweep {
    /// A walk that sees no entry in the middle of becoming another connection's.
    pub(super) fn under_lock() -> Self {
        Self { locked: true, ..Self::default() }
    }

    pub(super) const fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Looks at the next slice and gives what is over, and why. `live`: about how many entries there are; `began`: how
    /// many connections have ever begun, since an empty table is not looked at again before another has; `pass_ns`: the
    /// time for all of them.
    pub(super) fn slice(
        &mut self,
        flows: impl AsFd,
        live: u64,
        began: u64,
        (now_ns, pass_ns): (u64, u64),
        is_over: impl Fn(&FlowKey, &FlowEntry) -> Option<EndReason>,
    ) -> Result<Vec<(FlowKey, EndReason)>, Error> {
        let (entries, slices) = cut(live);
        self.due_ns = now_ns + pass_ns / slices;
        if self.cursor.is_none() {
            if self.empty_at == Some(began) {
                return Ok(Vec::new());
            }
            (self.met, self.began_at) = (0, began);
        }
        self.grow(entries);
        let mut over = Vec::new();
        let (mut pass, mut met) = (self.pass, self.met);
        self.next(&flows, |key, entry| {
            met += 1;
            pass.add(Totals::unreported(entry));
            over.extend(is_over(key, entry).map(|reason| (*key, reason)));
        })?;
        (self.pass, self.met) = (pass, met);
        if self.cursor.is_none() {
            self.empty_at = (met == 0).then_some(self.began_at);
            self.unreported = std::mem::take(&mut self.pass);
        }
        Ok(over)
    }

    /// Every entry of the table from the beginning, a slice at a time.
    pub(super) fn whole(
        &mut self,
        flows: impl AsFd,
        mut each: impl FnMut(&FlowKey, &FlowEntry),
    ) -> Result<(), Error> {
        self.cursor = None;
        self.grow(SLICE_ENTRIES);
        loop {
            self.next(&flows, &mut each)?;
            if self.cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Adds up what the whole table holds beyond what has been reported.
    pub(super) fn whole_totals(&mut self, flows: impl AsFd) -> Result<(), Error> {
        let mut left = Totals::default();
        self.whole(flows, |_, entry| left.add(Totals::unreported(entry)))?;
        self.unreported = left;
        Ok(())
    }

    fn next(&mut self, flows: impl AsFd, mut each: impl FnMut(&FlowKey, &FlowEntry)) -> Result<(), Error> {
        let slice = loop {
            match lookup_batch(flows.as_fd(), self.cursor, self.locked, &mut self.keys, &mut self.entries) {
                Ok(slice) => break slice,
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => self.grow(self.keys.len() * 2),
                Err(error) => return Err(Error::map(names::FLOWS, "walk", error)),
            }
        };
        self.cursor = slice.next;
        for (key, entry) in self.keys.iter().zip(&self.entries).take(slice.count) {
            each(key, entry);
        }
        Ok(())
    }

    fn grow(&mut self, entries: usize) {
        if self.keys.len() < entries {
            self.keys.resize(entries, FlowKey::new_zeroed());
            self.entries.resize(entries, FlowEntry::new_zeroed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_takes_at_most_twenty_slices_and_holds_every_entry() {
        for live in [0, 1, 4095, 4096, 81_920, 131_072, 1_000_000] {
            let (entries, slices) = cut(live);
            assert!((1..=SLICES_MAX).contains(&slices), "{live}");
            // One slice's worth may be left over; it comes with the next pass's first.
            assert!((entries as u64 + 1) * slices >= live, "{live}: {entries} x {slices}");
        }
        assert_eq!(cut(10), (SLICE_ENTRIES, 1));
    }

    #[test]
    fn unreported_is_what_was_counted_after_the_last_report() {
        let mut entry = FlowEntry::new_zeroed();
        entry.directions[0].packets = 10;
        entry.directions[0].reported_packets = 4;
        entry.directions[0].bytes = 1000;
        entry.directions[0].reported_bytes = 400;
        entry.directions[1].packets = 3;
        entry.directions[1].bytes = 180;
        assert_eq!(Totals::unreported(&entry), Totals { packets: 9, bytes: 780 });
    }
}
