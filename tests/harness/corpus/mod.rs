//! Captures replayed and compared, flow by flow, with what tshark makes of the same frames.
//!
//! tshark reads each frame alone (reassembly off) and says which protocols it saw and what their headers hold;
//! [`tshark`] works out from that, by the rules of our documentation and without our parser, which flow each frame
//! belongs to or why it is none. [`ours`] replays the file. Both must give the same packets and bytes for the same
//! flows, and the same number of frames that are none, by kind.

mod ours;
mod tshark;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// One direction of a flow: what it is called in both readings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuple {
    /// IP protocol number of the outermost IP packet.
    pub protocol: u8,
    /// Sender; IPv4 addresses as such.
    pub source: IpAddr,
    /// Receiver.
    pub destination: IpAddr,
    /// Ports; the id of a ping and type and code of other ICMP messages, in both places; 0 where there are none.
    pub ports: (u16, u16),
    /// A later fragment whose first had not been seen.
    pub fragment: bool,
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, source, destination, ports: (from, to), fragment } = self;
        let what = if *fragment { ", a later fragment" } else { "" };
        write!(f, "protocol {protocol}, {source} port {from} to {destination} port {to}{what}")
    }
}

/// What frames are when they are no flow: kind and packets and bytes.
pub type Others = BTreeMap<&'static str, (u64, u64)>;

/// A capture as one side reads it.
#[derive(Debug, Default)]
pub struct Reading {
    /// Packets and bytes of each direction of each flow.
    pub flows: BTreeMap<Tuple, (u64, u64)>,
    /// Frames that belong to no flow.
    pub others: Others,
    /// Frames that tshark alone would have read otherwise.
    pub otherwise: Others,
}

/// What we do otherwise than tshark, on purpose: what is counted of it, and why.
pub const BY_DESIGN: &[(&str, &str)] = &[
    (
        NOT_IP,
        "IP behind PPPoE, MPLS, LLC/SNAP and whatever else is neither Ethernet's header nor a VLAN tag is not \
         followed; such frames are counted by EtherType",
    ),
    (
        NOT_UNDERSTOOD,
        "frames whose headers are not whole, in the capture or by their own lengths, or contradict themselves are \
         counted by reason, not under the addresses and ports that tshark reads from what is left",
    ),
    (
        BIG,
        "UDP in a packet of more than 65,535 bytes, as offloads make them, has 0 in its length field (RFC 2675); \
         tshark calls it malformed, flowlog takes its ports",
    ),
    (
        NO_LENGTH,
        "a total length of 0 in an IPv4 packet that a length could be given for is none: the kernel writes 0 only beyond \
         65,535 bytes; tshark takes each for the work of an offload and reads on",
    ),
    (
        LONGER,
        "a record that holds more bytes than it says that the packet had counts with those it holds; tshark leaves \
         the rest unread",
    ),
];

/// No IP, or IP behind what is not followed.
pub const NOT_IP: &str = "no IP";
/// Headers that are not whole or contradict themselves.
pub const NOT_UNDERSTOOD: &str = "not understood";
/// UDP without length.
pub const BIG: &str = "big UDP";
/// IPv4 without length.
pub const NO_LENGTH: &str = "no length";
/// Records that hold more than they say.
pub const LONGER: &str = "longer than said";

/// One capture compared.
#[derive(Debug)]
pub struct Comparison {
    /// Frames in it, by tshark.
    pub frames: u64,
    /// Flows, one a direction, that both agree on.
    pub flows: usize,
    /// Frames by kind of [`BY_DESIGN`], by tshark.
    pub by_design: Others,
    /// What differs, in words.
    pub differences: Vec<String>,
    /// The file ends inside a packet, by both: what is before that is compared.
    pub is_cut: bool,
}

/// Compares one capture.
///
/// # Errors
/// When tshark or the replay cannot read it.
pub fn compare(file: &Path) -> Result<Comparison> {
    let (frames, theirs, theirs_cut) = tshark::read(file)?;
    let (ours, ours_cut) = ours::read(file)?;
    ensure!(
        ours_cut.is_none() == theirs_cut.is_none(),
        "cut off: tshark {theirs_cut:?}, flowlog {ours_cut:?}"
    );
    let mut differences = Vec::new();
    let mut agreed = 0;
    let mut say = |what: &dyn fmt::Display, theirs: (u64, u64), ours: (u64, u64)| {
        if theirs == ours {
            return 1;
        }
        differences.push(format!(
            "{what}: tshark {} packets, {} bytes; flowlog {} packets, {} bytes",
            theirs.0, theirs.1, ours.0, ours.1
        ));
        0
    };
    for tuple in union(&theirs.flows, &ours.flows) {
        agreed += say(tuple, sum(&theirs.flows, tuple), sum(&ours.flows, tuple));
    }
    for kind in union(&theirs.others, &ours.others) {
        say(kind, sum(&theirs.others, kind), sum(&ours.others, kind));
    }
    let by_design = theirs.others.into_iter().chain(theirs.otherwise).collect();
    Ok(Comparison { frames, flows: agreed, by_design, differences, is_cut: ours_cut.is_some() })
}

fn union<'a, K: Ord, V>(one: &'a BTreeMap<K, V>, other: &'a BTreeMap<K, V>) -> Vec<&'a K> {
    let mut keys: Vec<_> = one.keys().chain(other.keys()).collect();
    keys.sort();
    keys.dedup();
    keys
}

fn sum<K: Ord>(map: &BTreeMap<K, (u64, u64)>, key: &K) -> (u64, u64) {
    map.get(key).copied().unwrap_or_default()
}

/// Every capture below a folder, sorted.
///
/// # Errors
/// When the folder cannot be read.
pub fn captures(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
        {
            let path = entry?.path();
            let is_capture = |path: &Path| {
                let ends = path
                    .extension()
                    .is_some_and(|end| ["pcap", "pcapng", "cap", "trace", "dmp"].iter().any(|e| end == *e));
                ends || path.file_name().is_some_and(|name| name.to_string_lossy().contains("pcap"))
            };
            if path.is_dir() {
                folders.push(path);
            } else if is_capture(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
