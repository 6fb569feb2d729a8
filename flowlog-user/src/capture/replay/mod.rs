//! A capture file through the same parse and table code that the kernel runs.
//!
//! In: pcap and pcapng files (Ethernet, raw IP, Linux cooked, BSD loopback). Out: [`Captured`] items. The clock is the
//! capture's. A capture does not say on which side of the node a packet was seen: packets from a private to a public
//! address count as leaving through an uplink, all others as arriving. No privilege is needed.

mod file;
mod table;

use std::path::{Path, PathBuf};

use flowlog_abi::Counters;
use flowlog_ebpf::Timeouts;

use super::tunnels::TunnelMode;
use super::{CaptureLedger, Sink};
use table::Table;

/// What can go wrong with a capture. Packets read before it have been handed on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or read.
    #[error("cannot read capture {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not pcap or pcapng, or is damaged.
    #[error("capture {} is damaged or no pcap file after {packets} packets: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Packets read before.
        packets: u64,
        /// What the reader said.
        what: String,
    },
    /// A link type that is not parsed.
    #[error("capture {} has link type {link}, which flowlog does not read; it reads Ethernet (1), raw IP (101, 228, 229), Linux cooked (113, 276) and BSD loopback (0, 108)", path.display())]
    LinkType {
        /// The file.
        path: PathBuf,
        /// Its link type's number.
        link: i32,
    },
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Bytes captured, from the link header on.
    data: &'a [u8],
    /// Bytes there were on the wire.
    length: usize,
    /// Nanoseconds since the Unix epoch.
    time_ns: u64,
    link: Link,
}

/// How a frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// With an Ethernet header.
    Ethernet,
    /// With the IP header.
    RawIp,
    /// The same, of this IP version alone.
    Version(u8),
    /// With `header` bytes of which `ethertype` names the payload (Linux cooked).
    Cooked { header: usize, ethertype: usize },
    /// With a four-byte address family (BSD loopback).
    Null,
    /// With something that is not read. Only where other interfaces of the capture may be: else the file is refused.
    Unread,
}

/// Replays captures, one after another, as if seen by one node.
#[derive(Debug)]
pub struct Replay {
    table: Table,
}

impl Replay {
    /// An empty table with these timeouts.
    #[must_use]
    pub fn new(timeouts: Timeouts, tunnel: TunnelMode, report_start: bool) -> Self {
        Self { table: Table::new(timeouts, tunnel, report_start) }
    }

    /// Feeds a file, calling `between` after each thousand packets or so, so that flows can be handed on.
    ///
    /// # Errors
    /// When the file cannot be read to its end; what came before is counted.
    pub fn file(&mut self, path: &Path, sink: Sink<'_>) -> Result<u64, Error> {
        file::read(path, &mut |frame| self.table.frame(frame, sink))
    }

    /// Ends every connection that is still open.
    pub fn stop(&mut self, sink: Sink<'_>) {
        self.table.stop(sink);
    }

    /// The same ledger as the kernel's, with one hook.
    #[must_use]
    pub fn ledger(&self) -> CaptureLedger {
        self.table.ledger()
    }

    /// What became of the packets.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.table.counters()
    }
}
