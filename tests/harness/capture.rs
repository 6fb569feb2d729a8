//! Wireshark's tools as a second pair of eyes: what dumpcap caught, as tshark understands it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::netns::{Netns, run};
use crate::records::Tuple;

/// A running dumpcap.
#[derive(Debug)]
pub struct Capture {
    child: Child,
    file: PathBuf,
}

impl Capture {
    /// Begins to capture; returns when it does.
    ///
    /// # Errors
    /// When dumpcap does not start.
    pub fn start(netns: &Netns, interface: &str, file: &Path) -> Result<Self> {
        let mut child = netns
            .command("dumpcap")
            .args(["-q", "-P", "-B", "64", "-i", interface, "-w"])
            .arg(file)
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        let mut lines = BufReader::new(stderr).lines();
        lines
            .find(|line| line.as_ref().is_ok_and(|line| line.starts_with("File:")))
            .context("dumpcap did not begin")??;
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, file: file.into() })
    }

    /// Stops when it has caught as many packets as the interface has counted.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(mut self, expected: u64) -> Result<PathBuf> {
        for _ in 0..100 {
            if packets(&self.file).is_ok_and(|caught| caught >= expected) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        self.child.wait()?;
        Ok(self.file)
    }
}

/// How many packets a capture holds.
///
/// # Errors
/// When capinfos cannot read it.
pub fn packets(file: &Path) -> Result<u64> {
    let said = run("capinfos", &["-Mc", &file.to_string_lossy()])?;
    said.split_whitespace().last().and_then(|n| n.parse().ok()).context(said)
}

/// Packets and frame bytes of each direction of each TCP and UDP flow and of each ping, by tshark.
///
/// # Errors
/// When tshark cannot read the file.
pub fn tuples(file: &Path) -> Result<BTreeMap<Tuple, (u64, u64)>> {
    let fields = [
        "ip.src",
        "ipv6.src",
        "ip.dst",
        "ipv6.dst",
        "tcp.srcport",
        "tcp.dstport",
        "udp.srcport",
        "udp.dstport",
        "icmp.type",
        "icmpv6.type",
        "frame.len",
    ];
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file).args([
        "-T",
        "fields",
        "-E",
        "separator=,",
        "-E",
        "occurrence=f",
        "-o",
        "ip.defragment:FALSE",
        "-o",
        "ipv6.defragment:FALSE",
    ]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.stderr(Stdio::null()).output()?;
    let mut tuples = BTreeMap::<Tuple, (u64, u64)>::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let columns: Vec<&str> = line.split(',').collect();
        let [ip, ip6, to, to6, tcp, tcp_to, udp, udp_to, icmp, icmp6, length] = columns[..] else { continue };
        let protocol = match () {
            () if !tcp.is_empty() => "TCP",
            () if !udp.is_empty() => "UDP",
            () if !icmp.is_empty() => "ICMPv4",
            () if !icmp6.is_empty() => "ICMPv6",
            () => continue,
        };
        let port = |a: &str, b: &str| [a, b].concat().parse().unwrap_or(0);
        let tuple =
            (protocol.into(), [ip, ip6].concat(), port(tcp, udp), [to, to6].concat(), port(tcp_to, udp_to));
        let sum = tuples.entry(tuple).or_default();
        sum.0 += 1;
        sum.1 += length.parse::<u64>()?;
    }
    Ok(tuples)
}
