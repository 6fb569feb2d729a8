//! pcap and pcapng files as frames.

use std::fs::File;
use std::io;
use std::path::Path;

use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use super::{Error, Frame, Link};

/// Packets of 64 KiB and more need a buffer well above that.
const BUFFER_BYTES: usize = 1 << 20;

/// What the file's headers say about the packets that follow.
#[derive(Debug, Default)]
struct Header {
    /// Each interface (pcapng), or the file's only one.
    interfaces: Vec<Interface>,
    nanoseconds: bool,
    /// The format has several interfaces, each with a link type of its own.
    many: bool,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Linktype,
    /// Ticks of its time stamps in a second, and whole seconds to add.
    unit: u64,
    offset_s: u64,
    /// Bytes of frame check sequence at the end of each packet.
    fcs: usize,
}

/// Why a packet cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// A link type that is not read, in a file that has only this one.
    Link(i32),
    /// An interface that no block describes.
    Interface(usize),
}

/// Calls `each` for every packet; gives how many there were.
pub(super) fn read(path: &Path, each: &mut dyn FnMut(Frame<'_>)) -> Result<u64, Error> {
    let file = open(path).map_err(|source| Error::Read { path: path.into(), source })?;
    let mut packets = 0;
    let damaged = |packets, what: String| Error::Format { path: path.into(), packets, what };
    let mut reader = create_reader(BUFFER_BYTES, file).map_err(|error| damaged(0, text(&error)))?;
    let mut header = Header::default();
    loop {
        match reader.next() {
            Ok((size, block)) => {
                let frame = header.frame(&block).map_err(|refused| match refused {
                    Refused::Link(link) => Error::LinkType { path: path.into(), link },
                    Refused::Interface(at) => damaged(
                        packets,
                        format!("a packet is of interface {at}, which the file does not describe"),
                    ),
                })?;
                if let Some(frame) = frame {
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

fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(file)
}

fn text<I: std::fmt::Debug>(error: &PcapError<I>) -> String {
    match error {
        PcapError::UnexpectedEof | PcapError::Incomplete(_) => "the file ends inside a packet".into(),
        PcapError::Eof => "the file is empty".into(),
        PcapError::HeaderNotRecognized => "the header is not one of pcap or pcapng".into(),
        PcapError::BufferTooSmall => format!("a packet larger than {BUFFER_BYTES} bytes"),
        PcapError::ReadError => "the disk gave an error".into(),
        _ => "a block contradicts itself".into(),
    }
}

impl Header {
    /// The frame in a block, if it is one.
    fn frame<'a>(&mut self, block: &'a PcapBlockOwned<'a>) -> Result<Option<Frame<'a>>, Refused> {
        match block {
            PcapBlockOwned::LegacyHeader(file) => {
                self.nanoseconds = file.is_nanosecond_precision();
                let (link, fcs) = network(file.network);
                self.interfaces = vec![Interface { link, unit: 0, offset_s: 0, fcs }];
                Ok(None)
            }
            PcapBlockOwned::Legacy(packet) => {
                let unit = if self.nanoseconds { 1 } else { 1_000 };
                let time_ns = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_usec) * unit;
                self.captured(0, packet.data, packet.caplen, packet.origlen, time_ns)
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.many = true;
                self.interfaces.clear();
                Ok(None)
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                if let Err(number) = link(interface.linktype) {
                    tracing::warn!(
                        interface = self.interfaces.len(),
                        link_type = number,
                        "packets of an interface of this capture are counted and not read"
                    );
                }
                self.interfaces.push(Interface {
                    link: interface.linktype,
                    unit: interface.ts_resolution().unwrap_or(1_000_000),
                    offset_s: u64::try_from(interface.if_tsoffset).unwrap_or(0),
                    fcs: 0,
                });
                Ok(None)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let at = usize::try_from(packet.if_id).unwrap_or(usize::MAX);
                let time_ns =
                    self.interfaces.get(at).map_or(0, |from| wall_ns(ticks, from.unit, from.offset_s));
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
    ) -> Result<Option<Frame<'a>>, Refused> {
        let from = self.interfaces.get(interface).ok_or(Refused::Interface(interface))?;
        let link = match link(from.link) {
            Ok(link) => link,
            Err(_) if self.many => Link::Unread,
            Err(number) => return Err(Refused::Link(number)),
        };
        let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        let length = size(length).max(size(captured)).saturating_sub(from.fcs);
        // A block of pcapng is padded to four bytes.
        let data = data.get(..data.len().min(size(captured)).min(length)).unwrap_or(data);
        Ok(Some(Frame { data, length, time_ns, link }))
    }
}

/// A pcap header's link type and the bytes of frame check sequence behind each packet. Both stand in one word; what
/// else may stand there says nothing (libpcap reads past it, too).
const fn network(word: Linktype) -> (Linktype, usize) {
    const LINK_TYPE: i32 = 0x03ff_ffff;
    const HAS_FCS: i32 = 0x0400_0000;
    let fcs = if word.0 & HAS_FCS == 0 { 0 } else { (word.0.cast_unsigned() >> 28) as usize * 2 };
    (Linktype(word.0 & LINK_TYPE), fcs)
}

const fn link(linktype: Linktype) -> Result<Link, i32> {
    match linktype.0 {
        1 => Ok(Link::Ethernet),
        12 | 14 | 101 => Ok(Link::RawIp),
        228 => Ok(Link::Version(4)),
        229 => Ok(Link::Version(6)),
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const FRAME: [u8; 60] = [0; 60];

    /// Lengths on the wire and in the capture of each packet, and the error, if any.
    fn lengths(file: &[u8]) -> (Vec<(usize, usize)>, Option<String>) {
        let mut at = tempfile::NamedTempFile::new().unwrap();
        at.write_all(file).unwrap();
        let mut seen = Vec::new();
        let end = read(at.path(), &mut |frame| seen.push((frame.length, frame.data.len())));
        (seen, end.err().map(|error| error.to_string()))
    }

    /// A pcap file whose header has that word for the link type, with one packet of which `captured` bytes are there.
    fn pcap(network: u32, captured: usize, length: u32) -> Vec<u8> {
        let mut file = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, network].map(u32::to_le_bytes).concat();
        let size = u32::try_from(captured).unwrap();
        file.extend([1_700_000_000, 0, size, length].map(u32::to_le_bytes).concat());
        file.extend(&FRAME[..captured]);
        file
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = u32::try_from(body.len()).unwrap() + 12;
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), body, &size.to_le_bytes()].concat()
    }

    #[test]
    fn a_frame_check_sequence_is_no_part_of_the_packet() {
        // The format's draft: bit 26 says that the top four bits hold its length in units of 16 bits.
        assert_eq!(lengths(&pcap(1, 60, 60)), (vec![(60, 60)], None));
        assert_eq!(lengths(&pcap(0x2400_0001, 60, 60)), (vec![(56, 56)], None));
        assert_eq!(lengths(&pcap(0x2400_0001, 50, 60)), (vec![(56, 50)], None));
        // Without that bit they mean nothing; tcpdump's own test captures have such headers.
        assert_eq!(lengths(&pcap(0x3000_0001, 60, 60)), (vec![(60, 60)], None));
        assert_eq!(lengths(&pcap(0x3400_0001, 4, 4)), (vec![(0, 0)], None));
    }

    #[test]
    fn a_packet_of_an_interface_that_is_not_described_is_an_error() {
        let section =
            block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        let interface = block(1, &[1, 0, 0, 0, 255, 255, 0, 0]);
        let packet =
            |at: u32| block(6, &[&[at, 0, 0, 60, 60].map(u32::to_le_bytes).concat()[..], &FRAME].concat());
        let (seen, error) = lengths(&[section, interface, packet(0), packet(7), packet(0)].concat());
        assert_eq!(seen, [(60, 60)]);
        let error = error.unwrap();
        assert!(error.contains("after 1 packets") && error.contains("interface 7"), "{error}");
    }

    #[test]
    fn packets_of_an_interface_that_is_not_read_do_not_end_the_capture() {
        let section =
            block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        let interface = |link: u8| block(1, &[link, 0, 0, 0, 255, 255, 0, 0]);
        let packet =
            |at: u32| block(6, &[&[at, 0, 0, 60, 60].map(u32::to_le_bytes).concat()[..], &FRAME].concat());
        // 105 is IEEE 802.11.
        let file = [section, interface(105), interface(1), packet(0), packet(1), packet(0)].concat();
        assert_eq!(lengths(&file), (vec![(60, 60); 3], None));
        // A file that has only such packets is refused.
        let (seen, error) = lengths(&pcap(105, 60, 60));
        assert!(seen.is_empty() && error.unwrap().contains("link type 105"));
    }

    #[test]
    fn an_empty_file_and_a_folder_are_called_by_their_names() {
        assert!(lengths(b"").1.unwrap().ends_with("the file is empty"));
        let folder = read(&std::env::temp_dir(), &mut |_| ()).unwrap_err().to_string();
        assert!(folder.contains("is a directory"), "{folder}");
    }
}
