//! Takes entries out of the flow table without losing a packet: mark, wait, drain, read, hand on, delete.

use aya::maps::MapError;
use aya::programs::{TestRun as _, TestRunOptions};
use flowlog_abi::{FlowEntry, FlowKey, Told, names};
use flowlog_ebpf::{Closed, closed, expired, report};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::keeping::told_by;
use super::load::{FlowMap, program, with_causes};
use super::sweep::{Sweep, Totals};
use super::{Error, Live, Removal, ledger};
use crate::capture::{Captured, Sink};
use crate::record::EndReason;

/// Bytes of the Ethernet header that the kernel wants in front of a test run's data.
const ETHERNET_BYTES: usize = 14;
/// IEEE 802's local experimental EtherType: nothing that the kernel looks into.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

impl Live {
    /// Ends the connections of the next slice that are over, or that nobody watches any more; returns how many records the ring gave meanwhile.
    pub(super) fn sweep_slice(&mut self, now_ns: u64, sink: Sink<'_>) -> Result<usize, Error> {
        let kernel = ledger::kernel(&self.loaded.ledger)?;
        let live = kernel.connections.saturating_sub(kernel.reopened + self.removed);
        let (watched, timeouts) = (&self.watched, &self.options.timeouts);
        let some_left = watched.some_left();
        let pass_ns = self.options.sweep_ns;
        let over = self.sweep.slice(
            &self.loaded.flows_fd,
            live,
            kernel.connections,
            (now_ns, pass_ns),
            |key, entry| {
                if some_left && watched.all_left(entry) {
                    Some(EndReason::Unwatched)
                } else {
                    expired(key, entry, now_ns, timeouts).then_some(EndReason::Idle)
                }
            },
        )?;
        self.take_out(&over, sink)
    }

    /// Ends every connection that has crossed an interface, before another one has its index.
    pub(super) fn end_of_interface(&mut self, ifindex: u32, sink: Sink<'_>) -> Result<usize, Error> {
        let mut over = Vec::new();
        // A walk of its own: the regular one goes on where it was.
        Sweep::default().whole(&self.loaded.flows_fd, |key, entry| {
            let [up, down] = entry.directions.map(|side| side.ifindex);
            if entry.interfaces.contains(&ifindex) || up == ifindex || down == ifindex {
                over.push((*key, EndReason::Unwatched));
            }
        })?;
        self.take_out(&over, sink)
    }

    /// Takes connections out of the table; returns how many records the ring gave meanwhile.
    fn take_out(&mut self, over: &[(FlowKey, EndReason)], sink: Sink<'_>) -> Result<usize, Error> {
        if over.is_empty() {
            return Ok(0);
        }
        let keys: Vec<FlowKey> = over.iter().map(|(key, _)| *key).collect();
        if self.options.removal != Removal::Unmarked {
            for keys in keys.chunks(names::MARK_KEYS_MAX) {
                self.mark(keys)?;
            }
        }
        if self.options.removal == Removal::Exact {
            // A program that saw a tag before it was taken away may still add, and report, until this returns.
            self.grace.wait().map_err(Error::GracePeriod)?;
        }
        let taken = self.drain(sink);
        self.end_each(over, sink)?;
        Ok(taken)
    }

    /// Hands on the last reports of marked entries, after a grace period, and deletes them. A daemon that comes after
    /// this one could not know of what is deleted, so that is noted before and after.
    pub(super) fn end_each(&mut self, over: &[(FlowKey, EndReason)], sink: Sink<'_>) -> Result<(), Error> {
        if self.is_pinned() {
            let mut ending = Told::default();
            for (key, _) in over {
                if let Some(entry) = get(&self.loaded.flows, key)? {
                    ending = ending.and(told_by(&report(key, &entry)));
                }
            }
            self.keeper.now.ending = ending;
            self.keeper.write()?;
        }
        for (key, reason) in over {
            self.end(key, *reason, sink)?;
        }
        if self.is_pinned() {
            let kept = &mut self.keeper.now;
            kept.ended = kept.ended.and(kept.ending);
            kept.ending = Told::default();
            self.keeper.write()?;
        }
        Ok(())
    }

    /// Ends everything that is in the table. No hook is attached any more, so nothing needs to be marked.
    pub(super) fn end_all(&mut self, sink: Sink<'_>) -> Result<(), Error> {
        let mut keys = Vec::new();
        self.sweep.whole(&self.loaded.flows_fd, |key, _| keys.push(*key))?;
        for key in &keys {
            self.end(key, EndReason::Shutdown, sink)?;
        }
        self.sweep.whole_totals(&self.loaded.flows_fd)
    }

    /// Takes the tags away from the entries of these keys, so that no packet is added to them any more.
    fn mark(&mut self, keys: &[FlowKey]) -> Result<(), Error> {
        let mut data = vec![0; ETHERNET_BYTES - ETHERTYPE.len()];
        data.extend(ETHERTYPE);
        data.extend(keys.as_bytes());
        let run = program(&mut self.loaded.ebpf, names::MARK_PROGRAM)?
            .test_run(TestRunOptions { data_in: Some(&data), ..TestRunOptions::new() })
            .map_err(|error| Error::map(names::FLOWS, "mark entries", with_causes(&error)))?;
        if run.return_value as usize != keys.len() {
            tracing::debug!(
                marked = run.return_value,
                asked = keys.len(),
                "not every entry was found to be marked"
            );
        }
        Ok(())
    }

    /// Deletes an entry that nobody adds to any more, and hands on its last report.
    fn end(&mut self, key: &FlowKey, otherwise: EndReason, sink: Sink<'_>) -> Result<(), Error> {
        let Some(entry) = get(&self.loaded.flows, key)? else { return Ok(()) };
        let reason = match closed(key, &entry) {
            Some(Closed::Fin) => EndReason::Fin,
            Some(Closed::Rst) => EndReason::Rst,
            None => otherwise,
        };
        let last = report(key, &entry);
        self.loaded
            .flows
            .remove(&zerocopy::transmute!(*key))
            .map_err(|error| Error::map(names::FLOWS, "delete an entry", with_causes(&error)))?;
        self.removed += 1;
        self.ended.add(Totals::unreported(&entry));
        self.taken = self.taken.and(told_by(&last));
        sink(Captured::End(&last, reason));
        Ok(())
    }
}

fn get(flows: &FlowMap, key: &FlowKey) -> Result<Option<FlowEntry>, Error> {
    let bytes = match flows.get(&zerocopy::transmute!(*key), 0) {
        Ok(bytes) => bytes,
        Err(MapError::KeyNotFound) => return Ok(None),
        Err(error) => return Err(Error::map(names::FLOWS, "read an entry", with_causes(&error))),
    };
    FlowEntry::read_from_bytes(&bytes)
        .map(Some)
        .map_err(|_| Error::map(names::FLOWS, "read an entry", "another size than expected"))
}
