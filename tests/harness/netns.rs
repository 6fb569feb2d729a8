//! Two hosts in network namespaces, joined by a veth pair that carries nothing but what a test sends.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs a command to its end; its output when it succeeded.
///
/// # Errors
/// When it cannot be started or fails; the message holds what it said.
pub fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let Output { status, stdout, stderr } =
        Command::new(program).args(arguments).output().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&stderr).trim());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// A network namespace of the test's own, gone when dropped.
#[derive(Debug)]
pub struct Netns {
    name: String,
}

impl Netns {
    /// A new one with loopback up and without chatter of its own.
    ///
    /// # Errors
    /// When the kernel refuses (no root).
    pub fn new(label: &str) -> Result<Self> {
        let name = format!("fl{}-{}-{label}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        run("ip", &["netns", "add", &name])?;
        let netns = Self { name };
        netns.run(&[
            "sysctl",
            "-qw",
            "net.ipv6.conf.all.router_solicitations=0",
            "net.ipv6.conf.default.router_solicitations=0",
            "net.ipv6.conf.all.accept_dad=0",
            "net.ipv6.conf.default.accept_dad=0",
            // Multicast group reports come at once instead of some time within a second.
            "net.ipv6.conf.default.mldv2_unsolicited_report_interval=1",
        ])?;
        netns.run(&["ip", "link", "set", "lo", "up"])?;
        Ok(netns)
    }

    /// Its name, as `ip netns` knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a command inside.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(&self, command: &[&str]) -> Result<String> {
        run("ip", &[&["netns", "exec", &self.name], command].concat())
    }

    /// A command that will run inside.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs a closure on a thread inside.
    pub fn enter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> thread::JoinHandle<Result<T>> {
        let path = format!("/run/netns/{}", self.name);
        thread::spawn(move || {
            let file = File::open(&path).with_context(|| path.clone())?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .with_context(|| format!("cannot enter {path}"))?;
            work()
        })
    }

    /// A counter of an interface, as the kernel keeps it (`rx_packets`, `tx_bytes`, ...).
    ///
    /// # Errors
    /// When there is no such interface or counter.
    pub fn counter(&self, interface: &str, counter: &str) -> Result<u64> {
        let answer = self.run(&["ip", "-s", "-j", "link", "show", "dev", interface])?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let (side, what) = counter.split_once('_').context("a counter is called rx_... or tx_...")?;
        answer
            .pointer(&format!("/0/stats64/{side}/{what}"))
            .and_then(serde_json::Value::as_u64)
            .with_context(|| format!("{interface} has no counter {counter}"))
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = run("ip", &["netns", "delete", &self.name]);
    }
}

/// Two hosts: `near` (10.77.0.1, fd77::1) where flowlog runs, and `far` (10.77.0.2, fd77::2), joined by `fl0` on both
/// sides. Neighbour entries are fixed, so that not one frame is sent but the test's own.
#[derive(Debug)]
pub struct Pair {
    /// Where flowlog runs.
    pub near: Netns,
    /// The other host.
    pub far: Netns,
    _turn: Turn,
}

/// Tests run side by side, except those that measure what they must not disturb each other in.
static TURNS: RwLock<()> = RwLock::new(());

/// Held as long as the pair is.
#[derive(Debug)]
#[expect(dead_code, reason = "guards are held, not read")]
enum Turn {
    Beside(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// The interface's name in both namespaces.
pub const INTERFACE: &str = "fl0";
/// The near host's address.
pub const NEAR: &str = "10.77.0.1";
/// The far host's address.
pub const FAR: &str = "10.77.0.2";
/// The near host's IPv6 address.
pub const NEAR6: &str = "fd77::1";
/// The far host's IPv6 address.
pub const FAR6: &str = "fd77::2";

impl Pair {
    /// A new pair. With `offloads` off, every segment is a packet of its own on the interface.
    ///
    /// # Errors
    /// When the kernel refuses (no root).
    pub fn new(offloads: bool) -> Result<Self> {
        Self::make(offloads, Turn::Beside(TURNS.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A new pair without offloads, while no other test has one.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn alone() -> Result<Self> {
        Self::make(false, Turn::Alone(TURNS.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn make(offloads: bool, turn: Turn) -> Result<Self> {
        let pair = Self { near: Netns::new("near")?, far: Netns::new("far")?, _turn: turn };
        let (near, far) = (pair.near.name(), pair.far.name());
        let macs = ["02:77:00:00:00:01", "02:77:00:00:00:02"];
        run(
            "ip",
            &[
                "link", "add", INTERFACE, "netns", near, "address", macs[0], "type", "veth", "peer", "name",
                INTERFACE, "netns", far, "address", macs[1],
            ],
        )?;
        for (netns, own, other, mac) in [
            (&pair.near, [NEAR, NEAR6], [FAR, FAR6], macs[1]),
            (&pair.far, [FAR, FAR6], [NEAR, NEAR6], macs[0]),
        ] {
            netns.run(&[
                "sysctl",
                "-qw",
                &format!("net.ipv6.conf.{INTERFACE}.accept_dad=0"),
                &format!("net.ipv6.conf.{INTERFACE}.router_solicitations=0"),
                &format!("net.ipv6.conf.{INTERFACE}.addr_gen_mode=1"),
            ])?;
            if !offloads {
                netns.run(&[
                    "ethtool",
                    "-K",
                    INTERFACE,
                    "tso",
                    "off",
                    "gso",
                    "off",
                    "gro",
                    "off",
                    "tx-udp-segmentation",
                    "off",
                ])?;
            }
            netns.run(&["ip", "address", "add", &format!("{}/24", own[0]), "dev", INTERFACE])?;
            netns.run(&["ip", "address", "add", &format!("{}/64", own[1]), "dev", INTERFACE, "nodad"])?;
            netns.run(&["ip", "link", "set", INTERFACE, "multicast", "off", "up"])?;
            for address in other {
                netns.run(&[
                    "ip",
                    "neighbour",
                    "replace",
                    address,
                    "lladdr",
                    mac,
                    "dev",
                    INTERFACE,
                    "nud",
                    "permanent",
                ])?;
            }
        }
        pair.settle()?;
        Ok(pair)
    }

    /// Waits until the reports of multicast groups, which every new address sends, are over.
    fn settle(&self) -> Result<()> {
        let sent = |netns: &Netns| netns.counter(INTERFACE, "tx_packets");
        let mut before = (sent(&self.near)?, sent(&self.far)?);
        for _ in 0..50 {
            thread::sleep(Duration::from_millis(200));
            let now = (sent(&self.near)?, sent(&self.far)?);
            if now == before {
                return Ok(());
            }
            before = now;
        }
        bail!("{INTERFACE} never falls silent")
    }
}
