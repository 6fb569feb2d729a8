//! CIDRs and ranges as texts.

use std::net::IpAddr;

use crate::record::Block;
use crate::tree::{Place, Problems, Tree};

/// First and last address of a range, as numbers of their family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) is_v4: bool,
    pub(super) ends: (u128, u128),
}

impl Range {
    pub(super) const fn block(self, reserved: Vec<(u128, u128)>) -> Block {
        Block { is_v4: self.is_v4, range: self.ends, reserved }
    }
}

pub(super) const fn within(inner: (u128, u128), outer: (u128, u128)) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// Reads a CIDR such as `10.0.0.0/8`.
pub(super) fn cidr(tree: &Tree, problems: &mut Problems) -> Option<(Range, u32)> {
    let text = tree.text(problems)?;
    match parse_cidr(text) {
        Ok(cidr) => {
            warn_of_mapped(cidr.0, text, &tree.place, problems);
            Some(cidr)
        }
        Err(message) => {
            problems.error(&tree.place, message);
            None
        }
    }
}

/// Reads a range such as `10.0.0.1-10.0.0.9`.
pub(super) fn range(tree: &Tree, problems: &mut Problems) -> Option<Range> {
    let text = tree.text(problems)?;
    let read = text
        .split_once('-')
        .ok_or_else(|| format!("`{text}` is no range; expected one like 10.0.0.1-10.0.0.9"))
        .and_then(|(first, last)| parse_range(first.trim(), last.trim()));
    let range = note(read, &tree.place, problems)?;
    warn_of_mapped(range, text, &tree.place, problems);
    Some(range)
}

/// The range between two addresses.
pub(super) fn between(first: &Tree, last: &Tree, problems: &mut Problems) -> Option<Range> {
    let (start, end) = (first.text(problems)?, last.text(problems)?);
    note(parse_range(start, end), &first.place, problems)
}

fn note(read: Result<Range, String>, place: &Place, problems: &mut Problems) -> Option<Range> {
    read.map_err(|message| problems.error(place, message)).ok()
}

fn parse_cidr(text: &str) -> Result<(Range, u32), String> {
    let wrong = || format!("`{text}` is no CIDR; expected one like 10.0.0.0/8 or fd00::/64");
    let Some((address, length)) = text.split_once('/') else {
        return Err(match text.parse::<IpAddr>() {
            Ok(address) => {
                format!("`{text}` has no length; write {address}/{} for this address alone", bits(address))
            }
            Err(_) => wrong(),
        });
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let plain = length.parse::<u32>().ok().filter(|number| number.to_string() == length);
    let length = plain.filter(|length| *length <= bits(address)).ok_or_else(wrong)?;
    let host = u128::MAX.checked_shr(128 - bits(address) + length).unwrap_or(0);
    let number = number(address);
    if number & host != 0 {
        let net = shown(address.is_ipv4(), number & !host);
        return Err(format!("`{text}` has host bits; write {net}/{length}"));
    }
    Ok((Range { is_v4: address.is_ipv4(), ends: (number, number | host) }, length))
}

fn parse_range(first: &str, last: &str) -> Result<Range, String> {
    let parse = |text: &str| {
        let expected = "expected a range like 10.0.0.1-10.0.0.9";
        text.parse::<IpAddr>().map_err(|_| format!("`{text}` is no IP address; {expected}"))
    };
    let (start, end) = (parse(first)?, parse(last)?);
    if start.is_ipv4() != end.is_ipv4() {
        return Err(format!("`{first}-{last}` mixes IPv4 and IPv6; write a range of one of them"));
    }
    if number(start) > number(end) {
        return Err(format!("`{first}-{last}` ends before it begins; write {last}-{first}"));
    }
    Ok(Range { is_v4: start.is_ipv4(), ends: (number(start), number(end)) })
}

/// Says of IPv4 addresses in the notation of IPv6 that no IPv4 packet has them: to a packet they are others.
fn warn_of_mapped(range: Range, text: &str, place: &Place, problems: &mut Problems) {
    let four = |number: u128| u32::try_from(number.checked_sub(MAPPED)?).ok().map(u128::from);
    if let (false, Some(first), Some(last)) = (range.is_v4, four(range.ends.0), four(range.ends.1)) {
        let meant = range_shown(true, (first, last));
        problems.warning(place, format!("no IPv4 packet has an address of `{text}`; write {meant} for IPv4"));
    }
}

/// The first IPv4 address in the notation of IPv6, `::ffff:0.0.0.0`.
const MAPPED: u128 = 0xffff << 32;

pub(super) const fn bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// An address as text.
pub(super) fn shown(is_v4: bool, number: u128) -> String {
    match u32::try_from(number) {
        Ok(number) if is_v4 => std::net::Ipv4Addr::from_bits(number).to_string(),
        _ => std::net::Ipv6Addr::from_bits(number).to_string(),
    }
}

/// A range as text: a CIDR where it is one.
pub(super) fn range_shown(is_v4: bool, (first, last): (u128, u128)) -> String {
    let host = first ^ last;
    let size = host.trailing_ones();
    if size == 128 - host.leading_zeros() && first & host == 0 {
        return format!("{}/{}", shown(is_v4, first), if is_v4 { 32 } else { 128 } - size);
    }
    format!("{}-{}", shown(is_v4, first), shown(is_v4, last))
}

/// The blocks of a pool in the making, with their places.
#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<(Block, Place)>);

impl Blocks {
    pub(super) fn push(&mut self, block: Block, place: &Place) {
        self.0.push((block, place.clone()));
    }

    /// Puts them into order, which [`Self::around`] asks for.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|(block, _)| (block.is_v4, block.range));
    }

    /// The block that a range lies in.
    pub(super) fn around(&mut self, range: Range) -> Option<&mut Block> {
        let at = (range.is_v4, range.ends.0);
        let after = self.0.partition_point(|(block, _)| (block.is_v4, block.range.0) <= at);
        let (block, _) = after.checked_sub(1).and_then(|before| self.0.get_mut(before))?;
        (block.is_v4 == range.is_v4 && within(range.ends, block.range)).then_some(block)
    }

    /// All of them; addresses that two have are noted.
    pub(super) fn done(mut self, problems: &mut Problems) -> Vec<Block> {
        self.sort();
        let mut widest: Option<&Block> = None;
        for (block, place) in &self.0 {
            match widest.filter(|other| other.is_v4 == block.is_v4 && block.range.0 <= other.range.1) {
                Some(other) => {
                    let own = range_shown(block.is_v4, block.range);
                    let other = range_shown(other.is_v4, other.range);
                    let message =
                        format!("`{own}` has addresses in common with `{other}` of the same pool; keep one");
                    problems.error(place, message);
                }
                None => widest = Some(block),
            }
        }
        self.0.into_iter().map(|(block, _)| block).collect()
    }
}
