//! A task's filters as rules for the kernel: never narrower than the filters themselves.
//!
//! Only what is the same for every packet of a connection can be asked there. A field that cannot be asked is left out,
//! which widens; so are all excludes, since the connection that one of them takes may have records that it does not.

use flowlog_abi::protocol;

use super::{FlowFilter, Matcher, Spec};
use crate::limits::RULE_PREFIXES_MAX;
use crate::record::End;
use crate::record::rules::{Group, Of, Rules};

/// Protocols whose records have ports.
const WITH_PORTS: [u8; 3] = [protocol::TCP, protocol::UDP, protocol::SCTP];

/// Prefixes of one task's pools of which the kernel is told; those of more are made wider.
const POOLS_MAX: usize = (RULE_PREFIXES_MAX - 1) / 2;

/// Where the clauses of a task are decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// Tested in the kernel too, so that what fails there costs nothing further.
    pub kernel: Vec<String>,
    /// Tested only here.
    pub userspace: Vec<String>,
}

impl Spec {
    /// Which clauses the kernel tests, and which are left to userspace.
    #[must_use]
    pub fn divide(&self) -> Division {
        let mut division = Division::default();
        for (at, filter) in self.include.iter().enumerate() {
            for matcher in &filter.0 {
                let asked = narrow(&mut Group::default(), matcher);
                let into = if asked { &mut division.kernel } else { &mut division.userspace };
                into.push(format!("includeFilters[{at}].{}", matcher.field()));
            }
        }
        let excluded = (0..self.exclude.len()).map(|at| format!("excludeFilters[{at}]"));
        division.userspace.extend(excluded);
        for name in self.conditions.names() {
            let tested = match name {
                "source_pool" => self.conditions.within(End::Source).is_some(),
                "destination_pool" => self.conditions.within(End::Destination).is_some(),
                _ => false,
            };
            let into = if tested { &mut division.kernel } else { &mut division.userspace };
            into.push(format!("where.{name}"));
        }
        division
    }

    /// Whether the filters ask for what the kernel drops: one of them names a verdict, a reason or a type of event that
    /// drops have, or leaves nothing but drops. A filter that names none of these is about packets that interfaces show,
    /// and would get the dropped ones of them twice.
    #[must_use]
    pub fn asks_for_drops(&self) -> bool {
        let about = |filter: &FlowFilter| filter.0.iter().any(Matcher::is_about_drops);
        let takes_drops = |filter: &FlowFilter| filter.0.iter().all(|matcher| matcher.takes().1);
        let leaves_drops =
            |filter: &FlowFilter| !filter.0.is_empty() && filter.0.iter().all(Matcher::takes_all_but_drops);
        self.include.iter().any(|filter| about(filter) && takes_drops(filter))
            || self.exclude.iter().any(leaves_drops)
    }

    /// Adds what this task wants to the rules; `drops`: also what the kernel drops.
    pub fn lower(&self, drops: bool, rules: &mut Rules) {
        let [source, destination] = [End::Source, End::Destination]
            .map(|end| self.conditions.within(end).map(|set| set.cover(POOLS_MAX)));
        let everything = [FlowFilter::default()];
        let include = if self.include.is_empty() { &everything[..] } else { &self.include };
        for filter in include {
            let (shown, dropped) = filter
                .0
                .iter()
                .map(Matcher::takes)
                .fold((true, drops), |all, one| (all.0 && one.0, all.1 && one.1));
            let Some(of) = Of::these(shown, dropped) else { continue };
            let mut group = Group { of, ..Group::default() };
            for matcher in &filter.0 {
                narrow(&mut group, matcher);
            }
            for (asked, pools) in [(&mut group.source, &source), (&mut group.destination, &destination)] {
                // Both must hold, so either is wide enough: the shorter list is.
                if let Some(pools) = pools
                    && asked.as_ref().is_none_or(|asked| pools.len() < asked.len())
                {
                    *asked = Some(pools.clone());
                }
            }
            rules.groups.push(group);
        }
    }
}

/// Narrows a group by what the kernel can ask of this field; `false` where it can ask nothing.
fn narrow(group: &mut Group, matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Ip(End::Source, addresses) => group.source = Some(addresses.prefixes().collect()),
        Matcher::Ip(End::Destination, addresses) => group.destination = Some(addresses.prefixes().collect()),
        Matcher::Port(end, ports) => {
            let numbers = Some(ports.numbers().collect());
            match end {
                End::Source => group.source_ports = numbers,
                End::Destination => group.destination_ports = numbers,
            }
            group.only_protocols(WITH_PORTS);
        }
        Matcher::Protocol(protocols) => group.only_protocols(protocols.numbers()),
        Matcher::TcpFlags(_) => group.only_protocols([protocol::TCP]),
        Matcher::IpVersion(numbers) => {
            group.versions = Some(
                [(1, 4), (2, 6)]
                    .iter()
                    .filter(|(hubble, _)| numbers.matches(*hubble))
                    .map(|(_, ip)| *ip)
                    .collect(),
            );
        }
        // Not the same in both orientations, or not for each packet.
        _ => return false,
    }
    true
}
