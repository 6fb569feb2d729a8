//! `flow.Flow` and what is in it (Cilium 1.19.4), in declaration order.

use super::Kind::{Any, Bool, BoolValue, Enum, Int32, Message, Text, Timestamp, Uint32, Uint64};
use super::enums::*;
use super::{Descriptor, many, member, one};

/// `flow.Emitter`.
pub static EMITTER: Descriptor = Descriptor {
    name: "flow.Emitter",
    fields: &[one("name", "name", Text), one("version", "version", Text)],
};

/// `flow.Ethernet`.
pub static ETHERNET: Descriptor = Descriptor {
    name: "flow.Ethernet",
    fields: &[one("source", "source", Text), one("destination", "destination", Text)],
};

/// `flow.IP`.
pub static IP: Descriptor = Descriptor {
    name: "flow.IP",
    fields: &[
        one("source", "source", Text),
        one("source_xlated", "sourceXlated", Text),
        one("destination", "destination", Text),
        one("ipVersion", "ipVersion", Enum(&IP_VERSION)),
        one("encrypted", "encrypted", Bool),
    ],
};

/// `flow.TCPFlags`.
pub static TCP_FLAGS: Descriptor = Descriptor {
    name: "flow.TCPFlags",
    fields: &[
        one("FIN", "FIN", Bool),
        one("SYN", "SYN", Bool),
        one("RST", "RST", Bool),
        one("PSH", "PSH", Bool),
        one("ACK", "ACK", Bool),
        one("URG", "URG", Bool),
        one("ECE", "ECE", Bool),
        one("CWR", "CWR", Bool),
        one("NS", "NS", Bool),
    ],
};

/// `flow.TCP`.
pub static TCP: Descriptor = Descriptor {
    name: "flow.TCP",
    fields: &[
        one("source_port", "sourcePort", Uint32),
        one("destination_port", "destinationPort", Uint32),
        one("flags", "flags", Message(&TCP_FLAGS)),
    ],
};

/// `flow.UDP`.
pub static UDP: Descriptor = Descriptor {
    name: "flow.UDP",
    fields: &[one("source_port", "sourcePort", Uint32), one("destination_port", "destinationPort", Uint32)],
};

/// `flow.ICMPv4`.
pub static ICMPV4: Descriptor =
    Descriptor { name: "flow.ICMPv4", fields: &[one("type", "type", Uint32), one("code", "code", Uint32)] };

/// `flow.ICMPv6`.
pub static ICMPV6: Descriptor =
    Descriptor { name: "flow.ICMPv6", fields: &[one("type", "type", Uint32), one("code", "code", Uint32)] };

/// `flow.SCTP`.
pub static SCTP: Descriptor = Descriptor {
    name: "flow.SCTP",
    fields: &[one("source_port", "sourcePort", Uint32), one("destination_port", "destinationPort", Uint32)],
};

/// `flow.VRRP`.
pub static VRRP: Descriptor = Descriptor {
    name: "flow.VRRP",
    fields: &[one("type", "type", Uint32), one("vrid", "vrid", Uint32), one("priority", "priority", Uint32)],
};

/// `flow.IGMP`.
pub static IGMP: Descriptor = Descriptor {
    name: "flow.IGMP",
    fields: &[one("type", "type", Uint32), one("group_address", "groupAddress", Text)],
};

/// `flow.Layer4`.
pub static LAYER4: Descriptor = Descriptor {
    name: "flow.Layer4",
    fields: &[
        member("TCP", "TCP", Message(&TCP)),
        member("UDP", "UDP", Message(&UDP)),
        member("ICMPv4", "ICMPv4", Message(&ICMPV4)),
        member("ICMPv6", "ICMPv6", Message(&ICMPV6)),
        member("SCTP", "SCTP", Message(&SCTP)),
        member("VRRP", "VRRP", Message(&VRRP)),
        member("IGMP", "IGMP", Message(&IGMP)),
    ],
};

/// `flow.Tunnel`.
pub static TUNNEL: Descriptor = Descriptor {
    name: "flow.Tunnel",
    fields: &[
        one("protocol", "protocol", Enum(&TUNNEL_PROTOCOL)),
        one("IP", "IP", Message(&IP)),
        one("l4", "l4", Message(&LAYER4)),
        one("vni", "vni", Uint32),
    ],
};

/// `flow.Workload`.
pub static WORKLOAD: Descriptor =
    Descriptor { name: "flow.Workload", fields: &[one("name", "name", Text), one("kind", "kind", Text)] };

/// `flow.Endpoint`.
pub static ENDPOINT: Descriptor = Descriptor {
    name: "flow.Endpoint",
    fields: &[
        one("ID", "ID", Uint32),
        one("identity", "identity", Uint32),
        one("cluster_name", "clusterName", Text),
        one("namespace", "namespace", Text),
        many("labels", "labels", Text),
        one("pod_name", "podName", Text),
        many("workloads", "workloads", Message(&WORKLOAD)),
    ],
};

/// `flow.DNS`.
pub static DNS: Descriptor = Descriptor {
    name: "flow.DNS",
    fields: &[
        one("query", "query", Text),
        many("ips", "ips", Text),
        one("ttl", "ttl", Uint32),
        many("cnames", "cnames", Text),
        one("observation_source", "observationSource", Text),
        one("rcode", "rcode", Uint32),
        many("qtypes", "qtypes", Text),
        many("rrtypes", "rrtypes", Text),
    ],
};

/// `flow.HTTPHeader`.
pub static HTTP_HEADER: Descriptor =
    Descriptor { name: "flow.HTTPHeader", fields: &[one("key", "key", Text), one("value", "value", Text)] };

/// `flow.HTTP`.
pub static HTTP: Descriptor = Descriptor {
    name: "flow.HTTP",
    fields: &[
        one("code", "code", Uint32),
        one("method", "method", Text),
        one("url", "url", Text),
        one("protocol", "protocol", Text),
        many("headers", "headers", Message(&HTTP_HEADER)),
    ],
};

/// `flow.Kafka`.
pub static KAFKA: Descriptor = Descriptor {
    name: "flow.Kafka",
    fields: &[
        one("error_code", "errorCode", Int32),
        one("api_version", "apiVersion", Int32),
        one("api_key", "apiKey", Text),
        one("correlation_id", "correlationId", Int32),
        one("topic", "topic", Text),
    ],
};

/// `flow.Layer7`.
pub static LAYER7: Descriptor = Descriptor {
    name: "flow.Layer7",
    fields: &[
        one("type", "type", Enum(&L7_FLOW_TYPE)),
        one("latency_ns", "latencyNs", Uint64),
        member("dns", "dns", Message(&DNS)),
        member("http", "http", Message(&HTTP)),
        member("kafka", "kafka", Message(&KAFKA)),
    ],
};

/// `flow.CiliumEventType`.
pub static CILIUM_EVENT_TYPE: Descriptor = Descriptor {
    name: "flow.CiliumEventType",
    fields: &[one("type", "type", Int32), one("sub_type", "subType", Int32)],
};

/// `flow.Service`.
pub static SERVICE: Descriptor = Descriptor {
    name: "flow.Service",
    fields: &[one("name", "name", Text), one("namespace", "namespace", Text)],
};

/// `flow.FileInfo`.
pub static FILE_INFO: Descriptor =
    Descriptor { name: "flow.FileInfo", fields: &[one("name", "name", Text), one("line", "line", Uint32)] };

/// `flow.IPTraceID`.
pub static IP_TRACE_ID: Descriptor = Descriptor {
    name: "flow.IPTraceID",
    fields: &[one("trace_id", "traceId", Uint64), one("ip_option_type", "ipOptionType", Uint32)],
};

/// `flow.NetworkInterface`.
pub static NETWORK_INTERFACE: Descriptor = Descriptor {
    name: "flow.NetworkInterface",
    fields: &[one("index", "index", Uint32), one("name", "name", Text)],
};

/// `flow.TraceParent`.
pub static TRACE_PARENT: Descriptor =
    Descriptor { name: "flow.TraceParent", fields: &[one("trace_id", "traceId", Text)] };

/// `flow.TraceContext`.
pub static TRACE_CONTEXT: Descriptor =
    Descriptor { name: "flow.TraceContext", fields: &[one("parent", "parent", Message(&TRACE_PARENT))] };

/// `flow.Policy`.
pub static POLICY: Descriptor = Descriptor {
    name: "flow.Policy",
    fields: &[
        one("name", "name", Text),
        one("namespace", "namespace", Text),
        many("labels", "labels", Text),
        one("revision", "revision", Uint64),
        one("kind", "kind", Text),
    ],
};

/// `flow.Aggregate`.
pub static AGGREGATE: Descriptor = Descriptor {
    name: "flow.Aggregate",
    fields: &[
        one("ingress_flow_count", "ingressFlowCount", Uint32),
        one("egress_flow_count", "egressFlowCount", Uint32),
        one("unknown_direction_flow_count", "unknownDirectionFlowCount", Uint32),
    ],
};

/// `flow.Flow`.
pub static FLOW: Descriptor = Descriptor {
    name: "flow.Flow",
    fields: &[
        one("time", "time", Timestamp),
        one("uuid", "uuid", Text),
        one("emitter", "emitter", Message(&EMITTER)),
        one("verdict", "verdict", Enum(&VERDICT)),
        one("drop_reason", "dropReason", Uint32),
        one("auth_type", "authType", Enum(&AUTH_TYPE)),
        one("ethernet", "ethernet", Message(&ETHERNET)),
        one("IP", "IP", Message(&IP)),
        one("l4", "l4", Message(&LAYER4)),
        one("tunnel", "tunnel", Message(&TUNNEL)),
        one("source", "source", Message(&ENDPOINT)),
        one("destination", "destination", Message(&ENDPOINT)),
        one("Type", "Type", Enum(&FLOW_TYPE)),
        one("node_name", "nodeName", Text),
        many("node_labels", "nodeLabels", Text),
        many("source_names", "sourceNames", Text),
        many("destination_names", "destinationNames", Text),
        one("l7", "l7", Message(&LAYER7)),
        one("reply", "reply", Bool),
        one("event_type", "eventType", Message(&CILIUM_EVENT_TYPE)),
        one("source_service", "sourceService", Message(&SERVICE)),
        one("destination_service", "destinationService", Message(&SERVICE)),
        one("traffic_direction", "trafficDirection", Enum(&TRAFFIC_DIRECTION)),
        one("policy_match_type", "policyMatchType", Uint32),
        one("trace_observation_point", "traceObservationPoint", Enum(&TRACE_OBSERVATION_POINT)),
        one("trace_reason", "traceReason", Enum(&TRACE_REASON)),
        one("file", "file", Message(&FILE_INFO)),
        one("ip_trace_id", "ipTraceId", Message(&IP_TRACE_ID)),
        one("drop_reason_desc", "dropReasonDesc", Enum(&DROP_REASON)),
        one("is_reply", "isReply", BoolValue),
        one("debug_capture_point", "debugCapturePoint", Enum(&DEBUG_CAPTURE_POINT)),
        one("interface", "interface", Message(&NETWORK_INTERFACE)),
        one("proxy_port", "proxyPort", Uint32),
        one("trace_context", "traceContext", Message(&TRACE_CONTEXT)),
        one("sock_xlate_point", "sockXlatePoint", Enum(&SOCKET_TRANSLATION_POINT)),
        one("socket_cookie", "socketCookie", Uint64),
        one("cgroup_id", "cgroupId", Uint64),
        one("Summary", "Summary", Text),
        one("extensions", "extensions", Any),
        many("egress_allowed_by", "egressAllowedBy", Message(&POLICY)),
        many("ingress_allowed_by", "ingressAllowedBy", Message(&POLICY)),
        many("egress_denied_by", "egressDeniedBy", Message(&POLICY)),
        many("ingress_denied_by", "ingressDeniedBy", Message(&POLICY)),
        many("policy_log", "policyLog", Text),
        one("aggregate", "aggregate", Message(&AGGREGATE)),
    ],
};
