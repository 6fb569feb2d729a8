use super::address::Addresses;
use super::enumeration::{IP_VERSION, Numbers, TRAFFIC_DIRECTION, VERDICT};
use super::event_type::EventTypes;
use super::identity::Identities;
use super::interface::Interfaces;
use super::json::{self, Name};
use super::matcher::Matcher;
use super::port::Ports;
use super::protocol::Protocols;
use super::reply::Replies;
use super::tcp_flags::TcpFlags;
use crate::record::{Flow, Node};
use crate::tree::{Entry, Problems, Tree, Value};

/// The filters of one task, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// One of these must match; an empty list lets everything through.
    pub include: Vec<FlowFilter>,
    /// None of these may match.
    pub exclude: Vec<FlowFilter>,
}

/// One filter: all of its fields must match; without fields it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter(pub Vec<Matcher>);

/// Every field of Hubble's `FlowFilter` (Cilium 1.19.4): proto name, JSON name.
const FIELDS: &[Name] = &[
    ("uuid", "uuid"),
    ("source_ip", "sourceIp"),
    ("source_ip_xlated", "sourceIpXlated"),
    ("source_pod", "sourcePod"),
    ("source_fqdn", "sourceFqdn"),
    ("source_label", "sourceLabel"),
    ("source_service", "sourceService"),
    ("source_workload", "sourceWorkload"),
    ("source_cluster_name", "sourceClusterName"),
    ("destination_ip", "destinationIp"),
    ("destination_pod", "destinationPod"),
    ("destination_fqdn", "destinationFqdn"),
    ("destination_label", "destinationLabel"),
    ("destination_service", "destinationService"),
    ("destination_workload", "destinationWorkload"),
    ("destination_cluster_name", "destinationClusterName"),
    ("traffic_direction", "trafficDirection"),
    ("verdict", "verdict"),
    ("drop_reason_desc", "dropReasonDesc"),
    ("interface", "interface"),
    ("event_type", "eventType"),
    ("http_status_code", "httpStatusCode"),
    ("protocol", "protocol"),
    ("source_port", "sourcePort"),
    ("destination_port", "destinationPort"),
    ("reply", "reply"),
    ("dns_query", "dnsQuery"),
    ("source_identity", "sourceIdentity"),
    ("destination_identity", "destinationIdentity"),
    ("http_method", "httpMethod"),
    ("http_path", "httpPath"),
    ("http_url", "httpUrl"),
    ("http_header", "httpHeader"),
    ("tcp_flags", "tcpFlags"),
    ("node_name", "nodeName"),
    ("node_labels", "nodeLabels"),
    ("ip_version", "ipVersion"),
    ("trace_id", "traceId"),
    ("ip_trace_id", "ipTraceId"),
    ("encrypted", "encrypted"),
    ("experimental", "experimental"),
];

impl Spec {
    /// Reads `includeFilters` and `excludeFilters`. What is wrong is noted and left out, so the spec is of use only
    /// when no error was noted.
    pub fn read(include: Option<&Tree>, exclude: Option<&Tree>, problems: &mut Problems) -> Self {
        let spec = Self { include: filters(include, problems), exclude: filters(exclude, problems) };
        if let Some(exclude) = exclude
            && spec.exclude.iter().any(|filter| filter.0.is_empty())
        {
            problems.warning(
                &exclude.place,
                "an empty filter here matches everything, so nothing is ever written",
            );
        }
        spec
    }
}

impl FlowFilter {
    /// Whether every field matches.
    #[must_use]
    pub fn matches(&self, flow: &Flow, node: &Node) -> bool {
        self.0.iter().all(|matcher| matcher.matches(flow, node))
    }
}

fn filters(list: Option<&Tree>, problems: &mut Problems) -> Vec<FlowFilter> {
    list.and_then(|list| json::list(list, problems, |item, problems| Some(filter(item, problems))))
        .unwrap_or_default()
}

fn filter(tree: &Tree, problems: &mut Problems) -> FlowFilter {
    if let Value::Null = tree.value {
        return FlowFilter::default();
    }
    let fields = json::message(tree, "filter field", FIELDS, problems);
    FlowFilter(fields.iter().filter_map(|(name, entry)| matcher(name, entry, problems)).collect())
}

/// Reads one field; `None` where it is empty (or wrong).
fn matcher(name: &str, entry: &Entry, problems: &mut Problems) -> Option<Matcher> {
    let tree = &entry.value;
    match name {
        "source_ip" => Addresses::read(tree, problems).map(Matcher::SourceIp),
        "destination_ip" => Addresses::read(tree, problems).map(Matcher::DestinationIp),
        "source_port" => Ports::read(tree, problems).map(Matcher::SourcePort),
        "destination_port" => Ports::read(tree, problems).map(Matcher::DestinationPort),
        "protocol" => Protocols::read(tree, problems).map(Matcher::Protocol),
        "tcp_flags" => TcpFlags::read(tree, problems).map(Matcher::TcpFlags),
        "source_identity" => Identities::read(tree, problems).map(Matcher::SourceIdentity),
        "destination_identity" => Identities::read(tree, problems).map(Matcher::DestinationIdentity),
        "traffic_direction" => {
            Numbers::read(tree, TRAFFIC_DIRECTION, problems).map(Matcher::TrafficDirection)
        }
        "ip_version" => Numbers::read(tree, IP_VERSION, problems).map(Matcher::IpVersion),
        "verdict" => Numbers::read(tree, VERDICT, problems).map(Matcher::Verdict),
        "reply" => Replies::read(tree, problems).map(Matcher::Reply),
        "event_type" => EventTypes::read(tree, problems).map(Matcher::EventType),
        "interface" => Interfaces::read(tree, problems).map(Matcher::Interface),
        _ => {
            if !matches!(&tree.value, Value::List(items) if items.is_empty()) {
                let message = format!(
                    "filter field `{name}` is Hubble's but not served by this version yet; remove it"
                );
                problems.error(&entry.place, message);
            }
            None
        }
    }
}
