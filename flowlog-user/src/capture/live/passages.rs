//! Devices of this namespace that packets pass between two watched ones: what ends in them, and what they hand on.

use std::collections::BTreeSet;

use flowlog_abi::tunnel;

use crate::capture::tunnels::TunnelMode;

use super::links::{Link, Links};
use super::select::Choice;

/// Kinds of tunnels (see [`tunnel`]) that end in a device of this kind.
pub(super) fn kinds(link: &Link) -> &'static [u8] {
    match link.kind.as_str() {
        "vxlan" => &[tunnel::VXLAN],
        "geneve" => &[tunnel::GENEVE],
        "gre" | "gretap" | "ip6gre" | "ip6gretap" => &[tunnel::GRE],
        "ipip" => &[tunnel::IPV4],
        "sit" => &[tunnel::IPV6],
        "ip6tnl" => &[tunnel::IPV4, tunnel::IPV6],
        _ => &[],
    }
}

fn is_chosen(link: &Link, choice: &Choice) -> bool {
    matches!(choice.get(&link.ifindex), Some(Ok(_)))
}

/// Bits of the kinds of tunnels that end on this node, but for those whose device is watched itself: there the inner
/// packets are seen as they are.
pub(super) fn ends(links: &Links, choice: &Choice) -> u32 {
    let bits = |watched: bool| {
        links
            .values()
            .filter(|link| link.up && is_chosen(link, choice) == watched)
            .flat_map(kinds)
            .fold(0, |bits, kind| bits | 1 << kind)
    };
    bits(false) & !bits(true)
}

/// UDP ports of the tunnels that end here, with their kinds.
pub(super) fn ports(links: &Links) -> Vec<(u16, u8)> {
    links
        .values()
        .filter_map(|link| Some((link.udp_port.filter(|port| *port != 0)?, *kinds(link).first()?)))
        .collect()
}

/// Devices that are not watched, and that a packet seems to enter the node through though it was seen at a watched one
/// before: they overwrite where it came in. Uppers of watched devices, devices in which a tunnel ends that is looked
/// into, and the near ends of veths between two places of this namespace. Whether such a packet has been counted is told
/// by its connection's mark alone.
pub(super) fn carriers(links: &Links, choice: &Choice, mode: TunnelMode) -> BTreeSet<u32> {
    let looked_into = |link: &Link| match mode {
        TunnelMode::Outer => false,
        TunnelMode::Auto => kinds(link).iter().any(|kind| ends(links, choice) >> kind & 1 == 1),
        TunnelMode::Inner | TunnelMode::Both => !kinds(link).is_empty(),
    };
    let mut carriers: BTreeSet<u32> = links
        .values()
        .filter(|link| looked_into(link) || is_inner_veth(link, links))
        .map(|link| link.ifindex)
        .collect();
    // Uppers of uppers: a bridge on a VLAN on an uplink.
    loop {
        let below = |ifindex: u32| {
            carriers.contains(&ifindex) || links.get(&ifindex).is_some_and(|link| is_chosen(link, choice))
        };
        let more: BTreeSet<u32> = links
            .values()
            .filter(|link| below(link.ifindex))
            .filter_map(|link| link.master)
            .chain(
                links
                    .values()
                    .filter(|link| stands_on_lower(link) && link.lower.is_some_and(below))
                    .map(|link| link.ifindex),
            )
            .filter(|ifindex| !carriers.contains(ifindex))
            .collect();
        if more.is_empty() {
            break;
        }
        carriers.extend(more);
    }
    carriers.retain(|ifindex| links.get(ifindex).is_none_or(|link| !is_chosen(link, choice)));
    carriers
}

fn is_inner_veth(link: &Link, links: &Links) -> bool {
    matches!(link.kind.as_str(), "veth" | "netkit")
        && !link.peer_elsewhere
        && link.lower.is_some_and(|peer| links.contains_key(&peer))
}

/// Whether a device takes its packets from the one below it (IFLA_LINK means other things elsewhere).
pub(super) fn stands_on_lower(link: &Link) -> bool {
    matches!(link.kind.as_str(), "vlan" | "macvlan" | "macvtap" | "ipvlan" | "ipvtap" | "macsec")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Role;

    /// eth0 with a VLAN on it that is a port of a bridge, a pod at the same bridge, a VXLAN, a GRE that is down, a veth
    /// pair within the namespace and an uplink that is left out.
    fn node() -> (Links, Choice) {
        let link = |ifindex, name: &str, kind: &str| Link {
            ifindex,
            name: name.into(),
            kind: kind.into(),
            up: true,
            ..Link::default()
        };
        let all = [
            link(2, "eth0", ""),
            Link { lower: Some(2), master: Some(4), ..link(3, "eth0.7", "vlan") },
            link(4, "br0", "bridge"),
            Link { peer_elsewhere: true, master: Some(4), ..link(5, "lxc5", "veth") },
            Link { udp_port: Some(7000), ..link(6, "vx6", "vxlan") },
            Link { up: false, ..link(7, "gre7", "gre") },
            Link { lower: Some(9), ..link(8, "in8", "veth") },
            Link { lower: Some(8), ..link(9, "in9", "veth") },
            link(10, "eth1", ""),
            link(11, "wg0", "wireguard"),
        ];
        let links: Links = all.into_iter().map(|link| (link.ifindex, link)).collect();
        let choice = links
            .keys()
            .map(|ifindex| {
                let role = match ifindex {
                    2 => Ok(Role::Uplink),
                    5 => Ok(Role::Endpoint),
                    _ => Err("left out".into()),
                };
                (*ifindex, role)
            })
            .collect();
        (links, choice)
    }

    #[test]
    fn what_hands_on_packets_of_watched_devices_is_a_carrier() {
        let (links, choice) = node();
        let carriers = |mode| carriers(&links, &choice, mode).into_iter().collect::<Vec<_>>();
        assert_eq!(carriers(TunnelMode::Outer), [3, 4, 8, 9]);
        assert_eq!(carriers(TunnelMode::Auto), [3, 4, 6, 8, 9]);
        assert_eq!(carriers(TunnelMode::Inner), [3, 4, 6, 7, 8, 9]);
    }

    #[test]
    fn tunnels_end_in_devices_that_are_up_and_not_watched() {
        let (links, mut choice) = node();
        assert_eq!(ends(&links, &choice), 1 << tunnel::VXLAN);
        assert_eq!(ports(&links), [(7000, tunnel::VXLAN)]);
        choice.insert(6, Ok(Role::Other));
        assert_eq!(ends(&links, &choice), 0);
    }
}
