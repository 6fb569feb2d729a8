//! Room 3, enrich: what is known about both sides of a flow beyond its packets.
//!
//! In: batches of flows (or an event that somebody else recorded: [`label`]) and the [`Node`](crate::record::Node) as of now. Out: the same flows with identities and pools. What
//! never happens here: I/O for a flow, a flow dropped, or anything in its packets changed. To add a kind of
//! knowledge: a file beside [`identity`](self) that fills its members of the flow from a snapshot, and a line in
//! [`Enricher::enrich`].

mod identity;
mod node;
mod recorded;

use ipnet::IpNet;

use crate::record::{Flow, Node};

pub use node::{Error, snapshot};
pub use recorded::label;

/// Fills in who the two sides of a flow are.
#[derive(Clone, Debug, Default)]
pub struct Enricher {
    cluster: Vec<IpNet>,
}

impl Enricher {
    /// `cluster`: the networks of `--cluster-cidr`, whose addresses are pods.
    #[must_use]
    pub const fn new(cluster: Vec<IpNet>) -> Self {
        Self { cluster }
    }

    /// Sets identities and pools of each flow; `node` is from [`snapshot`].
    pub fn enrich(&self, flows: &mut [Flow], node: &Node) {
        for flow in flows {
            let [source, destination] = identity::of(flow, node, &self.cluster);
            flow.source_identity = source;
            flow.destination_identity = destination;
            if !node.pools.is_empty() {
                flow.source_pool = node.pools.tag(flow.source);
                flow.destination_pool = node.pools.tag(flow.destination);
            }
        }
    }
}
