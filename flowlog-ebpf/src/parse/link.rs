use super::Bytes;
use flowlog_abi::Reason;

pub(super) enum Network {
    Ipv4,
    Ipv6,
}

/// What follows an Ethernet header and its tags.
pub(super) struct Payload {
    pub(super) network: Network,
    /// Where it begins.
    pub(super) at: usize,
    /// As [`super::Packet::vlans`].
    pub(super) vlans: u32,
}

const HEADER_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
/// Bits of a tag that are the VLAN's number.
pub(super) const VLAN_BITS: u16 = 0x0fff;
/// Tags followed in the data; one more may be in the kernel's metadata.
const TAGS_MAX: usize = 3;
/// Below this the field is a length (IEEE 802.3) and an LLC header follows.
const ETHERTYPE_MIN: u16 = 0x0600;

const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100)
}

/// What follows the Ethernet header at `start` and its VLAN tags.
#[inline(always)]
pub(super) fn ethernet(bytes: &(impl Bytes + ?Sized), start: usize) -> Result<Payload, Reason> {
    // The whole header must be there, though only the type is looked at.
    let [.., high, low] = bytes.read::<HEADER_BYTES>(start).ok_or(Reason::TruncatedLink)?;
    let mut ethertype = u16::from_be_bytes([high, low]);
    let mut at = start + HEADER_BYTES;
    let mut vlans = 0;
    for depth in 0..TAGS_MAX {
        if !is_tag(ethertype) {
            break;
        }
        let [tci0, tci1, high, low] = bytes.read::<TAG_BYTES>(at).ok_or(Reason::TruncatedLink)?;
        let vlan = u32::from(u16::from_be_bytes([tci0, tci1]) & VLAN_BITS);
        vlans |= match depth {
            0 => vlan << 16,
            1 => vlan,
            _ => 0,
        };
        ethertype = u16::from_be_bytes([high, low]);
        at = bytes.forget(at + TAG_BYTES);
    }
    match ethertype {
        0x0800 => Ok(Payload { network: Network::Ipv4, at, vlans }),
        0x86dd => Ok(Payload { network: Network::Ipv6, at, vlans }),
        0x0806 => Err(Reason::Arp),
        tag if is_tag(tag) => Err(Reason::TooManyHeaders),
        length if length < ETHERTYPE_MIN => Err(Reason::Llc),
        _ => Err(Reason::OtherEthertype),
    }
}
