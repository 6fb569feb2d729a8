//! What an interface is to the node, decided by what it is, never by its name.

use crate::record::Role;

use super::links::{Link, Links};

const ARPHRD_ETHER: u16 = 1;
const ARPHRD_PPP: u16 = 512;
const ARPHRD_LOOPBACK: u16 = 772;
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_NONE: u16 = 0xfffe;

/// How a device's packets begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// With an Ethernet header.
    Ethernet,
    /// With the IP header.
    RawIp,
}

/// How the packets of a device begin; `None` for those that flowlog cannot read.
pub(super) const fn framing(device_type: u16) -> Option<Framing> {
    match device_type {
        ARPHRD_ETHER | ARPHRD_LOOPBACK => Some(Framing::Ethernet),
        ARPHRD_NONE | ARPHRD_RAWIP | ARPHRD_PPP => Some(Framing::RawIp),
        _ => None,
    }
}

/// Whether each packet passes both hooks of the device, so that only ingress may be attached.
pub(super) const fn loops_back(link: &Link) -> bool {
    link.device_type == ARPHRD_LOOPBACK
}

/// Why a device cannot be watched even if it is asked for.
pub(super) fn unsupported(link: &Link) -> Option<String> {
    framing(link.device_type)
        .is_none()
        .then(|| format!("flowlog does not read frames of link type {} (ARPHRD)", link.device_type))
}

/// The role of a device, or the reason it is left out unless a glob asks for it.
pub(super) fn role(link: &Link, links: &Links) -> Result<Role, String> {
    if let Some(reason) = unsupported(link) {
        return Err(reason);
    }
    if loops_back(link) {
        return Err("loopback".into());
    }
    if let Some(master) = link.master.and_then(|ifindex| links.get(&ifindex))
        && matches!(master.kind.as_str(), "bond" | "team" | "failover" | "")
    {
        return Err(format!("member of {}: its packets are seen there", master.name));
    }
    match link.kind.as_str() {
        "bridge" | "openvswitch" => return Err("bridge: its packets are seen at its ports".into()),
        "vlan" | "macvlan" | "macvtap" | "ipvlan" | "ipvtap" | "macsec" => {
            return Err(format!("{}: its packets are seen at the device below", link.kind));
        }
        "vrf" => return Err("vrf: its packets are seen at its members".into()),
        kind if is_tunnel(kind) => {
            return Err(format!("tunnel ({kind}): its outer packets are seen at the device they leave by"));
        }
        _ => {}
    }
    if link.default_route {
        return Ok(Role::Uplink); // before `endpoint`: inside a container the veth is the way out
    }
    match link.kind.as_str() {
        "veth" | "netkit" if link.peer_elsewhere => Ok(Role::Endpoint),
        "veth" | "netkit" => Err(format!("{} whose other end is in this network namespace", link.kind)),
        "bond" | "team" | "failover" | "" => Ok(Role::Uplink),
        kind => Err(format!("virtual device ({kind}) without a default route")),
    }
}

fn is_tunnel(kind: &str) -> bool {
    const TUNNELS: [&str; 24] = [
        "tun",
        "vxlan",
        "geneve",
        "gre",
        "gretap",
        "ip6gre",
        "ip6gretap",
        "erspan",
        "ip6erspan",
        "ipip",
        "ip6tnl",
        "sit",
        "vti",
        "vti6",
        "xfrm",
        "wireguard",
        "gtp",
        "bareudp",
        "amt",
        "pfcp",
        "ppp",
        "ovpn",
        "batadv",
        "hsr",
    ];
    TUNNELS.contains(&kind)
}

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;
