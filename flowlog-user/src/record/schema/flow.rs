//! `flow.Flow` and what is in it (Cilium 1.19.4), in declaration order.

use super::Kind::{Any, Bool, BoolValue, Enum, Int32, Message, Text, Timestamp, Uint32, Uint64};
use super::enums::*;
use super::{Descriptor, many, member, one};

/// `flow.Emitter`.
pub static EMITTER: Descriptor = Descriptor {
    name: "flow.Emitter",
    fields: &[one(1, "name", "name", Text), one(2, "version", "version", Text)],
};

/// `flow.Ethernet`.
pub static ETHERNET: Descriptor = Descriptor {
    name: "flow.Ethernet",
    fields: &[one(1, "source", "source", Text), one(2, "destination", "destination", Text)],
};

/// `flow.IP`.
pub static IP: Descriptor = Descriptor {
    name: "flow.IP",
    fields: &[
        one(1, "source", "source", Text),
        one(5, "source_xlated", "sourceXlated", Text),
        one(2, "destination", "destination", Text),
        one(3, "ipVersion", "ipVersion", Enum(&IP_VERSION)),
        one(4, "encrypted", "encrypted", Bool),
    ],
};

/// `flow.TCPFlags`.
pub static TCP_FLAGS: Descriptor = Descriptor {
    name: "flow.TCPFlags",
    fields: &[
        one(1, "FIN", "FIN", Bool),
        one(2, "SYN", "SYN", Bool),
        one(3, "RST", "RST", Bool),
        one(4, "PSH", "PSH", Bool),
        one(5, "ACK", "ACK", Bool),
        one(6, "URG", "URG", Bool),
        one(7, "ECE", "ECE", Bool),
        one(8, "CWR", "CWR", Bool),
        one(9, "NS", "NS", Bool),
    ],
};

/// `flow.TCP`.
pub static TCP: Descriptor = Descriptor {
    name: "flow.TCP",
    fields: &[
        one(1, "source_port", "sourcePort", Uint32),
        one(2, "destination_port", "destinationPort", Uint32),
        one(3, "flags", "flags", Message(&TCP_FLAGS)),
    ],
};

/// `flow.UDP`.
pub static UDP: Descriptor = Descriptor {
    name: "flow.UDP",
    fields: &[
        one(1, "source_port", "sourcePort", Uint32),
        one(2, "destination_port", "destinationPort", Uint32),
    ],
};

/// `flow.ICMPv4`.
pub static ICMPV4: Descriptor = Descriptor {
    name: "flow.ICMPv4",
    fields: &[one(1, "type", "type", Uint32), one(2, "code", "code", Uint32)],
};

/// `flow.ICMPv6`.
pub static ICMPV6: Descriptor = Descriptor {
    name: "flow.ICMPv6",
    fields: &[one(1, "type", "type", Uint32), one(2, "code", "code", Uint32)],
};

/// `flow.SCTP`.
pub static SCTP: Descriptor = Descriptor {
    name: "flow.SCTP",
    fields: &[
        one(1, "source_port", "sourcePort", Uint32),
        one(2, "destination_port", "destinationPort", Uint32),
    ],
};

/// `flow.VRRP`.
pub static VRRP: Descriptor = Descriptor {
    name: "flow.VRRP",
    fields: &[
        one(1, "type", "type", Uint32),
        one(2, "vrid", "vrid", Uint32),
        one(3, "priority", "priority", Uint32),
    ],
};

/// `flow.IGMP`.
pub static IGMP: Descriptor = Descriptor {
    name: "flow.IGMP",
    fields: &[one(1, "type", "type", Uint32), one(2, "group_address", "groupAddress", Text)],
};

/// `flow.Layer4`.
pub static LAYER4: Descriptor = Descriptor {
    name: "flow.Layer4",
    fields: &[
        member(1, "TCP", "TCP", Message(&TCP)),
        member(2, "UDP", "UDP", Message(&UDP)),
        member(3, "ICMPv4", "ICMPv4", Message(&ICMPV4)),
        member(4, "ICMPv6", "ICMPv6", Message(&ICMPV6)),
        member(5, "SCTP", "SCTP", Message(&SCTP)),
        member(6, "VRRP", "VRRP", Message(&VRRP)),
        member(7, "IGMP", "IGMP", Message(&IGMP)),
    ],
};

/// `flow.Tunnel`.
pub static TUNNEL: Descriptor = Descriptor {
    name: "flow.Tunnel",
    fields: &[
        one(1, "protocol", "protocol", Enum(&TUNNEL_PROTOCOL)),
        one(2, "IP", "IP", Message(&IP)),
        one(3, "l4", "l4", Message(&LAYER4)),
        one(4, "vni", "vni", Uint32),
    ],
};

/// `flow.Workload`.
pub static WORKLOAD: Descriptor = Descriptor {
    name: "flow.Workload",
    fields: &[one(1, "name", "name", Text), one(2, "kind", "kind", Text)],
};

/// `flow.Endpoint`.
pub static ENDPOINT: Descriptor = Descriptor {
    name: "flow.Endpoint",
    fields: &[
        one(1, "ID", "ID", Uint32),
        one(2, "identity", "identity", Uint32),
        one(7, "cluster_name", "clusterName", Text),
        one(3, "namespace", "namespace", Text),
        many(4, "labels", "labels", Text),
        one(5, "pod_name", "podName", Text),
        many(6, "workloads", "workloads", Message(&WORKLOAD)),
    ],
};

/// `flow.DNS`.
pub static DNS: Descriptor = Descriptor {
    name: "flow.DNS",
    fields: &[
        one(1, "query", "query", Text),
        many(2, "ips", "ips", Text),
        one(3, "ttl", "ttl", Uint32),
        many(4, "cnames", "cnames", Text),
        one(5, "observation_source", "observationSource", Text),
        one(6, "rcode", "rcode", Uint32),
        many(7, "qtypes", "qtypes", Text),
        many(8, "rrtypes", "rrtypes", Text),
    ],
};

/// `flow.HTTPHeader`.
pub static HTTP_HEADER: Descriptor = Descriptor {
    name: "flow.HTTPHeader",
    fields: &[one(1, "key", "key", Text), one(2, "value", "value", Text)],
};

/// `flow.HTTP`.
pub static HTTP: Descriptor = Descriptor {
    name: "flow.HTTP",
    fields: &[
        one(1, "code", "code", Uint32),
        one(2, "method", "method", Text),
        one(3, "url", "url", Text),
        one(4, "protocol", "protocol", Text),
        many(5, "headers", "headers", Message(&HTTP_HEADER)),
    ],
};

/// `flow.Kafka`.
pub static KAFKA: Descriptor = Descriptor {
    name: "flow.Kafka",
    fields: &[
        one(1, "error_code", "errorCode", Int32),
        one(2, "api_version", "apiVersion", Int32),
        one(3, "api_key", "apiKey", Text),
        one(4, "correlation_id", "correlationId", Int32),
        one(5, "topic", "topic", Text),
    ],
};

/// `flow.Layer7`.
pub static LAYER7: Descriptor = Descriptor {
    name: "flow.Layer7",
    fields: &[
        one(1, "type", "type", Enum(&L7_FLOW_TYPE)),
        one(2, "latency_ns", "latencyNs", Uint64),
        member(100, "dns", "dns", Message(&DNS)),
        member(101, "http", "http", Message(&HTTP)),
        member(102, "kafka", "kafka", Message(&KAFKA)),
    ],
};

/// `flow.CiliumEventType`.
pub static CILIUM_EVENT_TYPE: Descriptor = Descriptor {
    name: "flow.CiliumEventType",
    fields: &[one(1, "type", "type", Int32), one(2, "sub_type", "subType", Int32)],
};

/// `flow.Service`.
pub static SERVICE: Descriptor = Descriptor {
    name: "flow.Service",
    fields: &[one(1, "name", "name", Text), one(2, "namespace", "namespace", Text)],
};

/// `flow.FileInfo`.
pub static FILE_INFO: Descriptor = Descriptor {
    name: "flow.FileInfo",
    fields: &[one(1, "name", "name", Text), one(2, "line", "line", Uint32)],
};

/// `flow.IPTraceID`.
pub static IP_TRACE_ID: Descriptor = Descriptor {
    name: "flow.IPTraceID",
    fields: &[one(1, "trace_id", "traceId", Uint64), one(2, "ip_option_type", "ipOptionType", Uint32)],
};

/// `flow.NetworkInterface`.
pub static NETWORK_INTERFACE: Descriptor = Descriptor {
    name: "flow.NetworkInterface",
    fields: &[one(1, "index", "index", Uint32), one(2, "name", "name", Text)],
};

/// `flow.TraceParent`.
pub static TRACE_PARENT: Descriptor =
    Descriptor { name: "flow.TraceParent", fields: &[one(1, "trace_id", "traceId", Text)] };

/// `flow.TraceContext`.
pub static TRACE_CONTEXT: Descriptor =
    Descriptor { name: "flow.TraceContext", fields: &[one(1, "parent", "parent", Message(&TRACE_PARENT))] };

/// `flow.Policy`.
pub static POLICY: Descriptor = Descriptor {
    name: "flow.Policy",
    fields: &[
        one(1, "name", "name", Text),
        one(2, "namespace", "namespace", Text),
        many(3, "labels", "labels", Text),
        one(4, "revision", "revision", Uint64),
        one(5, "kind", "kind", Text),
    ],
};

/// `flow.Aggregate`.
pub static AGGREGATE: Descriptor = Descriptor {
    name: "flow.Aggregate",
    fields: &[
        one(1, "ingress_flow_count", "ingressFlowCount", Uint32),
        one(2, "egress_flow_count", "egressFlowCount", Uint32),
        one(3, "unknown_direction_flow_count", "unknownDirectionFlowCount", Uint32),
    ],
};

/// `flow.Flow`.
pub static FLOW: Descriptor = Descriptor {
    name: "flow.Flow",
    fields: &[
        one(1, "time", "time", Timestamp),
        one(34, "uuid", "uuid", Text),
        one(41, "emitter", "emitter", Message(&EMITTER)),
        one(2, "verdict", "verdict", Enum(&VERDICT)),
        one(3, "drop_reason", "dropReason", Uint32),
        one(35, "auth_type", "authType", Enum(&AUTH_TYPE)),
        one(4, "ethernet", "ethernet", Message(&ETHERNET)),
        one(5, "IP", "IP", Message(&IP)),
        one(6, "l4", "l4", Message(&LAYER4)),
        one(39, "tunnel", "tunnel", Message(&TUNNEL)),
        one(8, "source", "source", Message(&ENDPOINT)),
        one(9, "destination", "destination", Message(&ENDPOINT)),
        one(10, "Type", "Type", Enum(&FLOW_TYPE)),
        one(11, "node_name", "nodeName", Text),
        many(37, "node_labels", "nodeLabels", Text),
        many(13, "source_names", "sourceNames", Text),
        many(14, "destination_names", "destinationNames", Text),
        one(15, "l7", "l7", Message(&LAYER7)),
        one(16, "reply", "reply", Bool),
        one(19, "event_type", "eventType", Message(&CILIUM_EVENT_TYPE)),
        one(20, "source_service", "sourceService", Message(&SERVICE)),
        one(21, "destination_service", "destinationService", Message(&SERVICE)),
        one(22, "traffic_direction", "trafficDirection", Enum(&TRAFFIC_DIRECTION)),
        one(23, "policy_match_type", "policyMatchType", Uint32),
        one(24, "trace_observation_point", "traceObservationPoint", Enum(&TRACE_OBSERVATION_POINT)),
        one(36, "trace_reason", "traceReason", Enum(&TRACE_REASON)),
        one(38, "file", "file", Message(&FILE_INFO)),
        one(40, "ip_trace_id", "ipTraceId", Message(&IP_TRACE_ID)),
        one(25, "drop_reason_desc", "dropReasonDesc", Enum(&DROP_REASON)),
        one(26, "is_reply", "isReply", BoolValue),
        one(27, "debug_capture_point", "debugCapturePoint", Enum(&DEBUG_CAPTURE_POINT)),
        one(28, "interface", "interface", Message(&NETWORK_INTERFACE)),
        one(29, "proxy_port", "proxyPort", Uint32),
        one(30, "trace_context", "traceContext", Message(&TRACE_CONTEXT)),
        one(31, "sock_xlate_point", "sockXlatePoint", Enum(&SOCKET_TRANSLATION_POINT)),
        one(32, "socket_cookie", "socketCookie", Uint64),
        one(33, "cgroup_id", "cgroupId", Uint64),
        one(100000, "Summary", "Summary", Text),
        one(150000, "extensions", "extensions", Any),
        many(21001, "egress_allowed_by", "egressAllowedBy", Message(&POLICY)),
        many(21002, "ingress_allowed_by", "ingressAllowedBy", Message(&POLICY)),
        many(21004, "egress_denied_by", "egressDeniedBy", Message(&POLICY)),
        many(21005, "ingress_denied_by", "ingressDeniedBy", Message(&POLICY)),
        many(21006, "policy_log", "policyLog", Text),
        one(21007, "aggregate", "aggregate", Message(&AGGREGATE)),
    ],
};
