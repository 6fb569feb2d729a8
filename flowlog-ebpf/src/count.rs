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
        payload.div_ceil(gso_size as u64)
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

#[cfg(test)]
mod tests {
    use super::segments_and_bytes;

    /// Seen on the wire (see the design): the sums are those of the segments' captured lengths.
    #[test]
    fn offloaded_buffers_weigh_what_the_wire_carries() {
        // UDP segmentation, 11 datagrams: ten of 1,000 bytes and one of 500 in one buffer of 10,542.
        assert_eq!(segments_and_bytes(10_542, 42, 11, 1_000, false), (11, 10_962));
        // The same inside VXLAN: 50 bytes more before each payload.
        assert_eq!(segments_and_bytes(10_592, 92, 11, 1_000, false), (11, 11_512));
        // From virtio: the number of segments is not said.
        assert_eq!(segments_and_bytes(10_542, 42, 0, 1_000, false), (11, 10_962));
    }

    #[test]
    fn ordinary_packets_weigh_their_length() {
        assert_eq!(segments_and_bytes(98, 42, 0, 0, false), (1, 98));
        assert_eq!(segments_and_bytes(98, 42, 1, 0, true), (1, 102));
        assert_eq!(segments_and_bytes(60, 64, 0, 1_000, false), (1, 60));
        // Each segment carries the tag.
        assert_eq!(segments_and_bytes(2_054, 54, 2, 1_000, true), (2, 2_116));
    }
}
