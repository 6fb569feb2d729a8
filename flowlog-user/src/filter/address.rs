use std::net::{IpAddr, Ipv4Addr};

use super::json;
use crate::record::rules::Prefix;
use crate::tree::{Problems, Tree};

/// Addresses and prefixes, in one of which the flow's address must lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(Vec<Alternative>);

/// IPv4 never lies in an IPv6 prefix, nor an IPv4-mapped address in an IPv4 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alternative {
    V4 {
        net: u32,
        mask: u32,
    },
    V6 {
        net: u128,
        mask: u128,
    },
    /// Valid, but not as any record spells an address (Hubble compares texts): equals nothing.
    Never,
}

impl Addresses {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            match text.split_once('/') {
                Some((address, bits)) => prefix(item, text, address, bits, problems),
                None => exact(item, text, problems),
            }
        })
        .map(Self)
    }

    /// The prefixes as the kernel looks them up; what equals nothing is none.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = Prefix> {
        self.0.iter().filter_map(|one| match *one {
            Alternative::V4 { net, mask } => {
                let bits = Ipv4Addr::from_bits(net).to_ipv6_mapped().to_bits();
                Some(Prefix { length: 96 + length(mask.count_ones()), bits })
            }
            Alternative::V6 { net, mask } => Some(Prefix { length: length(mask.count_ones()), bits: net }),
            Alternative::Never => None,
        })
    }

    pub(super) fn matches(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => {
                let bits = address.to_bits();
                self.0.iter().any(|one| matches!(one, Alternative::V4 { net, mask } if bits & mask == *net))
            }
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                self.0.iter().any(|one| matches!(one, Alternative::V6 { net, mask } if bits & mask == *net))
            }
        }
    }
}

/// A mask's length; at most 128.
fn length(ones: u32) -> u8 {
    u8::try_from(ones).unwrap_or(0)
}

fn exact(item: &Tree, text: &str, problems: &mut Problems) -> Option<Alternative> {
    let Ok(address) = without_zone(text).parse::<IpAddr>() else {
        let message = format!("`{text}` is not an IP address; expected one like 10.0.0.1, ::1 or 10.0.0.0/8");
        problems.error(&item.place, message);
        return None;
    };
    if address.to_string() != text {
        let message = format!("matches nothing: records spell this address `{address}`; write it like that");
        problems.warning(&item.place, message);
        return Some(Alternative::Never);
    }
    Some(match address {
        IpAddr::V4(address) => Alternative::V4 { net: address.to_bits(), mask: u32::MAX },
        IpAddr::V6(address) => Alternative::V6 { net: address.to_bits(), mask: u128::MAX },
    })
}

fn prefix(
    item: &Tree,
    text: &str,
    address: &str,
    bits: &str,
    problems: &mut Problems,
) -> Option<Alternative> {
    let bits = bits.parse::<u32>().ok().filter(|number| number.to_string() == bits);
    let net = match (address.parse::<IpAddr>(), bits) {
        (Ok(IpAddr::V4(address)), Some(bits @ 0..=32)) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            Alternative::V4 { net: address.to_bits() & mask, mask }
        }
        (Ok(IpAddr::V6(address)), Some(bits @ 0..=128)) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            Alternative::V6 { net: address.to_bits() & mask, mask }
        }
        _ => {
            let message = format!("`{text}` is not an IP prefix; expected one like 10.0.0.0/8 or fd00::/8");
            problems.error(&item.place, message);
            return None;
        }
    };
    Some(net)
}

/// `fe80::1%eth0` is valid for Hubble, though no record has a zone.
fn without_zone(text: &str) -> &str {
    match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() && address.contains(':') => address,
        _ => text,
    }
}
