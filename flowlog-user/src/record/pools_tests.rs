use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// Where the small part of the address space begins in which the pools of the tests lie.
const BASE: [u128; 2] = [0x0a00_0000, 0xfd00 << 112];
const SIZE: u128 = 160;

fn address(is_v4: bool, offset: u128) -> IpAddr {
    match is_v4 {
        true => Ipv4Addr::from_bits(u32::try_from(BASE[0] + offset).unwrap()).into(),
        false => Ipv6Addr::from_bits(BASE[1] + offset).into(),
    }
}

fn block(is_v4: bool, first: u128, last: u128, reserved: &[(u128, u128)]) -> Block {
    let base = BASE[usize::from(!is_v4)];
    let at = |(first, last): (u128, u128)| (base + first, base + last);
    Block { is_v4, range: at((first, last)), reserved: reserved.iter().map(|range| at(*range)).collect() }
}

fn pool(name: &str, blocks: Vec<Block>) -> Pool {
    Pool { name: name.into(), blocks }
}

/// How long the prefix of a range around an address is: of the largest aligned block that holds it and lies within.
fn length(range: (u128, u128), at: u128) -> Option<u32> {
    (0..=16_u32).rev().find_map(|size| {
        let (first, last) = (at >> size << size, at | ((1 << size) - 1));
        (range.0 <= first && last <= range.1).then_some(128 - size)
    })
}

/// The label of an address by the definition, looked up block by block.
fn label(pools: &[Pool], is_v4: bool, offset: u128) -> Option<String> {
    let at = BASE[usize::from(!is_v4)] + offset;
    let mut found: Vec<(std::cmp::Reverse<u32>, &str, &Block)> = Vec::new();
    for pool in pools {
        for block in pool.blocks.iter().filter(|block| block.is_v4 == is_v4) {
            found.extend(
                length(block.range, at).map(|length| (std::cmp::Reverse(length), &*pool.name, block)),
            );
        }
    }
    let (_, name, block) = found.into_iter().min_by_key(|(length, name, _)| (*length, *name))?;
    let reserved = block.reserved.iter().any(|(first, last)| (*first..=*last).contains(&at));
    Some(format!("pool:{name}{}", if reserved { "=reserved" } else { "" }))
}

fn blocks() -> impl Strategy<Value = Vec<Block>> {
    let block = (any::<bool>(), 0..SIZE, 0_u128..40, any::<bool>(), 0_u32..6, 0_u128..20, 0_u128..20)
        .prop_map(|(is_v4, first, more, is_prefix, size, skip, reserved)| {
            let (first, last) = match is_prefix {
                true => (first >> size << size, first | ((1 << size) - 1)),
                false => (first, first + more),
            };
            let begins = (first + skip).min(last);
            let reserved = if reserved == 0 { vec![] } else { vec![(begins, (begins + reserved).min(last))] };
            block(is_v4, first, last, &reserved)
        });
    // Blocks of one pool lie apart, as whoever reads them makes sure.
    prop::collection::vec(block, 0..5).prop_map(|blocks| {
        let mut kept: Vec<Block> = Vec::new();
        for block in blocks {
            let apart = |other: &Block| {
                other.is_v4 != block.is_v4 || other.range.1 < block.range.0 || block.range.1 < other.range.0
            };
            if kept.iter().all(apart) {
                kept.push(block);
            }
        }
        kept
    })
}

proptest! {
    #[test]
    fn each_address_has_the_label_of_the_longest_prefix_and_then_of_the_first_name(
        mut of in prop::collection::vec(blocks(), 0..5)
    ) {
        let mut all: Vec<Pool> = of.drain(..).zip(["m", "b", "zz", "a", "b-c"]).map(|(blocks, name)| pool(name, blocks)).collect();
        let pools = Pools::new(all.clone());
        all.reverse();
        prop_assert_eq!(&Pools::new(all.clone()), &pools, "whatever their order");
        for is_v4 in [true, false] {
            for offset in 0..SIZE + 64 {
                let at = address(is_v4, offset);
                let expected = label(&all, is_v4, offset);
                prop_assert_eq!(pools.label(pools.tag(at)), expected.as_deref(), "{}", at);
                for name in ["m", "b", "zz", "a", "b-c"] {
                    let here = |reserved: usize| pools.addresses(name).is_some_and(|sets| sets[reserved].contains(at));
                    prop_assert_eq!(here(0), expected == Some(format!("pool:{name}")));
                    prop_assert_eq!(here(1), expected == Some(format!("pool:{name}=reserved")));
                }
            }
        }
    }
}

#[test]
fn the_ends_of_the_address_space_are_addresses_too() {
    let all =
        |name, is_v4, last| pool(name, vec![Block { is_v4, range: (0, last), reserved: vec![(last, last)] }]);
    let pools = Pools::new(vec![all("four", true, u32::MAX.into()), all("six", false, u128::MAX)]);
    let label = |text: &str| pools.label(pools.tag(text.parse().unwrap()));
    assert_eq!(label("0.0.0.0"), Some("pool:four"));
    assert_eq!(label("255.255.255.254"), Some("pool:four"));
    assert_eq!(label("255.255.255.255"), Some("pool:four=reserved"));
    assert_eq!(label("::"), Some("pool:six"));
    assert_eq!(label("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"), Some("pool:six"));
    assert_eq!(label("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), Some("pool:six=reserved"));
    assert_eq!(pools.addresses("seven"), None);
    assert_eq!(pools.names().collect::<Vec<_>>(), ["four", "six"]);
}

#[test]
fn overlaps_are_told_once_with_who_has_it() {
    let of = |blocks: &[(u128, u128)]| {
        blocks.iter().map(|(first, last)| block(true, *first, *last, &[])).collect()
    };
    let told = |pools: &[(&str, &[(u128, u128)])]| -> Vec<String> {
        let pools = Pools::new(pools.iter().map(|(name, blocks)| pool(name, of(blocks))).collect());
        let line = |overlap: &Overlap| {
            let names = |names: &[Box<str>]| names.join(",");
            let (same, around) = (names(&overlap.same), names(&overlap.around));
            format!("{} at {} over {same} within {around}", overlap.winner, overlap.prefix)
        };
        pools.overlaps().iter().map(line).collect()
    };
    let all = (0, 255);
    assert_eq!(
        told(&[("wide", &[all]), ("inner", &[(16, 31), (64, 79)]), ("twin", &[all])]),
        ["twin at 10.0.0.0/24 over wide within ", "inner at 10.0.0.16/28 over  within twin,wide"]
    );
    // Three of one prefix: it is the first name's, and never the second's.
    assert_eq!(told(&[("c", &[all]), ("b", &[all]), ("a", &[all])]), ["a at 10.0.0.0/24 over b,c within "]);
    // Each has a part of the other; three deep.
    assert_eq!(
        told(&[("a", &[(0, 15), (64, 67)]), ("b", &[(0, 3), (64, 127)]), ("c", &[all])]),
        [
            "a at 10.0.0.0/28 over  within c",
            "b at 10.0.0.0/30 over  within a,c",
            "a at 10.0.0.64/30 over  within b,c"
        ]
    );
}

proptest! {
    #[test]
    fn each_two_pools_with_common_addresses_stand_in_a_told_overlap_and_its_winner_is_right(
        mut of in prop::collection::vec(blocks(), 0..5)
    ) {
        let all: Vec<Pool> = of.drain(..).zip(["m", "b", "zz", "a", "b-c"]).map(|(blocks, name)| pool(name, blocks)).collect();
        let (mut shared, mut wins) = (BTreeSet::new(), BTreeSet::new());
        for is_v4 in [true, false] {
            for offset in 0..SIZE + 64 {
                let here = holders(&all, is_v4, BASE[usize::from(!is_v4)] + offset);
                shared.extend(pairs(&here));
                wins.extend(here.iter().skip(1).map(|other| (here[0].clone(), other.clone())));
            }
        }
        let (mut told_shared, mut told_wins) = (BTreeSet::new(), BTreeSet::new());
        for overlap in Pools::new(all).overlaps() {
            let losers = overlap.same.iter().chain(&overlap.around).map(ToString::to_string);
            let names: Vec<String> = [overlap.winner.to_string()].into_iter().chain(losers).collect();
            told_shared.extend(pairs(&names));
            told_wins.extend(names.iter().skip(1).map(|loser| (names[0].clone(), loser.clone())));
        }
        prop_assert_eq!(told_shared, shared);
        // Longer prefixes may have taken all of a told one from its winner, but none that wins is left out.
        prop_assert!(wins.is_subset(&told_wins), "{:?} {:?}", wins, told_wins);
    }
}

/// The pools that hold an address, the one that it belongs to first.
fn holders(pools: &[Pool], is_v4: bool, at: u128) -> Vec<String> {
    let mut here: Vec<(std::cmp::Reverse<u32>, String)> = Vec::new();
    for pool in pools {
        let blocks = pool.blocks.iter().filter(|block| block.is_v4 == is_v4);
        let lengths = blocks.filter_map(|block| length(block.range, at));
        here.extend(lengths.map(|length| (std::cmp::Reverse(length), pool.name.to_string())));
    }
    here.sort_unstable();
    here.into_iter().map(|(_, name)| name).collect()
}

/// Each two of these names, in order.
fn pairs(names: &[String]) -> BTreeSet<(String, String)> {
    let pair = |one: &String, other: &String| (one.min(other).clone(), one.max(other).clone());
    let of = |(at, one)| names[at + 1..].iter().map(move |other| pair(one, other));
    names.iter().enumerate().flat_map(of).collect()
}
