//! What a packet weighs: segments on the wire and their layer-2 bytes.

use crate::Packet;

/// Bytes of a VLAN tag that stands in the kernel's metadata and not in the packet.
const TAG_BYTES: u64 = 4;

/// Packets and layer-2 bytes (without FCS) that a buffer of `length` bytes becomes on the wire.
///
/// `header_bytes` is everything before the innermost payload; offload repeats it in each segment. Devices that
/// leave `gso_segs` at 0 (virtio, tap, tun) still give `gso_size`, the payload of one segment.
#[must_use]
#[inline(always)]
pub const fn segments_and_bytes(
    length: u64,
    header_bytes: u64,
    gso_segs: u32,
    gso_size: u32,
    vlan_in_metadata: bool,
) -> (u64, u64) {
    let header_bytes = if header_bytes > length { length } else { header_bytes };
    let payload = length - header_bytes;
    let packets = if gso_segs != 0 {
        gso_segs as u64
    } else if gso_size != 0 && payload != 0 {
        // `payload` is a packet's length: far from overflow.
        (payload + gso_size as u64 - 1) / gso_size as u64
    } else {
        1
    };
    let tag = if vlan_in_metadata { TAG_BYTES } else { 0 };
    (packets, payload + packets * (header_bytes + tag))
}

/// [`segments_and_bytes`] of a parsed packet, without the jumbo header that never reaches the wire.
#[must_use]
#[inline(always)]
pub fn measure(
    packet: &Packet,
    length: u64,
    gso_segs: u32,
    gso_size: u32,
    vlan_in_metadata: bool,
) -> (u64, u64) {
    let jumbo = if gso_size == 0 { 0 } else { u64::from(packet.jumbo_bytes) };
    segments_and_bytes(
        length.saturating_sub(jumbo),
        u64::from(packet.header_bytes).saturating_sub(jumbo),
        gso_segs,
        gso_size,
        vlan_in_metadata,
    )
}
