use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::Pools;

/// What an interface is to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// A veth or netkit whose peer is in another network namespace: a pod or container is behind it.
    Endpoint,
    /// Physical, or holding a default route.
    Uplink,
    /// Anything else, attached only because a glob asked for it; treated like an uplink.
    Other,
}

impl Role {
    /// The name in tables and summaries.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Uplink => "uplink",
            Self::Other => "other",
        }
    }
}

/// An interface as records name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name when last seen.
    pub name: String,
    /// Its role when it was attached.
    pub role: Role,
}

/// A snapshot of the node: everything records need that is not in a packet. Replaced whole, never changed.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// `node_name` of every record: `cluster/node` when a cluster name is given.
    pub name: String,
    /// From the kernel's boot id; part of every uuid.
    pub boot: u64,
    /// Interfaces by index, gone ones included while records may still name them.
    pub interfaces: BTreeMap<u32, Interface>,
    /// The node's own addresses.
    pub addresses: Vec<IpAddr>,
    /// Named parts of the address space.
    pub pools: Arc<Pools>,
}
