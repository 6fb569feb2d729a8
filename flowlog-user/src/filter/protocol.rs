use flowlog_abi::protocol;

use super::{NOT_RECORDED, json};
use crate::record::{Facts, Layer};
use crate::tree::{Problems, Tree, hint};

/// Protocols, one of which must be the member of `l4` or `l7` that the record has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Protocols {
    layers: Vec<Layer>,
    /// The same as bits.
    bits: u16,
}

/// What each word stands for, and whether records of this version have it.
const NAMES: &[(&str, &[Layer], bool)] = &[
    ("icmp", &[Layer::Icmpv4, Layer::Icmpv6], true),
    ("icmpv4", &[Layer::Icmpv4], true),
    ("icmpv6", &[Layer::Icmpv6], true),
    ("tcp", &[Layer::Tcp], true),
    ("udp", &[Layer::Udp], true),
    ("sctp", &[Layer::Sctp], true),
    ("vrrp", &[Layer::Vrrp], false),
    ("igmp", &[Layer::Igmp], false),
    ("dns", &[Layer::Dns], false),
    ("http", &[Layer::Http], false),
    ("kafka", &[Layer::Kafka], false),
];

impl Protocols {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        let words = json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            let lower = text.to_lowercase();
            let Some((_, layers, recorded)) = NAMES.iter().find(|(name, ..)| *name == lower) else {
                let known: Vec<&str> = NAMES.iter().map(|(name, ..)| *name).collect();
                problems.error(&item.place, format!("unknown protocol `{text}`; {}", hint(text, &known)));
                return None;
            };
            if !recorded {
                problems.warning(&item.place, format!("matches nothing: {NOT_RECORDED} `{text}`"));
            }
            Some(*layers)
        })?;
        let layers: Vec<Layer> = words.into_iter().flatten().copied().collect();
        let bits = layers.iter().fold(0, |bits, layer| bits | layer.bit());
        Some(Self { layers, bits })
    }

    /// IP protocol numbers of the packets whose records can match.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u8> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Tcp => Some(protocol::TCP),
            Layer::Udp => Some(protocol::UDP),
            Layer::Sctp => Some(protocol::SCTP),
            Layer::Icmpv4 => Some(protocol::ICMP),
            Layer::Icmpv6 => Some(protocol::ICMPV6),
            Layer::Vrrp | Layer::Igmp | Layer::Dns | Layer::Http | Layer::Kafka => None,
        })
    }

    pub(super) fn matches(&self, facts: &impl Facts) -> bool {
        facts.layers() & self.bits != 0
    }
}
