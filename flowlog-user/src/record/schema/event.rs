//! `observer.ExportEvent` and what else than a flow it may hold (Cilium 1.19.4), in declaration order.

use super::Kind::{Enum, Int32Value, Int64, Message, Text, Timestamp, Uint32, Uint32Value, Uint64};
use super::debug::DEBUG_EVENT_TYPE;
use super::enums::*;
use super::flow::*;
use super::{Descriptor, many, member, one};

/// `relay.NodeStatusEvent`.
pub static NODE_STATUS_EVENT: Descriptor = Descriptor {
    name: "relay.NodeStatusEvent",
    fields: &[
        one(1, "state_change", "stateChange", Enum(&NODE_STATE)),
        many(2, "node_names", "nodeNames", Text),
        one(3, "message", "message", Text),
    ],
};

/// `flow.LostEvent`.
pub static LOST_EVENT: Descriptor = Descriptor {
    name: "flow.LostEvent",
    fields: &[
        one(1, "source", "source", Enum(&LOST_EVENT_SOURCE)),
        one(2, "num_events_lost", "numEventsLost", Uint64),
        one(3, "cpu", "cpu", Int32Value),
        one(4, "first", "first", Timestamp),
        one(5, "last", "last", Timestamp),
    ],
};

/// `flow.AgentEventUnknown`.
pub static AGENT_EVENT_UNKNOWN: Descriptor = Descriptor {
    name: "flow.AgentEventUnknown",
    fields: &[one(1, "type", "type", Text), one(2, "notification", "notification", Text)],
};

/// `flow.TimeNotification`.
pub static TIME_NOTIFICATION: Descriptor =
    Descriptor { name: "flow.TimeNotification", fields: &[one(1, "time", "time", Timestamp)] };

/// `flow.PolicyUpdateNotification`.
pub static POLICY_UPDATE_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.PolicyUpdateNotification",
    fields: &[
        many(1, "labels", "labels", Text),
        one(2, "revision", "revision", Uint64),
        one(3, "rule_count", "ruleCount", Int64),
    ],
};

/// `flow.EndpointRegenNotification`.
pub static ENDPOINT_REGEN_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.EndpointRegenNotification",
    fields: &[one(1, "id", "id", Uint64), many(2, "labels", "labels", Text), one(3, "error", "error", Text)],
};

/// `flow.EndpointUpdateNotification`.
pub static ENDPOINT_UPDATE_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.EndpointUpdateNotification",
    fields: &[
        one(1, "id", "id", Uint64),
        many(2, "labels", "labels", Text),
        one(3, "error", "error", Text),
        one(4, "pod_name", "podName", Text),
        one(5, "namespace", "namespace", Text),
    ],
};

/// `flow.IPCacheNotification`.
pub static IP_CACHE_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.IPCacheNotification",
    fields: &[
        one(1, "cidr", "cidr", Text),
        one(2, "identity", "identity", Uint32),
        one(3, "old_identity", "oldIdentity", Uint32Value),
        one(4, "host_ip", "hostIp", Text),
        one(5, "old_host_ip", "oldHostIp", Text),
        one(6, "encrypt_key", "encryptKey", Uint32),
        one(7, "namespace", "namespace", Text),
        one(8, "pod_name", "podName", Text),
    ],
};

/// `flow.ServiceUpsertNotificationAddr`.
pub static SERVICE_UPSERT_NOTIFICATION_ADDR: Descriptor = Descriptor {
    name: "flow.ServiceUpsertNotificationAddr",
    fields: &[one(1, "ip", "ip", Text), one(2, "port", "port", Uint32)],
};

/// `flow.ServiceUpsertNotification`.
pub static SERVICE_UPSERT_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.ServiceUpsertNotification",
    fields: &[
        one(1, "id", "id", Uint32),
        one(2, "frontend_address", "frontendAddress", Message(&SERVICE_UPSERT_NOTIFICATION_ADDR)),
        many(3, "backend_addresses", "backendAddresses", Message(&SERVICE_UPSERT_NOTIFICATION_ADDR)),
        one(4, "type", "type", Text),
        one(5, "traffic_policy", "trafficPolicy", Text),
        one(6, "name", "name", Text),
        one(7, "namespace", "namespace", Text),
        one(8, "ext_traffic_policy", "extTrafficPolicy", Text),
        one(9, "int_traffic_policy", "intTrafficPolicy", Text),
    ],
};

/// `flow.ServiceDeleteNotification`.
pub static SERVICE_DELETE_NOTIFICATION: Descriptor =
    Descriptor { name: "flow.ServiceDeleteNotification", fields: &[one(1, "id", "id", Uint32)] };

/// `flow.AgentEvent`.
pub static AGENT_EVENT: Descriptor = Descriptor {
    name: "flow.AgentEvent",
    fields: &[
        one(1, "type", "type", Enum(&AGENT_EVENT_TYPE)),
        member(100, "unknown", "unknown", Message(&AGENT_EVENT_UNKNOWN)),
        member(101, "agent_start", "agentStart", Message(&TIME_NOTIFICATION)),
        member(102, "policy_update", "policyUpdate", Message(&POLICY_UPDATE_NOTIFICATION)),
        member(103, "endpoint_regenerate", "endpointRegenerate", Message(&ENDPOINT_REGEN_NOTIFICATION)),
        member(104, "endpoint_update", "endpointUpdate", Message(&ENDPOINT_UPDATE_NOTIFICATION)),
        member(105, "ipcache_update", "ipcacheUpdate", Message(&IP_CACHE_NOTIFICATION)),
        member(106, "service_upsert", "serviceUpsert", Message(&SERVICE_UPSERT_NOTIFICATION)),
        member(107, "service_delete", "serviceDelete", Message(&SERVICE_DELETE_NOTIFICATION)),
    ],
};

/// `flow.DebugEvent`.
pub static DEBUG_EVENT: Descriptor = Descriptor {
    name: "flow.DebugEvent",
    fields: &[
        one(1, "type", "type", Enum(&DEBUG_EVENT_TYPE)),
        one(2, "source", "source", Message(&ENDPOINT)),
        one(3, "hash", "hash", Uint32Value),
        one(4, "arg1", "arg1", Uint32Value),
        one(5, "arg2", "arg2", Uint32Value),
        one(6, "arg3", "arg3", Uint32Value),
        one(7, "message", "message", Text),
        one(8, "cpu", "cpu", Int32Value),
    ],
};

/// `observer.ExportEvent`.
pub static EXPORT_EVENT: Descriptor = Descriptor {
    name: "observer.ExportEvent",
    fields: &[
        member(1, "flow", "flow", Message(&FLOW)),
        member(2, "node_status", "nodeStatus", Message(&NODE_STATUS_EVENT)),
        member(3, "lost_events", "lostEvents", Message(&LOST_EVENT)),
        member(4, "agent_event", "agentEvent", Message(&AGENT_EVENT)),
        member(5, "debug_event", "debugEvent", Message(&DEBUG_EVENT)),
        one(1000, "node_name", "nodeName", Text),
        one(1001, "time", "time", Timestamp),
    ],
};
