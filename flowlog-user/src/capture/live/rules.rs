//! Puts rules into the kernel, in an order in which no program ever sees a set that is half written.

use std::collections::BTreeSet;

use aya::maps::lpm_trie::Key;
use aya::maps::{Array, HashMap, LpmTrie, MapData};
use flowlog_abi::{
    CONTROL_TEST, CONTROL_TEST_DROPS, Groups, PREFIX_SET_BITS, RuleBase, names, port_key, prefix_data,
    protocol_index,
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

impl RuleMaps {
    /// The maps as they are: new ones hold nothing; in those that an earlier daemon left stands what it asked for.
    pub(super) fn new(
        control: Array<MapData, u64>,
        base: Array<MapData, [u8; BASE_BYTES]>,
        prefixes: LpmTrie<MapData, [u8; 24], [u8; GROUPS_BYTES]>,
        ports: HashMap<MapData, u32, [u8; GROUPS_BYTES]>,
        protocols: Array<MapData, u64>,
    ) -> Result<Self, Error> {
        let mut held = [Held::default(), Held::default()];
        for prefix in prefixes.keys() {
            let prefix =
                prefix.map_err(|error| Error::map(names::PREFIXES, "read rules", with_causes(&error)))?;
            let (set, prefix) = prefix_of(&prefix);
            held.get_mut(set).map(|held| held.prefixes.insert(prefix));
        }
        for port in ports.keys() {
            let port = port.map_err(|error| Error::map(names::PORTS, "read rules", with_causes(&error)))?;
            #[expect(clippy::cast_possible_truncation, reason = "the low half of the key is the port")]
            held.get_mut((port >> 16) as usize & 1).map(|held| held.ports.insert(port as u16));
        }
        let word = control
            .get(&0, 0)
            .map_err(|error| Error::map(names::CONTROL, "read rules", with_causes(&error)))?;
        #[expect(clippy::cast_possible_truncation, reason = "the low half of the word is the generation")]
        let generation = word as u32;
        Ok(Self { control, base, prefixes, ports, protocols, held, generation })
    }
}

/// Set and prefix of a key in the trie.
fn prefix_of(key: &Key<[u8; 24]>) -> (usize, Prefix) {
    let data = key.data();
    let (set, bits) = data.split_at(size_of::<u64>());
    let bits = bits.iter().fold(0, |bits: u128, byte| bits << 8 | u128::from(*byte));
    let length = u8::try_from(key.prefix_len().saturating_sub(PREFIX_SET_BITS)).unwrap_or(0);
    (usize::from(set.last().copied().unwrap_or(0) & 1), Prefix { length, bits })
}

impl Live {
    /// Makes sure that the kernel rejects nothing that these rules take: before tasks come that want it. Nothing is to do
    /// where what it tests by takes all of it already. Else it tests by these rules, so they must hold what the tasks
    /// want that run. Every packet that comes after this returned is tested by them.
    ///
    /// # Errors
    ///
    /// As [`Self::set_rules`].
    pub fn widen_rules(&mut self, rules: &Rules) -> Result<(), Error> {
        let rules = rules.in_order();
        if rules.want_drops() {
            self.want_drops(true);
        }
        let enough = self.rules.as_ref().is_some_and(|own| own.covers(&rules));
        if enough { Ok(()) } else { self.switch_rules(rules) }
    }

    /// Makes the kernel test connections by these rules, or by none if some task wants everything. Returns when no program
    /// that tests by other rules is left.
    ///
    /// Connections that are in the table are tested again with their next packet. One that is no longer wanted stays
    /// there, without further packets, until it has been silent for long enough.
    ///
    /// When the rules cannot be written, everything passes: that is slower, and never wrong.
    ///
    /// # Errors
    ///
    /// When not even that can be said to the kernel, or there is no waiting for programs that run.
    pub fn set_rules(&mut self, rules: &Rules) -> Result<(), Error> {
        let rules = rules.in_order();
        let wants_drops = rules.want_drops();
        if self.rules.as_ref() != Some(&rules) {
            self.switch_rules(rules)?;
        }
        self.want_drops(wants_drops);
        self.settle_rules()
    }

    /// Waits until no program is left that tests by rules before these, so that the next change need not.
    ///
    /// # Errors
    ///
    /// When there is no waiting for programs that run.
    pub fn settle_rules(&mut self) -> Result<(), Error> {
        if !self.rules_settled {
            self.grace.wait().map_err(Error::GracePeriod)?;
            self.rules_settled = true;
        }
        Ok(())
    }

    fn switch_rules(&mut self, rules: Rules) -> Result<(), Error> {
        let tables = Tables::new(&rules);
        for what in &tables.widened {
            tracing::warn!("{what}; more connections than needed are counted, and filtered here");
        }
        // The set that is written now may have been in use a moment ago.
        self.settle_rules()?;
        self.rules_settled = false;
        if let Err(error) = self.loaded.rules.switch(&tables) {
            tracing::warn!(%error, "the kernel does not take the tasks' rules; it counts everything, which is filtered here");
            self.loaded.rules.pass_everything()?;
        }
        self.rules = Some(rules);
        Ok(())
    }
}

impl RuleMaps {
    fn switch(&mut self, tables: &Tables) -> Result<(), Error> {
        let drops_too = tables.every_drop || tables.base.drops == 0;
        if tables.everything && drops_too {
            return self.pass_everything();
        }
        let generation = self.next();
        self.write(generation & 1, tables)?;
        let flows = if tables.everything { 0 } else { CONTROL_TEST };
        let drops = if drops_too { 0 } else { CONTROL_TEST_DROPS };
        self.control(generation, flows | drops)?;
        tracing::debug!(
            generation,
            prefixes = tables.prefixes.len(),
            ports = tables.ports.len(),
            "connections are tested in the kernel"
        );
        Ok(())
    }

    fn pass_everything(&mut self) -> Result<(), Error> {
        self.control(self.next(), 0)
    }

    /// The next generation; 0 is that of an empty slot in the cache of what was rejected.
    fn next(&self) -> u32 {
        match self.generation.wrapping_add(1) {
            0 => 2, // the other set's number all the same
            next => next,
        }
    }

    fn control(&mut self, generation: u32, test: u64) -> Result<(), Error> {
        self.control
            .set(0, test | u64::from(generation), 0)
            .map_err(|error| Error::map(names::CONTROL, "switch rules", with_causes(&error)))?;
        self.generation = generation;
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
