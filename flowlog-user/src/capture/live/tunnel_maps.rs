//! The maps by which the programs know tunnels and their ends.

use std::collections::BTreeSet;
use std::net::IpAddr;

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, MapError, ProgramArray};
use aya::programs::SchedClassifier;
use flowlog_abi::{TunnelRules, names};

use crate::capture::tunnels::TunnelMode;

use super::Error;
use super::links::Links;
use super::load::{program, with_causes};
use super::passages::{ends, ports};
use super::select::Choice;

type Address = [u8; 16];

pub(super) struct TunnelMaps {
    pub(super) rules: Array<MapData, [u8; size_of::<TunnelRules>()]>,
    pub(super) own: HashMap<MapData, Address, u32>,
    /// Kept open: the kernel empties an array of programs that nobody has open.
    pub(super) programs: ProgramArray<MapData>,
    held: BTreeSet<Address>,
    set: Option<TunnelRules>,
}

impl TunnelMaps {
    pub(super) fn new(
        rules: Array<MapData, [u8; size_of::<TunnelRules>()]>,
        own: HashMap<MapData, Address, u32>,
        programs: ProgramArray<MapData>,
    ) -> Self {
        Self { rules, own, programs, held: BTreeSet::new(), set: None }
    }

    /// Lets the others hand packets over to the programs that look into tunnels.
    pub(super) fn connect(&mut self, ebpf: &mut Ebpf) -> Result<(), Error> {
        for (index, name) in (0..).zip(names::HANDOVER_PROGRAMS) {
            let program: &SchedClassifier = program(ebpf, name)?;
            let failed = |reason: String| Error::Load { what: format!("program {name}"), reason };
            let descriptor = program.fd().map_err(|error| failed(with_causes(&error)))?;
            self.programs.set(index, descriptor, 0).map_err(|error| failed(with_causes(&error)))?;
        }
        Ok(())
    }

    /// Makes the maps say what is known of this node now.
    pub(super) fn follow(&mut self, links: &Links, choice: &Choice, mode: TunnelMode) -> Result<(), Error> {
        let wanted: BTreeSet<Address> = links.values().flat_map(|link| &link.addresses).map(mapped).collect();
        if wanted.len() > names::OWN_ADDRESSES_MAX as usize {
            tracing::warn!(
                addresses = wanted.len(),
                known = names::OWN_ADDRESSES_MAX,
                "more addresses than are known to the programs; tunnels that end at the others are seen from outside"
            );
        }
        let failed =
            |what| move |error: MapError| Error::map(names::OWN_ADDRESSES, what, with_causes(&error));
        for gone in self.held.difference(&wanted) {
            match self.own.remove(gone) {
                Ok(()) | Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(failed("remove an address")(error)),
            }
        }
        for new in wanted.difference(&self.held).take(names::OWN_ADDRESSES_MAX as usize) {
            self.own.insert(new, 1, 0).map_err(failed("note an address"))?;
        }
        self.held = wanted.into_iter().take(names::OWN_ADDRESSES_MAX as usize).collect();
        let (rules, left) = mode.rules(ends(links, choice), &ports(links));
        if self.set == Some(rules) {
            return Ok(());
        }
        if !left.is_empty() {
            tracing::warn!(ports = ?left, "too many UDP ports of tunnels, these are seen from outside");
        }
        let bytes: [u8; size_of::<TunnelRules>()] = zerocopy::transmute!(rules);
        self.rules
            .set(0, bytes, 0)
            .map_err(|error| Error::map(names::TUNNELS, "write", with_causes(&error)))?;
        self.set = Some(rules);
        Ok(())
    }
}

fn mapped(address: &IpAddr) -> Address {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}
