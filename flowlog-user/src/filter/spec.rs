use std::hash::{DefaultHasher, Hash, Hasher};

use super::address::Addresses;
use super::cel::Expressions;
use super::condition::Conditions;
use super::enumeration::Numbers;
use super::event_type::EventTypes;
use super::identity::Identities;
use super::interface::Interfaces;
use super::json::{self, Name};
use super::label::Selectors;
use super::matcher::Matcher;
use super::name_pattern::NamePatterns;
use super::namespaced::Namespaced;
use super::number::Unsigned;
use super::pattern::Patterns;
use super::pool::PoolAddresses;
use super::port::Ports;
use super::protocol::Protocols;
use super::reply::Replies;
use super::status_code::StatusCodes;
use super::tcp_flags::TcpFlags;
use super::text::Texts;
use super::workload::{Headers, Workloads};
use crate::record::{End, Facts, Pools, schema};
use crate::tree::{Entry, Fields, Problem, Problems, Tree, Value};

/// The filters of one task, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// One of these must match; an empty list lets everything through.
    pub include: Vec<FlowFilter>,
    /// None of these may match.
    pub exclude: Vec<FlowFilter>,
    /// All of these must hold too.
    pub conditions: Conditions,
}

/// One filter: all of its fields must match; without fields it matches everything.
#[derive(Clone, Debug, Default)]
pub struct FlowFilter(pub Vec<Matcher>);

/// The order of fields says nothing, and each stands once.
impl PartialEq for FlowFilter {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|matcher| other.0.contains(matcher))
    }
}

impl Eq for FlowFilter {}

impl Hash for FlowFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let of = |matcher: &Matcher| {
            let mut hasher = DefaultHasher::new();
            matcher.hash(&mut hasher);
            hasher.finish()
        };
        state.write_u64(self.0.iter().map(of).fold(0, u64::wrapping_add));
    }
}

/// Part of each warning about data that no record of ours has; recorded flows of others may have it.
pub const NOT_RECORDED: &str = "no record of this version has";

/// Every field of Hubble's `FlowFilter` (Cilium 1.19.4): proto name, JSON name.
pub const FIELDS: &[(&str, &str)] = &[
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

pub(super) const EXPERIMENTAL: &[Name] = &[("cel_expression", "celExpression")];

impl Spec {
    /// Reads `includeFilters`, `excludeFilters` and `where`. What is wrong is noted and left out, so the spec is of use only
    /// when no error was noted.
    pub fn read(
        include: Option<&Tree>,
        exclude: Option<&Tree>,
        conditions: Option<&Tree>,
        problems: &mut Problems,
    ) -> Self {
        let spec = Self {
            include: filters(include, problems),
            exclude: filters(exclude, problems),
            conditions: conditions.map(|tree| Conditions::read(tree, problems)).unwrap_or_default(),
        };
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

impl Spec {
    /// Whether anything depends on what pools there are.
    #[must_use]
    pub fn names_pools(&self) -> bool {
        self.conditions.name_pools()
    }

    /// Whether anything depends on this pool.
    #[must_use]
    pub fn names_pool(&self, name: &str) -> bool {
        self.conditions.pools().any(|(_, named)| named.names().any(|other| other == name))
    }

    /// Finds the addresses of the pools that are named. The problems are names that no pool has; the spec is of use only
    /// without them. `before` is what stays in force with one.
    pub fn resolve(&mut self, pools: &Pools, before: Option<&Self>) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.conditions.resolve(pools, before.map(|before| &before.conditions), &mut problems);
        problems
    }

    /// The addresses that were found, for each end of which pools are asked for.
    pub fn pool_addresses(&self) -> impl Iterator<Item = (End, PoolAddresses)> {
        self.conditions.pools().map(|(end, named)| (end, named.addresses()))
    }

    /// Takes addresses that were found before, whatever pools there are now.
    pub fn restore(&mut self, addresses: impl Fn(End) -> Option<PoolAddresses>) {
        for (end, named) in self.conditions.pools_mut() {
            if let Some(addresses) = addresses(end) {
                named.restore(addresses);
            }
        }
    }

    fn matchers(&self) -> impl Iterator<Item = &Matcher> {
        self.include.iter().chain(&self.exclude).flat_map(|filter| &filter.0)
    }

    /// Fields of filters that ask for what no record of ours has; each once.
    #[must_use]
    pub fn unrecorded(&self, pools: &Pools) -> Vec<&'static str> {
        let matchers = self.matchers().filter(|matcher| !matcher.is_recorded(pools));
        let mut fields: Vec<_> = matchers.map(Matcher::field).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Labels that no record of ours has with these pools: warnings.
    #[must_use]
    pub fn unseen(&self, pools: &Pools) -> Vec<Problem> {
        let mut problems = Vec::new();
        for matcher in self.matchers() {
            let Matcher::Label(_, selectors) = matcher else { continue };
            let message = || sees_nothing(matcher.field());
            let places = selectors.unrecorded(pools);
            problems.extend(places.map(|place| Problem { place: place.clone(), message: message() }));
        }
        problems
    }

    /// What is asked of labels and pools that no flow can have: warnings.
    #[must_use]
    pub fn vain(&self, pools: &Pools) -> Vec<Problem> {
        let mut problems = self.unseen(pools);
        for matcher in self.matchers() {
            if let Matcher::Label(_, selectors) = matcher {
                selectors.vain(pools, &mut problems);
            }
        }
        self.conditions.pools().for_each(|(_, named)| named.empty(pools, &mut problems));
        problems
    }
}

impl FlowFilter {
    /// Whether every field matches.
    #[must_use]
    pub fn matches(&self, facts: &impl Facts) -> bool {
        self.0.iter().all(|matcher| matcher.matches(facts))
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
    let mut matchers = Vec::new();
    for (name, entry) in fields.iter() {
        let Some(matcher) = matcher(name, entry, problems) else { continue };
        // Which labels there are depends on the pools: see `unseen`.
        if !matches!(matcher, Matcher::Label(..)) && !matcher.is_recorded(&Pools::default()) {
            problems.warning(&entry.place, sees_nothing(name));
        }
        matchers.push(matcher);
    }
    check_http(&fields, &matchers, problems);
    FlowFilter(matchers)
}

fn sees_nothing(field: &str) -> String {
    format!("sees nothing: {NOT_RECORDED} what `{field}` asks for")
}

/// HTTP needs events that can have it: Hubble refuses a filter that asks for HTTP in others.
fn check_http(fields: &Fields<'_>, matchers: &[Matcher], problems: &mut Problems) {
    let types = matchers.iter().find_map(|matcher| match matcher {
        Matcher::EventType(types) => Some(types),
        _ => None,
    });
    if types.is_none_or(EventTypes::have_l7) {
        return;
    }
    for (name, entry) in fields.iter().filter(|(name, _)| name.starts_with("http_")) {
        let Value::List(items) = &entry.value.value else { continue };
        let values: Vec<String> = items.iter().map(show).collect();
        if !values.is_empty() {
            let message = format!(
                "`{name}` ({}) can hold only for events of type 129 (L7), and `event_type` has others only; add {{type: 129}} \
                 to it or remove one of the two",
                values.join(", ")
            );
            problems.error(&entry.place, message);
        }
    }
}

/// A value as a message names it.
fn show(tree: &Tree) -> String {
    match &tree.value {
        Value::Null => "null".into(),
        Value::Scalar { text, .. } => format!("`{text}`"),
        Value::List(items) => items.iter().map(show).collect::<Vec<_>>().join(", "),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| format!("{}: {}", entry.key, show(&entry.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Reads one field; `None` where it is empty (or wrong).
fn matcher(name: &str, entry: &Entry, problems: &mut Problems) -> Option<Matcher> {
    let tree = &entry.value;
    if let Some((end, rest)) = end(name) {
        return ended(end, rest, tree, problems);
    }
    match name {
        "uuid" => Texts::read(tree, problems).map(Matcher::Uuid),
        "source_ip_xlated" => Addresses::read(tree, problems).map(Matcher::SourceIpXlated),
        "traffic_direction" => {
            Numbers::read(tree, &schema::TRAFFIC_DIRECTION, problems).map(Matcher::TrafficDirection)
        }
        "verdict" => Numbers::read(tree, &schema::VERDICT, problems).map(Matcher::Verdict),
        "drop_reason_desc" => {
            Numbers::read(tree, &schema::DROP_REASON, problems).map(Matcher::DropReasonDesc)
        }
        "interface" => Interfaces::read(tree, problems).map(Matcher::Interface),
        "event_type" => EventTypes::read(tree, problems).map(Matcher::EventType),
        "http_status_code" => StatusCodes::read(tree, problems).map(Matcher::HttpStatusCode),
        "protocol" => Protocols::read(tree, problems).map(Matcher::Protocol),
        "reply" => Replies::read(tree, problems).map(Matcher::Reply),
        "dns_query" => Patterns::read(tree, problems).map(Matcher::DnsQuery),
        "http_method" => Texts::read(tree, problems).map(Matcher::HttpMethod),
        "http_path" => Patterns::read(tree, problems).map(Matcher::HttpPath),
        "http_url" => Patterns::read(tree, problems).map(Matcher::HttpUrl),
        "http_header" => Headers::read(tree, problems).map(Matcher::HttpHeader),
        "tcp_flags" => TcpFlags::read(tree, problems).map(Matcher::TcpFlags),
        "node_name" => NamePatterns::read_node(tree, problems).map(Matcher::NodeName),
        "node_labels" => Selectors::read(tree, problems).map(Matcher::NodeLabels),
        "ip_version" => Numbers::read(tree, &schema::IP_VERSION, problems).map(Matcher::IpVersion),
        "trace_id" => Texts::read(tree, problems).map(Matcher::TraceId),
        "ip_trace_id" => Unsigned::read(tree, problems).map(Matcher::IpTraceId),
        "encrypted" => Replies::read(tree, problems).map(Matcher::Encrypted),
        "experimental" => {
            let fields = json::message(tree, "experimental key", EXPERIMENTAL, problems);
            Expressions::read(fields.get("cel_expression")?, problems).map(Matcher::Cel)
        }
        _ => {
            problems.error(
                &entry.place,
                format!("filter field `{name}` is not served by this version; remove it"),
            );
            None
        }
    }
}

/// Which end a field is about, and what of it.
fn end(name: &str) -> Option<(End, &str)> {
    match (name.strip_prefix("source_"), name.strip_prefix("destination_")) {
        (Some("ip_xlated"), _) => None,
        (Some(rest), _) => Some((End::Source, rest)),
        (None, Some(rest)) => Some((End::Destination, rest)),
        (None, None) => None,
    }
}

/// Reads a field that both ends have.
fn ended(end: End, rest: &str, tree: &Tree, problems: &mut Problems) -> Option<Matcher> {
    match rest {
        "ip" => Addresses::read(tree, problems).map(|matcher| Matcher::Ip(end, matcher)),
        "pod" => Namespaced::read(tree, problems).map(|matcher| Matcher::Pod(end, matcher)),
        "fqdn" => NamePatterns::read_fqdn(tree, problems).map(|matcher| Matcher::Fqdn(end, matcher)),
        "label" => Selectors::read(tree, problems).map(|matcher| Matcher::Label(end, matcher)),
        "service" => Namespaced::read(tree, problems).map(|matcher| Matcher::Service(end, matcher)),
        "workload" => Workloads::read(tree, problems).map(|matcher| Matcher::Workload(end, matcher)),
        "cluster_name" => Texts::read_names(tree, problems).map(|matcher| Matcher::ClusterName(end, matcher)),
        "port" => Ports::read(tree, problems).map(|matcher| Matcher::Port(end, matcher)),
        "identity" => Identities::read(tree, problems).map(|matcher| Matcher::Identity(end, matcher)),
        _ => None,
    }
}
