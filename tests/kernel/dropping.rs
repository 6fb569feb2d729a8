//! Packets that the kernel drops of itself, each kind against another count of the kernel's or of the sender's. Reasons are
//! told by the names that the kernel's own enum gives them.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flowlog_tests::drops::{Dropped, Sum, Watch, chain, counter, datagrams, nft, nft_counter, to_port};
use flowlog_tests::guest::kernel;
use flowlog_tests::netns::{FAR, INTERFACE, NEAR, Netns, Pair};
use flowlog_tests::packets::{SYN, ipv4_with, sound_frame, tcp, udp};
use flowlog_tests::topology::{ip, row};

use flowlog_tests::wire::{send, wire};

const NEAR4: [u8; 4] = [10, 77, 0, 1];
const FAR4: [u8; 4] = [10, 77, 0, 2];

/// A frame from near to far whose IP header is right.
fn frame(source: [u8; 4], destination: [u8; 4], fragment: u16, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let ends = [[2, 0x77, 0, 0, 0, 2], [2, 0x77, 0, 0, 0, 1]];
    sound_frame(ends, ipv4_with(source, destination, protocol, &[], fragment, segment))
}

/// How much a counter grew while something was done.
fn grown<T>(netns: &Netns, (of, name): (&str, &str), work: impl FnOnce() -> Result<T>) -> Result<(u64, T)> {
    let before = counter(netns, of, name)?;
    let done = work()?;
    Ok((counter(netns, of, name)? - before, done))
}

/// The sum of a reason, to whatever port.
fn by_reason(dropped: &Dropped, reason: &str, port: u16) -> Result<Sum> {
    let key = dropped.iter().find(|((tuple, found), _)| found == reason && tuple.4 == u64::from(port));
    key.map(|(_, sum)| sum.clone()).with_context(|| format!("no {reason} to {port} in {dropped:#?}"))
}

#[test]
fn nobody_listens() -> Result<()> {
    let pair = Pair::new(false)?;
    let watch = Watch::start(&pair.near)?;
    let refused = || {
        let asking = pair.near.enter(|| -> Result<usize> {
            Ok((0..9).filter(|_| TcpStream::connect((FAR, 7011)).is_err()).count())
        });
        asking.join().map_err(|_| anyhow::anyhow!("a host died"))?
    };
    let (resets, refused) = grown(&pair.far, ("Tcp", "OutRsts"), refused)?;
    let (no_ports, sent) = grown(&pair.far, ("Udp", "NoPorts"), || datagrams(&pair.near, FAR, 7012, 33, 10))?;
    let dropped = watch.stop()?.of(&pair.far)?;
    // Each connection has a port of its own.
    let tcp: Vec<_> = dropped.iter().filter(|((tuple, _), _)| tuple.4 == 7011).collect();
    let packets: u64 = tcp.iter().map(|(_, sum)| sum.packets).sum();
    ensure!((packets, resets, refused) == (9, 9, 9), "{packets} dropped, {resets} resets, {refused} refused");
    for ((tuple, reason), sum) in tcp {
        ensure!(tuple.0 == "TCP" && reason == "NO_SOCKET" && sum.hubble == "SOCKET_LOOKUP_FAILED", "{sum:?}");
        ensure!(sum.interface == INTERFACE && sum.location == "tcp_v4_rcv", "{sum:?}");
    }
    let (reason, sum) = to_port(&dropped, 7012)?;
    ensure!(reason == "NO_SOCKET" && sum.location == "__udp4_lib_rcv", "{reason} {sum:?}");
    ensure!(
        (sum.packets, no_ports, sent) == (33, 33, 33) && sum.bytes == 33 * 52,
        "{sum:?} {no_ports} {sent}"
    );
    Ok(())
}

#[test]
fn a_socket_buffer_and_a_listen_queue_are_full() -> Result<()> {
    let pair = Pair::new(false)?;
    pair.far.run(&["sysctl", "-qw", "net.core.somaxconn=1"])?;
    let watch = Watch::start(&pair.near)?;
    let ((ready, bound), (enough, wait)) = (channel(), channel::<()>());
    let holding = pair.far.enter(move || -> Result<()> {
        let socket = UdpSocket::bind((FAR, 7013))?;
        let listener = TcpListener::bind((FAR, 7014))?;
        ready.send(())?;
        let _ = wait.recv();
        drop((socket, listener));
        Ok(())
    });
    bound.recv()?;
    let (full, _) =
        grown(&pair.far, ("Udp", "RcvbufErrors"), || datagrams(&pair.near, FAR, 7013, 2_000, 400))?;
    let connect = |count: usize| {
        let asking = pair.near.enter(move || -> Result<Vec<_>> {
            let to = format!("{FAR}:7014").parse()?;
            Ok((0..count).map(|_| TcpStream::connect_timeout(&to, Duration::from_millis(500))).collect())
        });
        asking.join().map_err(|_| anyhow::anyhow!("a host died"))?
    };
    // One after the other, so that none is in the middle of its handshake when the queue is full.
    let early: Vec<_> = connect(2)?.into_iter().collect::<Result<_, _>>()?;
    let (overflows, late) = grown(&pair.far, ("TcpExt", "ListenOverflows"), || connect(3))?;
    let refused = late.iter().filter(|one| one.is_err()).count();
    drop((enough, early));
    holding.join().map_err(|_| anyhow::anyhow!("a host died"))??;
    let dropped = watch.stop()?.of(&pair.far)?;
    let sum = by_reason(&dropped, "SOCKET_RCVBUFF", 7013)?;
    ensure!(full > 100 && sum.packets == full && sum.bytes == full * 442, "{full}: {sum:?}");
    ensure!(sum.interface == INTERFACE && sum.hubble.is_empty(), "{sum:?}");
    // A SYN that finds the listen queue full is counted by TCP, and freed as if it had been delivered.
    // (What the listener's end takes from its queue is none.)
    let syns = dropped.iter().any(|((tuple, _), sum)| tuple.4 == 7014 && sum.location != "tcp_disconnect");
    ensure!(
        overflows >= 3 && refused == 3 && !syns,
        "{overflows} overflows, {refused} refused: {dropped:#?}"
    );
    Ok(())
}

#[test]
fn checksums_are_wrong() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let wire = wire(folder.path())?;
    let pair = Pair::new(false)?;
    let watch = Watch::start(&pair.near)?;
    let mut wrong_udp = udp(5, 7015, b"wrong");
    wrong_udp[6..8].copy_from_slice(&[0x12, 0x34]);
    let mut wrong_ip = frame(NEAR4, FAR4, 0, 17, &udp(5, 7016, b"wrong"));
    wrong_ip[24] ^= 0xff;
    let cases = [
        ("UDP_CSUM", 7015, ("Udp", "InCsumErrors"), frame(NEAR4, FAR4, 0, 17, &wrong_udp)),
        ("IP_CSUM", 7016, ("IpExt", "InCsumErrors"), wrong_ip),
        ("TCP_CSUM", 7017, ("Tcp", "InCsumErrors"), frame(NEAR4, FAR4, 0, 6, &tcp(5, 7017, SYN, &[], b""))),
    ];
    // A socket to look for, or the checksum does not matter.
    let ((ready, bound), (enough, wait)) = (channel(), channel::<()>());
    let holding = pair.far.enter(move || -> Result<()> {
        let socket = UdpSocket::bind((FAR, 7015))?;
        let listener = TcpListener::bind((FAR, 7017))?;
        ready.send(())?;
        let _ = wait.recv();
        drop((socket, listener));
        Ok(())
    });
    bound.recv()?;
    let mut counted = Vec::new();
    for (count, (_, _, of, frame)) in (3..).zip(&cases) {
        let (grown, ()) = grown(&pair.far, *of, || {
            (0..count).try_for_each(|_| send(&pair.near, &wire, &["raw", INTERFACE], frame))
        })?;
        ensure!(grown == count, "{of:?}: {grown} of {count}");
        counted.push(grown);
    }
    drop(enough);
    holding.join().map_err(|_| anyhow::anyhow!("a host died"))??;
    let dropped = watch.stop()?.of(&pair.far)?;
    for ((name, port, _, frame), counted) in cases.iter().zip(counted) {
        let (reason, sum) = to_port(&dropped, *port)?;
        ensure!(reason == *name && sum.hubble == "INVALID_PACKET_DROPPED", "{name}: {reason} {sum:?}");
        ensure!((sum.packets, sum.bytes) == (counted, counted * frame.len() as u64), "{name}: {sum:?}");
    }
    Ok(())
}

#[test]
fn a_router_cannot_pass_it_on() -> Result<()> {
    let (left, router, _right) = row()?;
    ip(&router, &["link set r1 mtu 1000"])?;
    let watch = Watch::start(&left)?;
    let (expired, _) = grown(&router, ("Ip", "InHdrErrors"), || {
        let sending = left.enter(|| -> Result<()> {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.set_ttl(1)?;
            (0..11).try_for_each(|_| socket.send_to(b"old", "10.2.0.1:7018").map(drop))?;
            Ok(())
        });
        sending.join().map_err(|_| anyhow::anyhow!("a host died"))?
    })?;
    let (no_routes, _) =
        grown(&router, ("IpExt", "InNoRoutes"), || datagrams(&left, "10.9.9.9", 7019, 12, 30))?;
    // Longer than the next link takes, and not to be cut; the first answer makes the sender cut them itself.
    let (too_big, _) = grown(&router, ("Ip", "FragFails"), || datagrams(&left, "10.2.0.1", 7020, 1, 1_200))?;
    let dropped = watch.stop()?.of(&router)?;
    let (reason, sum) = to_port(&dropped, 7018)?;
    ensure!((sum.packets, expired) == (11, 11), "{sum:?}, {expired} expired");
    ensure!(
        reason == "IP_INHDR" && sum.hubble == "TTL_EXCEEDED" && sum.interface == "r0",
        "{reason} {sum:?}"
    );
    let (reason, sum) = to_port(&dropped, 7019)?;
    ensure!((sum.packets, no_routes, sum.bytes) == (12, 12, 12 * 72), "{sum:?}, {no_routes} without route");
    ensure!(reason == "IP_INNOROUTES" && sum.hubble == "FIB_LOOKUP_FAILED", "{reason} {sum:?}");
    let (reason, sum) = to_port(&dropped, 7020)?;
    ensure!((sum.packets, too_big) == (1, 1), "{sum:?}, {too_big} too big");
    ensure!(reason == "PKT_TOO_BIG" && sum.hubble == "IP_FRAGMENTATION_NOT_SUPPORTED", "{reason} {sum:?}");
    Ok(())
}

#[test]
fn the_way_back_is_another_one() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let wire = wire(folder.path())?;
    let pair = Pair::new(false)?;
    pair.far.run(&["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1"])?;
    let watch = Watch::start(&pair.near)?;
    let (filtered, ()) = grown(&pair.far, ("TcpExt", "IPReversePathFilter"), || {
        let strange = frame([192, 0, 2, 1], FAR4, 0, 17, &udp(5, 7021, b"from elsewhere"));
        (0..6).try_for_each(|_| send(&pair.near, &wire, &["raw", INTERFACE], &strange))
    })?;
    let (reason, sum) = to_port(&watch.stop()?.of(&pair.far)?, 7021)?;
    ensure!(reason == "IP_RPFILTER" && sum.hubble == "INVALID_SOURCE_IP", "{reason} {sum:?}");
    ensure!((sum.packets, filtered) == (6, 6), "{sum:?}, {filtered} filtered");
    Ok(())
}

/// What the qdisc of the classifiers of an interface has dropped.
fn classified(netns: &Netns) -> Result<u64> {
    let text = netns.run(&["tc", "-s", "-j", "qdisc", "show", "dev", INTERFACE])?;
    let all: serde_json::Value = serde_json::from_str(&text)?;
    let mut all = all.as_array().into_iter().flatten();
    let drops = all.find(|one| one["kind"] == "clsact").and_then(|one| one["drops"].as_u64());
    drops.with_context(|| text.clone())
}

#[test]
fn traffic_control_drops() -> Result<()> {
    let pair = Pair::new(false)?;
    pair.far.run(&["tc", "qdisc", "add", "dev", INTERFACE, "clsact"])?;
    for side in ["ingress", "egress"] {
        // A program of one instruction: drop.
        let words = ["tc", "filter", "add", "dev", INTERFACE, side, "bpf", "da", "bytecode", "1,6 0 0 2"];
        pair.far.run(&words)?;
    }
    let watch = Watch::start(&pair.near)?;
    datagrams(&pair.near, FAR, 7022, 21, 10)?;
    let ingress = classified(&pair.far)?;
    datagrams(&pair.far, NEAR, 7023, 22, 10)?;
    let egress = classified(&pair.far)? - ingress;
    let dropped = watch.stop()?.of(&pair.far)?;
    for (port, name, counted, expected) in
        [(7022, "TC_INGRESS", ingress, 21), (7023, "TC_EGRESS", egress, 22)]
    {
        let (reason, sum) = to_port(&dropped, port)?;
        ensure!(reason == name && sum.hubble == "POLICY_DENIED", "{reason} {sum:?}");
        ensure!((sum.packets, counted) == (expected, expected), "{sum:?}, tc {counted}");
        ensure!(sum.bytes == 52 * expected && sum.interface == INTERFACE, "{sum:?}");
    }
    Ok(())
}

/// A program of XDP that drops everything at an interface until this is dropped.
struct Xdp(std::process::Child);

impl Xdp {
    fn start(netns: &Netns, wire: &std::path::Path, mode: &str) -> Result<Self> {
        use std::io::{BufRead as _, BufReader};
        use std::process::Stdio;
        let mut command = netns.command(wire.to_str().context("a plain path")?);
        command.args(["xdp", INTERFACE, mode]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("stdout is piped")?).read_line(&mut line)?;
        ensure!(line == "attached\n", "no program of XDP with mode {mode}");
        Ok(Self(child))
    }
}

impl Drop for Xdp {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn xdp_drops() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let wire = wire(folder.path())?;
    let pair = Pair::new(false)?;
    let watch = Watch::start(&pair.near)?;
    for (mode, port, count) in [("2", 7024, 17), ("4", 7025, 18)] {
        let xdp = Xdp::start(&pair.far, &wire, mode)?;
        datagrams(&pair.near, FAR, port, count, 10)?;
        drop(xdp);
    }
    let dropped = watch.stop()?.of(&pair.far)?;
    // Where there is a buffer already, as here, it is freed as dropped; a driver that drops before it makes one shows nothing.
    for (port, count, place) in [(7024, 17, "do_xdp_generic"), (7025, 18, "veth_xdp_rcv_skb")] {
        let (reason, sum) = to_port(&dropped, port)?;
        ensure!(matches!(reason.as_str(), "NOT_SPECIFIED" | "XDP"), "{reason} {sum:?}");
        // Where it is a module, it says so behind the name.
        let function = sum.location.split(' ').next();
        ensure!(sum.packets == count && sum.bytes == 52 * count && function == Some(place), "{sum:?}");
        ensure!(
            sum.hubble == "POLICY_DENIED" && sum.direction == "INGRESS" && sum.interface == INTERFACE,
            "{sum:?}"
        );
    }
    Ok(())
}

#[test]
fn a_handshake_ends_when_the_listen_queue_is_full() -> Result<()> {
    let pair = Pair::new(false)?;
    pair.far.run(&["sysctl", "-qw", "net.core.somaxconn=1"])?;
    // The last packet of a handshake is kept back until others have filled the queue.
    let rule = "tcp dport 7026 tcp flags & (syn | ack | rst | fin) == ack counter drop";
    nft(
        &pair.near,
        &format!(
            "add table inet t; add chain inet t c {{ type filter hook output priority 0; }}; add rule inet t c {rule}"
        ),
    )?;
    let watch = Watch::start(&pair.near)?;
    let ((ready, bound), (enough, wait)) = (channel(), channel::<()>());
    let holding = pair.far.enter(move || -> Result<()> {
        let listener = TcpListener::bind((FAR, 7026))?;
        ready.send(())?;
        let _ = wait.recv();
        drop(listener);
        Ok(())
    });
    bound.recv()?;
    let connect = |count: usize| {
        let asking = pair.near.enter(move || -> Result<Vec<TcpStream>> {
            (0..count).map(|_| Ok(TcpStream::connect((FAR, 7026))?)).collect()
        });
        asking.join().map_err(|_| anyhow::anyhow!("a host died"))?
    };
    let late = connect(1)?;
    nft(&pair.near, "delete table inet t")?;
    let early = connect(2)?;
    // The server asks the first one once more, after a second and after two more, and is answered.
    let until = std::time::Instant::now() + flowlog_tests::daemon::PATIENCE;
    while counter(&pair.far, "TcpExt", "ListenOverflows")? < 2 {
        ensure!(std::time::Instant::now() < until, "the queue is never full");
        std::thread::sleep(Duration::from_millis(50));
    }
    let overflows = counter(&pair.far, "TcpExt", "ListenOverflows")?;
    let port = late.first().context("a connection")?.local_addr()?.port();
    drop(enough);
    holding.join().map_err(|_| anyhow::anyhow!("a host died"))??;
    let dropped = watch.stop()?.of(&pair.far)?;
    drop((late, early));
    let of_late = dropped.iter().filter(|((tuple, _), _)| tuple.2 == u64::from(port));
    let of_late: Vec<_> = of_late.map(|((_, reason), sum)| (reason.as_str(), sum.packets)).collect();
    // Kernels before 6.14 give no reason.
    let name = if kernel() >= (6, 14) { "TCP_LISTEN_OVERFLOW" } else { "NOT_SPECIFIED" };
    ensure!(of_late == [(name, overflows)], "{overflows} overflows, {dropped:#?}");
    Ok(())
}

#[test]
fn what_another_packet_was_made_of_is_no_drop() -> Result<()> {
    let pair = Pair::new(false)?;
    chain(&pair.far, "input", &[(7046, "dropped", "drop")])?;
    let watch = Watch::start(&pair.near)?;
    let (ready, bound) = channel();
    let receiving = pair.far.enter(move || -> Result<usize> {
        let socket = UdpSocket::bind((FAR, 7045))?;
        socket.set_read_timeout(Some(flowlog_tests::daemon::PATIENCE))?;
        ready.send(())?;
        let mut buffer = [0; 8_000];
        Ok((0..5).map_while(|_| socket.recv(&mut buffer).ok()).sum())
    });
    bound.recv()?;
    // Three fragments each.
    datagrams(&pair.near, FAR, 7045, 5, 4_000)?;
    datagrams(&pair.near, FAR, 7046, 4, 4_000)?;
    let received = receiving.join().map_err(|_| anyhow::anyhow!("a host died"))??;
    // Delivered, and freed by another way than a socket's.
    let pinged = pair.near.run(&["ping", "-q", "-n", "-c", "3", "-i", "0.2", "-s", "4000", FAR])?;
    let stopped = watch.stop()?;
    let (packets, bytes) = nft_counter(&pair.far, "dropped")?;
    let (reason, sum) = to_port(&stopped.of(&pair.far)?, 7046)?;
    ensure!((reason.as_str(), packets, received) == ("NETFILTER_DROP", 4, 5 * 4_000), "{reason} {packets}");
    ensure!(
        (sum.packets, sum.bytes) == (packets, bytes + 14 * packets),
        "{sum:?}, nftables {packets} {bytes}"
    );
    ensure!(pinged.contains(" 3 received"), "{pinged}");
    // Fragments know of no host any more.
    let strays: Vec<_> = stopped
        .records
        .iter()
        .filter(|record| record.amount("drop_netns") == 0 && record.text("IP/destination") == FAR)
        .collect();
    ensure!(strays.is_empty(), "{strays:?}");
    let parts = stopped.ended.number("/drops/parts/packets")?;
    ensure!(parts >= 2 * 4, "{parts} of the dropped datagrams' fragments");
    Ok(())
}
