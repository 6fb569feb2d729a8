//! Rules of a size, for tests and benches of the prefilter.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use flowlog_user::capture::rules::Tables;
use flowlog_user::record::rules::{Group, Prefix, Rules};

/// An IPv4 prefix.
#[must_use]
pub fn v4(address: [u8; 4], length: u8) -> Prefix {
    Prefix { length: 96 + length, bits: Ipv4Addr::from(address).to_ipv6_mapped().to_bits() }
}

/// These prefixes and no others.
pub fn only(prefixes: impl IntoIterator<Item = Prefix>) -> Option<BTreeSet<Prefix>> {
    Some(prefixes.into_iter().collect())
}

/// 10,000 prefixes and 1,000 ports, none of which takes a packet between A and B but those from port 443.
#[must_use]
pub fn many() -> Tables {
    let prefixes = (0..10_000_u16).map(|n| v4([172, 16, n.to_be_bytes()[0], n.to_be_bytes()[1]], 32));
    Tables::new(&Rules {
        groups: vec![
            Group { source: only(prefixes), ..Group::default() },
            Group {
                source: only([v4([10, 0, 0, 0], 8)]),
                source_ports: Some((1_000..2_000).chain([443]).collect()),
                protocols: Some([6].into()),
                ..Group::default()
            },
        ],
    })
}

/// 100 prefixes and 10 ports in ten groups, none of which takes a packet between A and B.
#[must_use]
pub fn hundred() -> Tables {
    let group = |n: u8| Group {
        source: only((0..10).map(|m| v4([172, 16, n, m], 32))),
        source_ports: Some([1_000 + u16::from(n)].into()),
        ..Group::default()
    };
    Tables::new(&Rules { groups: (0..10).map(group).collect() })
}

/// [`many`], and one rule more that takes all UDP.
#[must_use]
pub fn many_and_udp() -> Tables {
    let prefixes = (0..10_000_u16).map(|n| v4([172, 16, n.to_be_bytes()[0], n.to_be_bytes()[1]], 32));
    let udp = Group { protocols: Some([17].into()), ..Group::default() };
    Tables::new(&Rules { groups: vec![Group { source: only(prefixes), ..Group::default() }, udp] })
}
