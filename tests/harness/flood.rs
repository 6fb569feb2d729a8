//! Floods of dropped packets: netfilter drops what comes in at lo of a host as fast as the machine can give it.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::drops::{Watch, chain, nft_counter};
use crate::netns::Netns;
use crate::packets::{A4, B4, ipv4, sound_frame, udp};
use crate::wire::{Flood, flood, wire};

/// Where it goes.
const PORT: u16 = 7031;
/// Bytes of an Ethernet header, which nftables does not count.
const ETHERNET: u64 = 14;

/// What falls: a datagram of 100 bytes.
#[must_use]
pub fn frame() -> Vec<u8> {
    sound_frame([[0; 6]; 2], ipv4(A4, B4, 17, &udp(5, PORT, &[b'd'; 100])))
}

/// Makes nftables drop it in a host, and count.
///
/// # Errors
/// When nft refuses.
pub fn dam(netns: &Netns) -> Result<()> {
    chain(netns, "prerouting", &[(PORT, "dropped", "drop")])
}

/// What was dropped, and what records and counters say of it.
#[derive(Debug)]
pub struct Told {
    /// What was dropped, as nftables counts it.
    pub flood: Flood,
    /// CPUs that it came from.
    pub cpus: usize,
    /// How many records.
    pub records: u64,
    /// Their packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Buffers lost on the whole machine.
    pub lost: u64,
    /// Of them for want of room in the table.
    pub full: u64,
    /// Lost by what the files say.
    pub said: u64,
}

/// A flood from all CPUs in a host where a daemon records drops, from its start to its end; the ledger has closed.
/// `sources`: see [`flood`].
///
/// # Errors
/// When it cannot be made, nftables counts another number, or the ledger does not close.
pub fn flooded(netns: &Netns, sources: u32, time: Duration) -> Result<Told> {
    let folder = tempfile::tempdir()?;
    let (wire, frame) = (wire(folder.path())?, frame());
    dam(netns)?;
    let watch = Watch::start(netns)?;
    let cpus = std::thread::available_parallelism()?.get();
    let flood = flood(netns, &wire, &frame, (cpus, sources), time)?;
    let stopped = watch.stop()?;
    let (packets, bytes) = nft_counter(netns, "dropped")?;
    let size = frame.len() as u64 - ETHERNET;
    ensure!((packets, bytes) == (flood.frames, flood.frames * size), "{packets} {bytes}: {flood:?}");
    let mut told =
        Told { flood, cpus, records: 0, packets: 0, bytes: 0, lost: 0, full: 0, said: stopped.lost };
    let ours =
        stopped.records.iter().filter(|record| record.number("l4/UDP/destination_port") == u64::from(PORT));
    for record in ours {
        told.records += 1;
        told.packets += record.amount("packets");
        told.bytes += record.amount("bytes");
    }
    for name in ["table_full", "refused", "nested", "unreadable"] {
        told.lost += stopped.ended.number(&format!("/drops/outcomes/lost_{name}"))?;
    }
    told.full = stopped.ended.number("/drops/outcomes/lost_table_full")?;
    Ok(told)
}
