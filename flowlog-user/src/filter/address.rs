use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::json;
use crate::record::Address;
use crate::record::rules;
use crate::tree::{Problems, Tree};

/// Addresses and prefixes, in one of which the flow's address must lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// Everything, for addresses as packets have them.
    all: Vec<Prefix>,
    /// The prefixes alone, for addresses as somebody wrote them.
    prefixes: Vec<Prefix>,
    /// The single addresses as written: Hubble compares texts.
    texts: Vec<Box<str>>,
}

/// IPv4 never lies in an IPv6 prefix, nor an IPv4-mapped address in an IPv4 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Prefix {
    V4 { net: u32, mask: u32 },
    V6 { net: u128, mask: u128 },
}

/// The first and the last address of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Span {
    V4(u32, u32),
    V6(u128, u128),
}

impl Span {
    /// Nothing where the two are of different families.
    pub(super) const fn new(first: IpAddr, last: IpAddr) -> Option<Self> {
        match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => Some(Self::V4(first.to_bits(), last.to_bits())),
            (IpAddr::V6(first), IpAddr::V6(last)) => Some(Self::V6(first.to_bits(), last.to_bits())),
            _ => None,
        }
    }

    /// First and last address.
    pub(super) fn ends(self) -> (IpAddr, IpAddr) {
        let v4 = |number| IpAddr::V4(Ipv4Addr::from_bits(number));
        let v6 = |number| IpAddr::V6(Ipv6Addr::from_bits(number));
        match self {
            Self::V4(first, last) => (v4(first), v4(last)),
            Self::V6(first, last) => (v6(first), v6(last)),
        }
    }
}

impl Addresses {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        let mut addresses = Self::default();
        let read = json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            match text.split_once('/') {
                Some((address, bits)) => {
                    let prefix = prefix(item, text, address, bits, problems)?;
                    addresses.prefixes.push(prefix);
                    addresses.all.push(prefix);
                }
                None => {
                    addresses.all.extend(exact(item, text, problems)?);
                    addresses.texts.push(text.into());
                }
            }
            Some(())
        });
        read.map(|_| addresses)
    }

    /// The prefixes as the kernel looks them up; what equals nothing is none.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = rules::Prefix> {
        self.all.iter().map(|one| match *one {
            Prefix::V4 { net, mask } => {
                let bits = Ipv4Addr::from_bits(net).to_ipv6_mapped().to_bits();
                rules::Prefix { length: 96 + length(mask.count_ones()), bits }
            }
            Prefix::V6 { net, mask } => rules::Prefix { length: length(mask.count_ones()), bits: net },
        })
    }

    /// What lies within, one span for each prefix and address that packets can have.
    pub(super) fn spans(&self) -> impl Iterator<Item = Span> {
        self.all.iter().map(|one| match *one {
            Prefix::V4 { net, mask } => Span::V4(net, net | !mask),
            Prefix::V6 { net, mask } => Span::V6(net, net | !mask),
        })
    }

    pub(super) fn matches(&self, address: Address<'_>) -> bool {
        match address {
            Address::Ip(address) => within(&self.all, address),
            Address::Text("") => false,
            Address::Text(text) => {
                let listed = self.texts.iter().any(|listed| **listed == *text);
                listed
                    || (!self.prefixes.is_empty()
                        && text.parse().is_ok_and(|address| within(&self.prefixes, address)))
            }
        }
    }
}

/// A mask's length; at most 128.
fn length(ones: u32) -> u8 {
    u8::try_from(ones).unwrap_or(0)
}

fn within(prefixes: &[Prefix], address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            prefixes.iter().any(|one| matches!(one, Prefix::V4 { net, mask } if bits & mask == *net))
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            prefixes.iter().any(|one| matches!(one, Prefix::V6 { net, mask } if bits & mask == *net))
        }
    }
}

/// A single address as a full prefix; nothing within where no record of ours spells it like that.
fn exact(item: &Tree, text: &str, problems: &mut Problems) -> Option<Option<Prefix>> {
    let Ok(address) = without_zone(text).parse::<IpAddr>() else {
        let message = format!("`{text}` is not an IP address; expected one like 10.0.0.1, ::1 or 10.0.0.0/8");
        problems.error(&item.place, message);
        return None;
    };
    if address.to_string() != text {
        let message = format!("matches nothing: records spell this address `{address}`; write it like that");
        problems.warning(&item.place, message);
        return Some(None);
    }
    Some(Some(match address {
        IpAddr::V4(address) => Prefix::V4 { net: address.to_bits(), mask: u32::MAX },
        IpAddr::V6(address) => Prefix::V6 { net: address.to_bits(), mask: u128::MAX },
    }))
}

fn prefix(item: &Tree, text: &str, address: &str, bits: &str, problems: &mut Problems) -> Option<Prefix> {
    let bits = bits.parse::<u32>().ok().filter(|number| number.to_string() == bits);
    let net = match (address.parse::<IpAddr>(), bits) {
        (Ok(IpAddr::V4(address)), Some(bits @ 0..=32)) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            Prefix::V4 { net: address.to_bits() & mask, mask }
        }
        (Ok(IpAddr::V6(address)), Some(bits @ 0..=128)) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            Prefix::V6 { net: address.to_bits() & mask, mask }
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
