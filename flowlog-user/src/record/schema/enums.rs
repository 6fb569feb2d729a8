//! Names and numbers of Hubble's enums (Cilium 1.19.4).

use super::Enumeration;

/// `flow.IPVersion`.
pub static IP_VERSION: Enumeration =
    Enumeration { name: "flow.IPVersion", values: &[("IP_NOT_USED", 0), ("IPv4", 1), ("IPv6", 2)] };

/// `flow.Tunnel.Protocol`.
pub static TUNNEL_PROTOCOL: Enumeration =
    Enumeration { name: "flow.Tunnel.Protocol", values: &[("UNKNOWN", 0), ("VXLAN", 1), ("GENEVE", 2)] };

/// `flow.L7FlowType`.
pub static L7_FLOW_TYPE: Enumeration = Enumeration {
    name: "flow.L7FlowType",
    values: &[("UNKNOWN_L7_TYPE", 0), ("REQUEST", 1), ("RESPONSE", 2), ("SAMPLE", 3)],
};

/// `flow.Verdict`.
pub static VERDICT: Enumeration = Enumeration {
    name: "flow.Verdict",
    values: &[
        ("VERDICT_UNKNOWN", 0),
        ("FORWARDED", 1),
        ("DROPPED", 2),
        ("ERROR", 3),
        ("AUDIT", 4),
        ("REDIRECTED", 5),
        ("TRACED", 6),
        ("TRANSLATED", 7),
    ],
};

/// `flow.AuthType`.
pub static AUTH_TYPE: Enumeration =
    Enumeration { name: "flow.AuthType", values: &[("DISABLED", 0), ("SPIRE", 1), ("TEST_ALWAYS_FAIL", 2)] };

/// `flow.FlowType`.
pub static FLOW_TYPE: Enumeration = Enumeration {
    name: "flow.FlowType",
    values: &[("UNKNOWN_TYPE", 0), ("L3_L4", 1), ("L7", 2), ("SOCK", 3)],
};

/// `flow.TrafficDirection`.
pub static TRAFFIC_DIRECTION: Enumeration = Enumeration {
    name: "flow.TrafficDirection",
    values: &[("TRAFFIC_DIRECTION_UNKNOWN", 0), ("INGRESS", 1), ("EGRESS", 2)],
};

/// `flow.TraceObservationPoint`.
pub static TRACE_OBSERVATION_POINT: Enumeration = Enumeration {
    name: "flow.TraceObservationPoint",
    values: &[
        ("UNKNOWN_POINT", 0),
        ("TO_PROXY", 1),
        ("TO_HOST", 2),
        ("TO_STACK", 3),
        ("TO_OVERLAY", 4),
        ("TO_ENDPOINT", 101),
        ("FROM_ENDPOINT", 5),
        ("FROM_PROXY", 6),
        ("FROM_HOST", 7),
        ("FROM_STACK", 8),
        ("FROM_OVERLAY", 9),
        ("FROM_NETWORK", 10),
        ("TO_NETWORK", 11),
        ("FROM_CRYPTO", 12),
        ("TO_CRYPTO", 13),
    ],
};

/// `flow.TraceReason`.
pub static TRACE_REASON: Enumeration = Enumeration {
    name: "flow.TraceReason",
    values: &[
        ("TRACE_REASON_UNKNOWN", 0),
        ("NEW", 1),
        ("ESTABLISHED", 2),
        ("REPLY", 3),
        ("RELATED", 4),
        ("REOPENED", 5),
        ("SRV6_ENCAP", 6),
        ("SRV6_DECAP", 7),
        ("ENCRYPT_OVERLAY", 8),
    ],
};

/// `flow.DropReason`.
pub static DROP_REASON: Enumeration = Enumeration {
    name: "flow.DropReason",
    values: &[
        ("DROP_REASON_UNKNOWN", 0),
        ("INVALID_SOURCE_MAC", 130),
        ("INVALID_DESTINATION_MAC", 131),
        ("INVALID_SOURCE_IP", 132),
        ("POLICY_DENIED", 133),
        ("INVALID_PACKET_DROPPED", 134),
        ("CT_TRUNCATED_OR_INVALID_HEADER", 135),
        ("CT_MISSING_TCP_ACK_FLAG", 136),
        ("CT_UNKNOWN_L4_PROTOCOL", 137),
        ("CT_CANNOT_CREATE_ENTRY_FROM_PACKET", 138),
        ("UNSUPPORTED_L3_PROTOCOL", 139),
        ("MISSED_TAIL_CALL", 140),
        ("ERROR_WRITING_TO_PACKET", 141),
        ("UNKNOWN_L4_PROTOCOL", 142),
        ("UNKNOWN_ICMPV4_CODE", 143),
        ("UNKNOWN_ICMPV4_TYPE", 144),
        ("UNKNOWN_ICMPV6_CODE", 145),
        ("UNKNOWN_ICMPV6_TYPE", 146),
        ("ERROR_RETRIEVING_TUNNEL_KEY", 147),
        ("ERROR_RETRIEVING_TUNNEL_OPTIONS", 148),
        ("INVALID_GENEVE_OPTION", 149),
        ("UNKNOWN_L3_TARGET_ADDRESS", 150),
        ("STALE_OR_UNROUTABLE_IP", 151),
        ("NO_MATCHING_LOCAL_CONTAINER_FOUND", 152),
        ("ERROR_WHILE_CORRECTING_L3_CHECKSUM", 153),
        ("ERROR_WHILE_CORRECTING_L4_CHECKSUM", 154),
        ("CT_MAP_INSERTION_FAILED", 155),
        ("INVALID_IPV6_EXTENSION_HEADER", 156),
        ("IP_FRAGMENTATION_NOT_SUPPORTED", 157),
        ("SERVICE_BACKEND_NOT_FOUND", 158),
        ("NO_TUNNEL_OR_ENCAPSULATION_ENDPOINT", 160),
        ("FAILED_TO_INSERT_INTO_PROXYMAP", 161),
        ("REACHED_EDT_RATE_LIMITING_DROP_HORIZON", 162),
        ("UNKNOWN_CONNECTION_TRACKING_STATE", 163),
        ("LOCAL_HOST_IS_UNREACHABLE", 164),
        ("NO_CONFIGURATION_AVAILABLE_TO_PERFORM_POLICY_DECISION", 165),
        ("UNSUPPORTED_L2_PROTOCOL", 166),
        ("NO_MAPPING_FOR_NAT_MASQUERADE", 167),
        ("UNSUPPORTED_PROTOCOL_FOR_NAT_MASQUERADE", 168),
        ("FIB_LOOKUP_FAILED", 169),
        ("ENCAPSULATION_TRAFFIC_IS_PROHIBITED", 170),
        ("INVALID_IDENTITY", 171),
        ("UNKNOWN_SENDER", 172),
        ("NAT_NOT_NEEDED", 173),
        ("IS_A_CLUSTERIP", 174),
        ("FIRST_LOGICAL_DATAGRAM_FRAGMENT_NOT_FOUND", 175),
        ("FORBIDDEN_ICMPV6_MESSAGE", 176),
        ("DENIED_BY_LB_SRC_RANGE_CHECK", 177),
        ("SOCKET_LOOKUP_FAILED", 178),
        ("SOCKET_ASSIGN_FAILED", 179),
        ("PROXY_REDIRECTION_NOT_SUPPORTED_FOR_PROTOCOL", 180),
        ("POLICY_DENY", 181),
        ("VLAN_FILTERED", 182),
        ("INVALID_VNI", 183),
        ("INVALID_TC_BUFFER", 184),
        ("NO_SID", 185),
        ("MISSING_SRV6_STATE", 186),
        ("NAT46", 187),
        ("NAT64", 188),
        ("AUTH_REQUIRED", 189),
        ("CT_NO_MAP_FOUND", 190),
        ("SNAT_NO_MAP_FOUND", 191),
        ("INVALID_CLUSTER_ID", 192),
        ("UNSUPPORTED_PROTOCOL_FOR_DSR_ENCAP", 193),
        ("NO_EGRESS_GATEWAY", 194),
        ("UNENCRYPTED_TRAFFIC", 195),
        ("TTL_EXCEEDED", 196),
        ("NO_NODE_ID", 197),
        ("DROP_RATE_LIMITED", 198),
        ("IGMP_HANDLED", 199),
        ("IGMP_SUBSCRIBED", 200),
        ("MULTICAST_HANDLED", 201),
        ("DROP_HOST_NOT_READY", 202),
        ("DROP_EP_NOT_READY", 203),
        ("DROP_NO_EGRESS_IP", 204),
        ("DROP_PUNT_PROXY", 205),
    ],
};

/// `flow.DebugCapturePoint`.
pub static DEBUG_CAPTURE_POINT: Enumeration = Enumeration {
    name: "flow.DebugCapturePoint",
    values: &[
        ("DBG_CAPTURE_POINT_UNKNOWN", 0),
        ("DBG_CAPTURE_DELIVERY", 4),
        ("DBG_CAPTURE_FROM_LB", 5),
        ("DBG_CAPTURE_AFTER_V46", 6),
        ("DBG_CAPTURE_AFTER_V64", 7),
        ("DBG_CAPTURE_PROXY_PRE", 8),
        ("DBG_CAPTURE_PROXY_POST", 9),
        ("DBG_CAPTURE_SNAT_PRE", 10),
        ("DBG_CAPTURE_SNAT_POST", 11),
    ],
};

/// `flow.SocketTranslationPoint`.
pub static SOCKET_TRANSLATION_POINT: Enumeration = Enumeration {
    name: "flow.SocketTranslationPoint",
    values: &[
        ("SOCK_XLATE_POINT_UNKNOWN", 0),
        ("SOCK_XLATE_POINT_PRE_DIRECTION_FWD", 1),
        ("SOCK_XLATE_POINT_POST_DIRECTION_FWD", 2),
        ("SOCK_XLATE_POINT_PRE_DIRECTION_REV", 3),
        ("SOCK_XLATE_POINT_POST_DIRECTION_REV", 4),
    ],
};

/// `relay.NodeState`.
pub static NODE_STATE: Enumeration = Enumeration {
    name: "relay.NodeState",
    values: &[
        ("UNKNOWN_NODE_STATE", 0),
        ("NODE_CONNECTED", 1),
        ("NODE_UNAVAILABLE", 2),
        ("NODE_GONE", 3),
        ("NODE_ERROR", 4),
    ],
};

/// `flow.LostEventSource`.
pub static LOST_EVENT_SOURCE: Enumeration = Enumeration {
    name: "flow.LostEventSource",
    values: &[
        ("UNKNOWN_LOST_EVENT_SOURCE", 0),
        ("PERF_EVENT_RING_BUFFER", 1),
        ("OBSERVER_EVENTS_QUEUE", 2),
        ("HUBBLE_RING_BUFFER", 3),
    ],
};

/// `flow.AgentEventType`.
pub static AGENT_EVENT_TYPE: Enumeration = Enumeration {
    name: "flow.AgentEventType",
    values: &[
        ("AGENT_EVENT_UNKNOWN", 0),
        ("AGENT_STARTED", 2),
        ("POLICY_UPDATED", 3),
        ("POLICY_DELETED", 4),
        ("ENDPOINT_REGENERATE_SUCCESS", 5),
        ("ENDPOINT_REGENERATE_FAILURE", 6),
        ("ENDPOINT_CREATED", 7),
        ("ENDPOINT_DELETED", 8),
        ("IPCACHE_UPSERTED", 9),
        ("IPCACHE_DELETED", 10),
        ("SERVICE_UPSERTED", 11),
        ("SERVICE_DELETED", 12),
    ],
};
