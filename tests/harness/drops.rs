//! Dropped packets: a daemon that records them, what its records say of one host, and what the kernel itself counts.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::daemon::{Daemon, Ended};
use crate::netns::Netns;
use crate::records::{Record, Tuple, all, found};

/// A task that asks for drops.
pub const DROPS: &str = "
flowLogs:
  - name: drops
    filePath: LOGS/drops.log
    includeFilters: [{verdict: [DROPPED]}]
";

/// A task that does not.
pub const NO_DROPS: &str =
    "flowLogs: [{name: none, filePath: LOGS/none.log, includeFilters: [{verdict: [FORWARDED]}]}]";

/// A daemon that records what is dropped anywhere on this machine.
#[derive(Debug)]
pub struct Watch {
    folder: tempfile::TempDir,
    daemon: Daemon,
}

/// What was dropped of one direction for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Hubble's word; empty for none.
    pub hubble: String,
    /// The kernel's function.
    pub location: String,
    /// Name of the interface.
    pub interface: String,
    /// INGRESS or EGRESS.
    pub direction: String,
}

/// Drops in one host, by direction of a connection and the kernel's reason.
pub type Dropped = BTreeMap<(Tuple, String), Sum>;

impl Watch {
    /// Starts it in a host; returns when it watches drops.
    ///
    /// # Errors
    /// When the daemon does not start.
    pub fn start(netns: &Netns) -> Result<Self> {
        Self::with(netns, DROPS, &[])
    }

    /// The same with tasks in which LOGS stands for the log folder, and arguments.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn with(netns: &Netns, tasks: &str, more: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        std::fs::create_dir_all(&logs)?;
        let path = folder.path().join("tasks.yaml");
        std::fs::write(&path, tasks.replace("LOGS", &logs.to_string_lossy()))?;
        let mut daemon = Daemon::spawn(netns, &path, &logs, more)?;
        daemon.wait_for("watching dropped packets")?;
        daemon.wait_for("\"watching\"")?;
        Ok(Self { folder, daemon })
    }

    /// The folder with the logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    /// The task file.
    #[must_use]
    pub fn tasks(&self) -> PathBuf {
        self.folder.path().join("tasks.yaml")
    }

    /// Gives it other tasks and waits until they are in force. `watched`: they ask for drops, and those before did not; or
    /// the other way round.
    ///
    /// # Errors
    /// When it does not say so.
    pub fn retask(&mut self, tasks: &str, watched: bool) -> Result<()> {
        std::fs::write(self.tasks(), tasks.replace("LOGS", &self.logs().to_string_lossy()))?;
        if watched {
            self.daemon.wait_for("\"watching dropped packets\"")?;
            self.daemon.wait_for("the tasks have changed").map(drop)
        } else {
            // Some time after the change, which may be said later still.
            self.daemon.wait_for("no longer watching dropped packets").map(drop)
        }
    }

    /// The daemon.
    pub const fn daemon(&mut self) -> &mut Daemon {
        &mut self.daemon
    }

    /// Stops it; its ledger must close, and every record of the task `drops` is there.
    ///
    /// # Errors
    /// When it does not.
    pub fn stop(self) -> Result<Stopped> {
        let ended = self.daemon.stop()?;
        ended.check()?;
        let (records, lost) = found(&self.folder.path().join("logs"), "drops-", "kernel")?;
        Ok(Stopped { ended, records, lost, folder: self.folder })
    }
}

/// What is left of a [`Watch`].
#[derive(Debug)]
pub struct Stopped {
    /// How the daemon ended.
    pub ended: Ended,
    /// Records of the task `drops`.
    pub records: Vec<Record>,
    /// How many drops its files say were lost.
    pub lost: u64,
    folder: tempfile::TempDir,
}

impl Stopped {
    /// Records of another task.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of_task(&self, task: &str) -> Result<Vec<Record>> {
        all(&self.folder.path().join("logs"), &format!("{task}-"))
    }

    /// What was dropped in a host.
    ///
    /// # Errors
    /// As [`of`].
    pub fn of(&self, netns: &Netns) -> Result<Dropped> {
        of(&self.records, netns)
    }
}

/// Inode number of a host's network namespace.
///
/// # Errors
/// When there is none.
pub fn inode(netns: &Netns) -> Result<u64> {
    Ok(std::fs::metadata(format!("/run/netns/{}", netns.name()))?.ino())
}

/// What was dropped in a host. Every record must say that it is one of a drop.
///
/// # Errors
/// When a record contradicts itself.
pub fn of(records: &[Record], netns: &Netns) -> Result<Dropped> {
    let netns = inode(netns)?;
    let mut all = Dropped::new();
    for record in records.iter().filter(|record| record.amount("drop_netns") == netns) {
        ensure!(record.event() == "drop" && record.text("verdict") == "DROPPED", "{record:?}");
        ensure!(record.number("event_type/type") == 1, "{record:?}");
        ensure!(record.number("drop_reason") == record.number("event_type/sub_type"), "{record:?}");
        ensure!(record.boolean("is_reply").is_none(), "{record:?}");
        let sum = all.entry((record.tuple(), record.extension("drop_reason").into())).or_default();
        sum.packets += record.amount("packets");
        sum.bytes += record.amount("bytes");
        sum.hubble = record.text("drop_reason_desc").into();
        sum.location = record.extension("drop_location").into();
        sum.direction = record.text("traffic_direction").into();
        let interface = record.extension("drop_interface");
        let named = if interface.is_empty() { record.text("interface/name") } else { interface };
        sum.interface = named.into();
    }
    Ok(all)
}

/// The reason and sum of the only kind of drop of packets to this port.
///
/// # Errors
/// When there is none, or more than one.
pub fn to_port(dropped: &Dropped, port: u16) -> Result<(String, Sum)> {
    let mut found = dropped.iter().filter(|((tuple, _), _)| tuple.4 == u64::from(port));
    let ((_, reason), sum) =
        found.next().with_context(|| format!("nothing to port {port} in {dropped:#?}"))?;
    ensure!(found.next().is_none(), "more than one kind to port {port} in {dropped:#?}");
    Ok((reason.clone(), sum.clone()))
}

/// Sends datagrams of `size` bytes that nobody need receive, a source port for all of them; how many the kernel took.
///
/// # Errors
/// When there is no socket to be had.
pub fn datagrams(from: &Netns, to: &str, port: u16, count: usize, size: usize) -> Result<usize> {
    let to = format!("{to}:{port}");
    let sending = from.enter(move || -> Result<usize> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        Ok((0..count).filter(|_| socket.send_to(&vec![b'd'; size], &to).is_ok()).count())
    });
    sending.join().map_err(|_| anyhow::anyhow!("a host died"))?
}

/// A counter of /proc/net/snmp or netstat (`Udp`, `NoPorts`).
///
/// # Errors
/// When the kernel has none of that name.
pub fn counter(netns: &Netns, of: &str, name: &str) -> Result<u64> {
    for file in ["/proc/net/snmp", "/proc/net/netstat"] {
        let text = netns.run(&["cat", file])?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(of)?.strip_prefix(':'));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else { continue };
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        if let Some((_, value)) = pairs.find(|(known, _)| *known == name) {
            return Ok(value.parse()?);
        }
    }
    anyhow::bail!("the kernel has no counter {of}.{name}")
}

/// Loads rules of nftables.
///
/// # Errors
/// When nft refuses them.
pub fn nft(netns: &Netns, rules: &str) -> Result<()> {
    netns.run(&["nft", rules]).map(drop)
}

/// A table `inet t` with a chain at a hook, and a rule for datagrams to each port: its counter, and what is done.
///
/// # Errors
/// As [`nft`].
pub fn chain(netns: &Netns, hook: &str, rules: &[(u16, &str, &str)]) -> Result<()> {
    let mut text = format!("add table inet t; add chain inet t c {{ type filter hook {hook} priority 0; }}");
    for (port, counter, verdict) in rules {
        text += &format!(
            "; add counter inet t {counter}; add rule inet t c udp dport {port} counter name {counter} {verdict}"
        );
    }
    nft(netns, &text)
}

/// Packets and bytes of the named counter of nftables' table `inet t`.
///
/// # Errors
/// When there is none.
pub fn nft_counter(netns: &Netns, name: &str) -> Result<(u64, u64)> {
    let text = netns.run(&["nft", "-j", "list", "counter", "inet", "t", name])?;
    let value: Value = serde_json::from_str(&text)?;
    let all = value.get("nftables").and_then(Value::as_array);
    let counter = all.and_then(|all| all.iter().find_map(|one| one.get("counter")));
    let number = |name: &str| {
        let number = counter.and_then(|counter| counter.get(name)).and_then(Value::as_u64);
        number.with_context(|| text.clone())
    };
    Ok((number("packets")?, number("bytes")?))
}
