//! Cilium's reserved identities as far as they exist without Kubernetes.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::record::{Flow, Hook, Identity, Node, Role};

/// Who sends and who receives.
pub(super) fn of(flow: &Flow, node: &Node, cluster: &[IpNet]) -> [Identity; 2] {
    let behind = behind_endpoint(flow, node);
    [(flow.source, behind[0]), (flow.destination, behind[1])].map(|(address, behind)| {
        if is_own(address, node) {
            Identity::Host
        } else if behind || cluster.iter().any(|network| network.contains(&address)) {
            Identity::Unmanaged
        } else {
            Identity::World
        }
    })
}

/// Whether sender and receiver are behind an endpoint interface: the one at whose hook this direction was counted,
/// or another one that the connection has crossed by now.
fn behind_endpoint(flow: &Flow, node: &Node) -> [bool; 2] {
    let [here, others @ ..] = flow.interfaces;
    let is_endpoint = |ifindex: &u32| {
        *ifindex != 0
            && *ifindex != here
            && node.interfaces.get(ifindex).is_some_and(|interface| interface.role == Role::Endpoint)
    };
    let another = others.iter().any(is_endpoint);
    match flow.hook {
        Hook::EndpointIngress => [true, another],
        Hook::EndpointEgress => [another, true],
        Hook::UplinkIngress => [false, another],
        Hook::UplinkEgress => [another, false],
    }
}

fn is_own(address: IpAddr, node: &Node) -> bool {
    address.is_loopback() || node.addresses.binary_search(&address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Event, Interface, L4, PoolTag};

    const UPLINK: u32 = 2;
    const POD_A: u32 = 7;
    const POD_B: u32 = 8;

    fn node() -> Node {
        let interface = |name: &str, role| Interface { name: name.into(), role };
        Node {
            interfaces: [
                (UPLINK, interface("eth0", Role::Uplink)),
                (POD_A, interface("lxc7", Role::Endpoint)),
                (POD_B, interface("lxc8", Role::Endpoint)),
            ]
            .into(),
            addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            ..Node::default()
        }
    }

    fn flow(source: &str, destination: &str, hook: Hook, interfaces: [u32; 4]) -> Flow {
        Flow {
            cadence: 0,
            event: Event::Start,
            end_reason: None,
            connection: 1,
            number: 1,
            high_to_low: false,
            midstream: false,
            duplicate: false,
            fragment: false,
            rtt_ns: 0,
            vlans: [0; 2],
            tunnel: None,
            dropped: None,
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol: 17,
            l4: L4::Udp { source_port: 1, destination_port: 2 },
            is_reply: Some(false),
            hook,
            interfaces,
            started_ns: 0,
            first_seen_ns: 0,
            last_seen_ns: 0,
            packets: 1,
            bytes: 60,
            packets_total: 1,
            bytes_total: 60,
            joined: crate::record::Joined::EVER,
            source_identity: Identity::World,
            destination_identity: Identity::World,
            source_pool: PoolTag::NONE,
            destination_pool: PoolTag::NONE,
        }
    }

    fn identities(source: &str, destination: &str, hook: Hook, interfaces: [u32; 4]) -> [Identity; 2] {
        of(&flow(source, destination, hook, interfaces), &node(), &["10.9.0.0/16".parse().unwrap()])
    }

    #[test]
    fn the_node_s_own_addresses_are_the_host() {
        use Identity::{Host, World};
        assert_eq!(identities("192.0.2.1", "1.1.1.1", Hook::UplinkEgress, [UPLINK, 0, 0, 0]), [Host, World]);
        assert_eq!(
            identities("2001:db8::2", "2001:db8::1", Hook::UplinkIngress, [UPLINK, 0, 0, 0]),
            [World, Host]
        );
        assert_eq!(identities("127.0.0.1", "::1", Hook::UplinkIngress, [1, 0, 0, 0]), [Host, Host]);
    }

    #[test]
    fn the_endpoint_s_side_is_unmanaged() {
        use Identity::{Host, Unmanaged, World};
        assert_eq!(
            identities("10.0.0.7", "1.1.1.1", Hook::EndpointIngress, [POD_A, 0, 0, 0]),
            [Unmanaged, World]
        );
        assert_eq!(
            identities("192.0.2.1", "10.0.0.7", Hook::EndpointEgress, [POD_A, 0, 0, 0]),
            [Host, Unmanaged]
        );
    }

    #[test]
    fn both_directions_of_a_connection_agree() {
        use Identity::{Unmanaged, World};
        let crossed = [POD_A, UPLINK, 0, 0];
        assert_eq!(identities("10.0.0.7", "1.1.1.1", Hook::EndpointIngress, crossed), [Unmanaged, World]);
        let crossed = [UPLINK, POD_A, 0, 0];
        assert_eq!(identities("1.1.1.1", "10.0.0.7", Hook::UplinkIngress, crossed), [World, Unmanaged]);
        let crossed = [POD_A, POD_B, 0, 0];
        assert_eq!(
            identities("10.0.0.7", "10.0.0.8", Hook::EndpointIngress, crossed),
            [Unmanaged, Unmanaged]
        );
        assert_eq!(
            identities("10.0.0.7", "10.0.0.8", Hook::EndpointEgress, [POD_B, POD_A, 0, 0]),
            [Unmanaged; 2]
        );
    }

    #[test]
    fn addresses_of_the_cluster_are_unmanaged_wherever_they_are_seen() {
        use Identity::{Unmanaged, World};
        assert_eq!(
            identities("10.9.3.4", "10.10.0.1", Hook::UplinkIngress, [UPLINK, 0, 0, 0]),
            [Unmanaged, World]
        );
    }

    #[test]
    fn a_batch_is_filled_in() {
        let mut flows = [flow("192.0.2.1", "10.9.0.1", Hook::UplinkEgress, [UPLINK, 0, 0, 0]); 2];
        crate::enrich::Enricher::new(vec!["10.9.0.0/16".parse().unwrap()]).enrich(&mut flows, &node());
        for flow in flows {
            assert_eq!(
                [flow.source_identity, flow.destination_identity],
                [Identity::Host, Identity::Unmanaged]
            );
        }
    }
}
