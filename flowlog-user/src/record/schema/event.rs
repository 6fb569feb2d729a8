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
        one("state_change", "stateChange", Enum(&NODE_STATE)),
        many("node_names", "nodeNames", Text),
        one("message", "message", Text),
    ],
};

/// `flow.LostEvent`.
pub static LOST_EVENT: Descriptor = Descriptor {
    name: "flow.LostEvent",
    fields: &[
        one("source", "source", Enum(&LOST_EVENT_SOURCE)),
        one("num_events_lost", "numEventsLost", Uint64),
        one("cpu", "cpu", Int32Value),
        one("first", "first", Timestamp),
        one("last", "last", Timestamp),
    ],
};

/// `flow.AgentEventUnknown`.
pub static AGENT_EVENT_UNKNOWN: Descriptor = Descriptor {
    name: "flow.AgentEventUnknown",
    fields: &[one("type", "type", Text), one("notification", "notification", Text)],
};

/// `flow.TimeNotification`.
pub static TIME_NOTIFICATION: Descriptor =
    Descriptor { name: "flow.TimeNotification", fields: &[one("time", "time", Timestamp)] };

/// `flow.PolicyUpdateNotification`.
pub static POLICY_UPDATE_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.PolicyUpdateNotification",
    fields: &[
        many("labels", "labels", Text),
        one("revision", "revision", Uint64),
        one("rule_count", "ruleCount", Int64),
    ],
};

/// `flow.EndpointRegenNotification`.
pub static ENDPOINT_REGEN_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.EndpointRegenNotification",
    fields: &[one("id", "id", Uint64), many("labels", "labels", Text), one("error", "error", Text)],
};

/// `flow.EndpointUpdateNotification`.
pub static ENDPOINT_UPDATE_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.EndpointUpdateNotification",
    fields: &[
        one("id", "id", Uint64),
        many("labels", "labels", Text),
        one("error", "error", Text),
        one("pod_name", "podName", Text),
        one("namespace", "namespace", Text),
    ],
};

/// `flow.IPCacheNotification`.
pub static IP_CACHE_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.IPCacheNotification",
    fields: &[
        one("cidr", "cidr", Text),
        one("identity", "identity", Uint32),
        one("old_identity", "oldIdentity", Uint32Value),
        one("host_ip", "hostIp", Text),
        one("old_host_ip", "oldHostIp", Text),
        one("encrypt_key", "encryptKey", Uint32),
        one("namespace", "namespace", Text),
        one("pod_name", "podName", Text),
    ],
};

/// `flow.ServiceUpsertNotificationAddr`.
pub static SERVICE_UPSERT_NOTIFICATION_ADDR: Descriptor = Descriptor {
    name: "flow.ServiceUpsertNotificationAddr",
    fields: &[one("ip", "ip", Text), one("port", "port", Uint32)],
};

/// `flow.ServiceUpsertNotification`.
pub static SERVICE_UPSERT_NOTIFICATION: Descriptor = Descriptor {
    name: "flow.ServiceUpsertNotification",
    fields: &[
        one("id", "id", Uint32),
        one("frontend_address", "frontendAddress", Message(&SERVICE_UPSERT_NOTIFICATION_ADDR)),
        many("backend_addresses", "backendAddresses", Message(&SERVICE_UPSERT_NOTIFICATION_ADDR)),
        one("type", "type", Text),
        one("traffic_policy", "trafficPolicy", Text),
        one("name", "name", Text),
        one("namespace", "namespace", Text),
        one("ext_traffic_policy", "extTrafficPolicy", Text),
        one("int_traffic_policy", "intTrafficPolicy", Text),
    ],
};

/// `flow.ServiceDeleteNotification`.
pub static SERVICE_DELETE_NOTIFICATION: Descriptor =
    Descriptor { name: "flow.ServiceDeleteNotification", fields: &[one("id", "id", Uint32)] };

/// `flow.AgentEvent`.
pub static AGENT_EVENT: Descriptor = Descriptor {
    name: "flow.AgentEvent",
    fields: &[
        one("type", "type", Enum(&AGENT_EVENT_TYPE)),
        member("unknown", "unknown", Message(&AGENT_EVENT_UNKNOWN)),
        member("agent_start", "agentStart", Message(&TIME_NOTIFICATION)),
        member("policy_update", "policyUpdate", Message(&POLICY_UPDATE_NOTIFICATION)),
        member("endpoint_regenerate", "endpointRegenerate", Message(&ENDPOINT_REGEN_NOTIFICATION)),
        member("endpoint_update", "endpointUpdate", Message(&ENDPOINT_UPDATE_NOTIFICATION)),
        member("ipcache_update", "ipcacheUpdate", Message(&IP_CACHE_NOTIFICATION)),
        member("service_upsert", "serviceUpsert", Message(&SERVICE_UPSERT_NOTIFICATION)),
        member("service_delete", "serviceDelete", Message(&SERVICE_DELETE_NOTIFICATION)),
    ],
};

/// `flow.DebugEvent`.
pub static DEBUG_EVENT: Descriptor = Descriptor {
    name: "flow.DebugEvent",
    fields: &[
        one("type", "type", Enum(&DEBUG_EVENT_TYPE)),
        one("source", "source", Message(&ENDPOINT)),
        one("hash", "hash", Uint32Value),
        one("arg1", "arg1", Uint32Value),
        one("arg2", "arg2", Uint32Value),
        one("arg3", "arg3", Uint32Value),
        one("message", "message", Text),
        one("cpu", "cpu", Int32Value),
    ],
};

/// `observer.ExportEvent`.
pub static EXPORT_EVENT: Descriptor = Descriptor {
    name: "observer.ExportEvent",
    fields: &[
        member("flow", "flow", Message(&FLOW)),
        member("node_status", "nodeStatus", Message(&NODE_STATUS_EVENT)),
        member("lost_events", "lostEvents", Message(&LOST_EVENT)),
        member("agent_event", "agentEvent", Message(&AGENT_EVENT)),
        member("debug_event", "debugEvent", Message(&DEBUG_EVENT)),
        one("node_name", "nodeName", Text),
        one("time", "time", Timestamp),
    ],
};
