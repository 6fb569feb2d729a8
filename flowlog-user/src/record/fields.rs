//! The vocabulary: every field of Hubble's `flow.Flow` (Cilium 1.19.4, declaration order) and ours below
//! `extensions`. Mask paths, columns and documentation come from this table.

macro_rules! fields {
    ($($id:ident $path:literal)*) => {
        /// A leaf field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the path says it")]
        pub enum Field { $($id),* }

        /// Every leaf in output order with its path (proto names, as in a `fieldMask`).
        pub const FIELDS: &[(Field, &str)] = &[$((Field::$id, $path)),*];
    };
}

fields! {
    Time "time"
    Uuid "uuid"
    EmitterName "emitter.name"
    EmitterVersion "emitter.version"
    Verdict "verdict"
    DropReason "drop_reason"
    AuthType "auth_type"
    EthernetSource "ethernet.source"
    EthernetDestination "ethernet.destination"
    IpSource "IP.source"
    IpSourceXlated "IP.source_xlated"
    IpDestination "IP.destination"
    IpVersion "IP.ipVersion"
    IpEncrypted "IP.encrypted"
    TcpSourcePort "l4.TCP.source_port"
    TcpDestinationPort "l4.TCP.destination_port"
    TcpFin "l4.TCP.flags.FIN"
    TcpSyn "l4.TCP.flags.SYN"
    TcpRst "l4.TCP.flags.RST"
    TcpPsh "l4.TCP.flags.PSH"
    TcpAck "l4.TCP.flags.ACK"
    TcpUrg "l4.TCP.flags.URG"
    TcpEce "l4.TCP.flags.ECE"
    TcpCwr "l4.TCP.flags.CWR"
    TcpNs "l4.TCP.flags.NS"
    UdpSourcePort "l4.UDP.source_port"
    UdpDestinationPort "l4.UDP.destination_port"
    Icmpv4Type "l4.ICMPv4.type"
    Icmpv4Code "l4.ICMPv4.code"
    Icmpv6Type "l4.ICMPv6.type"
    Icmpv6Code "l4.ICMPv6.code"
    SctpSourcePort "l4.SCTP.source_port"
    SctpDestinationPort "l4.SCTP.destination_port"
    VrrpType "l4.VRRP.type"
    VrrpVrid "l4.VRRP.vrid"
    VrrpPriority "l4.VRRP.priority"
    IgmpType "l4.IGMP.type"
    IgmpGroupAddress "l4.IGMP.group_address"
    TunnelProtocol "tunnel.protocol"
    TunnelIp "tunnel.IP"
    TunnelL4 "tunnel.l4"
    TunnelVni "tunnel.vni"
    SourceId "source.ID"
    SourceIdentity "source.identity"
    SourceClusterName "source.cluster_name"
    SourceNamespace "source.namespace"
    SourceLabels "source.labels"
    SourcePodName "source.pod_name"
    SourceWorkloads "source.workloads"
    DestinationId "destination.ID"
    DestinationIdentity "destination.identity"
    DestinationClusterName "destination.cluster_name"
    DestinationNamespace "destination.namespace"
    DestinationLabels "destination.labels"
    DestinationPodName "destination.pod_name"
    DestinationWorkloads "destination.workloads"
    Type "Type"
    NodeName "node_name"
    NodeLabels "node_labels"
    SourceNames "source_names"
    DestinationNames "destination_names"
    L7 "l7"
    Reply "reply"
    EventTypeType "event_type.type"
    EventTypeSubType "event_type.sub_type"
    SourceServiceName "source_service.name"
    SourceServiceNamespace "source_service.namespace"
    DestinationServiceName "destination_service.name"
    DestinationServiceNamespace "destination_service.namespace"
    TrafficDirection "traffic_direction"
    PolicyMatchType "policy_match_type"
    TraceObservationPoint "trace_observation_point"
    TraceReason "trace_reason"
    FileName "file.name"
    FileLine "file.line"
    IpTraceId "ip_trace_id"
    DropReasonDesc "drop_reason_desc"
    IsReply "is_reply"
    DebugCapturePoint "debug_capture_point"
    InterfaceIndex "interface.index"
    InterfaceName "interface.name"
    ProxyPort "proxy_port"
    TraceContext "trace_context"
    SockXlatePoint "sock_xlate_point"
    SocketCookie "socket_cookie"
    CgroupId "cgroup_id"
    Summary "Summary"
    ExtensionsEvent "extensions.event"
    ExtensionsEndReason "extensions.end_reason"
    ExtensionsConnection "extensions.connection"
    ExtensionsStarted "extensions.started"
    ExtensionsFirstSeen "extensions.first_seen"
    ExtensionsLastSeen "extensions.last_seen"
    ExtensionsPackets "extensions.packets"
    ExtensionsBytes "extensions.bytes"
    ExtensionsPacketsTotal "extensions.packets_total"
    ExtensionsBytesTotal "extensions.bytes_total"
    ExtensionsMidstream "extensions.midstream"
    ExtensionsInterfaces "extensions.interfaces"
    ExtensionsDuplicate "extensions.duplicate"
    ExtensionsFragment "extensions.fragment"
    EgressAllowedBy "egress_allowed_by"
    IngressAllowedBy "ingress_allowed_by"
    EgressDeniedBy "egress_denied_by"
    IngressDeniedBy "ingress_denied_by"
    PolicyLog "policy_log"
    Aggregate "aggregate"
}

/// A set of fields: what a mask keeps. `present` marks messages that a mask names into and that are therefore
/// written even when empty, as Hubble does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSet(u128);

impl FieldSet {
    /// Every field.
    pub const ALL: Self = Self(u128::MAX);
    /// No field.
    pub const NONE: Self = Self(0);

    /// This set with one more field.
    #[must_use]
    pub const fn with(self, field: Field) -> Self {
        Self(self.0 | (1 << field as u32))
    }

    /// Whether the field is in the set.
    #[must_use]
    pub const fn has(self, field: Field) -> bool {
        self.0 & (1 << field as u32) != 0
    }

    /// Whether the sets share a field.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The fields of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

const _: () = assert!(FIELDS.len() <= 128, "FieldSet holds 128 fields");

/// The fields at or below a path (`source` gives all of the source's); empty when the path does not exist.
#[must_use]
pub fn below(path: &str) -> FieldSet {
    FIELDS
        .iter()
        .filter(|(_, name)| {
            name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .fold(FieldSet::NONE, |set, (field, _)| set.with(*field))
}

/// A compiled field mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mask {
    /// Fields that are written.
    pub keep: FieldSet,
    /// Leaves that a path led to without naming a whole message above: each message on the way to one of them is
    /// written even when nothing is in it (`"source":{}`), as Hubble does.
    pub named: FieldSet,
}

impl Mask {
    /// No mask: everything is written.
    pub const ALL: Self = Self { keep: FieldSet::ALL, named: FieldSet::NONE };
}
