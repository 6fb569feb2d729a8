use std::net::IpAddr;

use super::{Flow, L4, Message, NO_FLOW, Node, Value, flow_message};

/// The two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "Hubble's words")]
pub enum End {
    Source,
    Destination,
}

/// What kind of event a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A flow; its `event_type` as (type, sub_type), if it has one.
    Flow(Option<(i32, i32)>),
    /// An agent or debug event: the monitor's message type it stands for, and its own type.
    Other(i32, i32),
    /// `lost_events`.
    Lost,
    /// `node_status`, or nothing at all.
    None,
}

/// An address as a record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// As a packet has it.
    Ip(IpAddr),
    /// As somebody else wrote it; empty where there is none.
    Text(&'a str),
}

/// Strings of a repeated field.
#[derive(Clone, Copy, Debug)]
pub enum Texts<'a> {
    /// The only one.
    One(&'a str),
    /// The only ones, in order.
    Two([&'a str; 2]),
    /// A list of a message.
    Many(&'a [Value]),
}

impl<'a> Texts<'a> {
    /// The strings in their order.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        let (few, many) = match self {
            Self::One(text) => ([Some(text), None], &[][..]),
            Self::Two(texts) => (texts.map(Some), &[][..]),
            Self::Many(values) => ([None, None], values),
        };
        few.into_iter().flatten().chain(many.iter().filter_map(|value| match value {
            Value::Text(text) => Some(&**text),
            _ => None,
        }))
    }
}

/// Members of `l4` and `l7`, one of which a flow has of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "Hubble's words")]
pub enum Layer {
    Tcp,
    Udp,
    Sctp,
    Icmpv4,
    Icmpv6,
    Vrrp,
    Igmp,
    Dns,
    Http,
    Kafka,
}

impl Layer {
    /// A bit of its own.
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// What filters ask of a record, whatever it came from. The defaults say what a record has that lacks the field.
pub trait Facts {
    /// What kind of event it is.
    fn kind(&self) -> EventKind;
    /// `IP.source` or `IP.destination`.
    fn address(&self, end: End) -> Address<'_>;
    /// Ports of TCP, UDP and SCTP.
    fn port(&self, end: End) -> Option<u32>;
    /// TCP flags, bit 0 FIN ... bit 7 CWR, bit 8 NS; none without TCP or without `flags`.
    fn tcp_flags(&self) -> Option<u16>;
    /// The members that `l4` and `l7` have, as bits of [`Layer::bit`].
    fn layers(&self) -> u16;
    /// The endpoint's identity; none without endpoint.
    fn identity(&self, end: End) -> Option<u32>;
    /// The endpoint's labels.
    fn labels(&self, end: End) -> Texts<'_>;
    /// `verdict`.
    fn verdict(&self) -> i32;
    /// `drop_reason_desc`.
    fn drop_reason(&self) -> i32;
    /// `traffic_direction`.
    fn traffic_direction(&self) -> i32;
    /// `IP.ipVersion`.
    fn ip_version(&self) -> i32;
    /// `is_reply`.
    fn is_reply(&self) -> Option<bool>;
    /// Whether one of the interfaces passes the test, which is given index and name.
    fn any_interface(&self, test: impl Fn(u32, &str) -> bool) -> bool;
    /// `node_name`.
    fn node_name(&self) -> &str;
    /// Whether `uuid` is this text.
    fn has_uuid(&self, wanted: &str) -> bool;
    /// The flow as a message, for those who can ask for anything.
    fn with_message<T>(&self, look: impl FnOnce(&Message) -> T) -> T;
    /// The flow as a message where it is one already: every field that flows of ours lack is looked up here.
    fn message(&self) -> &Message {
        &NO_FLOW
    }
    /// Counters of ours: packets and bytes of this record, duration in nanoseconds; none where a record has none.
    fn counters(&self) -> Option<Counters> {
        None
    }
    /// Numbers of the outer and the inner VLAN tag, 0 for none; nothing where a record does not say.
    fn vlans(&self) -> Option<[u16; 2]> {
        None
    }
    /// Kind of the tunnel that the flow came in, empty for none, and its network identifier.
    fn tunnel(&self) -> (&str, u32);
}

/// What Hubble's flows do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Packets in this record.
    pub packets: u64,
    /// Layer-2 bytes in this record.
    pub bytes: u64,
    /// From the connection's first packet to the last of this record, in nanoseconds.
    pub duration_ns: u64,
    /// Number of the connection, where the record has one.
    pub connection: Option<u64>,
    /// The same packets are in records of another endpoint of this node.
    pub duplicate: bool,
}

/// A flow of ours and the node it was seen on.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The flow.
    pub flow: &'a Flow,
    /// The node.
    pub node: &'a Node,
}

impl Facts for Seen<'_> {
    fn kind(&self) -> EventKind {
        EventKind::Flow(Some(self.flow.event_type()))
    }

    fn address(&self, end: End) -> Address<'_> {
        Address::Ip(match end {
            End::Source => self.flow.source,
            End::Destination => self.flow.destination,
        })
    }

    fn port(&self, end: End) -> Option<u32> {
        self.flow.l4.ports().map(|(source, destination)| match end {
            End::Source => source.into(),
            End::Destination => destination.into(),
        })
    }

    fn tcp_flags(&self) -> Option<u16> {
        match self.flow.l4 {
            L4::Tcp { flags, .. } => Some(flags.into()),
            _ => None,
        }
    }

    fn layers(&self) -> u16 {
        match self.flow.l4 {
            L4::Tcp { .. } => Layer::Tcp.bit(),
            L4::Udp { .. } => Layer::Udp.bit(),
            L4::Sctp { .. } => Layer::Sctp.bit(),
            L4::Icmpv4 { .. } => Layer::Icmpv4.bit(),
            L4::Icmpv6 { .. } => Layer::Icmpv6.bit(),
            L4::Other => 0,
        }
    }

    fn identity(&self, end: End) -> Option<u32> {
        Some(match end {
            End::Source => self.flow.source_identity.number(),
            End::Destination => self.flow.destination_identity.number(),
        })
    }

    fn labels(&self, end: End) -> Texts<'_> {
        self.flow.labels(end, self.node)
    }

    fn verdict(&self) -> i32 {
        self.flow.verdict().1
    }

    fn drop_reason(&self) -> i32 {
        self.flow.drop_reason()
    }

    fn traffic_direction(&self) -> i32 {
        self.flow.traffic_direction().number()
    }

    fn ip_version(&self) -> i32 {
        self.flow.ip_version().number()
    }

    fn is_reply(&self) -> Option<bool> {
        self.flow.is_reply
    }

    /// Hubble knows one interface of a flow; we know up to four and ask for them all. Index 0 is none.
    fn any_interface(&self, test: impl Fn(u32, &str) -> bool) -> bool {
        self.flow.interfaces.into_iter().filter(|index| *index != 0).any(|index| {
            let name = self.node.interfaces.get(&index).map_or("", |interface| interface.name.as_str());
            test(index, name)
        })
    }

    fn node_name(&self) -> &str {
        &self.node.name
    }

    fn has_uuid(&self, wanted: &str) -> bool {
        self.flow.uuid(self.node).as_slice() == wanted.as_bytes()
    }

    fn with_message<T>(&self, look: impl FnOnce(&Message) -> T) -> T {
        look(&flow_message(self.flow, self.node))
    }

    fn vlans(&self) -> Option<[u16; 2]> {
        Some(self.flow.vlans)
    }

    fn tunnel(&self) -> (&str, u32) {
        self.flow.tunnel.map_or(("", 0), |tunnel| (tunnel.kind.name(), tunnel.vni))
    }

    fn counters(&self) -> Option<Counters> {
        let duration_ns = self.flow.last_seen_ns.saturating_sub(self.flow.started_ns);
        Some(Counters {
            packets: self.flow.packets,
            bytes: self.flow.bytes,
            duration_ns: u64::try_from(duration_ns).unwrap_or(0),
            connection: Some(self.flow.connection),
            duplicate: self.flow.duplicate,
        })
    }
}
