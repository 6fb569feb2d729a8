//! The interfaces that are watched: chosen at the start, attached, kept in step with what comes and goes.

mod lookout;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use flowlog_abi::{FlowEntry, NUMBER_MAX, observed, slot};

use crate::capture::tunnels::TunnelMode;
use crate::record::{Interface, Role};

use super::attach::{Attached, Before, Kinds, Side, Target, attach, program_name};
use super::links::{self, Links};
use super::load::{Loaded, load_programs};
use super::netlink::{Changed, Netlink, Notifications};
use super::numbers::Numbers;
use super::passages::carriers;
use super::pins::Pins;
use super::roles::{framing, loops_back};
use super::select::{Choice, Selection};
use super::slots::Slots;
use super::states::states;
use super::{Error, InterfaceState, Options};
use super::{ledger, stale};

use lookout::{Lookout, Position, position};

/// How long a gone interface's name is kept for records that still speak of it (the longest idle timeout, thrice).
const GONE_KEPT: Duration = Duration::from_secs(900);

/// Between two listings, so that a storm of notifications does not become one of dumps.
const LIST_INTERVAL: Duration = Duration::from_millis(20);

struct Device {
    hooks: Vec<(Side, Attached)>,
}

struct Known {
    interface: Interface,
    gone: Option<Instant>,
    /// Nothing in the table speaks of it any more.
    ended: bool,
}

pub(super) struct Watched {
    netlink: Netlink,
    notifications: Notifications,
    selection: Selection,
    kinds: Kinds,
    tunnel: TunnelMode,
    /// Numbers of the interfaces, where each counts for itself.
    numbers: Option<Numbers>,
    /// Devices that the programs know as carriers.
    carriers: BTreeSet<u32>,
    links: Links,
    choice: Choice,
    routes: BTreeSet<u32>,
    devices: BTreeMap<u32, Device>,
    pending: VecDeque<Target>,
    /// Attaching failed; not tried again while the interface is there.
    failed: BTreeMap<u32, String>,
    known: BTreeMap<u32, Known>,
    slots: Slots,
    lookout: Lookout,
    lookout_interval: Duration,
    changes: u64,
    /// Notified, not listed yet.
    dirty: Changed,
    listed: Instant,
    /// Tables and links that stay.
    pins: Option<Pins>,
    /// Filters of an earlier daemon that count into our table.
    filters: stale::Filters,
}

impl Watched {
    /// Lists, cleans up after a killed flowlog, chooses; nothing is attached yet.
    pub(super) fn choose(options: &Options, pins: Option<Pins>) -> Result<Self, Error> {
        let selection = Selection::new(options)?;
        // Before the first listing, so that nothing falls between the two.
        let notifications = Notifications::open().map_err(Error::Netlink)?;
        let mut netlink = Netlink::open().map_err(Error::Netlink)?;
        let routes = links::default_routes(&mut netlink).map_err(Error::Netlink)?;
        let links = links::list(&mut netlink, &routes).map_err(Error::Netlink)?;
        let choice = selection.choose(&links);
        selection.check(&links, &choice)?;
        let table = pins.as_ref().and_then(Pins::table_id);
        let filters = stale::clean(&mut netlink, &links, options.only, table);
        let mut watched = Self {
            netlink,
            notifications,
            selection,
            kinds: options.hook.kinds(),
            tunnel: options.tunnel,
            numbers: options.observe_all.then(Numbers::default),
            carriers: BTreeSet::new(),
            links,
            choice,
            routes,
            devices: BTreeMap::new(),
            pending: VecDeque::new(),
            failed: BTreeMap::new(),
            known: BTreeMap::new(),
            slots: Slots::default(),
            lookout: Lookout::default(),
            lookout_interval: Duration::from_nanos(options.lookout_ns),
            changes: 0,
            dirty: Changed::default(),
            listed: Instant::now(),
            pins,
            filters,
        };
        watched.queue_new();
        if watched.pending.is_empty() {
            tracing::warn!(
                "no interface to watch, waiting for one; `flowlog interfaces` says why each is left out"
            );
        }
        Ok(watched)
    }

    /// Attaches everything that was chosen. An interface that went away meanwhile is no error.
    pub(super) fn attach_all(&mut self, loaded: &mut Loaded) -> Result<(), Error> {
        let programs = self.pending.iter().map(program_name).collect();
        load_programs(&mut loaded.ebpf, &programs)?;
        self.tell_passages(loaded)?;
        while let Some(target) = self.pending.pop_front() {
            match self.attach_one(loaded, &target) {
                Ok(()) => {}
                Err(Error::Gone { name }) => {
                    tracing::warn!(interface = name, "went away while it was attached");
                }
                Err(error) => return Err(error),
            }
        }
        self.drop_unwatched(loaded);
        Ok(())
    }

    /// Takes away what an earlier daemon watched and this one does not.
    fn drop_unwatched(&mut self, loaded: &mut Loaded) {
        for ((ifindex, side), filter) in std::mem::take(&mut self.filters) {
            let Some(link) = self.links.get(&ifindex) else { continue };
            if let Err(error) = stale::remove(&link.name, side, filter) {
                tracing::warn!(
                    interface = link.name,
                    side = side.name(),
                    error,
                    "cannot remove an earlier filter"
                );
            }
        }
        let Some(pins) = &self.pins else { return };
        pins.keep_handover();
        let hooks = self.devices.iter();
        pins.keep_links(
            hooks.flat_map(|(ifindex, device)| device.hooks.iter().map(|(side, _)| (*ifindex, *side))),
        );
        let observed: Vec<u32> = loaded.observed.keys().filter_map(Result::ok).collect();
        for ifindex in observed.into_iter().filter(|ifindex| !self.devices.contains_key(ifindex)) {
            let _ = loaded.observed.remove(&ifindex);
        }
    }

    /// Takes notifications, lists again if there were any, and attaches at most one hook: each waits for a grace
    /// period, and the ring must not wait for many.
    pub(super) fn keep_up(&mut self, loaded: &mut Loaded) {
        self.dirty.add(self.notifications.take());
        if self.dirty != Changed::default() && self.listed.elapsed() >= LIST_INTERVAL {
            self.list(loaded);
        }
        if self.lookout.is_due(self.lookout_interval) {
            self.look_around(loaded);
        }
        if self.reused().is_none()
            && let Some(target) = self.pending.pop_front()
            && let Err(error) = self.attach_one(loaded, &target)
        {
            tracing::warn!(interface = target.name, %error, "not watched");
            if !matches!(error, Error::Gone { .. }) {
                self.failed.insert(target.ifindex, error.to_string());
            }
        }
    }

    fn list(&mut self, loaded: &mut Loaded) {
        let mut changed = std::mem::take(&mut self.dirty);
        self.listed = Instant::now();
        if changed.routes {
            match links::default_routes(&mut self.netlink) {
                Ok(routes) => self.routes = routes,
                Err(error) => tracing::warn!(%error, "cannot list routes, keeping the roles there are"),
            }
        }
        match links::list(&mut self.netlink, &self.routes) {
            Ok(links) => {
                // If the listing has what came in the place of a device that went, that has been told by now.
                let mut late = self.notifications.take();
                changed.gone.append(&mut late.gone);
                self.dirty = late;
                self.let_go(&changed.gone, loaded);
                self.follow(links, loaded);
                if changed.lost {
                    self.look_around(loaded);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot list interfaces, trying again");
                self.dirty = Changed { links: true, ..changed };
            }
        }
    }

    /// Forgets devices that went: one that has the index of such a device now is another.
    fn let_go(&mut self, gone: &BTreeSet<u32>, loaded: &mut Loaded) {
        for ifindex in gone {
            self.failed.remove(ifindex);
            self.pending.retain(|target| target.ifindex != *ifindex);
            if let Some(device) = self.devices.remove(ifindex) {
                device.hooks.into_iter().for_each(|(_, attached)| attached.forget());
                self.note_gone(*ifindex, loaded);
                self.links.remove(ifindex);
            }
        }
    }

    fn name(&self, ifindex: u32) -> &str {
        self.known.get(&ifindex).map_or("", |known| known.interface.name.as_str())
    }

    /// The next device to be attached, if one that is gone had its index and the table still speaks of that.
    pub(super) fn reused(&self) -> Option<u32> {
        let next = self.pending.front()?.ifindex;
        self.known.get(&next).is_some_and(|known| known.gone.is_some() && !known.ended).then_some(next)
    }

    /// Nothing in the table speaks of a device that is gone any more.
    pub(super) fn has_ended(&mut self, ifindex: u32) {
        if let Some(known) = self.known.get_mut(&ifindex) {
            known.ended = true;
        }
    }

    fn follow(&mut self, links: Links, loaded: &mut Loaded) {
        if links == self.links {
            return;
        }
        self.links = links;
        let before = std::mem::replace(&mut self.choice, self.selection.choose(&self.links));
        for (lower, upper) in self.selection.stacked(&self.links, &self.choice) {
            // The upper one, unless it alone is attached already.
            let attached = |ifindex| self.devices.contains_key(ifindex);
            let keep_upper = attached(&upper.ifindex) && !attached(&lower.ifindex);
            let (out, beside) = if keep_upper { (lower, upper) } else { (upper, lower) };
            let reason = Err(format!("{} is watched and carries the same packets", beside.name));
            if before.get(&out.ifindex) != Some(&reason) {
                tracing::warn!(
                    interface = out.name,
                    other = beside.name,
                    "left out, it would count packets twice"
                );
            }
            self.choice.insert(out.ifindex, reason);
        }
        self.failed.retain(|ifindex, _| self.links.contains_key(ifindex));
        let stays = |ifindex: &u32| matches!(self.choice.get(ifindex), Some(Ok(_)));
        let leaving: Vec<_> = self.devices.keys().filter(|ifindex| !stays(ifindex)).copied().collect();
        self.pending.retain(|target| stays(&target.ifindex));
        for ifindex in leaving {
            self.detach(ifindex, loaded);
        }
        for (ifindex, known) in &mut self.known {
            if let Some(link) = self.links.get(ifindex)
                && known.gone.is_none()
                && known.interface.name != link.name
            {
                known.interface.name.clone_from(&link.name);
                self.slots.rename(*ifindex, &link.name);
            }
        }
        self.known.retain(|_, known| known.gone.is_none_or(|gone| gone.elapsed() < GONE_KEPT));
        if let Err(error) = self.tell_passages(loaded) {
            tracing::warn!(%error, "the programs do not know of all tunnels and bridges, trying again with the next change");
        }
        self.queue_new();
        self.changes += 1;
    }

    /// Tells the programs where tunnels end, and which devices hand on what watched ones have seen.
    fn tell_passages(&mut self, loaded: &mut Loaded) -> Result<(), Error> {
        loaded.tunnels.follow(&self.links, &self.choice, self.tunnel)?;
        let carriers = carriers(&self.links, &self.choice, self.tunnel);
        for gone in self.carriers.difference(&carriers) {
            if !self.devices.contains_key(gone) {
                let _ = loaded.observed.remove(gone);
            }
        }
        for new in carriers.difference(&self.carriers) {
            loaded
                .observed
                .insert(new, observed::CARRIER, 0)
                .map_err(|error| Error::map(flowlog_abi::names::OBSERVED, "note a carrier", error))?;
        }
        self.carriers = carriers;
        Ok(())
    }

    /// Queues every hook of chosen devices that have none: endpoints' ingress first, all egress last.
    fn queue_new(&mut self) {
        let mut targets: Vec<_> = self
            .choice
            .iter()
            .filter(|(ifindex, _)| {
                !self.devices.contains_key(ifindex)
                    && !self.failed.contains_key(ifindex)
                    && self.pending.iter().all(|target| target.ifindex != **ifindex)
            })
            .filter_map(|(ifindex, role)| Some((self.links.get(ifindex)?, *role.as_ref().ok()?)))
            .filter_map(|(link, role)| Some((link, role, framing(link.device_type)?)))
            .flat_map(|(link, role, framing)| {
                let sides: &[Side] =
                    if loops_back(link) { &[Side::Ingress] } else { &[Side::Ingress, Side::Egress] };
                sides.iter().map(move |side| Target {
                    ifindex: link.ifindex,
                    name: link.name.clone(),
                    role,
                    framing,
                    side: *side,
                })
            })
            .collect();
        targets.sort_by_key(|target| (target.side, target.role != Role::Endpoint));
        self.pending.extend(targets);
    }

    fn attach_one(&mut self, loaded: &mut Loaded, target: &Target) -> Result<(), Error> {
        let ifindex = target.ifindex;
        if !self.devices.contains_key(&ifindex) {
            // Before its ingress counts anything, since egress elsewhere asks for it.
            let role = if target.role == Role::Endpoint { observed::ENDPOINT } else { observed::WATCHED };
            let number = self.numbers.as_mut().map_or(Some(0), |numbers| numbers.give(ifindex));
            let Some(number) = number else {
                let reason = format!("more than {NUMBER_MAX} interfaces cannot each count for themselves");
                return Err(Error::Attach { name: target.name.clone(), hook: "all".into(), reason });
            };
            let value = role | number << observed::NUMBER_SHIFT;
            loaded
                .observed
                .insert(ifindex, value, 0)
                .map_err(|error| Error::map(flowlog_abi::names::OBSERVED, "note an interface", error))?;
        }
        let filter = self.filters.remove(&(ifindex, target.side));
        let before = Before { pins: self.pins.as_ref(), filter };
        let attached = attach(&mut loaded.ebpf, target, &mut self.kinds, &before).inspect_err(|_| {
            self.pending.retain(|other| other.ifindex != ifindex);
            self.detach(ifindex, loaded);
        })?;
        let is_behind = position(&mut self.netlink, ifindex, target.side, &attached)
            .is_ok_and(|position| position == Position::Behind);
        if let Some(new) = self.lookout.note((ifindex, target.side), is_behind, None, 0) {
            lookout::warn(&target.name, target.side, attached.kind, new);
        }
        tracing::debug!(
            interface = target.name,
            ifindex,
            role = target.role.name(),
            hook = attached.kind.name(),
            side = target.side.name(),
            "attached"
        );
        self.devices
            .entry(ifindex)
            .or_insert_with(|| Device { hooks: Vec::new() })
            .hooks
            .push((target.side, attached));
        self.slots.take(ifindex, &target.name, target.side, || {
            let slot = slot(ifindex, target.side == Side::Egress);
            ledger::hook(&loaded.hooks, slot).unwrap_or_default()
        });
        let interface = Interface { name: target.name.clone(), role: target.role };
        self.known.insert(ifindex, Known { interface, gone: None, ended: false });
        self.changes += 1;
        Ok(())
    }

    fn detach(&mut self, ifindex: u32, loaded: &mut Loaded) {
        for (side, attached) in self.devices.remove(&ifindex).into_iter().flat_map(|device| device.hooks) {
            if let Err(error) = attached.detach() {
                tracing::warn!(ifindex, side = side.name(), error, "cannot detach");
            }
        }
        self.note_gone(ifindex, loaded);
    }

    fn note_gone(&mut self, ifindex: u32, loaded: &mut Loaded) {
        // Only now: until the last packet came in through it, egress elsewhere must know it.
        let _ = loaded.observed.remove(&ifindex);
        if let Some(numbers) = &mut self.numbers {
            numbers.take_back(ifindex);
        }
        if let Some(known) = self.known.get_mut(&ifindex) {
            known.gone = Some(Instant::now());
            self.slots.leave(ifindex);
            self.changes += 1;
            tracing::debug!(interface = known.interface.name, ifindex, "no longer watched");
        }
    }

    /// Whether an interface has been left lately: only then a connection can have lost all of its own.
    pub(super) fn some_left(&self) -> bool {
        self.known.values().any(|known| known.gone.is_some())
    }

    /// Whether no interface that a connection is known to have crossed is watched any more.
    pub(super) fn all_left(&self, entry: &FlowEntry) -> bool {
        let [up, down] = &entry.directions;
        let mut crossed =
            entry.interfaces.into_iter().chain([up.ifindex, down.ifindex]).filter(|ifindex| *ifindex != 0);
        crossed.all(|ifindex| !self.devices.contains_key(&ifindex))
    }

    /// Detaches everything.
    pub(super) fn detach_all(&mut self, loaded: &mut Loaded) {
        self.pending.clear();
        while let Some(ifindex) = self.devices.keys().next().copied() {
            self.detach(ifindex, loaded);
        }
    }

    /// Leaves every hook as it is, for the next daemon.
    pub(super) fn leave_all(&mut self) {
        self.pending.clear();
        for (_, device) in std::mem::take(&mut self.devices) {
            device.hooks.into_iter().for_each(|(_, attached)| attached.leave());
        }
    }

    /// Tables and links that stay.
    pub(super) const fn pins(&self) -> Option<&Pins> {
        self.pins.as_ref()
    }

    /// Changes when an answer below does.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether a hook still waits for its turn.
    pub(super) fn is_behind(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn interfaces(&self) -> BTreeMap<u32, Interface> {
        self.known.iter().map(|(ifindex, known)| (*ifindex, known.interface.clone())).collect()
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.links.values().flat_map(|link| link.addresses.iter().copied()).collect()
    }

    pub(super) fn states(&self) -> Vec<InterfaceState> {
        let hook =
            |ifindex| self.devices.get(&ifindex).and_then(|device| device.hooks.first()).map(|(_, a)| a.kind);
        let mut states = states(&self.links, &self.choice, &self.failed, hook);
        for state in &mut states {
            state.blind = self.lookout.blindness(state.ifindex).map(lookout::Blindness::says);
        }
        states
    }

    pub(super) const fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) const fn notifications(&self) -> &Notifications {
        &self.notifications
    }
}
