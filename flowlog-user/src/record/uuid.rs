use super::{Flow, Node};

/// Low bits of the node's boot number; the rest of the 122 bits is the record's own.
const BOOT_BITS: u32 = 34;
const CONNECTION_BITS: u32 = 53;

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
        let mut id =
            (own >> 74) << 80 | 8 << 76 | (own >> 62 & 0xfff) << 64 | 2 << 62 | (own & ((1 << 62) - 1));
        let mut text = [b'-'; UUID_LENGTH];
        for (at, place) in text.iter_mut().enumerate().rev() {
            if matches!(at, 8 | 13 | 18 | 23) {
                continue;
            }
            let nibble = (id & 0xf) as u8;
            *place = if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble };
            id >>= 4;
        }
        text
    }
}
