use std::collections::HashSet;
use std::net::IpAddr;

use super::talkers::{Sent, Talkers};

/// Connections that are counted exactly.
const CONNECTIONS_MAX: usize = 1 << 20;

/// What passed a filter: connections, and what they sent.
#[derive(Debug, Default)]
pub struct Tally {
    connections: HashSet<u64>,
    /// There were more.
    more: bool,
    /// Who sent how much to whom.
    pub talkers: Talkers,
}

impl Tally {
    /// Adds a record: its connection, its ends, and what was sent since the one before.
    pub fn add(&mut self, connection: u64, source: IpAddr, destination: IpAddr, sent: Sent) {
        if self.connections.len() < CONNECTIONS_MAX {
            self.connections.insert(connection);
        } else if !self.connections.contains(&connection) {
            self.more = true;
        }
        self.talkers.add(source, destination, sent);
    }

    /// Connections, and whether there were more.
    #[must_use]
    pub fn connections(&self) -> (u64, bool) {
        (self.connections.len() as u64, self.more)
    }
}
