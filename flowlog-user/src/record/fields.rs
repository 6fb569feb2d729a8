//! The vocabulary: every field of Hubble's `flow.Flow` (Cilium 1.19.4, declaration order) and ours below
//! `extensions`. Mask paths, columns and documentation come from this table.

macro_rules! fields {
    ($($id:ident $path:literal $column:literal)*) => {
        /// A leaf field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the path says it")]
        pub enum Field { $($id),* }

        /// Every leaf in output order with its path (proto names, as in a `fieldMask`).
        pub const FIELDS: &[(Field, &str)] = &[$((Field::$id, $path)),*];

        /// The column of each leaf in flat records, in the same order. Members of a union that mean the same share one.
        pub(super) const COLUMN_NAMES: &[&str] = &[$($column),*];
    };
}

fields! {
    Time "time" "time"
    Uuid "uuid" "uuid"
    EmitterName "emitter.name" "emitter_name"
    EmitterVersion "emitter.version" "emitter_version"
    Verdict "verdict" "verdict"
    DropReason "drop_reason" "drop_reason"
    AuthType "auth_type" "auth_type"
    EthernetSource "ethernet.source" "source_mac"
    EthernetDestination "ethernet.destination" "destination_mac"
    IpSource "IP.source" "source_ip"
    IpSourceXlated "IP.source_xlated" "source_ip_xlated"
    IpDestination "IP.destination" "destination_ip"
    IpVersion "IP.ipVersion" "ip_version"
    IpEncrypted "IP.encrypted" "ip_encrypted"
    TcpSourcePort "l4.TCP.source_port" "source_port"
    TcpDestinationPort "l4.TCP.destination_port" "destination_port"
    TcpFin "l4.TCP.flags.FIN" "tcp_flags"
    TcpSyn "l4.TCP.flags.SYN" "tcp_flags"
    TcpRst "l4.TCP.flags.RST" "tcp_flags"
    TcpPsh "l4.TCP.flags.PSH" "tcp_flags"
    TcpAck "l4.TCP.flags.ACK" "tcp_flags"
    TcpUrg "l4.TCP.flags.URG" "tcp_flags"
    TcpEce "l4.TCP.flags.ECE" "tcp_flags"
    TcpCwr "l4.TCP.flags.CWR" "tcp_flags"
    TcpNs "l4.TCP.flags.NS" "tcp_flags"
    UdpSourcePort "l4.UDP.source_port" "source_port"
    UdpDestinationPort "l4.UDP.destination_port" "destination_port"
    Icmpv4Type "l4.ICMPv4.type" "icmp_type"
    Icmpv4Code "l4.ICMPv4.code" "icmp_code"
    Icmpv6Type "l4.ICMPv6.type" "icmp_type"
    Icmpv6Code "l4.ICMPv6.code" "icmp_code"
    SctpSourcePort "l4.SCTP.source_port" "source_port"
    SctpDestinationPort "l4.SCTP.destination_port" "destination_port"
    VrrpType "l4.VRRP.type" "vrrp_type"
    VrrpVrid "l4.VRRP.vrid" "vrrp_vrid"
    VrrpPriority "l4.VRRP.priority" "vrrp_priority"
    IgmpType "l4.IGMP.type" "igmp_type"
    IgmpGroupAddress "l4.IGMP.group_address" "igmp_group_address"
    TunnelProtocol "tunnel.protocol" "tunnel_protocol"
    TunnelIpSource "tunnel.IP.source" "tunnel_source_ip"
    TunnelIpSourceXlated "tunnel.IP.source_xlated" "tunnel_source_ip_xlated"
    TunnelIpDestination "tunnel.IP.destination" "tunnel_destination_ip"
    TunnelIpVersion "tunnel.IP.ipVersion" "tunnel_ip_version"
    TunnelIpEncrypted "tunnel.IP.encrypted" "tunnel_ip_encrypted"
    TunnelTcpSourcePort "tunnel.l4.TCP.source_port" "tunnel_source_port"
    TunnelTcpDestinationPort "tunnel.l4.TCP.destination_port" "tunnel_destination_port"
    TunnelTcpFin "tunnel.l4.TCP.flags.FIN" "tunnel_tcp_flags"
    TunnelTcpSyn "tunnel.l4.TCP.flags.SYN" "tunnel_tcp_flags"
    TunnelTcpRst "tunnel.l4.TCP.flags.RST" "tunnel_tcp_flags"
    TunnelTcpPsh "tunnel.l4.TCP.flags.PSH" "tunnel_tcp_flags"
    TunnelTcpAck "tunnel.l4.TCP.flags.ACK" "tunnel_tcp_flags"
    TunnelTcpUrg "tunnel.l4.TCP.flags.URG" "tunnel_tcp_flags"
    TunnelTcpEce "tunnel.l4.TCP.flags.ECE" "tunnel_tcp_flags"
    TunnelTcpCwr "tunnel.l4.TCP.flags.CWR" "tunnel_tcp_flags"
    TunnelTcpNs "tunnel.l4.TCP.flags.NS" "tunnel_tcp_flags"
    TunnelUdpSourcePort "tunnel.l4.UDP.source_port" "tunnel_source_port"
    TunnelUdpDestinationPort "tunnel.l4.UDP.destination_port" "tunnel_destination_port"
    TunnelIcmpv4Type "tunnel.l4.ICMPv4.type" "tunnel_icmp_type"
    TunnelIcmpv4Code "tunnel.l4.ICMPv4.code" "tunnel_icmp_code"
    TunnelIcmpv6Type "tunnel.l4.ICMPv6.type" "tunnel_icmp_type"
    TunnelIcmpv6Code "tunnel.l4.ICMPv6.code" "tunnel_icmp_code"
    TunnelSctpSourcePort "tunnel.l4.SCTP.source_port" "tunnel_source_port"
    TunnelSctpDestinationPort "tunnel.l4.SCTP.destination_port" "tunnel_destination_port"
    TunnelVrrpType "tunnel.l4.VRRP.type" "tunnel_vrrp_type"
    TunnelVrrpVrid "tunnel.l4.VRRP.vrid" "tunnel_vrrp_vrid"
    TunnelVrrpPriority "tunnel.l4.VRRP.priority" "tunnel_vrrp_priority"
    TunnelIgmpType "tunnel.l4.IGMP.type" "tunnel_igmp_type"
    TunnelIgmpGroupAddress "tunnel.l4.IGMP.group_address" "tunnel_igmp_group_address"
    TunnelVni "tunnel.vni" "tunnel_vni"
    SourceId "source.ID" "source_id"
    SourceIdentity "source.identity" "source_identity"
    SourceClusterName "source.cluster_name" "source_cluster_name"
    SourceNamespace "source.namespace" "source_namespace"
    SourceLabels "source.labels" "source_labels"
    SourcePodName "source.pod_name" "source_pod_name"
    SourceWorkloads "source.workloads" "source_workloads"
    DestinationId "destination.ID" "destination_id"
    DestinationIdentity "destination.identity" "destination_identity"
    DestinationClusterName "destination.cluster_name" "destination_cluster_name"
    DestinationNamespace "destination.namespace" "destination_namespace"
    DestinationLabels "destination.labels" "destination_labels"
    DestinationPodName "destination.pod_name" "destination_pod_name"
    DestinationWorkloads "destination.workloads" "destination_workloads"
    Type "Type" "flow_type"
    NodeName "node_name" "node_name"
    NodeLabels "node_labels" "node_labels"
    SourceNames "source_names" "source_names"
    DestinationNames "destination_names" "destination_names"
    L7Type "l7.type" "l7_type"
    L7LatencyNs "l7.latency_ns" "l7_latency_ns"
    DnsQuery "l7.dns.query" "dns_query"
    DnsIps "l7.dns.ips" "dns_ips"
    DnsTtl "l7.dns.ttl" "dns_ttl"
    DnsCnames "l7.dns.cnames" "dns_cnames"
    DnsObservationSource "l7.dns.observation_source" "dns_observation_source"
    DnsRcode "l7.dns.rcode" "dns_rcode"
    DnsQtypes "l7.dns.qtypes" "dns_qtypes"
    DnsRrtypes "l7.dns.rrtypes" "dns_rrtypes"
    HttpCode "l7.http.code" "http_code"
    HttpMethod "l7.http.method" "http_method"
    HttpUrl "l7.http.url" "http_url"
    HttpProtocol "l7.http.protocol" "http_protocol"
    HttpHeaders "l7.http.headers" "http_headers"
    KafkaErrorCode "l7.kafka.error_code" "kafka_error_code"
    KafkaApiVersion "l7.kafka.api_version" "kafka_api_version"
    KafkaApiKey "l7.kafka.api_key" "kafka_api_key"
    KafkaCorrelationId "l7.kafka.correlation_id" "kafka_correlation_id"
    KafkaTopic "l7.kafka.topic" "kafka_topic"
    Reply "reply" "reply"
    EventTypeType "event_type.type" "event_type"
    EventTypeSubType "event_type.sub_type" "event_sub_type"
    SourceServiceName "source_service.name" "source_service_name"
    SourceServiceNamespace "source_service.namespace" "source_service_namespace"
    DestinationServiceName "destination_service.name" "destination_service_name"
    DestinationServiceNamespace "destination_service.namespace" "destination_service_namespace"
    TrafficDirection "traffic_direction" "traffic_direction"
    PolicyMatchType "policy_match_type" "policy_match_type"
    TraceObservationPoint "trace_observation_point" "trace_observation_point"
    TraceReason "trace_reason" "trace_reason"
    FileName "file.name" "file_name"
    FileLine "file.line" "file_line"
    IpTraceIdTraceId "ip_trace_id.trace_id" "ip_trace_id"
    IpTraceIdIpOptionType "ip_trace_id.ip_option_type" "ip_trace_option_type"
    DropReasonDesc "drop_reason_desc" "drop_reason_desc"
    IsReply "is_reply" "is_reply"
    DebugCapturePoint "debug_capture_point" "debug_capture_point"
    InterfaceIndex "interface.index" "interface_index"
    InterfaceName "interface.name" "interface_name"
    ProxyPort "proxy_port" "proxy_port"
    TraceContextTraceId "trace_context.parent.trace_id" "trace_id"
    SockXlatePoint "sock_xlate_point" "sock_xlate_point"
    SocketCookie "socket_cookie" "socket_cookie"
    CgroupId "cgroup_id" "cgroup_id"
    Summary "Summary" "summary"
    ExtensionsEvent "extensions.event" "event"
    ExtensionsEndReason "extensions.end_reason" "end_reason"
    ExtensionsConnection "extensions.connection" "connection"
    ExtensionsStarted "extensions.started" "started"
    ExtensionsFirstSeen "extensions.first_seen" "first_seen"
    ExtensionsLastSeen "extensions.last_seen" "last_seen"
    ExtensionsPackets "extensions.packets" "packets"
    ExtensionsBytes "extensions.bytes" "bytes"
    ExtensionsPacketsTotal "extensions.packets_total" "packets_total"
    ExtensionsBytesTotal "extensions.bytes_total" "bytes_total"
    ExtensionsMidstream "extensions.midstream" "midstream"
    ExtensionsInterfaces "extensions.interfaces" "interfaces"
    ExtensionsDuplicate "extensions.duplicate" "duplicate"
    ExtensionsFragment "extensions.fragment" "fragment"
    ExtensionsRtt "extensions.rtt" "rtt_ns"
    ExtensionsVlan "extensions.vlan" "vlan"
    ExtensionsInnerVlan "extensions.inner_vlan" "inner_vlan"
    ExtensionsTunnel "extensions.tunnel" "tunnel"
    ExtensionsDropReason "extensions.drop_reason" "kernel_drop_reason"
    ExtensionsDropLocation "extensions.drop_location" "drop_location"
    ExtensionsDropNetns "extensions.drop_netns" "drop_netns"
    ExtensionsDropInterface "extensions.drop_interface" "drop_interface"
    EgressAllowedBy "egress_allowed_by" "egress_allowed_by"
    IngressAllowedBy "ingress_allowed_by" "ingress_allowed_by"
    EgressDeniedBy "egress_denied_by" "egress_denied_by"
    IngressDeniedBy "ingress_denied_by" "ingress_denied_by"
    PolicyLog "policy_log" "policy_log"
    AggregateIngressFlowCount "aggregate.ingress_flow_count" "aggregate_ingress_flow_count"
    AggregateEgressFlowCount "aggregate.egress_flow_count" "aggregate_egress_flow_count"
    AggregateUnknownDirectionFlowCount "aggregate.unknown_direction_flow_count" "aggregate_unknown_direction_flow_count"
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
