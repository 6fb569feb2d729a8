use flowlog_abi::tcp;

use super::json::{self, Name};
use crate::record::L4;
use crate::tree::{Problems, Tree};

/// Sets of TCP flags, one of which must be contained in the flow's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpFlags(Vec<Flags>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flags {
    All(u8),
    /// Asks for NS, which RFC 8311 took out of the header and no record has.
    Never,
}

const NAMES: &[Name] = &[
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
        json::list(tree, problems, read).map(Self)
    }

    pub(super) fn matches(&self, l4: L4) -> bool {
        let L4::Tcp { flags, .. } = l4 else { return false };
        self.0.iter().any(|wanted| matches!(wanted, Flags::All(wanted) if flags & wanted == *wanted))
    }
}

fn read(item: &Tree, problems: &mut Problems) -> Option<Flags> {
    let mut flags = Flags::All(0);
    for (name, entry) in json::message(item, "TCP flag", NAMES, problems).iter() {
        // `false` equals absent: Hubble cannot ask for a flag that is not set.
        if entry.value.boolean(problems) == Some(true) {
            flags = match (flags, bit(name)) {
                (Flags::All(set), Some(bit)) => Flags::All(set | bit),
                _ => Flags::Never,
            };
        }
    }
    Some(flags)
}

fn bit(name: &str) -> Option<u8> {
    Some(match name {
        "FIN" => tcp::FIN,
        "SYN" => tcp::SYN,
        "RST" => tcp::RST,
        "PSH" => tcp::PSH,
        "ACK" => tcp::ACK,
        "URG" => tcp::URG,
        "ECE" => tcp::ECE,
        "CWR" => tcp::CWR,
        _ => return None,
    })
}
