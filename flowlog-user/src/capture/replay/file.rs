//! pcap and pcapng files as frames.

use std::fs::File;
use std::path::Path;

use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use super::{Error, Frame, Link};

/// Packets of 64 KiB and more need a buffer well above that.
const BUFFER_BYTES: usize = 1 << 20;

/// What the file's headers say about the packets that follow.
#[derive(Debug, Default)]
struct Header {
    /// Link type and time-stamp unit of each interface (pcapng), or of the file.
    interfaces: Vec<(Linktype, u64, u64)>,
    nanoseconds: bool,
}

/// Calls `each` for every packet; gives how many there were.
pub(super) fn read(path: &Path, each: &mut dyn FnMut(Frame<'_>)) -> Result<u64, Error> {
    let file = File::open(path).map_err(|source| Error::Read { path: path.into(), source })?;
    let mut packets = 0;
    let damaged = |packets, what: String| Error::Format { path: path.into(), packets, what };
    let mut reader = create_reader(BUFFER_BYTES, file).map_err(|error| damaged(0, text(&error)))?;
    let mut header = Header::default();
    loop {
        match reader.next() {
            Ok((size, block)) => {
                if let Some(frame) =
                    header.frame(&block).map_err(|link| Error::LinkType { path: path.into(), link })?
                {
                    packets += 1;
                    each(frame);
                }
                reader.consume(size);
            }
            Err(PcapError::Eof) => return Ok(packets),
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|error| damaged(packets, text(&error)))?;
            }
            Err(error) => return Err(damaged(packets, text(&error))),
        }
    }
}

fn text<I: std::fmt::Debug>(error: &PcapError<I>) -> String {
    match error {
        PcapError::UnexpectedEof | PcapError::Incomplete(_) => "the file ends inside a packet".into(),
        PcapError::HeaderNotRecognized => "the header is not one of pcap or pcapng".into(),
        PcapError::BufferTooSmall => format!("a packet larger than {BUFFER_BYTES} bytes"),
        PcapError::ReadError => "the disk gave an error".into(),
        _ => "a block contradicts itself".into(),
    }
}

impl Header {
    /// The frame in a block, if it is one. The error is a link type that is not read.
    fn frame<'a>(&mut self, block: &'a PcapBlockOwned<'a>) -> Result<Option<Frame<'a>>, i32> {
        match block {
            PcapBlockOwned::LegacyHeader(file) => {
                self.nanoseconds = file.is_nanosecond_precision();
                self.interfaces = vec![(file.network, 0, 0)];
                Ok(None)
            }
            PcapBlockOwned::Legacy(packet) => {
                let unit = if self.nanoseconds { 1 } else { 1_000 };
                let time_ns = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_usec) * unit;
                self.captured(0, packet.data, packet.caplen, packet.origlen, time_ns)
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(None)
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                let resolution = interface.ts_resolution().unwrap_or(1_000_000);
                let offset_s = u64::try_from(interface.if_tsoffset).unwrap_or(0);
                self.interfaces.push((interface.linktype, resolution, offset_s));
                Ok(None)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let at = usize::try_from(packet.if_id).unwrap_or(usize::MAX);
                let time_ns =
                    self.interfaces.get(at).map_or(0, |(_, unit, offset_s)| wall_ns(ticks, *unit, *offset_s));
                self.captured(at, packet.data, packet.caplen, packet.origlen, time_ns)
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let length = u32::try_from(packet.data.len()).unwrap_or(u32::MAX);
                self.captured(0, packet.data, length.min(packet.origlen), packet.origlen, 0)
            }
            PcapBlockOwned::NG(_) => Ok(None),
        }
    }

    fn captured<'a>(
        &self,
        interface: usize,
        data: &'a [u8],
        captured: u32,
        length: u32,
        time_ns: u64,
    ) -> Result<Option<Frame<'a>>, i32> {
        let Some((linktype, ..)) = self.interfaces.get(interface) else { return Ok(None) };
        let link = link(*linktype)?;
        // A block of pcapng is padded to four bytes.
        let size = data.len().min(usize::try_from(captured).unwrap_or(usize::MAX));
        let data = data.get(..size).unwrap_or(data);
        Ok(Some(Frame {
            data,
            length: usize::try_from(length).unwrap_or(usize::MAX).max(data.len()),
            time_ns,
            link,
        }))
    }
}

const fn link(linktype: Linktype) -> Result<Link, i32> {
    match linktype.0 {
        1 => Ok(Link::Ethernet),
        12 | 14 | 101 | 228 | 229 => Ok(Link::RawIp),
        113 => Ok(Link::Cooked { header: 16, ethertype: 14 }),
        276 => Ok(Link::Cooked { header: 20, ethertype: 0 }),
        0 | 108 => Ok(Link::Null),
        other => Err(other),
    }
}

/// Ticks of `unit` a second, and whole seconds to add, as nanoseconds since the Unix epoch.
fn wall_ns(ticks: u64, unit: u64, offset_s: u64) -> u64 {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(unit.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX).saturating_add(offset_s.saturating_mul(1_000_000_000))
}
