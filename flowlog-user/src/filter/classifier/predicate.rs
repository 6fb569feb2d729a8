use super::super::condition::Condition;
use super::super::matcher::Matcher;
use crate::record::Facts;

/// A test that filters of many tasks share; tested at most once for each flow, or for each profile of flows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Predicate {
    Field(Matcher),
    Where(Condition),
}

/// What of a flow decides about a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// What [`super::profile::key`] is made of, and the node's name.
    Profile,
    /// Who its two sides are, which is known once the flow is enriched.
    Identities,
    /// Anything else of it.
    Flow,
    /// The same, and it is enriched before.
    Enriched,
}

impl Predicate {
    pub(super) fn holds<F: Facts>(&self, facts: &F) -> bool {
        match self {
            Self::Field(matcher) => matcher.matches(facts),
            Self::Where(condition) => condition.holds(facts),
        }
    }

    /// Whether TCP flags decide about it.
    pub(super) const fn asks_flags(&self) -> bool {
        matches!(self, Self::Field(Matcher::TcpFlags(_)) | Self::Where(Condition::TcpFlags(_)))
    }

    pub(super) fn basis(&self) -> Basis {
        match self {
            Self::Field(matcher) => of(matcher),
            Self::Where(Condition::TcpFlags(_)) => Basis::Profile,
            Self::Where(
                Condition::Port(..)
                | Condition::Vlan(_)
                | Condition::Tunnel { .. }
                | Condition::Amount(..)
                | Condition::Pool(..),
            ) => Basis::Flow,
        }
    }
}

/// A wrong answer here would show in the test that compares with plain evaluation.
fn of(matcher: &Matcher) -> Basis {
    match matcher {
        Matcher::Uuid(_) | Matcher::Ip(..) | Matcher::Port(..) | Matcher::Interface(_) => Basis::Flow,
        Matcher::Identity(..) => Basis::Identities,
        // Labels name pools too, which depend on addresses.
        Matcher::Label(..) | Matcher::Cel(_) => Basis::Enriched,
        Matcher::TrafficDirection(_)
        | Matcher::Verdict(_)
        | Matcher::EventType(_)
        | Matcher::Protocol(_)
        | Matcher::Reply(_)
        | Matcher::TcpFlags(_)
        | Matcher::NodeName(_)
        | Matcher::IpVersion(_)
        | Matcher::DropReasonDesc(_)
        // No flow of ours has what these ask for, so they say the same of all.
        | Matcher::SourceIpXlated(_)
        | Matcher::Pod(..)
        | Matcher::Fqdn(..)
        | Matcher::Service(..)
        | Matcher::Workload(..)
        | Matcher::ClusterName(..)
        | Matcher::HttpStatusCode(_)
        | Matcher::DnsQuery(_)
        | Matcher::HttpMethod(_)
        | Matcher::HttpPath(_)
        | Matcher::HttpUrl(_)
        | Matcher::HttpHeader(_)
        | Matcher::NodeLabels(_)
        | Matcher::TraceId(_)
        | Matcher::IpTraceId(_)
        | Matcher::Encrypted(_) => Basis::Profile,
    }
}
