use super::entry::{gather, has_flag};
use super::of;
use crate::Packet;
use flowlog_abi::{FlowEntry, FlowKey, protocol, tcp};

const SECOND_NS: u64 = 1_000_000_000;

/// When connections are reported and when they are over, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Between two reports while traffic flows.
    pub active_ns: u64,
    /// Reports come rarer as a connection ages.
    pub aged: bool,
    /// Silence that ends a UDP flow.
    pub udp_ns: u64,
    /// Silence that ends an ICMP or ICMPv6 flow.
    pub icmp_ns: u64,
    /// Silence that ends a TCP connection both sides of which have acknowledged something.
    pub tcp_established_ns: u64,
    /// Silence that ends any other TCP connection.
    pub tcp_opening_ns: u64,
    /// Silence that ends a TCP connection after RST, or after FIN from both sides.
    pub closed_ns: u64,
    /// Silence that ends a flow of any other protocol.
    pub other_ns: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            active_ns: 60 * SECOND_NS,
            aged: false,
            udp_ns: 30 * SECOND_NS,
            icmp_ns: 10 * SECOND_NS,
            tcp_established_ns: 300 * SECOND_NS,
            tcp_opening_ns: 30 * SECOND_NS,
            closed_ns: 5 * SECOND_NS,
            other_ns: 60 * SECOND_NS,
        }
    }
}

impl Timeouts {
    /// When reports are due.
    #[must_use]
    pub const fn spacing(&self) -> Spacing {
        Spacing { active_ns: self.active_ns, aged: self.aged }
    }
}

/// How a TCP connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Both sides sent FIN.
    Fin,
    /// A side sent RST.
    Rst,
}

/// Whether a TCP connection was closed, and how.
#[must_use]
pub fn closed(key: &FlowKey, entry: &FlowEntry) -> Option<Closed> {
    if key.protocol != protocol::TCP {
        return None;
    }
    how([0, 1].map(|direction| gather(of(&entry.directions, direction).l4)))
}

/// Whether a packet opens a new connection under the key of one that is closed: the ports are used again.
#[must_use]
#[inline(always)]
pub fn reopens(packet: &Packet, entry: &FlowEntry) -> bool {
    const DECISIVE: u8 = tcp::SYN | tcp::ACK | tcp::RST | tcp::FIN;
    let either = |flag| has_flag(entry, 0, flag) || has_flag(entry, 1, flag);
    packet.protocol == protocol::TCP
        && packet.tcp_flags & DECISIVE == tcp::SYN
        && (either(tcp::RST) || both(entry, tcp::FIN))
}

#[inline(always)]
fn both(entry: &FlowEntry, flag: u8) -> bool {
    has_flag(entry, 0, flag) && has_flag(entry, 1, flag)
}

/// The same of the flags of both directions of a TCP connection, as a report has them.
#[must_use]
pub fn how([up, down]: [u8; 2]) -> Option<Closed> {
    if (up | down) & tcp::RST != 0 {
        Some(Closed::Rst)
    } else if up & down & tcp::FIN != 0 {
        Some(Closed::Fin)
    } else {
        None
    }
}

/// Whether a connection has been silent for so long that it is over.
#[must_use]
pub fn expired(key: &FlowKey, entry: &FlowEntry, now_ns: u64, timeouts: &Timeouts) -> bool {
    let [up, down] = &entry.directions;
    let last_ns = up.last_ns.max(down.last_ns).max(entry.started_ns);
    let silence_ns = match key.protocol {
        protocol::TCP if closed(key, entry).is_some() => timeouts.closed_ns,
        protocol::TCP if both(entry, tcp::ACK) => timeouts.tcp_established_ns,
        protocol::TCP => timeouts.tcp_opening_ns,
        protocol::UDP => timeouts.udp_ns,
        protocol::ICMP | protocol::ICMPV6 => timeouts.icmp_ns,
        _ => timeouts.other_ns,
    };
    now_ns.saturating_sub(last_ns) >= silence_ns
}

/// When reports are due while traffic flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// Between two reports, nanoseconds.
    pub active_ns: u64,
    /// Rarer as a connection ages: the next when it is a quarter older than at the last one, if that is later.
    pub aged: bool,
}

impl Spacing {
    /// Between the last report of this connection and the next.
    #[inline(always)]
    const fn ns(self, entry: &FlowEntry) -> u64 {
        let quarter_ns = entry.last_report_ns.saturating_sub(entry.started_ns) / 4;
        if self.aged && quarter_ns > self.active_ns { quarter_ns } else { self.active_ns }
    }
}

/// Whether the packet that was just added in `direction` is the occasion for a report: its direction has never been
/// told of and `start` is wanted, or the last report is long ago.
#[must_use]
#[inline(always)]
pub const fn wants_report(
    entry: &FlowEntry,
    direction: usize,
    now_ns: u64,
    spacing: Spacing,
    report_start: bool,
) -> bool {
    let unannounced = report_start && of(&entry.directions, direction).announced == 0;
    // Clocks of two CPUs may differ: never below 0.
    unannounced || now_ns.saturating_sub(entry.last_report_ns) >= spacing.ns(entry)
}

/// Whether something was counted that no report has told of.
#[must_use]
#[inline(always)]
pub const fn pending(entry: &FlowEntry) -> bool {
    let [up, down] = &entry.directions;
    up.packets != up.reported_packets || down.packets != down.reported_packets
}
