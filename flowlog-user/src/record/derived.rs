//! What a record says that is not stored in it: one place, so that filters and encoders cannot disagree.
//! Numbers and names are Hubble's (`flow.proto` of Cilium 1.19.4).

use std::net::IpAddr;

use super::{End, Event, Flow, Hook, Identity, L4, Node, Texts, TrafficDirection, TunnelKind};

/// `event_type.type` of what interfaces show: a trace event.
pub const EVENT_TYPE_TRACE: i32 = 4;

/// `event_type.type` of dropped packets.
pub const EVENT_TYPE_DROP: i32 = 1;

/// `verdict` of what interfaces show: seen here. Hubble's number of `FORWARDED`.
pub const VERDICT_FORWARDED: i32 = 1;
/// `verdict` of dropped packets: Hubble's number of `DROPPED`.
pub const VERDICT_DROPPED: i32 = 2;

impl Hook {
    /// `event_type.sub_type`: the trace point.
    #[must_use]
    pub const fn event_sub_type(self) -> i32 {
        match self {
            Self::EndpointEgress => 0,
            Self::EndpointIngress => 5,
            Self::UplinkIngress => 10,
            Self::UplinkEgress => 11,
        }
    }

    /// `trace_observation_point`. The trace point 0 is published as `TO_ENDPOINT` (101) here only.
    #[must_use]
    pub const fn trace_observation_point(self) -> &'static str {
        match self {
            Self::EndpointEgress => "TO_ENDPOINT",
            Self::EndpointIngress => "FROM_ENDPOINT",
            Self::UplinkIngress => "FROM_NETWORK",
            Self::UplinkEgress => "TO_NETWORK",
        }
    }
}

impl TrafficDirection {
    /// Hubble's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingress => "INGRESS",
            Self::Egress => "EGRESS",
        }
    }

    /// Hubble's number.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Ingress => 1,
            Self::Egress => 2,
        }
    }
}

impl Identity {
    /// The numeric identity.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Host => 1,
            Self::World => 2,
            Self::Unmanaged => 3,
        }
    }

    /// The label that goes with it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Host => "reserved:host",
            Self::World => "reserved:world",
            Self::Unmanaged => "reserved:unmanaged",
        }
    }
}

/// Version of a flow's IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl TunnelKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Vxlan, Self::Geneve, Self::Gre, Self::Ipip, Self::Ip6ip];

    /// The kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The number in protobuf's `Measured`.
    #[must_use]
    pub const fn number(self) -> u64 {
        self as u64 + 1
    }

    /// The kind of a number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::Gre => "gre",
            Self::Ipip => "ipip",
            Self::Ip6ip => "ip6ip",
        }
    }

    /// Hubble's name, where it has one.
    #[must_use]
    pub const fn hubble_name(self) -> Option<&'static str> {
        match self {
            Self::Vxlan => Some("VXLAN"),
            Self::Geneve => Some("GENEVE"),
            Self::Gre | Self::Ipip | Self::Ip6ip => None,
        }
    }

    /// Whether its outer packets have UDP ports.
    #[must_use]
    pub const fn is_udp(self) -> bool {
        matches!(self, Self::Vxlan | Self::Geneve)
    }
}

impl IpVersion {
    /// The version of packets with this address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Hubble's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// Hubble's number.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::V4 => 1,
            Self::V6 => 2,
        }
    }
}

impl L4 {
    /// The member of `l4` that is set, as the record spells it; `None` where `l4` is absent.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Tcp { .. } => Some("TCP"),
            Self::Udp { .. } => Some("UDP"),
            Self::Sctp { .. } => Some("SCTP"),
            Self::Icmpv4 { .. } => Some("ICMPv4"),
            Self::Icmpv6 { .. } => Some("ICMPv6"),
            Self::Other => None,
        }
    }

    /// Sender's and receiver's port; `None` for protocols without ports.
    #[must_use]
    pub const fn ports(self) -> Option<(u16, u16)> {
        match self {
            Self::Tcp { source_port, destination_port, .. }
            | Self::Udp { source_port, destination_port }
            | Self::Sctp { source_port, destination_port } => Some((source_port, destination_port)),
            Self::Icmpv4 { .. } | Self::Icmpv6 { .. } | Self::Other => None,
        }
    }
}

impl Flow {
    /// `event_type` as (type, sub_type): the trace point, or Hubble's number of the reason of a drop.
    #[must_use]
    pub const fn event_type(&self) -> (i32, i32) {
        match self.dropped {
            Some(dropped) => (EVENT_TYPE_DROP, dropped.kind.hubble),
            None => (EVENT_TYPE_TRACE, self.hook.event_sub_type()),
        }
    }

    /// `verdict`: its name and number.
    #[must_use]
    pub const fn verdict(&self) -> (&'static str, i32) {
        match self.dropped {
            Some(_) => ("DROPPED", VERDICT_DROPPED),
            None => ("FORWARDED", VERDICT_FORWARDED),
        }
    }

    /// `drop_reason` and `drop_reason_desc`: Hubble's number; 0 = not dropped, or for a reason that Hubble does not know.
    #[must_use]
    pub const fn drop_reason(&self) -> i32 {
        match self.dropped {
            Some(dropped) => dropped.kind.hubble,
            None => 0,
        }
    }

    /// `trace_observation_point`, of what interfaces show.
    #[must_use]
    pub const fn trace_observation_point(&self) -> Option<&'static str> {
        match self.dropped {
            Some(_) => None,
            None => Some(self.hook.trace_observation_point()),
        }
    }

    /// `traffic_direction`.
    #[must_use]
    pub const fn traffic_direction(&self) -> TrafficDirection {
        self.hook.traffic_direction()
    }

    /// `trace_reason`, of what interfaces show.
    #[must_use]
    pub const fn trace_reason(&self) -> Option<&'static str> {
        match (self.dropped, self.event, self.is_reply) {
            (Some(_), ..) => None,
            (None, Event::Start, _) => Some("NEW"),
            (None, _, Some(true)) => Some("REPLY"),
            _ => Some("ESTABLISHED"),
        }
    }

    /// The labels of one of its ends, in order; `node` is the one with which it was enriched.
    #[must_use]
    pub fn labels<'a>(&self, end: End, node: &'a Node) -> Texts<'a> {
        let (identity, pool) = match end {
            End::Source => (self.source_identity, self.source_pool),
            End::Destination => (self.destination_identity, self.destination_pool),
        };
        match node.pools.label(pool) {
            Some(pool) => Texts::Two([pool, identity.label()]),
            None => Texts::One(identity.label()),
        }
    }

    /// `IP.ipVersion`.
    #[must_use]
    pub const fn ip_version(&self) -> IpVersion {
        IpVersion::of(self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: the table of hooks in the design, and Hubble's enums.
    #[test]
    fn names_and_numbers_of_each_hook() {
        let table = [
            (Hook::EndpointIngress, 5, "FROM_ENDPOINT", "EGRESS", 2),
            (Hook::EndpointEgress, 0, "TO_ENDPOINT", "INGRESS", 1),
            (Hook::UplinkIngress, 10, "FROM_NETWORK", "INGRESS", 1),
            (Hook::UplinkEgress, 11, "TO_NETWORK", "EGRESS", 2),
        ];
        for (hook, sub_type, point, direction, number) in table {
            assert_eq!((hook.event_sub_type(), hook.trace_observation_point()), (sub_type, point));
            let found = hook.traffic_direction();
            assert_eq!((found.name(), found.number()), (direction, number), "{hook:?}");
        }
    }

    #[test]
    fn identities_are_ciliums_reserved_ones() {
        let table = [
            (Identity::Host, 1, "reserved:host"),
            (Identity::World, 2, "reserved:world"),
            (Identity::Unmanaged, 3, "reserved:unmanaged"),
        ];
        for (identity, number, label) in table {
            assert_eq!((identity.number(), identity.label()), (number, label));
        }
    }
}
