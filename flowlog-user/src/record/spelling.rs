//! How Hubble's client spells numbers (Cilium 1.19.4): facts of its command line and of what it prints.

/// Reserved identities; the first one is that of nobody.
pub const RESERVED_IDENTITIES: [(u32, &str); 12] = [
    (0, "unknown"),
    (1, "host"),
    (2, "world"),
    (3, "unmanaged"),
    (4, "health"),
    (5, "init"),
    (6, "remote-node"),
    (7, "kube-apiserver"),
    (8, "ingress"),
    (9, "world-ipv4"),
    (10, "world-ipv6"),
    (11, "overlay-to-encrypt"),
];

/// Types of events.
pub const EVENT_TYPES: [(u32, &str); 8] = [
    (1, "drop"),
    (2, "debug"),
    (3, "capture"),
    (4, "trace"),
    (5, "policy-verdict"),
    (7, "trace-sock"),
    (129, "l7"),
    (130, "agent"),
];

/// Observation points: subtypes of `trace`.
pub const TRACE_POINTS: [(u32, &str); 14] = [
    (0, "to-endpoint"),
    (1, "to-proxy"),
    (2, "to-host"),
    (3, "to-stack"),
    (4, "to-overlay"),
    (5, "from-endpoint"),
    (6, "from-proxy"),
    (7, "from-host"),
    (8, "from-stack"),
    (9, "from-overlay"),
    (10, "from-network"),
    (11, "to-network"),
    (12, "from-crypto"),
    (13, "to-crypto"),
];

/// Agent events: subtypes of `agent`.
pub const AGENT_EVENTS: [(u32, &str); 11] = [
    (0, "unspecified"),
    (1, "message"),
    (2, "agent-started"),
    (3, "policy-updated"),
    (4, "policy-deleted"),
    (5, "endpoint-regenerate-success"),
    (6, "endpoint-regenerate-failure"),
    (7, "endpoint-created"),
    (8, "endpoint-deleted"),
    (9, "ipcache-upserted"),
    (10, "ipcache-deleted"),
];
