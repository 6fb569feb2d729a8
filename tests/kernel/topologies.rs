//! One packet, one count, whatever it crosses: every direction's packets are compared with what was sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::Daemon;
use flowlog_tests::netns::Netns;
use flowlog_tests::records::{Record, Tuple, all};
use flowlog_tests::topology::{Seen, host, ip, seen, send, veth};

use crate::end_to_end::{EVERYTHING, tasks};

/// Bytes of a datagram, and of its frame.
const SIZE: usize = 100;
const FRAME: u64 = SIZE as u64 + 42;

/// Hosts by name, and who sent how many datagrams to whom.
struct Net<'a> {
    hosts: BTreeMap<&'a str, (&'a Netns, SocketAddr)>,
    sent: BTreeMap<(String, String), u64>,
}

impl<'a> Net<'a> {
    fn new(hosts: &[(&'a str, &'a Netns, &str)]) -> Result<Self> {
        let hosts = hosts
            .iter()
            .map(|(name, netns, address)| Ok((*name, (*netns, address.parse::<SocketAddr>()?))))
            .collect::<Result<_>>()?;
        Ok(Self { hosts, sent: BTreeMap::new() })
    }

    fn send(&mut self, from: &str, to: &str, count: u64) -> Result<()> {
        send(self.hosts[from], self.hosts[to], usize::try_from(count)?, SIZE)
            .with_context(|| format!("{from} to {to}"))?;
        *self.sent.entry((from.into(), to.into())).or_default() += count;
        Ok(())
    }

    fn tuple(&self, from: &str, to: &str) -> Tuple {
        let [(_, source), (_, destination)] = [self.hosts[from], self.hosts[to]];
        let port = |address: SocketAddr| u64::from(address.port());
        ("UDP".into(), source.ip().to_string(), port(source), destination.ip().to_string(), port(destination))
    }

    /// Everything that was sent is there once, and a second time as a duplicate where that is named; nothing else is.
    fn check(
        &self,
        records: &[Record],
        duplicates: &[(&str, &str)],
    ) -> Result<BTreeMap<(Tuple, bool), Seen>> {
        let seen = seen(records);
        let mut left = seen.clone();
        for ((from, to), count) in &self.sent {
            let twice = duplicates.contains(&(from, to));
            for duplicate in [false, true].into_iter().take(1 + usize::from(twice)) {
                let found = left.remove(&(self.tuple(from, to), duplicate)).unwrap_or_default();
                ensure!(
                    found.packets == *count,
                    "{from} to {to}, duplicate {duplicate}: sent {count}, {found:?}"
                );
            }
        }
        // Hosts report the multicast groups they join by themselves, now and then.
        left.retain(|((_, _, _, destination, _), _), _| {
            destination.parse::<std::net::IpAddr>().is_ok_and(|address| !address.is_multicast())
        });
        ensure!(left.is_empty(), "beside what was sent: {left:#?}");
        Ok(seen)
    }
}

/// Runs the daemon on a host while `work` is done; what it recorded.
fn record(node: &Netns, more: &[&str], work: impl FnOnce() -> Result<()>) -> Result<Vec<Record>> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let daemon = Daemon::start(node, &tasks(folder.path(), EVERYTHING)?, &logs, more)?;
    work()?;
    daemon.stop()?.check()?;
    all(&logs, "all-")
}

/// A node with an uplink `up0` to `world`, which has the address 10.9.0.2.
fn node() -> Result<(Netns, Netns)> {
    let (node, world) = (host("node")?, host("world")?);
    veth((&node, "up0"), (&world, "w0"))?;
    ip(&node, &["address add 10.9.0.1/24 dev up0", "route add default via 10.9.0.2"])?;
    ip(&world, &["address add 10.9.0.2/24 dev w0", "route add 10.0.0.0/8 via 10.9.0.1"])?;
    Ok((node, world))
}

/// A pod with this address behind the node's interface `name`, whose gateway is .1 of its /24.
fn pod(node: &Netns, name: &str, address: &str) -> Result<Netns> {
    let pod = host(name)?;
    veth((node, name), (&pod, "eth0"))?;
    let gateway = format!("{}.1", address.rsplit_once('.').context("an address")?.0);
    ip(&pod, &[&format!("address add {address}/24 dev eth0"), &format!("route add default via {gateway}")])?;
    Ok(pod)
}

#[test]
fn routed_pods() -> Result<()> {
    let (node, world) = node()?;
    let (a, b) = (pod(&node, "pa", "10.1.1.2")?, pod(&node, "pb", "10.1.2.2")?);
    ip(&node, &["address add 10.1.1.1/24 dev pa", "address add 10.1.2.1/24 dev pb"])?;
    let mut net = Net::new(&[
        ("a", &a, "10.1.1.2:1001"),
        ("b", &b, "10.1.2.2:1002"),
        ("world", &world, "10.9.0.2:1003"),
        ("node", &node, "10.9.0.1:1004"),
    ])?;
    let records = record(&node, &[], || {
        for (count, (from, to)) in (11..).zip([
            ("a", "b"),
            ("b", "a"),
            ("a", "world"),
            ("world", "a"),
            ("node", "a"),
            ("a", "node"),
            ("node", "world"),
            ("world", "node"),
        ]) {
            net.send(from, to, count)?;
        }
        Ok(())
    })?;
    let seen = net.check(&records, &[("a", "b"), ("b", "a")])?;
    for (direction, interfaces) in [(("a", "b"), ["pa", "pb"]), (("b", "a"), ["pb", "pa"])] {
        for (duplicate, interface) in [false, true].into_iter().zip(interfaces) {
            let there = &seen[&(net.tuple(direction.0, direction.1), duplicate)];
            ensure!(there.interface == interface, "{direction:?}: {there:?}");
        }
    }
    Ok(())
}

#[test]
fn bridged_pods_and_bridges_that_route() -> Result<()> {
    let (node, world) = node()?;
    let (a, b) = (pod(&node, "pa", "10.1.0.2")?, pod(&node, "pb", "10.1.0.3")?);
    let c = pod(&node, "pc", "10.2.0.2")?;
    ip(
        &node,
        &[
            "link add br0 type bridge",
            "link add br1 type bridge",
            "link set pa master br0",
            "link set pb master br0",
            "link set pc master br1",
            "address add 10.1.0.1/24 dev br0",
            "address add 10.2.0.1/24 dev br1",
            "link set br0 up",
            "link set br1 up",
        ],
    )?;
    let mut net = Net::new(&[
        ("a", &a, "10.1.0.2:1001"),
        ("b", &b, "10.1.0.3:1002"),
        ("c", &c, "10.2.0.2:1005"),
        ("world", &world, "10.9.0.2:1003"),
        ("node", &node, "10.1.0.1:1004"),
    ])?;
    let records = record(&node, &[], || {
        for (count, (from, to)) in (11..).zip([
            ("a", "b"),
            ("b", "a"),
            ("a", "c"),
            ("c", "a"),
            ("a", "world"),
            ("world", "a"),
            ("node", "a"),
            ("a", "node"),
            ("world", "c"),
        ]) {
            net.send(from, to, count)?;
        }
        Ok(())
    })?;
    net.check(&records, &[("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")])?;
    Ok(())
}

#[test]
fn a_path_that_changes_and_one_that_is_split_over_two_uplinks() -> Result<()> {
    let (node, world) = node()?;
    let a = pod(&node, "pa", "10.1.1.2")?;
    veth((&node, "up1"), (&world, "w1"))?;
    ip(
        &node,
        &[
            "address add 10.1.1.1/24 dev pa",
            "address add 10.8.0.1/24 dev up1",
            "address add 10.60.0.1/32 dev lo",
            "route add default via 10.8.0.2 metric 200",
        ],
    )?;
    ip(&world, &["address add 10.8.0.2/24 dev w1", "address add 10.50.0.1/32 dev lo"])?;
    // A device on an uplink: what comes in through it has been seen at the uplink.
    ip(
        &node,
        &[
            "link add mv0 link up0 type macvlan mode bridge",
            "address add 10.9.0.77/24 dev mv0",
            "link set mv0 up",
        ],
    )?;
    let mut net = Net::new(&[
        ("a", &a, "10.1.1.2:1001"),
        ("node", &node, "10.60.0.1:1004"),
        ("world", &world, "10.50.0.1:1003"),
    ])?;
    let records = record(&node, &[], || {
        // Out and back on the same uplink, crosswise, and in through the device on it, burst by burst.
        let paths = [
            ("10.9.0.2", "10.9.0.1"),
            ("10.8.0.2", "10.8.0.1"),
            ("10.9.0.2", "10.8.0.1"),
            ("10.8.0.2", "10.9.0.1"),
            ("10.9.0.2", "10.9.0.77"),
            ("10.9.0.2", "10.9.0.1"),
        ];
        for (out, back) in paths {
            ip(&node, &[&format!("route replace 10.50.0.1 via {out}")])?;
            ip(
                &world,
                &[
                    &format!("route replace 10.1.1.0/24 via {back}"),
                    &format!("route replace 10.60.0.1 via {back}"),
                ],
            )?;
            for (from, to) in [("a", "world"), ("world", "a"), ("node", "world"), ("world", "node")] {
                net.send(from, to, 5)?;
            }
        }
        // One uplink goes away in the middle of it.
        ip(&node, &["link set up0 down", "route replace 10.50.0.1 via 10.8.0.2"])?;
        ip(&world, &["route replace 10.1.1.0/24 via 10.8.0.1"])?;
        net.send("a", "world", 5)?;
        net.send("world", "a", 5)
    })?;
    net.check(&records, &[])?;
    Ok(())
}

/// Two devices below one that has the address, as the members of a bond are (which not every kernel has): packets of one
/// flow come and go through either. What is watched is the members, and the upper one overwrites where packets came in.
#[test]
fn members_of_one_upper_device() -> Result<()> {
    let (node, world) = (host("node")?, host("world")?);
    let a = pod(&node, "pa", "10.1.1.2")?;
    for (up, w) in [("up0", "w0"), ("up1", "w1")] {
        veth((&node, up), (&world, w))?;
    }
    ip(
        &node,
        &[
            "link add team0 type bridge",
            "link set up0 master team0",
            "link set up1 master team0",
            "link set team0 up",
            "address add 10.9.0.1/24 dev team0",
            "address add 10.1.1.1/24 dev pa",
        ],
    )?;
    // The world has one MAC address on both, and answers on both.
    ip(
        &world,
        &[
            "link set w0 address 02:09:00:00:00:02",
            "link set w1 address 02:09:00:00:00:02",
            "address add 10.9.0.2/24 dev w0",
            "address add 10.9.0.2/24 dev w1",
        ],
    )?;
    let mut net = Net::new(&[
        ("a", &a, "10.1.1.2:1001"),
        ("node", &node, "10.9.0.1:1004"),
        ("world", &world, "10.9.0.2:1003"),
    ])?;
    let records = record(&node, &["--interface", "pa", "--interface", "up*"], || {
        for member in ["w0", "w1", "w0", "w1"] {
            ip(
                &world,
                &[
                    &format!("route replace 10.9.0.1 dev {member}"),
                    &format!("route replace 10.1.1.0/24 via 10.9.0.1 dev {member}"),
                ],
            )?;
            for (from, to) in [("world", "a"), ("world", "node"), ("a", "world"), ("node", "world")] {
                net.send(from, to, 5)?;
            }
        }
        Ok(())
    })?;
    // Without a default route of their own these veths are endpoints, too; two packets of each are still one count.
    net.check(&records, &[("a", "world"), ("world", "a")])?;
    Ok(())
}

#[test]
fn each_interface_for_itself() -> Result<()> {
    let (node, world) = node()?;
    let (a, b) = (pod(&node, "pa", "10.1.0.2")?, pod(&node, "pb", "10.1.0.3")?);
    ip(
        &node,
        &[
            "link add br0 type bridge",
            "link set pa master br0",
            "link set pb master br0",
            "address add 10.1.0.1/24 dev br0",
            "link set br0 up",
        ],
    )?;
    let mut net = Net::new(&[
        ("a", &a, "10.1.0.2:1001"),
        ("b", &b, "10.1.0.3:1002"),
        ("world", &world, "10.9.0.2:1003"),
    ])?;
    // A bridge beside its ports is refused otherwise.
    let more = ["--observation", "all", "--interface", "p*", "--interface", "up0", "--interface", "br0"];
    let records = record(&node, &more, || {
        net.send("a", "b", 11)?;
        net.send("a", "world", 12)?;
        net.send("world", "a", 13)
    })?;
    for (from, to, count, interfaces) in [
        ("a", "b", 11, &["pa", "pb"][..]),
        ("a", "world", 12, &["br0", "pa", "up0"]),
        ("world", "a", 13, &["br0", "pa", "up0"]),
    ] {
        let mut there = BTreeMap::<&str, u64>::new();
        for record in records.iter().filter(|record| record.tuple() == net.tuple(from, to)) {
            ensure!(record.boolean("extensions/value/duplicate").is_none(), "{record:?}");
            ensure!(record.0.pointer("/flow/extensions/value/interfaces").is_none(), "{record:?}");
            *there.entry(record.text("interface/name")).or_default() += record.amount("packets");
        }
        let expected: BTreeMap<&str, u64> = interfaces.iter().map(|name| (*name, count)).collect();
        ensure!(there == expected, "{from} to {to}: {there:?}");
    }
    Ok(())
}

/// A node whose pods share a network with those of another node through VXLAN, the other node, and a pod.
fn node_with_vxlan() -> Result<[Netns; 3]> {
    let (node, world) = node()?;
    let a = pod(&node, "pa", "10.1.0.2")?;
    let vxlan = |local: &str, remote: &str| {
        format!("link add vx0 type vxlan id 42 dstport 7777 local {local} remote {remote} nolearning")
    };
    ip(
        &node,
        &[
            &vxlan("10.9.0.1", "10.9.0.2"),
            // With snooping a bridge joins a multicast group and reports it, through the tunnel too.
            "link add br0 address 02:01:00:00:00:01 type bridge mcast_snooping 0",
            "link set pa master br0",
            "link set vx0 master br0 up",
            "address add 10.1.0.1/24 dev br0",
            "link set br0 up",
        ],
    )?;
    ip(
        &world,
        &[
            &vxlan("10.9.0.2", "10.9.0.1"),
            "address add 10.1.0.9/24 dev vx0",
            "link set vx0 address 02:01:00:00:00:09 up",
        ],
    )?;
    // Nobody asks who has an address: that would be an outer packet without an inner flow.
    ip(
        &a,
        &[
            "link set eth0 address 02:01:00:00:00:02",
            "neighbour replace 10.1.0.9 lladdr 02:01:00:00:00:09 dev eth0",
        ],
    )?;
    ip(&node, &["neighbour replace 10.1.0.9 lladdr 02:01:00:00:00:09 dev br0"])?;
    ip(
        &world,
        &[
            "neighbour replace 10.1.0.2 lladdr 02:01:00:00:00:02 dev vx0",
            "neighbour replace 10.1.0.1 lladdr 02:01:00:00:00:01 dev vx0",
        ],
    )?;
    Ok([node, world, a])
}

/// What a flow's last record says of its tunnel.
fn names_its_tunnel(record: &Record) -> Result<()> {
    let back = record.text("IP/source") == "10.1.0.9";
    let expected = if back { ("10.9.0.2", "10.9.0.1") } else { ("10.9.0.1", "10.9.0.2") };
    let said = (record.text("tunnel/IP/source"), record.text("tunnel/IP/destination"));
    ensure!(said == expected, "{record:?}");
    ensure!(record.text("tunnel/protocol") == "VXLAN" && record.number("tunnel/vni") == 42, "{record:?}");
    ensure!(record.number("tunnel/l4/UDP/destination_port") == 7777, "{record:?}");
    ensure!(record.extension("tunnel") == "vxlan", "{record:?}");
    Ok(())
}

#[test]
fn pods_of_two_nodes_in_a_tunnel() -> Result<()> {
    const VXLAN: u64 = 50;
    for mode in ["auto", "outer", "inner", "both"] {
        let [node, world, a] = node_with_vxlan()?;
        let mut net = Net::new(&[
            ("a", &a, "10.1.0.2:1001"),
            ("node", &node, "10.1.0.1:1004"),
            ("there", &world, "10.1.0.9:1003"),
        ])?;
        let more = if mode == "auto" { vec![] } else { vec!["--tunnel", mode] };
        let records = record(&node, &more, || {
            net.send("a", "there", 21)?;
            net.send("there", "a", 22)?;
            net.send("node", "there", 23)
        })?;
        let (outer, inner): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| record.number("l4/UDP/destination_port") == 7777);
        // What the node itself sends is seen at its uplink alone, inside the tunnel, unless nobody looks there.
        if mode == "outer" {
            net.sent.remove(&("node".to_owned(), "there".to_owned()));
        }
        let seen = net.check(&inner, &[]).context(mode)?;
        let looked_into = mode != "outer";
        let back = &seen[&(net.tuple("there", "a"), false)];
        let expected = if looked_into { (FRAME + VXLAN, "up0") } else { (FRAME, "pa") };
        ensure!((back.bytes, back.interface.as_str()) == (22 * expected.0, expected.1), "{mode}: {back:?}");
        // Hosts' reports of multicast groups go through no tunnel.
        let ours = |record: &&Record| record.event() == "end" && record.number("l4/UDP/source_port") > 0;
        for record in inner.iter().filter(|record| looked_into && ours(record)) {
            names_its_tunnel(record).context(mode)?;
        }
        let packets = |source: &str| {
            let of = outer.iter().filter(|record| record.text("IP/source") == source);
            of.map(|record| record.amount("packets")).sum::<u64>()
        };
        let expected = if matches!(mode, "outer" | "both") { (21 + 23, 22) } else { (0, 0) };
        ensure!((packets("10.9.0.1"), packets("10.9.0.2")) == expected, "{mode}: {outer:#?}");
    }
    Ok(())
}
