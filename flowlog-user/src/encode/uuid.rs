use super::text::hex;
use crate::record::{Flow, Node};

/// Low bits of the node's boot number; the rest of the 122 bits is the record's own.
const BOOT_BITS: u32 = 34;
const CONNECTION_BITS: u32 = 53;

/// Writes a UUID of version 8 (RFC 9562), quoted: boot (34 bits), connection (53), cadence (2), direction (1) and
/// number (32), in this order. Unique per record; records of a connection differ in the last digits only, so that
/// it compresses.
pub(super) fn uuid(out: &mut Vec<u8>, flow: &Flow, node: &Node) {
    let bits = |value: u64, count: u32| u128::from(value) & ((1 << count) - 1);
    let mut own = bits(node.boot, BOOT_BITS);
    own = own << CONNECTION_BITS | bits(flow.connection, CONNECTION_BITS);
    own = own << 2 | bits(flow.cadence.into(), 2);
    own = own << 1 | u128::from(flow.high_to_low);
    own = own << 32 | u128::from(flow.number);
    // 48 bits, version, 12 bits, variant, 62 bits.
    let id = (own >> 74) << 80 | 8 << 76 | (own >> 62 & 0xfff) << 64 | 2 << 62 | (own & ((1 << 62) - 1));
    out.push(b'"');
    hex(out, id >> 96, 8);
    for (shift, digits) in [(80, 4), (64, 4), (48, 4), (0, 12)] {
        out.push(b'-');
        hex(out, id >> shift, digits);
    }
    out.push(b'"');
}
