use std::net::IpAddr;

use super::{Dropped, PoolTag};

/// Why a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The first packet of this direction.
    Start,
    /// The active timeout passed while traffic flowed.
    Update,
    /// The connection is over, or is no longer watched.
    End,
    /// The kernel dropped packets.
    Drop,
}

impl Event {
    /// The name in records and in a task's `events`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Update => "update",
            Self::End => "end",
            Self::Drop => "drop",
        }
    }

    /// Every event.
    pub const ALL: [Self; 4] = [Self::Start, Self::Update, Self::End, Self::Drop];

    /// The event of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// The number in protobuf's `Measured`.
    #[must_use]
    pub const fn number(self) -> u64 {
        self as u64 + 1
    }

    /// The event of a number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.number() == number)
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// Both sides sent a FIN.
    Fin,
    /// A side sent a RST.
    Rst,
    /// No packet for the protocol's idle timeout.
    Idle,
    /// No place in the kernel's table; this packet stands alone.
    TableFull,
    /// It came while its connection's entry was being taken out of the table; this packet stands alone.
    Alone,
    /// The interface is no longer watched.
    Unwatched,
    /// flowlog stopped (or the capture that was replayed is at its end).
    Shutdown,
}

impl EndReason {
    /// Every reason, by its number.
    pub const ALL: [Self; 7] =
        [Self::Fin, Self::Rst, Self::Idle, Self::TableFull, Self::Unwatched, Self::Shutdown, Self::Alone];

    /// The reason of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The number in protobuf's `Measured`: written in files, so it never changes.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Fin => 1,
            Self::Rst => 2,
            Self::Idle => 3,
            Self::TableFull => 4,
            Self::Unwatched => 5,
            Self::Shutdown => 6,
            Self::Alone => 7,
        }
    }

    /// The reason of a number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.number() == number)
    }

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fin => "fin",
            Self::Rst => "rst",
            Self::Idle => "idle",
            Self::TableFull => "table_full",
            Self::Alone => "alone",
            Self::Unwatched => "unwatched",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Where a direction was counted: role of the interface and side of the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hook {
    /// An endpoint sends: FROM_ENDPOINT, EGRESS.
    EndpointIngress,
    /// An endpoint receives: TO_ENDPOINT, INGRESS.
    EndpointEgress,
    /// From the network: FROM_NETWORK, INGRESS.
    UplinkIngress,
    /// To the network: TO_NETWORK, EGRESS.
    UplinkEgress,
}

/// Direction of traffic as Hubble says it: seen from the endpoint, or from the node at an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrafficDirection {
    /// Into the endpoint or node (Hubble's number 1).
    Ingress,
    /// Out of the endpoint or node (Hubble's number 2).
    Egress,
}

impl Hook {
    /// Hubble's traffic direction for what is seen here.
    #[must_use]
    pub const fn traffic_direction(self) -> TrafficDirection {
        match self {
            Self::EndpointIngress | Self::UplinkEgress => TrafficDirection::Egress,
            Self::EndpointEgress | Self::UplinkIngress => TrafficDirection::Ingress,
        }
    }
}

/// Transport header fields of a flow. Ports in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum L4 {
    /// TCP; `flags` as in the header's flag byte, those seen in this direction since the connection started.
    Tcp {
        /// Sender's port.
        source_port: u16,
        /// Receiver's port.
        destination_port: u16,
        /// Flags seen so far (bit 0 FIN ... bit 7 CWR).
        flags: u8,
    },
    /// UDP.
    Udp {
        /// Sender's port.
        source_port: u16,
        /// Receiver's port.
        destination_port: u16,
    },
    /// SCTP.
    Sctp {
        /// Sender's port.
        source_port: u16,
        /// Receiver's port.
        destination_port: u16,
    },
    /// ICMP for IPv4: type and code of the first packet of this direction.
    Icmpv4 {
        /// ICMP type.
        icmp_type: u8,
        /// ICMP code.
        code: u8,
    },
    /// ICMP for IPv6: type and code of the first packet of this direction.
    Icmpv6 {
        /// ICMPv6 type.
        icmp_type: u8,
        /// ICMPv6 code.
        code: u8,
    },
    /// Any other protocol, and fragments whose ports are not known.
    Other,
}

/// Kinds of tunnels that are looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TunnelKind {
    /// VXLAN.
    Vxlan,
    /// Geneve.
    Geneve,
    /// GRE, with an IP packet or an Ethernet frame inside.
    Gre,
    /// IPv4 inside IPv4 or IPv6.
    Ipip,
    /// IPv6 inside IPv4 or IPv6.
    Ip6ip,
}

/// The tunnel that a flow's packets came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// What kind.
    pub kind: TunnelKind,
    /// Sender of the outer packets.
    pub source: IpAddr,
    /// Receiver of the outer packets.
    pub destination: IpAddr,
    /// Outer UDP ports of sender and receiver; 0 for tunnels without.
    pub ports: (u16, u16),
    /// Network identifier of VXLAN and Geneve, key of GRE; 0 = none.
    pub vni: u32,
}

/// Cilium's reserved identities that exist without Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Identity {
    /// One of the node's own addresses: 1, `reserved:host`.
    Host,
    /// Everything else: 2, `reserved:world`.
    #[default]
    World,
    /// Behind an endpoint interface or inside `--cluster-cidr`: 3, `reserved:unmanaged`.
    Unmanaged,
}

/// Tasks by when they joined the cadence that they share: by the number of the change that brought them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Joined {
    /// With this change or a later one.
    pub from: u32,
    /// Before this one.
    pub before: u32,
}

impl Joined {
    /// All tasks.
    pub const EVER: Self = Self { from: 0, before: u32::MAX };

    /// Whether a task that joined with this change is among them.
    #[must_use]
    pub const fn has(self, change: u32) -> bool {
        self.from <= change && change < self.before
    }
}

/// One direction of one connection during one interval. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Which cadence (distinct pair of events and interval, at most four) this record belongs to.
    pub cadence: u8,
    /// Why this record was written.
    pub event: Event,
    /// Set on [`Event::End`] only.
    pub end_reason: Option<EndReason>,
    /// The connection's id: the same in both directions and all records; below 2^53.
    pub connection: u64,
    /// Number of this record within connection, cadence and direction, from 1.
    pub number: u32,
    /// The direction is high to low side of the key (only to tell the two directions apart in the uuid).
    pub high_to_low: bool,
    /// The opening of the TCP connection was not seen.
    pub midstream: bool,
    /// Seen before at another endpoint of this node; sums over the node leave these out.
    pub duplicate: bool,
    /// Later fragments whose ports are not known.
    pub fragment: bool,
    /// From the SYN of a TCP connection to the first answer, as seen here, nanoseconds; 0 = not known.
    pub rtt_ns: u32,
    /// Numbers of the outermost VLAN tag and of the one inside it, where this direction had them; 0 = none.
    pub vlans: [u16; 2],
    /// The tunnel that this direction's packets came in, if they did.
    pub tunnel: Option<Tunnel>,
    /// Of packets that the kernel dropped: why and where. Then this is no interval of a connection, but what was dropped
    /// of it there since the record before.
    pub dropped: Option<Dropped>,
    /// Sender.
    pub source: IpAddr,
    /// Receiver.
    pub destination: IpAddr,
    /// IP protocol number.
    pub protocol: u8,
    /// Transport header.
    pub l4: L4,
    /// Against the direction in which the connection was opened; `None` where there is no such notion.
    pub is_reply: Option<bool>,
    /// Where this direction was counted.
    pub hook: Hook,
    /// Interfaces crossed (index), first the one where this direction was counted; 0 = none.
    pub interfaces: [u32; 4],
    /// First packet of the connection.
    pub started_ns: i64,
    /// First packet of this interval and direction.
    pub first_seen_ns: i64,
    /// Last packet of this interval and direction; the record's `time`.
    pub last_seen_ns: i64,
    /// Packets (segments on the wire) in this interval and direction.
    pub packets: u64,
    /// Layer-2 bytes without FCS in this interval and direction.
    pub bytes: u64,
    /// Packets in this direction since `started_ns`.
    pub packets_total: u64,
    /// Layer-2 bytes in this direction since `started_ns`.
    pub bytes_total: u64,
    /// The tasks that it is for, by when they joined its cadence.
    pub joined: Joined,
    /// Who the sender is; set by `enrich`.
    pub source_identity: Identity,
    /// Who the receiver is; set by `enrich`.
    pub destination_identity: Identity,
    /// The sender's pool of [`Node::pools`](super::Node::pools); set by `enrich`.
    pub source_pool: PoolTag,
    /// The receiver's pool; set by `enrich`.
    pub destination_pool: PoolTag,
}
