//! Puts rules into the kernel, in an order in which no program ever sees a set that is half written.

use std::collections::BTreeSet;

use aya::maps::lpm_trie::Key;
use aya::maps::{Array, HashMap, LpmTrie, MapData};
use flowlog_abi::{
    CONTROL_TEST, Groups, PREFIX_SET_BITS, RuleBase, names, port_key, prefix_data, protocol_index,
};
use zerocopy::transmute;

use super::load::with_causes;
use super::{Error, Live};
use crate::capture::rules::Tables;
use crate::record::rules::{Prefix, Rules};

const GROUPS_BYTES: usize = size_of::<Groups>();
const BASE_BYTES: usize = size_of::<RuleBase>();

/// What a set holds, so that it can be emptied.
#[derive(Default)]
pub(super) struct Held {
    prefixes: BTreeSet<Prefix>,
    ports: BTreeSet<u16>,
}

/// The maps of both sets.
pub(super) struct RuleMaps {
    pub(super) control: Array<MapData, u64>,
    pub(super) base: Array<MapData, [u8; BASE_BYTES]>,
    pub(super) prefixes: LpmTrie<MapData, [u8; 24], [u8; GROUPS_BYTES]>,
    pub(super) ports: HashMap<MapData, u32, [u8; GROUPS_BYTES]>,
    pub(super) protocols: Array<MapData, u64>,
    pub(super) held: [Held; 2],
    /// Of the set that is in use; its low bit is the set's number.
    pub(super) generation: u32,
}

impl Held {
    pub(super) fn nothing() -> [Self; 2] {
        [Self::default(), Self::default()]
    }
}

impl Live {
    /// Makes the kernel test connections by these rules, or by none if some task wants everything. Returns when every
    /// packet that comes is tested by them, which takes two grace periods.
    ///
    /// Connections that are in the table are tested again with their next packet. One that is no longer wanted stays
    /// there, without further packets, until it has been silent for long enough.
    ///
    /// # Errors
    ///
    /// When a map cannot be written; the rules from before stay in use then.
    pub fn set_rules(&mut self, rules: &Rules) -> Result<(), Error> {
        if *rules == self.options.rules && self.loaded.rules.generation != 0 {
            return Ok(());
        }
        let tables = Tables::new(rules);
        for what in &tables.widened {
            tracing::warn!("{what}; more connections than needed are counted, and filtered here");
        }
        if tables.everything && self.loaded.rules.generation == 0 {
            self.options.rules = rules.clone();
            return Ok(()); // as it is after loading
        }
        // The other set may have been in use a moment ago.
        self.grace.wait().map_err(Error::GracePeriod)?;
        self.loaded.rules.switch(&tables)?;
        self.options.rules = rules.clone();
        self.grace.wait().map_err(Error::GracePeriod)
    }
}

impl RuleMaps {
    fn switch(&mut self, tables: &Tables) -> Result<(), Error> {
        let generation = self.generation.wrapping_add(1).max(1);
        if !tables.everything {
            self.write(generation & 1, tables)?;
        }
        let test = if tables.everything { 0 } else { CONTROL_TEST };
        self.control
            .set(0, test | u64::from(generation), 0)
            .map_err(|error| Error::map(names::CONTROL, "switch rules", error))?;
        self.generation = generation;
        tracing::debug!(
            generation,
            everything = tables.everything,
            prefixes = tables.prefixes.len(),
            ports = tables.ports.len(),
            "rules are in the kernel"
        );
        Ok(())
    }

    fn write(&mut self, set: u32, tables: &Tables) -> Result<(), Error> {
        let mut nothing = Held::default();
        let held = self.held.get_mut(set as usize).unwrap_or(&mut nothing);
        let prefixes = |error| Error::map(names::PREFIXES, "write rules", with_causes(&error));
        let ports = |error| Error::map(names::PORTS, "write rules", with_causes(&error));
        // What fails here is remembered as held: a prefix that stays behind would hide shorter ones.
        let gone = held.prefixes.iter().filter(|prefix| !tables.prefixes.contains_key(prefix));
        for gone in gone.copied().collect::<Vec<_>>() {
            self.prefixes.remove(&key(set, gone)).map_err(prefixes)?;
            held.prefixes.remove(&gone);
        }
        let gone = held.ports.iter().filter(|port| !tables.ports.contains_key(port));
        for gone in gone.copied().collect::<Vec<_>>() {
            self.ports.remove(&port_key(set, gone)).map_err(ports)?;
            held.ports.remove(&gone);
        }
        for (prefix, groups) in &tables.prefixes {
            held.prefixes.insert(*prefix);
            let groups: [u8; GROUPS_BYTES] = transmute!(*groups);
            self.prefixes.insert(&key(set, *prefix), groups, 0).map_err(prefixes)?;
        }
        for (port, groups) in &tables.ports {
            held.ports.insert(*port);
            let groups: [u8; GROUPS_BYTES] = transmute!(*groups);
            self.ports.insert(port_key(set, *port), groups, 0).map_err(ports)?;
        }
        for (protocol, groups) in (0..=u8::MAX).zip(tables.protocols) {
            self.protocols
                .set(protocol_index(set, protocol), groups, 0)
                .map_err(|error| Error::map(names::PROTOCOLS, "write rules", with_causes(&error)))?;
        }
        let base: [u8; BASE_BYTES] = transmute!(tables.base);
        self.base
            .set(set, base, 0)
            .map_err(|error| Error::map(names::RULES, "write rules", with_causes(&error)))
    }
}

fn key(set: u32, prefix: Prefix) -> Key<[u8; 24]> {
    Key::new(PREFIX_SET_BITS + u32::from(prefix.length), prefix_data(set, prefix.bits.to_be_bytes()))
}
