//! The flags by name, as `hubble observe` has them.

/// A filter flag.
#[derive(Debug)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) short: Option<char>,
    /// What it is when it stands without a value; where there is none, a value must follow.
    pub(super) alone: Option<&'static str>,
    /// What the value is called in the help.
    pub(super) value: &'static str,
    pub(super) help: &'static str,
}

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, short: None, alone: None, value, help }
}

const fn short(name: &'static str, short: char, value: &'static str, help: &'static str) -> Flag {
    Flag { name, short: Some(short), alone: None, value, help }
}

const fn alone(name: &'static str, short: Option<char>, alone: &'static str, help: &'static str) -> Flag {
    Flag { name, short, alone: Some(alone), value: "BOOL", help }
}

/// Turns the next flag round.
pub(super) const NOT: &str = "not";

/// All of them, in the order of the help.
pub(super) const FLAGS: &[Flag] = &[
    alone(NOT, None, "true", "Leave out what the next flag takes: `--not --from-ip 2.2.2.2`"),
    flag("ip", "IP|CIDR", "From or to this address or prefix"),
    flag("from-ip", "IP|CIDR", "From this address or prefix"),
    flag("to-ip", "IP|CIDR", "To this address or prefix"),
    flag("snat-ip", "IP|CIDR", "Translated to this source address or prefix"),
    flag("port", "PORT", "From or to this port"),
    flag("from-port", "PORT", "From this port"),
    flag("to-port", "PORT", "To this port"),
    flag("protocol", "NAME", "tcp, udp, sctp, icmp, icmpv4, icmpv6, vrrp, igmp, dns, http or kafka"),
    flag("tcp-flags", "FLAGS", "With all of these TCP flags, e.g. `syn,ack`"),
    flag("verdict", "VERDICT", "FORWARDED, DROPPED, AUDIT, REDIRECTED, ERROR, TRACED or TRANSLATED"),
    flag("drop-reason-desc", "REASON", "Dropped for this reason, e.g. POLICY_DENIED"),
    flag("interface", "NAME", "Seen at this interface"),
    flag("traffic-direction", "DIRECTION", "ingress or egress"),
    alone("ipv4", Some('4'), "v4", "IPv4 only"),
    alone("ipv6", Some('6'), "v6", "IPv6 only"),
    flag("ip-version", "VERSION", "v4, v6 or none"),
    short("label", 'l', "SELECTOR", "From or to an endpoint with these labels, e.g. `reserved:world`"),
    flag("from-label", "SELECTOR", "From an endpoint with these labels"),
    flag("to-label", "SELECTOR", "To an endpoint with these labels"),
    flag(
        "identity",
        "ID",
        "From or to this security identity: a number, or a reserved one's name such as `world`",
    ),
    flag("from-identity", "ID", "From this security identity"),
    flag("to-identity", "ID", "To this security identity"),
    flag("pod", "[NAMESPACE/]POD", "From or to pods whose names begin so; without namespace in `default`"),
    flag("from-pod", "[NAMESPACE/]POD", "From pods whose names begin so"),
    flag("to-pod", "[NAMESPACE/]POD", "To pods whose names begin so"),
    short("namespace", 'n', "NAMESPACE", "From or to this namespace"),
    flag("from-namespace", "NAMESPACE", "From this namespace"),
    flag("to-namespace", "NAMESPACE", "To this namespace"),
    alone("all-namespaces", Some('A'), "true", "From or to any namespace"),
    alone("from-all-namespaces", None, "true", "From any namespace"),
    alone("to-all-namespaces", None, "true", "To any namespace"),
    flag("service", "[NAMESPACE/]SERVICE", "From or to services whose names begin so"),
    flag("from-service", "[NAMESPACE/]SERVICE", "From services whose names begin so"),
    flag("to-service", "[NAMESPACE/]SERVICE", "To services whose names begin so"),
    flag("workload", "[KIND/]NAME", "From or to this workload"),
    flag("from-workload", "[KIND/]NAME", "From this workload"),
    flag("to-workload", "[KIND/]NAME", "To this workload"),
    flag("fqdn", "PATTERN", "From or to a name, e.g. `*.example.com`"),
    flag("from-fqdn", "PATTERN", "From a name"),
    flag("to-fqdn", "PATTERN", "To a name"),
    flag("cluster", "NAME", "From or to endpoints of this cluster"),
    flag("from-cluster", "NAME", "From endpoints of this cluster"),
    flag("to-cluster", "NAME", "To endpoints of this cluster"),
    flag("node-name", "PATTERN", "Seen by these nodes, e.g. `k8s*` or `east/*.example.com`"),
    flag("node-label", "SELECTOR", "Seen by nodes with these labels"),
    short("type", 't', "TYPE[:SUBTYPE]", "Events of this type, e.g. `trace:to-endpoint`, `drop` or a number"),
    flag("http-status", "CODE", "HTTP status: `404`, or a prefix such as `5+`"),
    flag("http-method", "METHOD", "HTTP method"),
    flag("http-path", "REGEX", "HTTP path"),
    flag("http-url", "REGEX", "HTTP URL"),
    flag("http-header", "NAME:VALUE", "HTTP header"),
    flag("trace-id", "ID", "This trace"),
    flag("ip-trace-id", "ID", "This IP trace"),
    flag("uuid", "UUID", "This very record"),
    alone("encrypted", None, "true", "Encrypted on the wire"),
    alone("unencrypted", None, "true", "Not encrypted on the wire"),
    flag("cel-expression", "CEL", "Records for which this CEL expression over `_flow` is true"),
];

/// Flags that cannot stand together, where both are of one list.
pub(super) const CONFLICTS: &[&[&str]] = &[
    &[
        "from-fqdn",
        "from-ip",
        "ip",
        "fqdn",
        "from-namespace",
        "namespace",
        "from-all-namespaces",
        "all-namespaces",
    ],
    &["from-fqdn", "from-ip", "ip", "fqdn", "from-pod", "pod"],
    &["to-fqdn", "to-ip", "ip", "fqdn", "to-namespace", "namespace", "to-all-namespaces", "all-namespaces"],
    &["to-fqdn", "to-ip", "ip", "fqdn", "to-pod", "pod"],
    &["to-pod", "namespace", "all-namespaces"],
    &["from-pod", "namespace", "all-namespaces"],
    &["to-service", "namespace", "all-namespaces"],
    &["from-service", "namespace", "all-namespaces"],
    &["label", "from-label"],
    &["label", "to-label"],
    &["service", "from-service"],
    &["service", "to-service"],
    &["port", "to-port"],
    &["port", "from-port"],
    &["identity", "to-identity"],
    &["identity", "from-identity"],
    &["workload", "to-workload"],
    &["workload", "from-workload"],
    &["encrypted", "unencrypted"],
];
