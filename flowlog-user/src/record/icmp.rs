//! Names of ICMP types and codes as Hubble's summaries show them.

use super::summary::number;

/// What is known of a type: its name, and whether its codes mean something.
type Known = Option<(&'static str, bool)>;

/// Writes `EchoRequest`, `DestinationUnreachable(Port)`, `Redirect(Code: 9)` or `42(0)`.
pub(super) fn v4(out: &mut Vec<u8>, icmp_type: u8, code: u8) {
    let known: Known = match icmp_type {
        0 => Some(("EchoReply", false)),
        3 => Some(("DestinationUnreachable", true)),
        4 => Some(("SourceQuench", false)),
        5 => Some(("Redirect", true)),
        8 => Some(("EchoRequest", false)),
        9 => Some(("RouterAdvertisement", false)),
        10 => Some(("RouterSolicitation", false)),
        11 => Some(("TimeExceeded", true)),
        12 => Some(("ParameterProblem", true)),
        13 => Some(("TimestampRequest", false)),
        14 => Some(("TimestampReply", false)),
        15 => Some(("InfoRequest", false)),
        16 => Some(("InfoReply", false)),
        17 => Some(("AddressMaskRequest", false)),
        18 => Some(("AddressMaskReply", false)),
        _ => None,
    };
    let of_code = match (icmp_type, code) {
        (3 | 5, 0) => "Net",
        (3 | 5, 1) => "Host",
        (3, 2) => "Protocol",
        (3, 3) => "Port",
        (3, 4) => "FragmentationNeeded",
        (3, 5) => "SourceRoutingFailed",
        (3, 6) => "NetUnknown",
        (3, 7) => "HostUnknown",
        (3, 8) => "SourceIsolated",
        (3, 9) => "NetAdminProhibited",
        (3, 10) => "HostAdminProhibited",
        (3, 11) => "NetTOS",
        (3, 12) => "HostTOS",
        (3, 13) => "CommAdminProhibited",
        (3, 14) => "HostPrecedence",
        (3, 15) => "PrecedenceCutoff",
        (5, 2) => "TOS+Net",
        (5, 3) => "TOS+Host",
        (11, 0) => "TTLExceeded",
        (11, 1) => "FragmentReassemblyTimeExceeded",
        (12, 0) => "PointerIndicatesError",
        (12, 1) => "MissingOption",
        (12, 2) => "BadLength",
        _ => "",
    };
    name(out, known, of_code, icmp_type, code);
}

/// The same for ICMPv6.
pub(super) fn v6(out: &mut Vec<u8>, icmp_type: u8, code: u8) {
    let known: Known = match icmp_type {
        1 => Some(("DestinationUnreachable", true)),
        2 => Some(("PacketTooBig", false)),
        3 => Some(("TimeExceeded", true)),
        4 => Some(("ParameterProblem", true)),
        128 => Some(("EchoRequest", false)),
        129 => Some(("EchoReply", false)),
        133 => Some(("RouterSolicitation", false)),
        134 => Some(("RouterAdvertisement", false)),
        135 => Some(("NeighborSolicitation", false)),
        136 => Some(("NeighborAdvertisement", false)),
        137 => Some(("Redirect", false)),
        _ => None,
    };
    let of_code = match (icmp_type, code) {
        (1, 0) => "NoRouteToDst",
        (1, 1) => "AdminProhibited",
        (1, 2) => "BeyondScopeOfSrc",
        (1, 3) => "AddressUnreachable",
        (1, 4) => "PortUnreachable",
        (1, 5) => "SrcAddressFailedPolicy",
        (1, 6) => "RejectRouteToDst",
        (3, 0) => "HopLimitExceeded",
        (3, 1) => "FragmentReassemblyTimeExceeded",
        (4, 0) => "ErroneousHeaderField",
        (4, 1) => "UnrecognizedNextHeader",
        (4, 2) => "UnrecognizedIPv6Option",
        _ => "",
    };
    name(out, known, of_code, icmp_type, code);
}

fn name(out: &mut Vec<u8>, known: Known, of_code: &str, icmp_type: u8, code: u8) {
    let Some((of_type, has_codes)) = known else {
        number(out, icmp_type);
        out.push(b'(');
        number(out, code);
        out.push(b')');
        return;
    };
    out.extend_from_slice(of_type.as_bytes());
    if !has_codes && code == 0 {
        return;
    }
    out.push(b'(');
    if of_code.is_empty() {
        out.extend_from_slice(b"Code: ");
        number(out, code);
    } else {
        out.extend_from_slice(of_code.as_bytes());
    }
    out.push(b')');
}
