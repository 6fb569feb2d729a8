use super::address::Addresses;
use super::cel::Expressions;
use super::enumeration::Numbers;
use super::event_type::EventTypes;
use super::identity::Identities;
use super::interface::Interfaces;
use super::label::Selectors;
use super::name_pattern::NamePatterns;
use super::namespaced::Namespaced;
use super::number::Unsigned;
use super::pattern::Patterns;
use super::port::Ports;
use super::protocol::Protocols;
use super::reply::Replies;
use super::status_code::StatusCodes;
use super::tcp_flags::TcpFlags;
use super::text::Texts;
use super::url;
use super::workload::{Headers, Workloads};
use crate::record::{
    Address, EVENT_TYPE_DROP, EVENT_TYPE_TRACE, End, EventKind, Facts, Message, Pools, Texts as RecordTexts,
    VERDICT_DROPPED, VERDICT_FORWARDED,
};

/// One field of a filter with its alternatives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named like Hubble's filter fields")]
pub enum Matcher {
    Uuid(Texts),
    Ip(End, Addresses),
    SourceIpXlated(Addresses),
    Pod(End, Namespaced),
    Fqdn(End, NamePatterns),
    Label(End, Selectors),
    Service(End, Namespaced),
    Workload(End, Workloads),
    ClusterName(End, Texts),
    TrafficDirection(Numbers),
    Verdict(Numbers),
    DropReasonDesc(Numbers),
    Interface(Interfaces),
    EventType(EventTypes),
    HttpStatusCode(StatusCodes),
    Protocol(Protocols),
    Port(End, Ports),
    Reply(Replies),
    DnsQuery(Patterns),
    Identity(End, Identities),
    HttpMethod(Texts),
    HttpPath(Patterns),
    HttpUrl(Patterns),
    HttpHeader(Headers),
    TcpFlags(TcpFlags),
    NodeName(NamePatterns),
    NodeLabels(Selectors),
    IpVersion(Numbers),
    TraceId(Texts),
    IpTraceId(Unsigned),
    Encrypted(Replies),
    Cel(Expressions),
}

impl Matcher {
    /// The field's name.
    #[must_use]
    pub fn field(&self) -> &'static str {
        let ended = |end: &End, source, destination| match end {
            End::Source => source,
            End::Destination => destination,
        };
        match self {
            Self::Uuid(_) => "uuid",
            Self::Ip(end, _) => ended(end, "source_ip", "destination_ip"),
            Self::SourceIpXlated(_) => "source_ip_xlated",
            Self::Pod(end, _) => ended(end, "source_pod", "destination_pod"),
            Self::Fqdn(end, _) => ended(end, "source_fqdn", "destination_fqdn"),
            Self::Label(end, _) => ended(end, "source_label", "destination_label"),
            Self::Service(end, _) => ended(end, "source_service", "destination_service"),
            Self::Workload(end, _) => ended(end, "source_workload", "destination_workload"),
            Self::ClusterName(end, _) => ended(end, "source_cluster_name", "destination_cluster_name"),
            Self::TrafficDirection(_) => "traffic_direction",
            Self::Verdict(_) => "verdict",
            Self::DropReasonDesc(_) => "drop_reason_desc",
            Self::Interface(_) => "interface",
            Self::EventType(_) => "event_type",
            Self::HttpStatusCode(_) => "http_status_code",
            Self::Protocol(_) => "protocol",
            Self::Port(end, _) => ended(end, "source_port", "destination_port"),
            Self::Reply(_) => "reply",
            Self::DnsQuery(_) => "dns_query",
            Self::Identity(end, _) => ended(end, "source_identity", "destination_identity"),
            Self::HttpMethod(_) => "http_method",
            Self::HttpPath(_) => "http_path",
            Self::HttpUrl(_) => "http_url",
            Self::HttpHeader(_) => "http_header",
            Self::TcpFlags(_) => "tcp_flags",
            Self::NodeName(_) => "node_name",
            Self::NodeLabels(_) => "node_labels",
            Self::IpVersion(_) => "ip_version",
            Self::TraceId(_) => "trace_id",
            Self::IpTraceId(_) => "ip_trace_id",
            Self::Encrypted(_) => "encrypted",
            Self::Cel(_) => "experimental",
        }
    }

    /// Whether records of ours can have what the field asks for.
    pub(super) fn is_recorded(&self, pools: &Pools) -> bool {
        match self {
            Self::Uuid(_)
            | Self::Ip(..)
            | Self::Interface(_)
            | Self::Protocol(_)
            | Self::Port(..)
            | Self::Reply(_)
            | Self::TcpFlags(_)
            | Self::NodeName(_)
            | Self::Cel(_) => true,
            Self::TrafficDirection(numbers) | Self::IpVersion(numbers) => {
                numbers.matches(1) || numbers.matches(2)
            }
            Self::Verdict(numbers) => numbers.matches(VERDICT_FORWARDED) || numbers.matches(VERDICT_DROPPED),
            Self::EventType(types) => types.have(EVENT_TYPE_TRACE) || types.have(EVENT_TYPE_DROP),
            Self::DropReasonDesc(_) => true,
            Self::Identity(_, identities) => (1..=3).any(|identity| identities.matches(Some(identity))),
            Self::TraceId(ids) => ids.matches(""),
            Self::IpTraceId(ids) => ids.matches(0),
            Self::Encrypted(values) => values.matches(false),
            Self::Label(_, selectors) => selectors.are_recorded(pools),
            Self::SourceIpXlated(_)
            | Self::Pod(..)
            | Self::Fqdn(..)
            | Self::Service(..)
            | Self::Workload(..)
            | Self::ClusterName(..)
            | Self::HttpStatusCode(_)
            | Self::DnsQuery(_)
            | Self::HttpMethod(_)
            | Self::HttpPath(_)
            | Self::HttpUrl(_)
            | Self::HttpHeader(_)
            | Self::NodeLabels(_) => false,
        }
    }

    /// Whether a record of what interfaces show can have what the field asks for, and one of what the kernel drops. Both
    /// for fields that are the same in either.
    pub(super) fn takes(&self) -> (bool, bool) {
        match self {
            Self::Verdict(numbers) => (numbers.matches(VERDICT_FORWARDED), numbers.matches(VERDICT_DROPPED)),
            Self::EventType(types) => (types.have(EVENT_TYPE_TRACE), types.have(EVENT_TYPE_DROP)),
            Self::DropReasonDesc(_) => (false, true),
            _ => (true, true),
        }
    }

    /// Whether every record of what interfaces show has what the field asks for, and no drop.
    pub(super) fn takes_all_but_drops(&self) -> bool {
        let whole = match self {
            Self::Verdict(_) => true,
            Self::EventType(types) => types.have_whole(EVENT_TYPE_TRACE),
            _ => false,
        };
        whole && self.takes() == (true, false)
    }

    /// Whether the field is about whether packets were dropped.
    pub(super) const fn is_about_drops(&self) -> bool {
        matches!(self, Self::Verdict(_) | Self::EventType(_) | Self::DropReasonDesc(_))
    }

    /// Whether one of the alternatives holds.
    #[must_use]
    pub fn matches<F: Facts>(&self, facts: &F) -> bool {
        match self {
            Self::Ip(end, addresses) => addresses.matches(facts.address(*end)),
            Self::Port(end, ports) => ports.matches(facts.port(*end)),
            Self::Protocol(protocols) => protocols.matches(facts),
            Self::TcpFlags(flags) => flags.matches(facts.tcp_flags()),
            Self::Identity(end, identities) => identities.matches(facts.identity(*end)),
            Self::TrafficDirection(numbers) => is_flow(facts) && numbers.matches(facts.traffic_direction()),
            Self::IpVersion(numbers) => is_flow(facts) && numbers.matches(facts.ip_version()),
            Self::Verdict(numbers) => is_flow(facts) && numbers.matches(facts.verdict()),
            Self::DropReasonDesc(numbers) => {
                is_flow(facts) && facts.verdict() == VERDICT_DROPPED && numbers.matches(facts.drop_reason())
            }
            Self::Reply(replies) => replies.matches_reply(facts),
            Self::EventType(types) => types.matches(facts.kind()),
            Self::Interface(interfaces) => interfaces.matches(facts),
            Self::Label(end, selectors) => selectors.matches(facts.labels(*end)),
            Self::NodeName(patterns) => patterns.matches_node(facts.node_name()),
            Self::Uuid(texts) => texts.any(|wanted| facts.has_uuid(wanted)),
            Self::Cel(expressions) => facts.with_message(|flow| expressions.matches(flow)),
            _ => self.matches_message(facts.message(), is_flow(facts)),
        }
    }

    /// The fields that no flow of ours has.
    fn matches_message(&self, flow: &Message, is_flow: bool) -> bool {
        let endpoint = |end: End| flow.message(end.name());
        let service = |end| match end {
            End::Source => flow.message("source_service"),
            End::Destination => flow.message("destination_service"),
        };
        let ip = flow.message("IP");
        let http = flow.message("l7").and_then(|l7| l7.message("http"));
        let dns = flow.message("l7").and_then(|l7| l7.message("dns"));
        match self {
            Self::SourceIpXlated(addresses) => {
                addresses.matches(Address::Text(ip.map_or("", |ip| ip.text("source_xlated"))))
            }
            Self::Pod(end, pods) => {
                endpoint(*end).is_some_and(|at| pods.matches(at.text("namespace"), at.text("pod_name")))
            }
            Self::Service(end, services) => {
                service(*end).is_some_and(|at| services.matches(at.text("namespace"), at.text("name")))
            }
            Self::Fqdn(end, patterns) => patterns.matches_any(RecordTexts::Many(flow.list(match end {
                End::Source => "source_names",
                End::Destination => "destination_names",
            }))),
            Self::Workload(end, workloads) => {
                endpoint(*end).is_some_and(|at| workloads.matches(at.list("workloads")))
            }
            Self::ClusterName(end, names) => {
                endpoint(*end).is_some_and(|at| names.matches(at.text("cluster_name")))
            }
            Self::HttpStatusCode(codes) => http.is_some_and(|http| codes.matches(http.unsigned("code"))),
            Self::HttpMethod(methods) => http.is_some_and(|http| {
                let method = http.text("method");
                !method.is_empty() && methods.matches_folded(method)
            }),
            Self::HttpPath(patterns) => http
                .is_some_and(|http| url::path(http.text("url")).is_some_and(|path| patterns.matches(&path))),
            Self::HttpUrl(patterns) => http.is_some_and(|http| patterns.matches(http.text("url").as_bytes())),
            Self::HttpHeader(headers) => http.is_some_and(|http| headers.matches(http.list("headers"))),
            Self::DnsQuery(patterns) => dns.is_some_and(|dns| patterns.matches(dns.text("query").as_bytes())),
            Self::NodeLabels(selectors) => selectors.matches(RecordTexts::Many(flow.list("node_labels"))),
            Self::TraceId(ids) => {
                let parent = flow.message("trace_context").and_then(|context| context.message("parent"));
                ids.matches(parent.map_or("", |parent| parent.text("trace_id")))
            }
            Self::IpTraceId(ids) => {
                ids.matches(flow.message("ip_trace_id").map_or(0, |id| id.unsigned("trace_id")))
            }
            Self::Encrypted(encrypted) => {
                is_flow && encrypted.matches(ip.and_then(|ip| ip.boolean("encrypted")).unwrap_or(false))
            }
            // Everything else has been asked above.
            _ => false,
        }
    }
}

fn is_flow(facts: &impl Facts) -> bool {
    matches!(facts.kind(), EventKind::Flow(..))
}
