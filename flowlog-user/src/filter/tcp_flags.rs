use super::json::{self, Name};
use crate::tree::{Problems, Tree};

/// Sets of TCP flags, one of which must be contained in the flow's: bit 0 FIN ... bit 7 CWR, bit 8 NS.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TcpFlags(Vec<u16>);

/// In the order of their bits.
pub(super) const NAMES: &[Name] = &[
    ("FIN", "FIN"),
    ("SYN", "SYN"),
    ("RST", "RST"),
    ("PSH", "PSH"),
    ("ACK", "ACK"),
    ("URG", "URG"),
    ("ECE", "ECE"),
    ("CWR", "CWR"),
    ("NS", "NS"),
];

impl TcpFlags {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| Some(read(item, problems))).map(Self)
    }

    pub(super) fn matches(&self, flags: Option<u16>) -> bool {
        flags.is_some_and(|flags| self.0.iter().any(|wanted| flags & wanted == *wanted))
    }
}

fn read(item: &Tree, problems: &mut Problems) -> u16 {
    let mut flags = 0;
    for (name, entry) in json::message(item, "TCP flag", NAMES, problems).iter() {
        // `false` equals absent: Hubble cannot ask for a flag that is not set.
        if entry.value.boolean(problems) == Some(true)
            && let Some(bit) = NAMES.iter().position(|(known, _)| *known == name)
        {
            flags |= 1 << bit;
        }
    }
    flags
}
