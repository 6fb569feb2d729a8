use super::{Flow, Node};

/// Low bits of the node's boot number; the rest of the 122 bits is the record's own.
const BOOT_BITS: u32 = 34;
const CONNECTION_BITS: u32 = 53;

/// Where the digits of each byte begin; a dash follows the fourth, the sixth, the eighth and the tenth.
const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// Characters of a UUID.
pub(super) const UUID_LENGTH: usize = 36;

impl Flow {
    /// The record's `uuid`, of version 8 (RFC 9562): boot (34 bits), connection (53), cadence (2), direction (1) and
    /// number (32), in this order. Unique per record; records of a connection differ in the last digits only, so that
    /// it compresses.
    #[must_use]
    pub fn uuid(&self, node: &Node) -> [u8; UUID_LENGTH] {
        let bits = |value: u64, count: u32| u128::from(value) & ((1 << count) - 1);
        let mut own = bits(node.boot, BOOT_BITS);
        own = own << CONNECTION_BITS | bits(self.connection, CONNECTION_BITS);
        own = own << 2 | bits(self.cadence.into(), 2);
        own = own << 1 | u128::from(self.high_to_low);
        own = own << 32 | u128::from(self.number);
        // 48 bits, version, 12 bits, variant, 62 bits.
        let id = (own >> 74) << 80 | 8 << 76 | (own >> 62 & 0xfff) << 64 | 2 << 62 | (own & ((1 << 62) - 1));
        let mut text = [b'-'; UUID_LENGTH];
        for (byte, at) in id.to_be_bytes().into_iter().zip(PLACES) {
            if let Some(place) = text.get_mut(at..at + 2) {
                place.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
            }
        }
        text
    }
}

const fn digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble }
}
