use super::icmp;
use super::{Dropped, Flow, L4};

/// TCP flags in the order of Hubble's summaries, with their bit in the header's flag byte.
const TCP_FLAGS: [(u8, &str); 8] =
    [(1, "SYN"), (4, "ACK"), (2, "RST"), (0, "FIN"), (3, "PSH"), (5, "URG"), (6, "ECE"), (7, "CWR")];

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

impl Flow {
    /// Appends `Summary`: Hubble's text, then event and counters, which its client shows nowhere else. ASCII that
    /// needs no escapes.
    pub fn summary(&self, out: &mut Vec<u8>) {
        summary(out, self);
    }
}

fn summary(out: &mut Vec<u8>, flow: &Flow) {
    transport(out, flow);
    out.extend_from_slice(b"; ");
    out.extend_from_slice(flow.event.name().as_bytes());
    if let Some(reason) = flow.end_reason {
        out.extend_from_slice(b" (");
        out.extend_from_slice(reason.name().as_bytes());
        out.push(b')');
    }
    if let Some(dropped) = &flow.dropped {
        why(out, dropped);
    }
    out.extend_from_slice(b", ");
    number(out, flow.packets);
    out.extend_from_slice(if flow.packets == 1 { b" packet, " } else { b" packets, " });
    bytes(out, flow.bytes);
}

/// The kernel's words for a drop.
fn why(out: &mut Vec<u8>, dropped: &Dropped) {
    let (reason, location) = (&dropped.kind.reason, &dropped.kind.location);
    if reason.is_empty() && location.is_empty() {
        return;
    }
    out.extend_from_slice(b" (");
    out.extend_from_slice(reason.as_bytes());
    if !location.is_empty() {
        out.extend_from_slice(if reason.is_empty() { b"in " } else { b" in " });
        out.extend_from_slice(location.as_bytes());
    }
    out.push(b')');
}

fn transport(out: &mut Vec<u8>, flow: &Flow) {
    match flow.l4 {
        L4::Tcp { flags, .. } => {
            out.extend_from_slice(b"TCP Flags: ");
            let mut first = true;
            for (bit, name) in TCP_FLAGS {
                if flags >> bit & 1 == 1 {
                    if !std::mem::take(&mut first) {
                        out.extend_from_slice(b", ");
                    }
                    out.extend_from_slice(name.as_bytes());
                }
            }
        }
        L4::Udp { .. } => out.extend_from_slice(b"UDP"),
        L4::Sctp { .. } => out.extend_from_slice(b"SCTP"),
        L4::Icmpv4 { icmp_type, code } => {
            out.extend_from_slice(b"ICMPv4 ");
            icmp::v4(out, icmp_type, code);
        }
        L4::Icmpv6 { icmp_type, code } => {
            out.extend_from_slice(b"ICMPv6 ");
            icmp::v6(out, icmp_type, code);
        }
        L4::Other => {
            // No other place of the record says the protocol.
            out.extend_from_slice(flow.ip_version().name().as_bytes());
            out.extend_from_slice(if flow.fragment { b" fragment, protocol " } else { b" protocol " });
            number(out, flow.protocol);
        }
    }
}

/// `60 B`, `1.4 MiB`: one decimal, rounded half up.
fn bytes(out: &mut Vec<u8>, bytes: u64) {
    let mut unit = UNITS.iter();
    let mut name = unit.next().copied().unwrap_or_default();
    let ten = u128::from(bytes) * 10;
    let (mut tenths, mut bits) = (ten, 0_u32);
    while tenths >= 10 * 1024
        && let Some(larger) = unit.next()
    {
        name = larger;
        bits += 10;
        // By 2^bits, rounded.
        tenths = (ten + (1 << (bits - 1))) >> bits;
    }
    let tenths = u64::try_from(tenths).unwrap_or(u64::MAX);
    number(out, tenths / 10);
    if bits > 0 {
        out.push(b'.');
        number(out, tenths % 10);
    }
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
}

pub(super) fn number(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}
