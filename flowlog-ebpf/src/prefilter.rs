//! Whether any task can want a connection, by what is the same for each of its packets in both orientations.
//!
//! The rules of all tasks are groups, one bit each; a group asks for a sender, a receiver, their ports, a protocol and
//! an IP version at once. Each look-up gives the groups that take what was looked up, so the cost does not grow with
//! the number of rules. "Yes" may be wrong (the daemon filters exactly), "no" never is.

use flowlog_abi::{FlowKey, Groups, KIND_FRAGMENT, RuleBase};

/// Where the rules are found: in maps of the kernel, or in memory. `None` where nothing is known of the rules, so that
/// the connection must pass.
pub trait Lookup {
    /// What the set says beside its lists.
    fn base(&self) -> Option<RuleBase>;
    /// The groups that take an address: those of the longest prefix, which include those of all shorter ones.
    fn address(&self, address: &[u8; 16]) -> Option<Groups>;
    /// The groups that take a port; `None` where it is not listed.
    fn port(&self, port: u16) -> Option<Groups>;
    /// The groups that take a protocol.
    fn protocol(&self, protocol: u8) -> Option<u64>;
}

/// `::ffff:a.b.c.d`: records show such an address as IPv4, whatever header it came in.
const fn is_mapped(address: &[u8; 16]) -> bool {
    matches!(address, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..])
}

/// The groups that take this connection's IP version.
#[inline(always)]
const fn version(key: &FlowKey, base: &RuleBase) -> u64 {
    if key.version == 4 {
        base.ipv4
    } else if is_mapped(&key.low) || is_mapped(&key.high) {
        base.ipv4 | base.ipv6
    } else {
        base.ipv6
    }
}

/// Whether some group may want what interfaces show of the connection, in one orientation or the other.
#[inline(always)]
#[must_use]
pub fn wanted(key: &FlowKey, rules: &impl Lookup) -> bool {
    wanted_by(key, rules, |base| base.flows)
}

/// Whether some group may want what the kernel drops of the connection.
#[inline(always)]
#[must_use]
pub fn wanted_dropped(key: &FlowKey, rules: &impl Lookup) -> bool {
    wanted_by(key, rules, |base| base.drops)
}

#[inline(always)]
fn wanted_by(key: &FlowKey, rules: &impl Lookup, of: impl Fn(&RuleBase) -> u64) -> bool {
    // Its ports are not known.
    if key.kind & KIND_FRAGMENT != 0 {
        return true;
    }
    let (Some(base), Some(protocol)) = (rules.base(), rules.protocol(key.protocol)) else { return true };
    let left = protocol & version(key, &base) & of(&base);
    if left == 0 {
        return false;
    }
    let (Some(low), Some(high)) = (rules.address(&key.low), rules.address(&key.high)) else { return true };
    let up = left & low.source & high.destination;
    let down = left & high.source & low.destination;
    if up | down == 0 {
        return false;
    }
    let low = rules.port(key.low_port).unwrap_or(base.ports);
    let high = rules.port(key.high_port).unwrap_or(base.ports);
    up & low.source & high.destination | down & high.source & low.destination != 0
}
