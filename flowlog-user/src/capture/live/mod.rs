//! The kernel as a source: loads the programs, attaches them, drains the ring and removes what is over.
//!
//! In: the packets of the chosen interfaces. Out: reports as the kernel wrote them, in ring order, and for each
//! connection one end after all its reports. What never happens here: a table entry that leaves without its last
//! counts, a filter or qdisc removed that is not ours, a thread that outlives a call ([`Live::poll`] does it all).
//! To add a kind of hook: a constructor beside those in `attach`; a role: an arm in `roles`.

mod attach;
mod bpf;
mod btf;
mod drops;
mod error;
mod filters;
mod keeping;
mod ledger;
mod links;
mod load;
mod memory;
mod netlink;
mod numbers;
mod options;
mod passages;
mod pins;
mod places;
mod preflight;
mod removal;
mod roles;
mod rules;
mod select;
mod slots;
mod stale;
mod standing;
mod states;
mod sweep;
mod tracepoint;
mod tunnel_maps;
mod waker;
mod watched;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

use flowlog_abi::{Report, Told};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::FromBytes as _;

use super::{Before, CaptureLedger, Captured, Sink};
use crate::clock;
use crate::record::rules::Rules;
use crate::record::{Interface, Role};

use bpf::GracePeriod;
use drops::DropWatch;
use keeping::{Keeper, told_by};
use load::Loaded;
use pins::Pins;
use sweep::{Sweep, Totals};
use watched::Watched;

pub use drops::DropHook;
pub use error::Error;
pub use keeping::Lost;
pub use memory::Memory;
pub use options::{HookMode, Options, Removal};
pub use waker::Waker;

/// Pause after a drain that found something.
const PAUSE_SHORTEST: Duration = Duration::from_millis(1);
/// Pause that an idle ring leads to by doubling: 1 ms all the time would cost 0.5 % of a core.
const PAUSE_LONGEST: Duration = Duration::from_millis(50);
/// Bytes the kernel puts before each record of a ring.
const RING_HEADER_BYTES: usize = 8;

/// How a hook is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// A TCX link (from Linux 6.6).
    Tcx,
    /// A filter of the clsact qdisc.
    Clsact,
}

impl HookKind {
    /// The name in tables and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
        }
    }
}

/// An interface of this network namespace and what flowlog does with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceState {
    /// Its index.
    pub ifindex: u32,
    /// Its name.
    pub name: String,
    /// Its role, where it is chosen.
    pub role: Option<Role>,
    /// How it is attached, once it is.
    pub hook: Option<HookKind>,
    /// Why it is left out, or could not be attached.
    pub reason: Option<String>,
    /// What its hooks may not be shown, and why.
    pub blind: Option<&'static str>,
}

/// A running capture. Dropping it detaches everything that is not pinned; [`Self::stop`] also hands on what is left.
pub struct Live {
    // First, so that a drop detaches before the maps go.
    watched: Watched,
    loaded: Loaded,
    grace: GracePeriod,
    sweep: Sweep,
    drops: DropWatch,
    options: Options,
    pause: Duration,
    ring_taken: u64,
    /// Entries removed from the table.
    removed: u64,
    ended: Totals,
    /// What the kernel tests connections by; not known of tables that were there before.
    rules: Option<Rules>,
    keeper: Keeper,
    /// The tables were there before, and are yet to be looked at.
    inherited: bool,
    /// What earlier daemons took.
    before: Told,
    /// What this one took, from tables of other sizes too.
    taken: Told,
    /// What it read from the ring of other tables.
    other: Told,
    /// What earlier daemons took from the ring.
    before_ring: Told,
    lost: Option<Lost>,
    /// No program is left that tests by rules before these.
    rules_settled: bool,
    waker: Waker,
    stopped: bool,
}

// It is started on one thread and polled on another.
const _: fn(Live) -> Box<dyn Send> = |live| Box::new(live);

impl Live {
    /// Checks the machine, loads, chooses and attaches.
    ///
    /// # Errors
    ///
    /// Whatever is missing, refused or contradictory; nothing stays attached then.
    pub fn start(options: &Options) -> Result<Self, Error> {
        preflight::check()?;
        let pins = options.pin.as_deref().map(|folder| Pins::open(folder, options)).transpose()?;
        let inherited = pins.is_some();
        let continued = pins.as_ref().is_some_and(|pins| pins.continued);
        let watched = Watched::choose(options, pins)?;
        let (loaded, kept, drops) = load::load(options, watched.pins())?;
        let keeper = Keeper::open(kept, watched.pins().is_some())?;
        let grace = GracePeriod::new().map_err(Error::GracePeriod)?;
        let mut live = Self {
            watched,
            loaded,
            grace,
            sweep: Sweep::default(),
            drops,
            options: options.clone(),
            pause: PAUSE_SHORTEST,
            ring_taken: 0,
            removed: 0,
            ended: Totals::default(),
            rules: (!continued).then(Rules::everything), // as the programs do after loading
            keeper,
            inherited,
            before: Told::default(),
            taken: Told::default(),
            other: Told::default(),
            before_ring: Told::default(),
            lost: None,
            rules_settled: true,
            waker: Waker::new()?,
            stopped: false,
        };
        // Before anything is attached, so that nothing is counted that nobody wants.
        live.set_rules(&options.rules)?;
        live.watched.attach_all(&mut live.loaded)?;
        Ok(live)
    }

    /// Hands on everything that is in the ring, keeps up with interfaces, and removes a slice of what is over.
    /// Returns how many records came from the ring.
    ///
    /// # Errors
    ///
    /// When a map cannot be read or written; the capture should be stopped then.
    pub fn poll(&mut self, sink: Sink<'_>) -> Result<usize, Error> {
        self.take_over_once(sink)?;
        let mut taken = self.drain(sink);
        (self.loaded.flush_log)();
        self.watched.keep_up(&mut self.loaded);
        while let Some(ifindex) = self.watched.reused() {
            taken += self.end_of_interface(ifindex, sink)?;
            self.watched.has_ended(ifindex);
        }
        let now_ns = clock::monotonic_ns();
        self.visit_drops(now_ns, sink)?;
        if self.sweep.is_due(now_ns) {
            taken += self.sweep_slice(now_ns, sink)?;
        }
        self.pause = if taken > 0 { PAUSE_SHORTEST } else { (self.pause * 2).min(PAUSE_LONGEST) };
        Ok(taken)
    }

    /// Waits until the next poll makes sense, at most `timeout`: 1 ms while records come, up to 50 ms when idle;
    /// shorter when an interface changes, the kernel calls because the ring fills, or [`Waker::wake`] is called.
    pub fn wait(&self, timeout: Duration) {
        let pause = self.pause.min(timeout);
        if self.watched.is_behind() || pause.is_zero() {
            return;
        }
        if pause <= PAUSE_SHORTEST {
            // A poll would return at once, since the next record is there already: let a batch gather.
            std::thread::sleep(pause);
            return;
        }
        let notifications = self.watched.notifications().as_fd();
        let mut waiting = [
            PollFd::from_borrowed_fd(self.loaded.ring.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(notifications, PollFlags::IN),
            PollFd::from_borrowed_fd(self.waker.as_fd(), PollFlags::IN),
        ];
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        let _ = poll(&mut waiting, Some(&pause)); // a signal only makes the next poll come early
        self.waker.take();
    }

    /// Ends a [`Self::wait`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Detaches every hook, hands on what is in the ring, ends every connection that is in the table, and returns
    /// the exact ledger. Where tables and links are pinned, everything goes on counting: only what is in the ring is
    /// handed on, and the ledger is as of that moment.
    ///
    /// # Errors
    ///
    /// When a map cannot be read; everything is detached all the same.
    pub fn stop(&mut self, sink: Sink<'_>) -> Result<CaptureLedger, Error> {
        // Before the grace period below, and never pinned: nobody reads drops while no daemon runs.
        self.drops.detach(&mut self.loaded.ebpf);
        self.grace.wait().map_err(Error::GracePeriod)?;
        self.flush_drops(sink)?;
        if self.is_pinned() {
            self.watched.leave_all();
            self.take_over_once(sink)?;
            self.drain(sink);
            self.sweep.whole_totals(&self.loaded.flows_fd)?;
            return self.ledger();
        }
        self.watched.detach_all(&mut self.loaded);
        self.grace.wait().map_err(Error::GracePeriod)?;
        self.drain(sink);
        (self.loaded.flush_log)();
        self.end_all(sink)?;
        self.stopped = true;
        self.ledger()
    }

    /// The ledger as of now: exact after [`Self::stop`], before it less what is in flight.
    ///
    /// # Errors
    ///
    /// When a map cannot be read.
    pub fn ledger(&self) -> Result<CaptureLedger, Error> {
        let hooks = self.watched.slots().counters(|slot| ledger::hook(&self.loaded.hooks, slot))?;
        let kernel = ledger::kernel(&self.loaded.ledger)?;
        Ok(CaptureLedger {
            hooks,
            table_entries: kernel.connections.saturating_sub(kernel.reopened + self.removed),
            kernel,
            drops: self.drops.ledger(&self.loaded.ebpf)?,
            reasons: ledger::reasons(&self.loaded.reasons)?,
            ended_packets: self.ended.packets,
            ended_bytes: self.ended.bytes,
            table_packets: self.sweep.unreported.packets,
            table_bytes: self.sweep.unreported.bytes,
            ring_taken: self.ring_taken,
            before: Before { ring: self.before_ring, ended: self.keeper.now.ended, other: self.other },
            continues: self.is_pinned(),
            stopped: self.stopped,
        })
    }

    /// Every interface of this namespace with its role and hook, or the reason it is left out.
    #[must_use]
    pub fn interfaces(&self) -> Vec<InterfaceState> {
        self.watched.states()
    }

    /// Names and roles of the interfaces that records may speak of, by index: those attached, and those that were a
    /// while ago.
    #[must_use]
    pub fn known_interfaces(&self) -> BTreeMap<u32, Interface> {
        self.watched.interfaces()
    }

    /// The node's own addresses, of all interfaces.
    #[must_use]
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.watched.addresses()
    }

    /// Grows whenever interfaces or addresses have changed.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.watched.changes()
    }

    /// Hands on what is in the ring, but no more than it held when this began.
    fn drain(&mut self, sink: Sink<'_>) -> usize {
        let room = self.options.ring_bytes as usize / (size_of::<Report>() + RING_HEADER_BYTES) + 1;
        let mut taken = 0;
        while taken < room
            && let Some(record) = self.loaded.ring.next()
        {
            if let Ok(report) = Report::read_from_bytes(&record) {
                self.taken = self.taken.and(told_by(&report));
            }
            sink(Captured::Bytes(&record));
            taken += 1;
        }
        self.ring_taken += taken as u64;
        taken
    }
}

/// Where the running kernel keeps what is read of a dropped packet.
///
/// # Errors
///
/// Why that cannot be found out.
pub fn places() -> Result<flowlog_abi::Places, String> {
    places::read().map(|(places, _)| places)
}

/// Every interface with the role it would have, or the reason it would be left out. Needs no privilege.
///
/// # Errors
///
/// When a glob is not valid or netlink fails.
pub fn interfaces(options: &Options) -> Result<Vec<InterfaceState>, Error> {
    states::preview(options)
}

/// Packets, received and sent, that each interface of this namespace has counted by itself, with its name, by index.
/// Needs no privilege.
///
/// # Errors
///
/// When netlink fails.
pub fn passed() -> Result<BTreeMap<u32, (String, u64)>, Error> {
    states::passed()
}
