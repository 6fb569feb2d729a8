//! Going on where another daemon stopped or was killed: what it had taken and not brought into a file is found out, and
//! what it left half done is done.

use std::os::fd::AsFd as _;
use std::path::Path;

use aya::maps::{Array, Map, MapData, MapInfo, RingBuf};
use flowlog_abi::{FlowKey, Kept, Report, Told, names};
use zerocopy::{FromBytes as _, transmute};

use super::bpf::count_elements;
use super::load::with_causes;
use super::pins::Pins;
use super::sweep::{Sweep, Totals};
use super::{Error, Live, ledger};
use crate::capture::{Captured, Sink};
use crate::clock;
use crate::record::EndReason;
use flowlog_ebpf::report;

/// Grace periods in which the ring must be quiet once, so that what is found out is exact.
const TRIES: usize = 20;

/// What earlier daemons had taken from the kernel and not brought into the tasks' files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// At most so much.
    pub told: Told,
    /// When the last of what is in the files was noted, nanoseconds of CLOCK_MONOTONIC; 0 = never.
    pub since_ns: u64,
}

/// The map in which one daemon leaves a note for the next.
pub(super) struct Keeper {
    map: Array<MapData, [u8; size_of::<Kept>()]>,
    pub(super) now: Kept,
    /// Whether anybody comes after us.
    pinned: bool,
}

impl Keeper {
    pub(super) fn open(map: Array<MapData, [u8; size_of::<Kept>()]>, pinned: bool) -> Result<Self, Error> {
        let bytes = map.get(&0, 0).map_err(|error| Error::map(names::KEPT, "read", with_causes(&error)))?;
        let mut keeper = Self { map, now: transmute!(bytes), pinned };
        keeper.now.starts += 1;
        keeper.write()?;
        Ok(keeper)
    }

    pub(super) fn write(&mut self) -> Result<(), Error> {
        if !self.pinned {
            return Ok(());
        }
        let bytes: [u8; size_of::<Kept>()] = transmute!(self.now);
        self.map.set(0, bytes, 0).map_err(|error| Error::map(names::KEPT, "write", with_causes(&error)))
    }
}

/// What a report was the first to tell of.
pub(super) fn told_by(report: &Report) -> Told {
    report.directions.iter().fold(Told { records: 1, ..Told::default() }, |sum, side| {
        let packets = side.packets.saturating_sub(side.reported_packets);
        let bytes = side.bytes.saturating_sub(side.reported_bytes);
        sum.and(Told { records: 0, packets, bytes })
    })
}

impl Live {
    /// Whether tables and links stay when this process goes.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        self.watched.pins().is_some()
    }

    /// How many daemons have used these tables, this one included.
    #[must_use]
    pub const fn starts(&self) -> u64 {
        self.keeper.now.starts
    }

    /// What daemons before this one took and lost; once, after the first poll.
    pub const fn lost(&mut self) -> Option<Lost> {
        self.lost.take()
    }

    /// Everything handed on so far, from the ring and in last reports.
    #[must_use]
    pub const fn taken(&self) -> Told {
        self.taken
    }

    /// Notes, for a daemon that comes after this one, that what was handed on is in files but for `less`.
    ///
    /// # Errors
    ///
    /// When the note cannot be written.
    pub fn settle(&mut self, taken: Told, less: Told) -> Result<(), Error> {
        self.keeper.now.settled = self.before.and(taken.less(less));
        self.keeper.now.settled_ns = clock::monotonic_ns();
        self.keeper.write()
    }

    /// What the kernel has told through the ring, to whomever.
    fn told_in_all(&self) -> Result<Told, Error> {
        let kernel = ledger::kernel(&self.loaded.ledger)?;
        let alone = ledger::alone(&self.loaded.hooks)?;
        let told = Told {
            records: kernel.ring_records,
            packets: kernel.reported_packets,
            bytes: kernel.reported_bytes,
        };
        Ok(told.and(Told { records: 0, packets: alone.0, bytes: alone.1 }))
    }

    /// At the first poll on tables that may have been there before, or at a stop that comes sooner.
    pub(super) fn take_over_once(&mut self, sink: Sink<'_>) -> Result<(), Error> {
        if std::mem::take(&mut self.inherited) { self.take_over(sink) } else { Ok(()) }
    }

    fn take_over(&mut self, sink: Sink<'_>) -> Result<(), Error> {
        let marked = self.finish_ending()?;
        let mut quiet = None;
        for _ in 0..TRIES {
            self.drain(sink);
            let before = self.told_in_all()?;
            self.grace.wait().map_err(Error::GracePeriod)?;
            let late = self.drain(sink);
            let now = self.told_in_all()?;
            quiet = Some(now);
            if late == 0 && now == before {
                break;
            }
        }
        self.before_ring = quiet.unwrap_or_default().less(self.taken);
        self.before = self.before_ring.and(self.keeper.now.ended);
        let told = self.before.less(self.keeper.now.settled);
        if told != Told::default() {
            self.lost = Some(Lost { told, since_ns: self.keeper.now.settled_ns });
        }
        if !marked.is_empty() {
            self.grace.wait().map_err(Error::GracePeriod)?;
            let marked: Vec<_> = marked.into_iter().map(|key| (key, EndReason::Idle)).collect();
            self.end_each(&marked, sink)?;
        }
        self.take_over_others(sink)
    }

    /// A daemon that is killed while it takes entries out leaves some of them, without a tag: what it had told of the
    /// others is noted. Gives those that are left.
    fn finish_ending(&mut self) -> Result<Vec<FlowKey>, Error> {
        let (mut marked, mut left, mut live) = (Vec::new(), Told::default(), 0);
        self.sweep.whole(&self.loaded.flows_fd, |key, entry| {
            live += 1;
            if entry.tag == 0 {
                marked.push(*key);
                left = left.and(told_by(&report(key, entry)));
            }
        })?;
        let kept = &mut self.keeper.now;
        if kept.ending != Told::default() {
            kept.ended = kept.ended.and(kept.ending.less(left));
            kept.ending = Told::default();
        }
        self.keeper.write()?;
        let kernel = ledger::kernel(&self.loaded.ledger)?;
        self.removed = kernel.connections.saturating_sub(kernel.reopened + live);
        Ok(marked)
    }

    /// Reads what is in tables of other sizes, which no program counts into any more, and takes them away; of those of
    /// other layouts only says how much it was.
    fn take_over_others(&mut self, sink: Sink<'_>) -> Result<(), Error> {
        let others = self.watched.pins().map(Pins::others).unwrap_or_default();
        if others.is_empty() {
            return Ok(());
        }
        // Whatever ran while the links were updated one after another has ended.
        self.grace.wait().map_err(Error::GracePeriod)?;
        for folder in others {
            let readable = Pins::is_readable(&folder);
            let outcome = if readable { self.read_other(&folder, sink) } else { count_other(&folder) };
            match outcome {
                Ok(told) if readable => {
                    tracing::info!(
                        connections = told.records,
                        "read the tables of another size to their end"
                    );
                }
                Ok(told) => {
                    tracing::warn!(
                        records = told.records,
                        "tables of another version of flowlog cannot be read; so many connections and reports are lost"
                    );
                    let since_ns = self.keeper.now.settled_ns;
                    let told = told.and(self.lost.map_or(Told::default(), |lost| lost.told));
                    self.lost = Some(Lost { told, since_ns });
                }
                Err(reason) => {
                    tracing::warn!(folder = %folder.display(), reason, "cannot read earlier tables");
                }
            }
            Pins::forget(&folder);
        }
        Ok(())
    }

    fn read_other(&mut self, folder: &Path, sink: Sink<'_>) -> Result<Told, String> {
        let mut ring = ring(folder)?;
        while let Some(record) = ring.next() {
            if let Ok(report) = Report::read_from_bytes(&record) {
                let told = told_by(&report);
                self.taken = self.taken.and(told);
                self.other = self.other.and(told);
            }
            sink(Captured::Bytes(&record));
        }
        let flows = MapData::from_pin(folder.join(names::FLOWS)).map_err(|error| with_causes(&error))?;
        let (mut ended, mut told) = (Totals::default(), Told::default());
        Sweep::default()
            .whole(flows.fd().as_fd(), |key, entry| {
                let last = report(key, entry);
                told = told.and(told_by(&last));
                ended.add(Totals::unreported(entry));
                sink(Captured::End(&last, EndReason::Shutdown));
            })
            .map_err(|error| error.to_string())?;
        self.taken = self.taken.and(told);
        self.ended.add(ended);
        Ok(told)
    }
}

fn ring(folder: &Path) -> Result<RingBuf<MapData>, String> {
    MapData::from_pin(folder.join(names::RING))
        .and_then(Map::from_map_data)
        .and_then(RingBuf::try_from)
        .map_err(|error| with_causes(&error))
}

fn count_other(folder: &Path) -> Result<Told, String> {
    let mut records = 0;
    let mut ring = ring(folder)?;
    while ring.next().is_some() {
        records += 1;
    }
    let path = folder.join(names::FLOWS);
    let info = MapInfo::from_pin(&path).map_err(|error| with_causes(&error))?;
    if info.key_size() <= 256 {
        let flows = MapData::from_pin(&path).map_err(|error| with_causes(&error))?;
        let count =
            count_elements(flows.fd().as_fd(), info.max_entries()).map_err(|error| error.to_string())?;
        records += u64::from(count);
    }
    Ok(Told { records, ..Told::default() })
}
