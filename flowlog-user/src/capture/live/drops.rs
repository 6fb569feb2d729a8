//! Dropped packets: the program on the kernel's tracepoint, and what it has added up.
//!
//! Drops are added up in one of two tables while the other is read. A visit turns them round, waits until no program is
//! left that may know of the one that is read next, takes everything out of it, and hands on what is due: the first drop
//! of its kind at once, the rest of them at an interval. So a flood costs the daemon as much as a trickle of as many
//! different kinds, and no count is read while somebody adds to it.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd as _, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, HashMap as BpfHash, MapData, PerCpuArray};
use aya::programs::raw_trace_point::RawTracePointLinkId;
use flowlog_abi::{DEVICE_NAME_BYTES, Direction, DropKey, Drops, FlowEntry, Report, names};
use flowlog_ebpf::report;
use zerocopy::{FromBytes as _, FromZeros as _, transmute};

use super::bpf::{Cursor, lookup_batch};
use super::load::with_causes;
use super::places::Reasons;
use super::tracepoint::{added, attach, missed, symbol, tracepoint};
use super::{Error, Live};
use crate::capture::{Captured, DropLedger, DropReport, Sink};
use crate::clock;
use crate::record::{DropKind, Dropped, ForeignName, Role};

/// Time between two visits while something is dropped.
const VISIT_NS: u64 = 250_000_000;
/// Time between two records of one kind of drop.
pub(super) const INTERVAL_NS: u64 = 5_000_000_000;
/// A kind of drop of which nothing was heard for so long is over: the next one is a new one.
const FORGET_NS: u64 = 60_000_000_000;
/// Kinds of drops that are remembered at one time; those beyond are handed on at each visit.
const KNOWN_MAX: usize = 1 << 16;
/// Entries that are read at once.
const BATCH_ENTRIES: usize = 1024;
/// Ids of drops have this bit, so that they never meet those of connections.
const DROP_ID: u64 = 1 << 51;

/// A table of drops by key and entry bytes.
pub(super) type DropMap = BpfHash<MapData, [u8; size_of::<DropKey>()], [u8; size_of::<Direction>()]>;

/// The maps.
pub(super) struct DropMaps {
    pub(super) tables: [DropMap; 2],
    /// The same again, for what aya does not do.
    pub(super) tables_fd: [OwnedFd; 2],
    pub(super) names: BpfHash<MapData, [u32; 2], [u8; DEVICE_NAME_BYTES]>,
    pub(super) turn: Array<MapData, u64>,
    pub(super) counters: PerCpuArray<MapData, [u8; size_of::<Drops>()]>,
    pub(super) symbol: Array<MapData, [u8; names::SYMBOL_BYTES]>,
}

/// What is known of one kind of drop.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: u64,
    number: u32,
    started_ns: u64,
    /// All there ever was, and what of it no record has said yet.
    sum: Direction,
    pending: (u64, u64),
    told_ns: u64,
}

/// Whether drops are seen, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropHook {
    /// No task asks for them.
    NotWanted,
    /// The program is on the tracepoint; what is less than it should be, in words.
    Attached(Option<String>),
    /// It cannot be.
    Failed(String),
}

/// The hook and what it has seen.
pub(super) struct DropWatch {
    maps: DropMaps,
    /// Names of reasons, or why the program is of no use on this kernel.
    reasons: Result<Reasons, String>,
    has_reasons: bool,
    link: Option<RawTracePointLinkId>,
    state: DropHook,
    turn: u64,
    /// Drops that were added up when the tables were last turned round.
    visited: u64,
    due_ns: u64,
    known: HashMap<DropKey, Known>,
    kinds: HashMap<(u32, u64), &'static DropKind>,
    next_id: u64,
    names_code: bool,
    keys: Vec<DropKey>,
    entries: Vec<Direction>,
    /// Runs of the program that the kernel has passed over.
    missed: u64,
    /// Packets and bytes that were parts of another buffer.
    parts: (u64, u64),
}

impl DropWatch {
    pub(super) fn new(maps: DropMaps, reasons: Result<Reasons, String>, has_reasons: bool) -> Self {
        Self {
            maps,
            reasons,
            has_reasons,
            link: None,
            state: DropHook::NotWanted,
            turn: 0,
            visited: 0,
            due_ns: 0,
            known: HashMap::new(),
            kinds: HashMap::new(),
            // Unique on this boot as long as no second sees 2^24 kinds of drops.
            next_id: DROP_ID | (clock::monotonic_ns() / 1_000_000_000) << 24,
            names_code: true,
            keys: Vec::new(),
            entries: Vec::new(),
            missed: 0,
            parts: (0, 0),
        }
    }

    pub(super) fn state(&self) -> DropHook {
        self.state.clone()
    }

    pub(super) const fn is_attached(&self) -> bool {
        self.link.is_some()
    }

    /// Puts the program on the tracepoint. What keeps it from there is noted: flows are recorded all the same.
    pub(super) fn attach(&mut self, ebpf: &mut Ebpf) {
        if self.link.is_some() {
            return;
        }
        let attached = match &self.reasons {
            Ok(_) => attach(ebpf),
            Err(why) => Err(why.clone()),
        };
        match attached {
            Ok(link) => {
                self.link = Some(link);
                let less = (!self.has_reasons).then(|| {
                    "this kernel gives no reasons (before 5.17): only the place is known".to_owned()
                });
                tracing::info!(less, "watching dropped packets");
                self.state = DropHook::Attached(less);
            }
            Err(why) => {
                tracing::warn!(why, "dropped packets are not seen");
                self.state = DropHook::Failed(why);
            }
        }
    }

    /// Takes it away. What it has added up stays to be read.
    pub(super) fn detach(&mut self, ebpf: &mut Ebpf) {
        if let Some(link) = self.link.take() {
            self.missed = missed(ebpf).unwrap_or(self.missed);
            match tracepoint(ebpf) {
                Ok(program) => drop(program.detach(link)),
                Err(why) => tracing::warn!(why, "cannot take the program off the tracepoint"),
            }
            tracing::info!("no longer watching dropped packets");
        }
        self.state = DropHook::NotWanted;
    }

    fn counters(&self) -> Result<Drops, Error> {
        let read = |error| Error::map(names::DROPS, "read", error);
        let cpus = self.maps.counters.get(&0, 0).map_err(|error| read(with_causes(&error)))?;
        let mut sum = Drops::default();
        for cpu in cpus.iter() {
            let cpu = Drops::read_from_bytes(cpu).map_err(|_| read("another size than expected".into()))?;
            sum = added(sum, cpu);
        }
        Ok(sum)
    }

    /// The ledger's line of drops.
    pub(super) fn ledger(&self, ebpf: &Ebpf) -> Result<DropLedger, Error> {
        let pending = self
            .known
            .values()
            .fold((0, 0), |(packets, bytes), known| (packets + known.pending.0, bytes + known.pending.1));
        let missed = if self.is_attached() { missed(ebpf).unwrap_or(self.missed) } else { self.missed };
        Ok(DropLedger {
            hook: self.state(),
            counters: self.counters()?,
            missed,
            pending_packets: pending.0,
            pending_bytes: pending.1,
            part_packets: self.parts.0,
            part_bytes: self.parts.1,
        })
    }

    /// The table that nobody adds to any more, once a grace period has passed.
    fn turn_round(&mut self) -> Result<usize, Error> {
        let old = usize::from(self.turn & 1 == 1);
        self.turn = self.turn.wrapping_add(1);
        self.maps
            .turn
            .set(0, self.turn, 0)
            .map_err(|error| Error::map(names::DROP_TURN, "write", with_causes(&error)))?;
        Ok(old)
    }

    /// Takes everything out of a table that nobody adds to.
    fn take_out(&mut self, table: usize) -> Result<(), Error> {
        let [a, b] = &self.maps.tables_fd;
        let fd = if table == 0 { a } else { b };
        self.keys.resize(BATCH_ENTRIES, DropKey::new_zeroed());
        self.entries.resize(BATCH_ENTRIES, Direction::new_zeroed());
        let (mut cursor, mut found): (Option<Cursor>, Vec<(DropKey, Direction)>) = (None, Vec::new());
        loop {
            match lookup_batch(fd.as_fd(), cursor, false, &mut self.keys, &mut self.entries) {
                Ok(slice) => {
                    let some = self.keys.iter().zip(&self.entries).take(slice.count);
                    found.extend(some.map(|(key, entry)| (*key, *entry)));
                    cursor = slice.next;
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                    let more = self.keys.len() * 2;
                    self.keys.resize(more, DropKey::new_zeroed());
                    self.entries.resize(more, Direction::new_zeroed());
                    continue;
                }
                Err(error) => return Err(Error::map(names::DROPS, "walk", error)),
            }
            if cursor.is_none() {
                break;
            }
        }
        for (key, entry) in found {
            let [a, b] = &mut self.maps.tables;
            let map = if table == 0 { a } else { b };
            map.remove(&transmute!(key))
                .map_err(|error| Error::map(names::DROPS, "delete an entry", with_causes(&error)))?;
            self.merge(key, &entry);
        }
        Ok(())
    }

    fn merge(&mut self, key: DropKey, entry: &Direction) {
        let next_id = &mut self.next_id;
        let known = self.known.entry(key).or_insert_with(|| {
            *next_id += 1;
            let started_ns = entry.first_ns;
            // Told long ago, so that the first is due.
            Known {
                id: *next_id,
                number: 0,
                started_ns,
                sum: Direction::new_zeroed(),
                pending: (0, 0),
                told_ns: 0,
            }
        });
        let sum = &mut known.sum;
        sum.packets += entry.packets;
        sum.bytes += entry.bytes;
        sum.last_ns = sum.last_ns.max(entry.last_ns).max(1);
        if sum.first_ns == 0 {
            sum.first_ns = entry.first_ns;
        }
        for (all, one) in sum.l4.iter_mut().zip(entry.l4) {
            *all = (*all).max(one);
        }
        known.pending.0 += entry.packets;
        known.pending.1 += entry.bytes;
    }

    /// What a kind's numbers mean.
    fn kind(&mut self, ebpf: &mut Ebpf, key: &DropKey) -> &'static DropKind {
        if let Some(kind) = self.kinds.get(&(key.reason, key.location)) {
            return kind;
        }
        let location = self.symbol(ebpf, key.location).unwrap_or_default();
        let reason =
            self.reasons.as_mut().ok().and_then(|reasons| reasons.name(key.reason)).unwrap_or_default();
        let kind = DropKind::of(&reason, &location);
        self.kinds.insert((key.reason, key.location), kind);
        kind
    }

    /// The function at an address, as the kernel names it.
    fn symbol(&mut self, ebpf: &mut Ebpf, address: u64) -> Option<String> {
        if !self.names_code {
            return None;
        }
        match symbol(ebpf, &self.maps.symbol, address) {
            Ok(name) => Some(name).filter(|name| !name.starts_with("0x")),
            Err(why) => {
                tracing::warn!(why, "this kernel does not name the places where packets are dropped");
                self.names_code = false;
                None
            }
        }
    }

    /// What an interface is called, in whatever namespace; its number where that is not known.
    fn interface(&self, key: &DropKey) -> ForeignName {
        let bytes = self.maps.names.get(&[key.netns, key.ifindex], 0).unwrap_or_default();
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() => ForeignName::new(name),
            _ => ForeignName::new(&key.ifindex.to_string()),
        }
    }

    /// Kinds of which there is something to say, with what it is.
    fn due(&mut self, now_ns: u64, all: bool) -> Vec<(DropKey, Known)> {
        let crowded = self.known.len() > KNOWN_MAX;
        let mut due = Vec::new();
        for (key, known) in &mut self.known {
            let is_due = all || crowded || known.number == 0 || now_ns >= known.told_ns + INTERVAL_NS;
            if known.pending.0 > 0 && is_due {
                known.number += 1;
                due.push((*key, *known));
                known.told_ns = now_ns;
                known.pending = (0, 0);
                known.sum.first_ns = 0;
            }
        }
        self.known.retain(|_, known| {
            known.pending.0 > 0 || !crowded && now_ns < known.sum.last_ns.saturating_add(FORGET_NS)
        });
        due.sort_by_key(|(_, known)| known.sum.last_ns);
        due
    }
}

/// What the kernel's interfaces are called here, and which namespace this is.
struct Here {
    netns: u32,
    roles: BTreeMap<u32, Role>,
}

impl Live {
    /// Whether dropped packets are seen, and if not, why.
    #[must_use]
    pub fn drop_hook(&self) -> DropHook {
        self.drops.state()
    }

    /// Watches drops, or no longer, as tasks want it.
    pub(super) fn want_drops(&mut self, wanted: bool) {
        if wanted {
            self.drops.attach(&mut self.loaded.ebpf);
        } else {
            self.drops.detach(&mut self.loaded.ebpf);
        }
    }

    /// Hands on what was dropped, when there is something to hand on.
    pub(super) fn visit_drops(&mut self, now_ns: u64, sink: Sink<'_>) -> Result<(), Error> {
        if now_ns < self.drops.due_ns {
            return Ok(());
        }
        self.drops.due_ns = now_ns + VISIT_NS;
        if self.drops.is_attached() {
            self.take_drops()?;
        }
        if !self.drops.known.is_empty() {
            self.tell_drops(now_ns, false, sink);
        }
        Ok(())
    }

    /// Hands on everything that was dropped until now.
    ///
    /// # Errors
    ///
    /// When a map cannot be read.
    pub fn flush_drops(&mut self, sink: Sink<'_>) -> Result<(), Error> {
        let now_ns = clock::monotonic_ns();
        self.take_drops()?;
        self.tell_drops(now_ns, true, sink);
        Ok(())
    }

    /// Turns the tables round if there is something in the one that is added to, and takes it out.
    fn take_drops(&mut self) -> Result<(), Error> {
        let added = self.drops.counters()?.added;
        if added == self.drops.visited {
            return Ok(());
        }
        let table = self.drops.turn_round()?;
        self.grace.wait().map_err(Error::GracePeriod)?;
        // What is added from here on is in the other table, so that the next visit finds more than this.
        self.drops.visited = added;
        self.drops.take_out(table)
    }

    fn tell_drops(&mut self, now_ns: u64, all: bool, sink: Sink<'_>) {
        let due = self.drops.due(now_ns, all);
        if due.is_empty() {
            return;
        }
        let netns = rustix::fs::stat("/proc/thread-self/ns/net").map_or(0, |stat| stat.st_ino);
        let interfaces = self.watched.interfaces();
        let roles = interfaces.iter().map(|(index, interface)| (*index, interface.role)).collect();
        let here = Here { netns: u32::try_from(netns).unwrap_or(0), roles };
        for (key, known) in due {
            let kind = self.drops.kind(&mut self.loaded.ebpf, &key);
            if kind.is_of_parts(key.netns) {
                self.drops.parts.0 += known.pending.0;
                self.drops.parts.1 += known.pending.1;
                continue;
            }
            let is_known =
                key.ifindex == 0 || key.netns == here.netns && here.roles.contains_key(&key.ifindex);
            let interface = if is_known { ForeignName::default() } else { self.drops.interface(&key) };
            let dropped = Dropped { kind, netns: key.netns, interface };
            sink(Captured::Drop(&told(&key, &known, dropped, &here)));
        }
    }
}

/// A kind of drop as a report.
fn told(key: &DropKey, known: &Known, dropped: Dropped, here: &Here) -> DropReport {
    let mut entry = FlowEntry::new_zeroed();
    let is_here = key.netns == here.netns;
    let ifindex = if is_here { key.ifindex } else { 0 };
    let arrived = key.arrived != 0;
    let hook = match (here.roles.get(&ifindex), arrived) {
        (Some(Role::Endpoint), true) => flowlog_abi::hook::ENDPOINT_INGRESS,
        (Some(Role::Endpoint), false) => flowlog_abi::hook::ENDPOINT_EGRESS,
        (_, true) => flowlog_abi::hook::UPLINK_INGRESS,
        (_, false) => flowlog_abi::hook::UPLINK_EGRESS,
    };
    let (packets, bytes) = known.pending;
    let side = Direction {
        hook,
        ifindex,
        reported_packets: known.sum.packets - packets,
        reported_bytes: known.sum.bytes - bytes,
        ..known.sum
    };
    if let Some(place) = entry.directions.get_mut(usize::from(key.direction)) {
        *place = side;
    }
    entry.opener = key.direction;
    entry.started_ns = known.started_ns;
    entry.connection = known.id;
    entry.interfaces = [ifindex, 0, 0, 0];
    entry.number = known.number.wrapping_sub(1);
    let report: Report = report(&key.flow, &entry);
    DropReport { report, direction: usize::from(key.direction), dropped }
}
