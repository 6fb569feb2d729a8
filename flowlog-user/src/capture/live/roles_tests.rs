use super::*;

fn link(ifindex: u32, name: &str, kind: &str) -> Link {
    Link { ifindex, name: name.into(), kind: kind.into(), device_type: ARPHRD_ETHER, ..Link::default() }
}

fn alone(link: &Link) -> Result<Role, String> {
    role(link, &Links::from([(link.ifindex, link.clone())]))
}

#[test]
fn a_physical_device_is_an_uplink() {
    assert_eq!(alone(&link(2, "eth0", "")), Ok(Role::Uplink));
}

#[test]
fn a_veth_is_an_endpoint_when_its_peer_is_elsewhere() {
    assert_eq!(alone(&Link { peer_elsewhere: true, ..link(9, "lxc1", "veth") }), Ok(Role::Endpoint));
    assert_eq!(alone(&Link { peer_elsewhere: true, ..link(9, "nk1", "netkit") }), Ok(Role::Endpoint));
    let here = alone(&Link { lower: Some(8), ..link(9, "veth1", "veth") });
    assert!(here.unwrap_err().contains("in this network namespace"));
}

#[test]
fn the_veth_of_a_container_that_holds_the_default_route_is_its_uplink() {
    let eth0 = Link { peer_elsewhere: true, default_route: true, ..link(2, "eth0", "veth") };
    assert_eq!(alone(&eth0), Ok(Role::Uplink));
}

#[test]
fn a_default_route_makes_no_uplink_of_what_stands_on_others() {
    for kind in ["bridge", "vlan", "macvlan", "ipvlan", "wireguard", "tun", "vxlan", "vrf"] {
        let reason = alone(&Link { default_route: true, ..link(5, "x", kind) }).unwrap_err();
        assert!(!reason.is_empty(), "{kind}");
    }
    assert_eq!(alone(&Link { default_route: true, ..link(5, "dummy0", "dummy") }), Ok(Role::Uplink));
    assert!(alone(&link(5, "dummy0", "dummy")).is_err());
}

#[test]
fn loopback_is_left_out() {
    let lo = Link { device_type: ARPHRD_LOOPBACK, ..link(1, "lo", "") };
    assert_eq!(alone(&lo), Err("loopback".into()));
}

#[test]
fn members_of_a_bond_are_seen_at_the_bond() {
    let slave = Link { master: Some(4), ..link(2, "eth0", "") };
    let links = Links::from([(2, slave.clone()), (4, link(4, "bond0", "bond"))]);
    assert!(role(&slave, &links).unwrap_err().contains("member of bond0"));
    assert_eq!(role(&links[&4], &links), Ok(Role::Uplink));
}

#[test]
fn ports_of_a_bridge_are_watched_and_the_bridge_is_not() {
    let port = Link { master: Some(4), peer_elsewhere: true, ..link(7, "veth7", "veth") };
    let uplink = Link { master: Some(4), ..link(2, "eth0", "") };
    let links = Links::from([(2, uplink.clone()), (4, link(4, "br0", "bridge")), (7, port.clone())]);
    assert_eq!(role(&port, &links), Ok(Role::Endpoint));
    assert_eq!(role(&uplink, &links), Ok(Role::Uplink));
    assert!(role(&links[&4], &links).is_err());
}

#[test]
fn framing_follows_the_device_type() {
    // Numbers from linux/if_arp.h.
    assert_eq!(framing(1), Some(Framing::Ethernet));
    assert_eq!(framing(772), Some(Framing::Ethernet));
    assert_eq!(framing(0xfffe), Some(Framing::RawIp));
    assert_eq!(framing(512), Some(Framing::RawIp));
    for refused in [32, 801, 280] {
        assert_eq!(framing(refused), None);
        let ib = Link { device_type: refused, ..link(3, "ib0", "") };
        assert!(alone(&ib).unwrap_err().contains(&refused.to_string()));
    }
}
