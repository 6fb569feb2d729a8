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
    TunnelIpSource "tunnel.IP.source"
    TunnelIpSourceXlated "tunnel.IP.source_xlated"
    TunnelIpDestination "tunnel.IP.destination"
    TunnelIpVersion "tunnel.IP.ipVersion"
    TunnelIpEncrypted "tunnel.IP.encrypted"
    TunnelTcpSourcePort "tunnel.l4.TCP.source_port"
    TunnelTcpDestinationPort "tunnel.l4.TCP.destination_port"
    TunnelTcpFin "tunnel.l4.TCP.flags.FIN"
    TunnelTcpSyn "tunnel.l4.TCP.flags.SYN"
    TunnelTcpRst "tunnel.l4.TCP.flags.RST"
    TunnelTcpPsh "tunnel.l4.TCP.flags.PSH"
    TunnelTcpAck "tunnel.l4.TCP.flags.ACK"
    TunnelTcpUrg "tunnel.l4.TCP.flags.URG"
    TunnelTcpEce "tunnel.l4.TCP.flags.ECE"
    TunnelTcpCwr "tunnel.l4.TCP.flags.CWR"
    TunnelTcpNs "tunnel.l4.TCP.flags.NS"
    TunnelUdpSourcePort "tunnel.l4.UDP.source_port"
    TunnelUdpDestinationPort "tunnel.l4.UDP.destination_port"
    TunnelIcmpv4Type "tunnel.l4.ICMPv4.type"
    TunnelIcmpv4Code "tunnel.l4.ICMPv4.code"
    TunnelIcmpv6Type "tunnel.l4.ICMPv6.type"
    TunnelIcmpv6Code "tunnel.l4.ICMPv6.code"
    TunnelSctpSourcePort "tunnel.l4.SCTP.source_port"
    TunnelSctpDestinationPort "tunnel.l4.SCTP.destination_port"
    TunnelVrrpType "tunnel.l4.VRRP.type"
    TunnelVrrpVrid "tunnel.l4.VRRP.vrid"
    TunnelVrrpPriority "tunnel.l4.VRRP.priority"
    TunnelIgmpType "tunnel.l4.IGMP.type"
    TunnelIgmpGroupAddress "tunnel.l4.IGMP.group_address"
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
    L7Type "l7.type"
    L7LatencyNs "l7.latency_ns"
    DnsQuery "l7.dns.query"
    DnsIps "l7.dns.ips"
    DnsTtl "l7.dns.ttl"
    DnsCnames "l7.dns.cnames"
    DnsObservationSource "l7.dns.observation_source"
    DnsRcode "l7.dns.rcode"
    DnsQtypes "l7.dns.qtypes"
    DnsRrtypes "l7.dns.rrtypes"
    HttpCode "l7.http.code"
    HttpMethod "l7.http.method"
    HttpUrl "l7.http.url"
    HttpProtocol "l7.http.protocol"
    HttpHeaders "l7.http.headers"
    KafkaErrorCode "l7.kafka.error_code"
    KafkaApiVersion "l7.kafka.api_version"
    KafkaApiKey "l7.kafka.api_key"
    KafkaCorrelationId "l7.kafka.correlation_id"
    KafkaTopic "l7.kafka.topic"
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
    IpTraceIdTraceId "ip_trace_id.trace_id"
    IpTraceIdIpOptionType "ip_trace_id.ip_option_type"
    DropReasonDesc "drop_reason_desc"
    IsReply "is_reply"
    DebugCapturePoint "debug_capture_point"
    InterfaceIndex "interface.index"
    InterfaceName "interface.name"
    ProxyPort "proxy_port"
    TraceContextTraceId "trace_context.parent.trace_id"
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
    ExtensionsRtt "extensions.rtt"
    ExtensionsVlan "extensions.vlan"
    ExtensionsInnerVlan "extensions.inner_vlan"
    ExtensionsTunnel "extensions.tunnel"
    EgressAllowedBy "egress_allowed_by"
    IngressAllowedBy "ingress_allowed_by"
    EgressDeniedBy "egress_denied_by"
    IngressDeniedBy "ingress_denied_by"
    PolicyLog "policy_log"
    AggregateIngressFlowCount "aggregate.ingress_flow_count"
    AggregateEgressFlowCount "aggregate.egress_flow_count"
    AggregateUnknownDirectionFlowCount "aggregate.unknown_direction_flow_count"
}

/// A set of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSet {
    low: u128,
    high: u128,
}

impl FieldSet {
    /// Every field.
    pub const ALL: Self = Self { low: u128::MAX, high: (1 << (FIELDS.len() - 128)) - 1 };
    /// No field.
    pub const NONE: Self = Self { low: 0, high: 0 };

    const fn one(field: Field) -> Self {
        let number = field as u32;
        if number < 128 {
            Self { low: 1 << number, high: 0 }
        } else {
            Self { low: 0, high: 1 << (number - 128) }
        }
    }

    /// The fields from one place of the table up to, not including, another.
    #[must_use]
    pub const fn span(from: usize, to: usize) -> Self {
        Self { low: below_bit(to) & !below_bit(from), high: high_below(to) & !high_below(from) }
    }

    /// This set with one more field.
    #[must_use]
    pub const fn with(self, field: Field) -> Self {
        self.union(Self::one(field))
    }

    /// Whether the field is in the set.
    #[must_use]
    pub const fn has(self, field: Field) -> bool {
        self.intersects(Self::one(field))
    }

    /// Whether the sets share a field.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.low & other.low != 0 || self.high & other.high != 0
    }

    /// The fields of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self { low: self.low | other.low, high: self.high | other.high }
    }

    /// The fields of this one that the other has not.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self { low: self.low & !other.low, high: self.high & !other.high }
    }

    /// Whether the set has no field.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.low == 0 && self.high == 0
    }
}

/// The lowest `count` bits (at most all of them).
const fn below_bit(count: usize) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

/// The lowest `count` bits counted from the second word's first.
const fn high_below(count: usize) -> u128 {
    below_bit(count.saturating_sub(128))
}

const _: () = assert!(FIELDS.len() > 128 && FIELDS.len() < 256, "FieldSet::ALL counts on it");

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_unique_and_none_is_inside_another() {
        for (index, (_, path)) in FIELDS.iter().enumerate() {
            for (_, other) in &FIELDS[index + 1..] {
                assert!(path != other && !other.starts_with(&format!("{path}.")), "{path} and {other}");
            }
        }
    }

    #[test]
    fn below_gives_the_leaf_or_the_whole_message() {
        assert_eq!(below("interface"), FieldSet::NONE.with(Field::InterfaceIndex).with(Field::InterfaceName));
        assert_eq!(below("verdict"), FieldSet::NONE.with(Field::Verdict));
        assert_eq!(
            below("aggregate.egress_flow_count"),
            FieldSet::NONE.with(Field::AggregateEgressFlowCount)
        );
        for nothing in ["sourc", "source.", "Source", "", "verdict.x", "l4.protocol"] {
            assert!(below(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn all_is_the_union_of_every_field() {
        let union = FIELDS.iter().fold(FieldSet::NONE, |set, (field, _)| set.with(*field));
        assert_eq!(union, FieldSet::ALL);
        assert!(FIELDS.iter().all(|(field, _)| FieldSet::ALL.has(*field) && !FieldSet::NONE.has(*field)));
    }
}
