//! Networks of more than two hosts, and datagrams of known number between them.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::channel;

use anyhow::{Context, Result, ensure};

use crate::daemon::PATIENCE;
use crate::netns::{Netns, run};
use crate::records::{Record, Tuple};
use crate::traffic::bound;

/// A host that speaks IPv4 alone, forwards, and takes packets whichever way they come.
///
/// # Errors
/// When the kernel refuses (no root).
pub fn host(label: &str) -> Result<Netns> {
    let netns = Netns::new(label)?;
    netns.run(&[
        "sysctl",
        "-qw",
        "net.ipv6.conf.all.disable_ipv6=1",
        "net.ipv6.conf.default.disable_ipv6=1",
        "net.ipv4.ip_forward=1",
        "net.ipv4.conf.all.rp_filter=0",
        "net.ipv4.conf.default.rp_filter=0",
        // An answer to who has an address comes from the interface that has it, and no redirect is sent.
        "net.ipv4.conf.all.arp_ignore=1",
        "net.ipv4.conf.all.send_redirects=0",
        "net.ipv4.conf.default.send_redirects=0",
    ])?;
    Ok(netns)
}

/// Joins two hosts by a veth pair, which is up.
///
/// # Errors
/// When the kernel refuses.
pub fn veth(one: (&Netns, &str), other: (&Netns, &str)) -> Result<()> {
    let (a, b) = (one.0.name(), other.0.name());
    run("ip", &["link", "add", one.1, "netns", a, "type", "veth", "peer", "name", other.1, "netns", b])?;
    for (netns, name) in [one, other] {
        netns.run(&["ip", "link", "set", name, "up"])?;
    }
    Ok(())
}

/// Runs each line as `ip ...` in a host.
///
/// # Errors
/// When one fails.
pub fn ip(netns: &Netns, lines: &[&str]) -> Result<()> {
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        run("ip", &[&["-n", netns.name()], &words[..]].concat())?;
    }
    Ok(())
}

/// Three hosts in a row, of which the one in the middle forwards: 10.1.0.1 at `u0`, `r0` and `r1`, 10.2.0.1 at `u0`.
///
/// # Errors
/// When the kernel refuses.
pub fn row() -> Result<(Netns, Netns, Netns)> {
    let (left, router, right) = (host("left")?, host("router")?, host("right")?);
    veth((&left, "u0"), (&router, "r0"))?;
    veth((&router, "r1"), (&right, "u0"))?;
    ip(&left, &["address add 10.1.0.1/24 dev u0", "route add default via 10.1.0.2"])?;
    ip(&router, &["address add 10.1.0.2/24 dev r0", "address add 10.2.0.2/24 dev r1"])?;
    ip(&right, &["address add 10.2.0.1/24 dev u0", "route add default via 10.2.0.2"])?;
    Ok((left, router, right))
}

/// Sends `count` datagrams of `size` bytes and waits until all have arrived.
///
/// # Errors
/// When an address is not there, or a datagram does not arrive.
pub fn send(from: (&Netns, SocketAddr), to: (&Netns, SocketAddr), count: usize, size: usize) -> Result<()> {
    let (ready, listening) = channel();
    let (source, destination) = (from.1, to.1);
    let receiving = to.0.enter(move || -> Result<()> {
        let socket = bound(|| UdpSocket::bind(destination))?;
        socket.set_read_timeout(Some(PATIENCE / 6))?;
        ready.send(())?;
        for received in 0..count {
            let (length, peer) = socket
                .recv_from(&mut [0; 65_536])
                .with_context(|| format!("{source} to {destination}: {received} of {count} arrived"))?;
            ensure!((length, peer) == (size, source), "{length} bytes from {peer}");
        }
        Ok(())
    });
    let _ = listening.recv_timeout(PATIENCE); // where it fails, the thread says why
    let sending = from.0.enter(move || -> Result<()> {
        let socket = bound(|| UdpSocket::bind(source))?;
        for _ in 0..count {
            socket.send_to(&vec![b'u'; size], destination)?;
        }
        Ok(())
    });
    let died = |_| anyhow::anyhow!("a host died");
    sending.join().map_err(died)??;
    receiving.join().map_err(died)?
}

/// What records say of one direction at one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Packets.
    pub packets: u64,
    /// Layer-2 bytes.
    pub bytes: u64,
    /// The interface named in the last record.
    pub interface: String,
}

/// Packets and bytes by direction, and whether they are marked as duplicates.
#[must_use]
pub fn seen(records: &[Record]) -> BTreeMap<(Tuple, bool), Seen> {
    let mut all = BTreeMap::<_, Seen>::new();
    for record in records {
        let duplicate = record.boolean("extensions/value/duplicate").unwrap_or(false);
        let sum = all.entry((record.tuple(), duplicate)).or_default();
        sum.packets += record.amount("packets");
        sum.bytes += record.amount("bytes");
        sum.interface = record.text("interface/name").into();
    }
    all
}
