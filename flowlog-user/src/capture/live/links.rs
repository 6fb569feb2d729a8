//! The network devices of this namespace with the attributes that decide about them, read through netlink.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoGeneve, InfoVxlan, LinkAttribute, LinkExtentMask, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteType};

use super::netlink::Netlink;

/// A network device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) ifindex: u32,
    pub(super) name: String,
    /// IFLA_INFO_KIND: `veth`, `bridge`, ...; empty for a device of a real driver.
    pub(super) kind: String,
    /// ARPHRD_*.
    pub(super) device_type: u16,
    /// Bridge, bond, ... that this device is a member of.
    pub(super) master: Option<u32>,
    /// IFLA_LINK where it is in this namespace: the device below, or a veth's peer.
    pub(super) lower: Option<u32>,
    /// IFLA_LINK is in another network namespace.
    pub(super) peer_elsewhere: bool,
    /// A default route (IPv4 or IPv6) leads through it.
    pub(super) default_route: bool,
    /// IFF_UP.
    pub(super) up: bool,
    /// UDP port of a VXLAN or Geneve.
    pub(super) udp_port: Option<u16>,
    /// Its addresses.
    pub(super) addresses: Vec<IpAddr>,
}

pub(super) type Links = BTreeMap<u32, Link>;

/// All links; `routes` are the devices of default routes.
pub(super) fn list(netlink: &mut Netlink, routes: &BTreeSet<u32>) -> io::Result<Links> {
    let mut request = LinkMessage::default();
    request.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
    let mut links: Links = netlink
        .dump(&RouteNetlinkMessage::GetLink(request))?
        .into_iter()
        .filter_map(|message| match message {
            RouteNetlinkMessage::NewLink(message) => Some(from_message(message, routes)),
            _ => None,
        })
        .map(|link| (link.ifindex, link))
        .collect();
    for message in netlink.dump(&RouteNetlinkMessage::GetAddress(AddressMessage::default()))? {
        if let RouteNetlinkMessage::NewAddress(message) = message
            && let Some(link) = links.get_mut(&message.header.index)
        {
            link.addresses.extend(own_address(&message));
        }
    }
    Ok(links)
}

/// Packets that an interface itself counts (super-packets of offloads as one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) received: u64,
    pub(super) sent: u64,
}

/// What each interface has counted so far.
pub(super) fn passed(netlink: &mut Netlink) -> io::Result<BTreeMap<u32, Passed>> {
    let answers = netlink.dump(&RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let counted = answers.into_iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewLink(message) => {
            let stats = message.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Stats64(stats) => {
                    Some(Passed { received: stats.rx_packets, sent: stats.tx_packets })
                }
                _ => None,
            })?;
            Some((message.header.index, stats))
        }
        _ => None,
    });
    Ok(counted.collect())
}

/// Indexes of the devices that a default route leads through.
pub(super) fn default_routes(netlink: &mut Netlink) -> io::Result<BTreeSet<u32>> {
    let answers = netlink.dump(&RouteNetlinkMessage::GetRoute(RouteMessage::default()))?;
    let mut devices = BTreeSet::new();
    for answer in answers {
        let RouteNetlinkMessage::NewRoute(route) = answer else { continue };
        if route.header.destination_prefix_length != 0 || route.header.kind != RouteType::Unicast {
            continue;
        }
        for attribute in route.attributes {
            match attribute {
                RouteAttribute::Oif(ifindex) => drop(devices.insert(ifindex)),
                RouteAttribute::MultiPath(hops) => devices.extend(hops.iter().map(|hop| hop.interface_index)),
                _ => {}
            }
        }
    }
    Ok(devices)
}

fn from_message(message: LinkMessage, routes: &BTreeSet<u32>) -> Link {
    let mut link = Link {
        ifindex: message.header.index,
        device_type: message.header.link_layer_type.into(),
        default_route: routes.contains(&message.header.index),
        up: message.header.flags.contains(LinkFlags::Up),
        ..Link::default()
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Controller(ifindex) => link.master = Some(ifindex).filter(|ifindex| *ifindex != 0),
            LinkAttribute::Link(ifindex) => link.lower = Some(ifindex).filter(|ifindex| *ifindex != 0),
            LinkAttribute::LinkNetNsId(_) => link.peer_elsewhere = true,
            LinkAttribute::LinkInfo(infos) => {
                if let Some(kind) = infos.iter().find_map(|info| match info {
                    LinkInfo::Kind(kind) => Some(kind.to_string()),
                    _ => None,
                }) {
                    link.kind = kind;
                }
                link.udp_port = infos.iter().find_map(udp_port);
            }
            _ => {}
        }
    }
    if link.peer_elsewhere || link.lower == Some(link.ifindex) {
        link.lower = None; // an index of another namespace, or a device that names itself
    }
    link
}

fn udp_port(info: &LinkInfo) -> Option<u16> {
    match info {
        LinkInfo::Data(InfoData::Vxlan(all)) => all.iter().find_map(|one| match one {
            InfoVxlan::Port(port) => Some(*port),
            _ => None,
        }),
        LinkInfo::Data(InfoData::Geneve(all)) => all.iter().find_map(|one| match one {
            InfoGeneve::Port(port) => Some(*port),
            _ => None,
        }),
        _ => None,
    }
}

/// On a point-to-point link IFA_ADDRESS is the other side's; IFA_LOCAL, where it is given, is ours.
fn own_address(message: &AddressMessage) -> Option<IpAddr> {
    let mut address = None;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => return Some(*ip),
            AddressAttribute::Address(ip) => address = Some(*ip),
            _ => {}
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_wins_over_the_peer_address() {
        let mut message = AddressMessage::default();
        message.attributes = vec![
            AddressAttribute::Address("10.0.0.2".parse().unwrap()),
            AddressAttribute::Local("10.0.0.1".parse().unwrap()),
        ];
        assert_eq!(own_address(&message), Some("10.0.0.1".parse().unwrap()));
        message.attributes.truncate(1);
        assert_eq!(own_address(&message), Some("10.0.0.2".parse().unwrap()));
    }

    #[test]
    fn an_index_of_another_namespace_is_no_lower_device() {
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.attributes = vec![LinkAttribute::Link(2), LinkAttribute::LinkNetNsId(0)];
        let link = from_message(message, &BTreeSet::from([7]));
        assert_eq!((link.lower, link.peer_elsewhere, link.default_route), (None, true, true));
    }
}
