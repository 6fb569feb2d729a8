//! `flowlog replay --tunnel inner` against tshark, which opens every tunnel.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_tests::netns::run;
use flowlog_tests::records::{Record, all};

/// A direction of an inner TCP or UDP flow: protocol, addresses and ports, outer addresses, network identifier.
type Inner = (String, [String; 2], [u64; 2], [String; 2], u64);

/// What may stand between the two IP headers.
const BETWEEN: [&str; 7] = ["udp", "vxlan", "geneve", "gre", "eth", "ethertype", "vlan"];

/// Packets and frame bytes of each inner flow, by tshark.
fn theirs(pcap: &Path) -> Result<BTreeMap<Inner, (u64, u64)>> {
    let fields = [
        "frame.protocols",
        "ip.src",
        "ip.dst",
        "ipv6.src",
        "ipv6.dst",
        "tcp.srcport",
        "tcp.dstport",
        "udp.srcport",
        "udp.dstport",
        "vxlan.vni",
        "geneve.vni",
        "gre.key",
        "frame.len",
    ];
    let path = pcap.to_string_lossy();
    let mut words = vec!["-n", "-r", &path, "-T", "fields", "-E", "separator=;", "-E", "occurrence=a"];
    words.extend(["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]);
    words.extend(fields.iter().flat_map(|field| ["-e", field]));
    let mut flows = BTreeMap::new();
    for line in run("tshark", &words)?.lines() {
        if let Some((inner, length)) = inner(line)? {
            let sum = flows.entry(inner).or_insert((0, 0));
            *sum = (sum.0 + 1, sum.1 + length);
        }
    }
    Ok(flows)
}

/// The inner flow of a line of tshark's, where it has exactly one tunnel and TCP or UDP inside.
fn inner(line: &str) -> Result<Option<(Inner, u64)>> {
    let columns: Vec<&str> = line.split(';').collect();
    let [protocols, ip, ip_to, ip6, ip6_to, tcp, tcp_to, udp, udp_to, vxlan, geneve, gre, length] =
        columns[..]
    else {
        return Ok(None);
    };
    let layers: Vec<&str> = protocols.split(':').collect();
    let at: Vec<usize> = (0..layers.len()).filter(|at| matches!(layers[*at], "ip" | "ipv6")).collect();
    let [first, second] = at[..] else { return Ok(None) };
    let opened = layers[first + 1..second].iter().all(|layer| BETWEEN.contains(layer));
    let Some(transport @ ("tcp" | "udp")) = layers.get(second + 1).copied() else { return Ok(None) };
    if !opened {
        return Ok(None);
    }
    let nth = |text: &str, last: bool| {
        let mut all = text.split(',');
        if last { all.next_back() } else { all.next() }.unwrap_or_default().to_owned()
    };
    let ends = |layer: &str, last| {
        if layer == "ip" { [nth(ip, last), nth(ip_to, last)] } else { [nth(ip6, last), nth(ip6_to, last)] }
    };
    let ports = if transport == "tcp" { [tcp, tcp_to] } else { [udp, udp_to] };
    let number = |text: &str| -> Result<u64> {
        let text = nth(text, true);
        match text.strip_prefix("0x") {
            Some(digits) => Ok(u64::from_str_radix(digits, 16)?),
            None if text.is_empty() => Ok(0),
            None => Ok(text.parse()?),
        }
    };
    let vni = number(vxlan)? + number(geneve)? + number(gre)?;
    let [from, to] = [number(ports[0])?, number(ports[1])?];
    let key =
        (transport.to_uppercase(), ends(layers[second], true), [from, to], ends(layers[first], false), vni);
    Ok(Some((key, number(length)?)))
}

/// The same by our records.
fn ours(pcap: &Path, mode: &str) -> Result<Vec<Record>> {
    let folder = tempfile::tempdir()?;
    let tasks = folder.path().join("tasks.yaml");
    std::fs::write(
        &tasks,
        "flowLogs:\n  - {name: all, filePath: /var/log/flowlog/all.log, events: [start, end]}\n",
    )?;
    let out = folder.path().join("out");
    let output = Command::new(binary())
        .args(["replay", "--tunnel", mode, "--pcap"])
        .args([pcap, Path::new("--tasks"), &tasks, Path::new("--output-dir"), &out])
        .output()?;
    ensure!(output.status.success(), "{}: {}", pcap.display(), String::from_utf8_lossy(&output.stderr));
    all(&out, "all-")
}

fn inner_flows(records: &[Record]) -> BTreeMap<Inner, (u64, u64)> {
    let mut flows = BTreeMap::new();
    for record in records.iter().filter(|record| !record.extension("tunnel").is_empty()) {
        let (protocol, source, from, destination, to) = record.tuple();
        if !matches!(protocol.as_str(), "TCP" | "UDP") {
            continue;
        }
        let outer = ["tunnel/IP/source", "tunnel/IP/destination"].map(|end| record.text(end).to_owned());
        let key = (protocol, [source, destination], [from, to], outer, record.number("tunnel/vni"));
        let sum = flows.entry(key).or_insert((0, 0));
        *sum = (sum.0 + record.amount("packets"), sum.1 + record.amount("bytes"));
    }
    flows
}

fn same(pcap: &Path) -> Result<usize> {
    let (ours, theirs) = (inner_flows(&ours(pcap, "inner")?), theirs(pcap)?);
    for (flow, sum) in &theirs {
        ensure!(
            ours.get(flow) == Some(sum),
            "{}: {flow:?}: tshark {sum:?}, flowlog {:?}",
            pcap.display(),
            ours.get(flow)
        );
    }
    ensure!(ours.len() == theirs.len(), "{}: flowlog {ours:#?}, tshark {theirs:#?}", pcap.display());
    Ok(theirs.len())
}

fn ipv4(protocol: u8, ends: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let total = u16::try_from(20 + payload.len()).expect("short").to_be_bytes();
    let [from, to] = ends;
    let header = [0x45, 0, total[0], total[1], 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    [&header, payload].concat()
}

fn ipv6(next: u8, ends: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("short").to_be_bytes();
    let address = |last| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let [from, to] = ends.map(address);
    [&[0x60, 0, 0, 0, length[0], length[1], next, 64][..], &from, &to, payload].concat()
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("short");
    [&ports[0].to_be_bytes()[..], &ports[1].to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat()
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ethertype.to_be_bytes(), payload].concat()
}

/// Frames with each kind of tunnel, over and with both versions of IP, and what is none.
fn frames() -> Vec<Vec<u8>> {
    let tcp = |port: u16| {
        [
            &port.to_be_bytes()[..],
            &443_u16.to_be_bytes(),
            &[0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0],
            b"data",
        ]
        .concat()
    };
    let inner = |port| ipv4(6, [101, 102], &tcp(port));
    let inner6 = |port| ipv6(17, [103, 104], &udp([port, 777], b"data"));
    let vxlan =
        |vni: u8, frame: &[u8]| udp([50_000, 4789], &[&[8, 0, 0, 0, 0, 1, vni, 0][..], frame].concat());
    let geneve = |header: &[u8], frame: &[u8]| udp([50_001, 6081], &[header, frame].concat());
    let gre = |header: &[u8], packet: &[u8]| [header, packet].concat();
    let over4 = |protocol, payload: &[u8]| ethernet(0x0800, &ipv4(protocol, [1, 2], payload));
    let over6 = |next, payload: &[u8]| ethernet(0x86dd, &ipv6(next, [3, 4], payload));
    vec![
        over4(17, &vxlan(1, &ethernet(0x0800, &inner(1001)))),
        over4(17, &vxlan(1, &ethernet(0x0800, &inner(1001)))),
        over6(17, &vxlan(2, &ethernet(0x86dd, &inner6(1002)))),
        over4(17, &vxlan(3, &ethernet(0x8100, &[&[0, 9, 8, 0][..], &inner(1003)].concat()))),
        over4(17, &geneve(&[0, 0, 0x65, 0x58, 0, 0, 4, 0], &ethernet(0x0800, &inner(1004)))),
        over6(17, &geneve(&[1, 0, 0x08, 0x00, 0, 0, 5, 0, 0xff, 0, 0, 0], &inner(1005))),
        over4(47, &gre(&[0, 0, 8, 0], &inner(1006))),
        over4(47, &gre(&[0x20, 0, 0x86, 0xdd, 0, 0, 0, 7], &inner6(1007))),
        over6(47, &gre(&[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1], &inner(1008))),
        over4(47, &gre(&[0, 0, 0x65, 0x58], &ethernet(0x0800, &inner(1009)))),
        over4(4, &inner(1010)),
        over4(41, &inner6(1011)),
        over6(4, &inner(1012)),
        over6(41, &inner6(1013)),
        ethernet(0x8100, &[&[0, 5, 8, 0][..], &ipv4(4, [1, 2], &inner(1014))].concat()),
        // No tunnel: plain, ARP inside, and an error about a packet.
        over4(6, &tcp(1015)),
        over4(
            17,
            &vxlan(
                4,
                &ethernet(
                    0x0806,
                    &[0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                ),
            ),
        ),
        over4(1, &[&[3, 3, 0, 0, 0, 0, 0, 0][..], &inner(1016)].concat()),
    ]
}

fn written(folder: &Path) -> Result<PathBuf> {
    let mut file = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    for (second, frame) in (1_700_000_000..).zip(frames()) {
        let length = u32::try_from(frame.len())?;
        file.extend([second, 0, length, length].map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    let path = folder.join("tunnels.pcap");
    std::fs::write(&path, file)?;
    Ok(path)
}

#[test]
fn every_kind_of_tunnel_is_opened_as_tshark_opens_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let opened = same(&written(folder.path())?)?;
    ensure!(opened == 14, "{opened} inner flows");
    Ok(())
}

#[test]
fn a_capture_ends_no_tunnel_and_both_counts_both() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pcap = written(folder.path())?;
    let packets = |records: &[Record]| records.iter().map(|record| record.amount("packets")).sum::<u64>();
    let outer = ours(&pcap, "outer")?;
    ensure!(packets(&outer) == 18 && inner_flows(&outer).is_empty(), "{} packets outside", packets(&outer));
    let (inner, both) = (ours(&pcap, "inner")?, ours(&pcap, "both")?);
    ensure!(
        (packets(&inner), packets(&both)) == (18, 18 + 15),
        "{} inside, {} of both",
        packets(&inner),
        packets(&both)
    );
    ensure!(inner_flows(&inner) == inner_flows(&both), "{inner:#?}");
    let tagged =
        inner.iter().find(|record| record.number("l4/TCP/source_port") == 1014).context("the tagged one")?;
    ensure!(tagged.amount("vlan") == 5 && tagged.extension("tunnel") == "ipip", "{tagged:?}");
    Ok(())
}

#[test]
fn captures_of_others_are_opened_as_tshark_opens_them() -> Result<()> {
    let given = std::env::var_os("FLOWLOG_PCAPS").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/pcaps"));
    if !folder.is_dir() {
        println!("skipped: there are no captures at {}; set FLOWLOG_PCAPS", folder.display());
        return Ok(());
    }
    let mut opened = 0;
    for name in ["geneve.pcap", "geneve-gcp.pcap", "gso-ipv6-geneve-ipv6.pcap", "gso-ipv6-vxlan-ipv6.pcap"] {
        opened += same(&folder.join("tcpdump").join(name))?;
    }
    ensure!(opened > 4, "only {opened} inner flows");
    Ok(())
}
