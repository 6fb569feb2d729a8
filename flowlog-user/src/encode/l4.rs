use super::json::{Message, message, span};
use super::text::{key, nonzero};
use crate::record::L4;
use crate::record::fields::{Field, FieldSet, Mask};

const L4_SET: FieldSet = span(Field::TcpSourcePort, Field::IgmpGroupAddress);
pub(super) const FLAGS_SET: FieldSet = span(Field::TcpFin, Field::TcpNs);

/// TCP flags in declaration order with their bit in the header's flag byte.
pub(super) const TCP_FLAGS: [(Field, u8, &str); 8] = [
    (Field::TcpFin, 0, "\"FIN\":true"),
    (Field::TcpSyn, 1, "\"SYN\":true"),
    (Field::TcpRst, 2, "\"RST\":true"),
    (Field::TcpPsh, 3, "\"PSH\":true"),
    (Field::TcpAck, 4, "\"ACK\":true"),
    (Field::TcpUrg, 5, "\"URG\":true"),
    (Field::TcpEce, 6, "\"ECE\":true"),
    (Field::TcpCwr, 7, "\"CWR\":true"),
];

/// Whether the mask keeps anything of the member that is set.
pub(super) fn is_kept(l4: L4, mask: &Mask) -> bool {
    const TCP: FieldSet = span(Field::TcpSourcePort, Field::TcpNs);
    mask.keep.intersects(match l4 {
        L4::Tcp { .. } => TCP,
        L4::Udp { .. } => const { span(Field::UdpSourcePort, Field::UdpDestinationPort) },
        L4::Sctp { .. } => const { span(Field::SctpSourcePort, Field::SctpDestinationPort) },
        L4::Icmpv4 { .. } => const { span(Field::Icmpv4Type, Field::Icmpv4Code) },
        L4::Icmpv6 { .. } => const { span(Field::Icmpv6Type, Field::Icmpv6Code) },
        L4::Other => FieldSet::NONE,
    })
}

/// Writes `l4`. Of its union only the member that is set is ever written.
pub(super) fn l4(out: &mut Vec<u8>, l4: L4, mask: &Mask) {
    let whole = Message { key: "\"l4\":", fields: L4_SET, present: l4 != L4::Other };
    message(out, mask, &whole, |out| match l4 {
        L4::Tcp { source_port, destination_port, flags } => {
            tcp(out, source_port, destination_port, flags, mask);
        }
        L4::Udp { source_port, destination_port } => pair(
            out,
            "\"UDP\":",
            (Field::UdpSourcePort, "\"source_port\":", source_port),
            (Field::UdpDestinationPort, "\"destination_port\":", destination_port),
            mask,
        ),
        L4::Sctp { source_port, destination_port } => pair(
            out,
            "\"SCTP\":",
            (Field::SctpSourcePort, "\"source_port\":", source_port),
            (Field::SctpDestinationPort, "\"destination_port\":", destination_port),
            mask,
        ),
        L4::Icmpv4 { icmp_type, code } => pair(
            out,
            "\"ICMPv4\":",
            (Field::Icmpv4Type, "\"type\":", icmp_type.into()),
            (Field::Icmpv4Code, "\"code\":", code.into()),
            mask,
        ),
        L4::Icmpv6 { icmp_type, code } => pair(
            out,
            "\"ICMPv6\":",
            (Field::Icmpv6Type, "\"type\":", icmp_type.into()),
            (Field::Icmpv6Code, "\"code\":", code.into()),
            mask,
        ),
        L4::Other => {}
    });
}

/// A member of two numbers.
pub(super) fn pair(
    out: &mut Vec<u8>,
    quoted: &'static str,
    first: (Field, &str, u16),
    second: (Field, &str, u16),
    mask: &Mask,
) {
    let fields = FieldSet::NONE.with(first.0).with(second.0);
    message(out, mask, &Message { key: quoted, fields, present: true }, |out| {
        for (field, quoted, value) in [first, second] {
            if mask.keep.has(field) {
                nonzero(out, quoted, value.into());
            }
        }
    });
}

fn tcp(out: &mut Vec<u8>, source_port: u16, destination_port: u16, flags: u8, mask: &Mask) {
    const FIELDS: FieldSet = span(Field::TcpSourcePort, Field::TcpNs);
    message(out, mask, &Message { key: "\"TCP\":", fields: FIELDS, present: true }, |out| {
        if mask.keep.has(Field::TcpSourcePort) {
            nonzero(out, "\"source_port\":", source_port.into());
        }
        if mask.keep.has(Field::TcpDestinationPort) {
            nonzero(out, "\"destination_port\":", destination_port.into());
        }
        message(out, mask, &Message { key: "\"flags\":", fields: FLAGS_SET, present: true }, |out| {
            for (field, bit, quoted) in TCP_FLAGS {
                if flags >> bit & 1 == 1 && mask.keep.has(field) {
                    key(out, quoted);
                }
            }
        });
    });
}
