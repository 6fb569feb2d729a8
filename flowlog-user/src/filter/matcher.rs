use super::address::Addresses;
use super::enumeration::Numbers;
use super::event_type::EventTypes;
use super::identity::Identities;
use super::interface::Interfaces;
use super::port::Ports;
use super::protocol::Protocols;
use super::reply::Replies;
use super::tcp_flags::TcpFlags;
use crate::record::{Flow, Node, VERDICT_FORWARDED};

/// One field of a filter with its alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named like Hubble's filter fields")]
pub enum Matcher {
    SourceIp(Addresses),
    DestinationIp(Addresses),
    SourcePort(Ports),
    DestinationPort(Ports),
    Protocol(Protocols),
    TcpFlags(TcpFlags),
    SourceIdentity(Identities),
    DestinationIdentity(Identities),
    TrafficDirection(Numbers),
    IpVersion(Numbers),
    Verdict(Numbers),
    Reply(Replies),
    EventType(EventTypes),
    Interface(Interfaces),
}

impl Matcher {
    /// Whether one of the alternatives holds.
    #[must_use]
    pub fn matches(&self, flow: &Flow, node: &Node) -> bool {
        match self {
            Self::SourceIp(addresses) => addresses.matches(flow.source),
            Self::DestinationIp(addresses) => addresses.matches(flow.destination),
            Self::SourcePort(ports) => ports.matches(flow.l4.ports().map(|(source, _)| source)),
            Self::DestinationPort(ports) => {
                ports.matches(flow.l4.ports().map(|(_, destination)| destination))
            }
            Self::Protocol(protocols) => protocols.matches(flow.l4),
            Self::TcpFlags(flags) => flags.matches(flow.l4),
            Self::SourceIdentity(identities) => identities.matches(flow.source_identity),
            Self::DestinationIdentity(identities) => identities.matches(flow.destination_identity),
            Self::TrafficDirection(numbers) => numbers.matches(flow.traffic_direction().number()),
            Self::IpVersion(numbers) => numbers.matches(flow.ip_version().number()),
            Self::Verdict(numbers) => numbers.matches(VERDICT_FORWARDED),
            Self::Reply(replies) => replies.matches(flow.is_reply),
            Self::EventType(types) => types.matches(flow.event_type()),
            Self::Interface(interfaces) => interfaces.matches(flow.interfaces, node),
        }
    }
}
