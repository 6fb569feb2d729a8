use super::of_mut;
use crate::Packet;
use flowlog_abi::{Around, FlowEntry};

pub(super) const NOTHING: Around = Around {
    source: [0; 16],
    destination: [0; 16],
    vni: 0,
    source_port: 0,
    destination_port: 0,
    vlan: 0,
    inner_vlan: 0,
    protocol: 0,
    version: 0,
    zero: [0; 2],
};

/// The same, of which the compiler does not know that it is all zeroes: it would clear it by a call.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "each is 0")]
pub(super) fn hidden_nothing() -> Around {
    let zero = core::hint::black_box(0_u64);
    let address = (u128::from(zero) << 64 | u128::from(zero)).to_ne_bytes();
    Around {
        source: address,
        destination: address,
        vni: zero as u32,
        source_port: zero as u16,
        destination_port: zero as u16,
        vlan: zero as u16,
        inner_vlan: zero as u16,
        protocol: zero as u8,
        version: zero as u8,
        zero: [zero as u8; 2],
    }
}

/// Notes in a packet's direction which VLAN tags and which tunnel it came in, if it came in any: a flow may be bare at
/// one interface and wrapped at the next. `around` is that of a packet inside a tunnel. Plain packets touch nothing.
#[inline(always)]
pub fn note_around(entry: &mut FlowEntry, direction: usize, packet: &Packet, around: Option<&Around>) {
    if packet.vlans != 0 || packet.is_inside() {
        wrap(of_mut(&mut entry.around, direction), packet, around);
    }
}

/// [`note_around`], of one direction.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
pub(super) fn wrap(kept: &mut Around, packet: &Packet, around: Option<&Around>) {
    if packet.vlans != 0 && (kept.vlan as u32) << 16 | kept.inner_vlan as u32 != packet.vlans {
        kept.vlan = (packet.vlans >> 16) as u16;
        kept.inner_vlan = packet.vlans as u16;
    }
    if let Some(around) = around
        && packet.is_inside()
        && !same_tunnel(kept, around)
    {
        kept.source = around.source;
        kept.destination = around.destination;
        kept.vni = around.vni;
        kept.source_port = around.source_port;
        kept.destination_port = around.destination_port;
        kept.version = around.version;
        // Last: it says that the others are there.
        kept.protocol = around.protocol;
    }
}

/// Word by word: the derived comparison is one of bytes.
#[inline(always)]
fn same_tunnel(one: &Around, other: &Around) -> bool {
    let rest = |around: &Around| {
        (around.vni as u64) << 32 | (around.source_port as u64) << 16 | around.destination_port as u64
    };
    let kind = |around: &Around| (around.protocol as u32) << 8 | around.version as u32;
    kind(one) == kind(other)
        && rest(one) == rest(other)
        && u128::from_ne_bytes(one.source) == u128::from_ne_bytes(other.source)
        && u128::from_ne_bytes(one.destination) == u128::from_ne_bytes(other.destination)
}
