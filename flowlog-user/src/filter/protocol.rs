use flowlog_abi::protocol;

use super::json;
use crate::record::L4;
use crate::tree::{Problems, Tree, hint};

/// Protocols, one of which must be the member of `l4` that the record has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocols(Vec<Protocol>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmpv4,
    Icmpv6,
    /// Valid for Hubble, but no record has it.
    Never,
}

const NAMES: &[(&str, Protocol)] = &[
    ("icmp", Protocol::Icmp),
    ("icmpv4", Protocol::Icmpv4),
    ("icmpv6", Protocol::Icmpv6),
    ("tcp", Protocol::Tcp),
    ("udp", Protocol::Udp),
    ("sctp", Protocol::Sctp),
    ("vrrp", Protocol::Never),
    ("igmp", Protocol::Never),
    ("dns", Protocol::Never),
    ("http", Protocol::Never),
    ("kafka", Protocol::Never),
];

impl Protocols {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            let lower = text.to_lowercase();
            let Some((_, protocol)) = NAMES.iter().find(|(name, _)| *name == lower) else {
                let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                problems.error(&item.place, format!("unknown protocol `{text}`; {}", hint(text, &known)));
                return None;
            };
            if *protocol == Protocol::Never {
                problems
                    .warning(&item.place, format!("matches nothing: no record of this version has `{text}`"));
            }
            Some(*protocol)
        })
        .map(Self)
    }

    /// IP protocol numbers of the packets whose records can match.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u8> {
        self.0.iter().flat_map(|one| {
            let numbers: &[u8] = match one {
                Protocol::Tcp => &[protocol::TCP],
                Protocol::Udp => &[protocol::UDP],
                Protocol::Sctp => &[protocol::SCTP],
                Protocol::Icmp => &[protocol::ICMP, protocol::ICMPV6],
                Protocol::Icmpv4 => &[protocol::ICMP],
                Protocol::Icmpv6 => &[protocol::ICMPV6],
                Protocol::Never => &[],
            };
            numbers.iter().copied()
        })
    }

    pub(super) fn matches(&self, l4: L4) -> bool {
        self.0.iter().any(|protocol| match protocol {
            Protocol::Tcp => matches!(l4, L4::Tcp { .. }),
            Protocol::Udp => matches!(l4, L4::Udp { .. }),
            Protocol::Sctp => matches!(l4, L4::Sctp { .. }),
            Protocol::Icmp => matches!(l4, L4::Icmpv4 { .. } | L4::Icmpv6 { .. }),
            Protocol::Icmpv4 => matches!(l4, L4::Icmpv4 { .. }),
            Protocol::Icmpv6 => matches!(l4, L4::Icmpv6 { .. }),
            Protocol::Never => false,
        })
    }
}
