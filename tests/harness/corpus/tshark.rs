//! A capture as tshark reads it: each frame's protocols and header fields, from which its flow follows.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{BIG, LONGER, NO_LENGTH, NOT_IP, NOT_UNDERSTOOD, Reading, Tuple};

/// How long after its first a later fragment is joined to it, and how long after the last one.
const REST_S: f64 = 30.0;
const PASSAGE_S: f64 = 1.0;

macro_rules! fields {
    ($($name:ident = $text:literal),* $(,)?) => {
        const FIELDS: &[&str] = &[$($text),*];

        /// A frame's fields as tshark prints them: all occurrences, with commas.
        #[derive(Debug)]
        struct Frame<'a> { $($name: &'a str),* }

        impl<'a> Frame<'a> {
            fn of(line: &'a str) -> Option<Self> {
                let mut columns = line.split('\t');
                Some(Self { $($name: columns.next()?),* })
            }
        }
    };
}

fields! {
    time = "frame.time_epoch",
    length = "frame.len",
    encapsulation = "frame.encap_type",
    protocols = "frame.protocols",
    ip_source = "ip.src",
    ip_destination = "ip.dst",
    ip_protocol = "ip.proto",
    ip_header = "ip.hdr_len",
    ip_length = "ip.len",
    ip_version = "ip.version",
    ip_id = "ip.id",
    ip_more = "ip.flags.mf",
    ip_offset = "ip.frag_offset",
    ip6_source = "ipv6.src",
    ip6_destination = "ipv6.dst",
    ip6_next = "ipv6.nxt",
    ip6_length = "ipv6.plen",
    hop_next = "ipv6.hopopts.nxt",
    routing_next = "ipv6.routing.nxt",
    options_next = "ipv6.dstopts.nxt",
    authentication_next = "ah.next_header",
    fragment_next = "ipv6.fraghdr.nxt",
    fragment_offset = "ipv6.fraghdr.offset",
    fragment_more = "ipv6.fraghdr.more",
    fragment_id = "ipv6.fraghdr.ident",
    tcp_source = "tcp.srcport",
    tcp_destination = "tcp.dstport",
    tcp_header = "tcp.hdr_len",
    tcp_last = "tcp.urgent_pointer",
    udp_source = "udp.srcport",
    udp_destination = "udp.dstport",
    udp_length = "udp.length",
    udp_last = "udp.checksum",
    sctp_source = "sctp.srcport",
    sctp_destination = "sctp.dstport",
    sctp_last = "sctp.checksum",
    icmp_type = "icmp.type",
    icmp_code = "icmp.code",
    icmp_id = "icmp.ident",
    icmp6_type = "icmpv6.type",
    icmp6_code = "icmpv6.code",
    icmp6_id = "icmpv6.echo.identifier",
}

/// A packet that can be followed.
struct Packet {
    tuple: Tuple,
    /// Of a fragment: whether others come before it and after it, and what they have in common.
    fragment: Option<(bool, bool, u32)>,
}

/// Number of frames, the reading, and what tshark said when the file ends inside a packet.
pub(super) fn read(file: &Path) -> Result<(u64, Reading, Option<String>)> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file).args(["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    for off in ["ip.defragment", "ipv6.defragment", "tcp.desegment_tcp_streams", "sctp.reassembly"] {
        command.args(["-o", &format!("{off}:FALSE")]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.stdin(Stdio::null()).output().context("cannot start tshark")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        !text.is_empty() || output.status.success(),
        "tshark: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8_lossy(&output.stderr);
    let cut =
        said.lines().find(|line| line.contains("cut short in the middle of a packet")).map(str::to_owned);
    let mut firsts = HashMap::new();
    let (mut frames, mut now_s) = (0, 0_f64);
    let mut reading = Reading::default();
    let records = records(file)?;
    for (n, line) in text.lines().enumerate() {
        let frame = Frame::of(line).with_context(|| format!("tshark printed {line:?}"))?;
        frames += 1;
        now_s = now_s.max(frame.time.parse().unwrap_or(0.0));
        let record = records.get(n);
        let more = record.map_or(0, |record| record.more);
        let bytes = (frame.length.parse::<u64>()? + more).saturating_sub(frame.capture_header());
        let lengthless = frame.is_lengthless(record);
        let kinds = [(LONGER, more > 0), (BIG, frame.is_big_udp()), (NO_LENGTH, lengthless)];
        for (kind, _) in kinds.into_iter().filter(|(_, is)| *is) {
            add(reading.otherwise.entry(kind).or_default(), bytes);
        }
        let packet = if lengthless { Err(NOT_UNDERSTOOD) } else { frame.packet(record) };
        let sum = match packet {
            Ok(packet) => reading.flows.entry(join(packet, &mut firsts, now_s)).or_default(),
            Err(kind) => reading.others.entry(kind).or_default(),
        };
        add(sum, bytes);
    }
    Ok((frames, reading, cut))
}

fn add(sum: &mut (u64, u64), bytes: u64) {
    sum.0 += 1;
    sum.1 += bytes;
}

/// What tshark does not say of a record.
struct Record {
    /// Bytes it holds beyond those that it says the packet had.
    more: u64,
    /// The four bytes behind an Ethernet and an IPv6 header.
    ports: Option<[u8; 4]>,
    /// The total length of an IPv4 header behind an Ethernet header.
    ipv4_length: Option<u16>,
}

/// The records of a pcap file; none of a file in another format.
fn records(file: &Path) -> Result<Vec<Record>> {
    const BEHIND_IPV6: usize = 14 + 40;
    let bytes = std::fs::read(file)?;
    let word = |at: usize| bytes.get(at..at + 4).and_then(|word| <[u8; 4]>::try_from(word).ok());
    let read: fn([u8; 4]) -> u32 = match word(0) {
        Some([0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d]) => u32::from_be_bytes,
        Some([0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1]) => u32::from_le_bytes,
        _ => return Ok(Vec::new()),
    };
    let mut records = Vec::new();
    let mut at = 24;
    while let (Some(holds), Some(says)) = (word(at + 8).map(read), word(at + 12).map(read)) {
        let ports = word(at + 16 + BEHIND_IPV6).filter(|_| holds as usize >= BEHIND_IPV6 + 4);
        let ipv4 = word(at + 16 + 14).filter(|_| holds as usize >= 14 + 4);
        let ipv4_length = ipv4.map(|[_, _, high, low]| u16::from_be_bytes([high, low]));
        records.push(Record { more: holds.saturating_sub(says).into(), ports, ipv4_length });
        at += 16 + holds as usize;
    }
    Ok(records)
}

/// When and with which ports a packet's first fragment came.
type Firsts = HashMap<(IpAddr, IpAddr, u8, u32), (f64, (u16, u16))>;

/// A later fragment has the ports of its first.
fn join(packet: Packet, firsts: &mut Firsts, now_s: f64) -> Tuple {
    let Packet { mut tuple, fragment } = packet;
    let Some((later, more, id)) = fragment else { return tuple };
    let key = (tuple.source, tuple.destination, tuple.protocol, id);
    if !later {
        firsts.insert(key, (now_s + REST_S, tuple.ports));
    } else if let Some((until, ports)) = firsts.get_mut(&key).filter(|(until, _)| now_s < *until) {
        tuple.ports = *ports;
        tuple.fragment = false;
        if !more {
            *until = until.min(now_s + PASSAGE_S);
        }
    }
    tuple
}

/// The first occurrence of a field.
fn first(field: &str) -> Option<&str> {
    field.split(',').next().filter(|text| !text.is_empty())
}

fn number<T: TryFrom<u64>>(field: &str) -> Option<T> {
    let text = first(field)?;
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    T::try_from(value).ok()
}

fn is_true(field: &str) -> bool {
    matches!(first(field), Some("1" | "True"))
}

impl Frame<'_> {
    /// Bytes in front of the packet that were never on a wire (wiretap's numbers of link types).
    fn capture_header(&self) -> u64 {
        match self.encapsulation {
            "15" => 4,
            "25" => 16,
            "210" => 20,
            _ => 0,
        }
    }

    /// The outermost packet, if the frame's own link header, or a VLAN tag, is right in front of it.
    fn packet(&self, record: Option<&Record>) -> Result<Packet, &'static str> {
        // Raw IP of either version and of one; and a frame that ends within its link header.
        if matches!(self.encapsulation, "7" | "129" | "130") && !self.protocols.contains("ip")
            || !self.protocols.contains(':') && !self.protocols.starts_with("ip")
        {
            return Err(NOT_UNDERSTOOD);
        }
        for layer in self.protocols.split(':') {
            match layer {
                "eth" | "ethertype" | "vlan" | "ieee8021ad" | "sll" | "null" | "raw" => {}
                "ip" => return self.ipv4(),
                "ipv6" if self.is_big_udp6() => return self.big_udp6(record),
                "ipv6" => return self.ipv6(),
                _ => break,
            }
        }
        Err(NOT_IP)
    }

    /// IPv4 with a total length of 0, which tshark replaces by the frame's.
    fn is_lengthless(&self, record: Option<&Record>) -> bool {
        self.protocols.starts_with("eth:ethertype:ip:")
            && record.is_some_and(|record| record.ipv4_length == Some(0))
            && self.length.parse().is_ok_and(|bytes: u64| bytes <= 65_535)
    }

    /// UDP in a packet that is too long for its length fields.
    fn is_big_udp(&self) -> bool {
        self.is_big_udp6()
            || first(self.udp_length) == Some("0")
                && self.length.parse().is_ok_and(|bytes: u64| bytes > 65_535)
    }

    /// The same over IPv6, of which tshark reads nothing behind a length of 0.
    fn is_big_udp6(&self) -> bool {
        self.protocols == "eth:ethertype:ipv6:udp"
            && first(self.ip6_length) == Some("0")
            && self.length.parse().is_ok_and(|bytes: u64| bytes > 65_535)
    }

    fn big_udp6(&self, record: Option<&Record>) -> Result<Packet, &'static str> {
        let address = |field: &str| first(field).and_then(|text| text.parse().ok()).ok_or(NOT_UNDERSTOOD);
        let (source, destination) = (address(self.ip6_source)?, address(self.ip6_destination)?);
        let [s0, s1, d0, d1] = record.and_then(|record| record.ports).ok_or(NOT_UNDERSTOOD)?;
        let ports = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        let tuple = Tuple { protocol: 17, source, destination, ports, fragment: false };
        Ok(Packet { tuple, fragment: None })
    }

    fn ipv4(&self) -> Result<Packet, &'static str> {
        let address =
            |field| first(field).and_then(|text: &str| text.parse::<IpAddr>().ok()).ok_or(NOT_UNDERSTOOD);
        let (source, destination) = (address(self.ip_source)?, address(self.ip_destination)?);
        let header: u32 = number(self.ip_header).ok_or(NOT_UNDERSTOOD)?;
        let length: u32 = number(self.ip_length).ok_or(NOT_UNDERSTOOD)?;
        if number::<u32>(self.ip_version) != Some(4) || header < 20 || length < header {
            return Err(NOT_UNDERSTOOD);
        }
        let offset: u32 = number(self.ip_offset).unwrap_or(0);
        let more = is_true(self.ip_more);
        let id = number(self.ip_id).ok_or(NOT_UNDERSTOOD)?;
        let fragment = (offset != 0 || more).then_some((offset != 0, more, id));
        let protocol = number(self.ip_protocol).ok_or(NOT_UNDERSTOOD)?;
        self.transport(source, destination, protocol, fragment, length - header)
    }

    fn ipv6(&self) -> Result<Packet, &'static str> {
        let address =
            |field| first(field).and_then(|text: &str| text.parse::<IpAddr>().ok()).ok_or(NOT_UNDERSTOOD);
        let (source, destination) = (address(self.ip6_source)?, address(self.ip6_destination)?);
        let mut protocol: u8 = number(self.ip6_next).ok_or(NOT_UNDERSTOOD)?;
        let mut fragment = None;
        let mut used: HashMap<u8, usize> = HashMap::new();
        while let Some((_, field)) = self.extensions().iter().find(|(kind, _)| *kind == protocol) {
            let at = used.entry(protocol).or_default();
            if protocol == 44 {
                let nth = |field: &str| field.split(',').nth(*at).unwrap_or_default().to_owned();
                let (offset, more) = (nth(self.fragment_offset), nth(self.fragment_more));
                let later = number::<u32>(&offset).ok_or(NOT_UNDERSTOOD)? != 0;
                let more = is_true(&more);
                if later || more {
                    fragment = Some((later, more, number(&nth(self.fragment_id)).ok_or(NOT_UNDERSTOOD)?));
                }
            }
            let next = field.split(',').nth(*at).and_then(|text| text.parse().ok());
            *at += 1;
            // The extension header is not in the capture.
            protocol = next.ok_or(NOT_UNDERSTOOD)?;
            if fragment.is_some_and(|(later, ..)| later) {
                break;
            }
        }
        self.transport(source, destination, protocol, fragment, u32::MAX)
    }

    /// Kinds of extension header, and where tshark says what follows each.
    fn extensions(&self) -> [(u8, &str); 5] {
        [
            (0, self.hop_next),
            (43, self.routing_next),
            (44, self.fragment_next),
            (51, self.authentication_next),
            (60, self.options_next),
        ]
    }

    /// `left` is what the IP header leaves for the transport, where that can be told.
    fn transport(
        &self,
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        fragment: Option<(bool, bool, u32)>,
        left: u32,
    ) -> Result<Packet, &'static str> {
        let later = fragment.is_some_and(|(later, ..)| later);
        let ports = if later { (0, 0) } else { self.ports(source, protocol, fragment.is_some(), left)? };
        Ok(Packet { tuple: Tuple { protocol, source, destination, ports, fragment: later }, fragment })
    }

    fn ports(
        &self,
        source: IpAddr,
        protocol: u8,
        is_first: bool,
        left: u32,
    ) -> Result<(u16, u16), &'static str> {
        let pair = |from, to| number(from).zip(number(to)).ok_or(NOT_UNDERSTOOD);
        let whole = |last: &str| first(last).map(|_| ()).ok_or(NOT_UNDERSTOOD);
        match protocol {
            6 => {
                let ports = pair(self.tcp_source, self.tcp_destination)?;
                if is_first && left < 20 {
                    return Ok(ports);
                }
                whole(self.tcp_last)?;
                let header: u32 = number(self.tcp_header).ok_or(NOT_UNDERSTOOD)?;
                if header < 20 {
                    return Err(NOT_UNDERSTOOD);
                }
                if header > left && !is_first {
                    return Err(NOT_UNDERSTOOD);
                }
                Ok(ports)
            }
            17 if self.is_big_udp() => pair(self.udp_source, self.udp_destination),
            17 => whole(self.udp_last).and(pair(self.udp_source, self.udp_destination)),
            132 => whole(self.sctp_last).and(pair(self.sctp_source, self.sctp_destination)),
            1 if source.is_ipv4() => icmp(self.icmp_type, self.icmp_code, self.icmp_id, [8, 0]),
            58 if source.is_ipv6() => icmp(self.icmp6_type, self.icmp6_code, self.icmp6_id, [128, 129]),
            _ => Ok((0, 0)),
        }
    }
}

/// A ping's id, or type and code of another message, twice.
fn icmp(kind: &str, code: &str, id: &str, echo: [u16; 2]) -> Result<(u16, u16), &'static str> {
    let kind: u16 = number(kind).ok_or(NOT_UNDERSTOOD)?;
    let port = if echo.contains(&kind) {
        number(id).ok_or(NOT_UNDERSTOOD)?
    } else {
        (kind << 8) | number::<u16>(code).ok_or(NOT_UNDERSTOOD)?
    };
    Ok((port, port))
}
