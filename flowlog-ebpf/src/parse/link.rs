use super::Bytes;
use flowlog_abi::Reason;

pub(super) enum Network {
    Ipv4,
    Ipv6,
}

const HEADER_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
/// Tags followed in the data; one more may be in the kernel's metadata.
const TAGS_MAX: usize = 3;
/// Below this the field is a length (IEEE 802.3) and an LLC header follows.
const ETHERTYPE_MIN: u16 = 0x0600;

const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100)
}

/// What follows the Ethernet header and its VLAN tags, and where.
#[inline(always)]
pub(super) fn ethernet(bytes: &(impl Bytes + ?Sized)) -> Result<(Network, usize), Reason> {
    // The whole header must be there, though only the type is looked at.
    let [.., high, low] = bytes.read::<HEADER_BYTES>(0).ok_or(Reason::TruncatedLink)?;
    let mut ethertype = u16::from_be_bytes([high, low]);
    let mut offset = HEADER_BYTES;
    for _ in 0..TAGS_MAX {
        if !is_tag(ethertype) {
            break;
        }
        let [_, _, high, low] = bytes.read::<TAG_BYTES>(offset).ok_or(Reason::TruncatedLink)?;
        ethertype = u16::from_be_bytes([high, low]);
        offset = bytes.forget(offset + TAG_BYTES);
    }
    match ethertype {
        0x0800 => Ok((Network::Ipv4, offset)),
        0x86dd => Ok((Network::Ipv6, offset)),
        0x0806 => Err(Reason::Arp),
        tag if is_tag(tag) => Err(Reason::TooManyHeaders),
        length if length < ETHERTYPE_MIN => Err(Reason::Llc),
        _ => Err(Reason::OtherEthertype),
    }
}
