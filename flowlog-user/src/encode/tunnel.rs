use super::json::{Message, absent, message, span};
use super::l4::pair;
use super::text::{address, key, nonzero, plain};
use crate::record::fields::{Field, FieldSet, Mask};
use crate::record::{IpVersion, Tunnel};

const TUNNEL: FieldSet = span(Field::TunnelProtocol, Field::TunnelVni);
const IP: FieldSet = span(Field::TunnelIpSource, Field::TunnelIpEncrypted);
const L4: FieldSet = span(Field::TunnelTcpSourcePort, Field::TunnelIgmpGroupAddress);

/// Writes `tunnel`: the outer headers of a flow that was found inside a tunnel. Hubble has a name for VXLAN and Geneve
/// only; ours for every kind is in `extensions`.
pub(super) fn tunnel(out: &mut Vec<u8>, tunnel: Option<&Tunnel>, mask: &Mask) {
    let whole = Message { key: "\"tunnel\":", fields: TUNNEL, present: tunnel.is_some() };
    message(out, mask, &whole, |out| {
        let Some(tunnel) = tunnel else {
            absent(out, mask, "\"IP\":", IP);
            absent(out, mask, "\"l4\":", L4);
            return;
        };
        let keep = |field| mask.keep.has(field);
        if keep(Field::TunnelProtocol)
            && let Some(name) = tunnel.kind.hubble_name()
        {
            plain(out, "\"protocol\":", name);
        }
        message(out, mask, &Message { key: "\"IP\":", fields: IP, present: true }, |out| {
            if keep(Field::TunnelIpSource) {
                key(out, "\"source\":");
                address(out, tunnel.source);
            }
            if keep(Field::TunnelIpDestination) {
                key(out, "\"destination\":");
                address(out, tunnel.destination);
            }
            if keep(Field::TunnelIpVersion) {
                plain(out, "\"ipVersion\":", IpVersion::of(tunnel.source).name());
            }
        });
        let (source, destination) = tunnel.ports;
        let has_ports = tunnel.kind.is_udp();
        message(out, mask, &Message { key: "\"l4\":", fields: L4, present: has_ports }, |out| {
            if has_ports {
                pair(
                    out,
                    "\"UDP\":",
                    (Field::TunnelUdpSourcePort, "\"source_port\":", source),
                    (Field::TunnelUdpDestinationPort, "\"destination_port\":", destination),
                    mask,
                );
            }
        });
        if keep(Field::TunnelVni) {
            nonzero(out, "\"vni\":", tunnel.vni);
        }
    });
}
