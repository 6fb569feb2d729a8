//! A node and two pods: three network namespaces that nothing of this machine's own network touches.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::{step, system};

/// Where flowlog runs.
pub(crate) const NODE: &str = "flowlog-demo-node";
/// The pod that serves.
pub(crate) const WEB: &str = "flowlog-demo-web";
/// The pod that asks.
pub(crate) const SHOP: &str = "flowlog-demo-shop";
/// The serving pod's address.
pub(crate) const WEB_ADDRESS: &str = "10.77.1.2";

const PODS: [(&str, &str, &str); 2] = [(WEB, "10.77.1", "lxc-web"), (SHOP, "10.77.2", "lxc-shop")];

/// The namespaces; gone when dropped, and also when this program is killed.
pub(crate) struct Stage(());

impl Stage {
    /// Makes them; what an earlier demo left behind goes first.
    pub(crate) fn set() -> Result<Self> {
        strike();
        let stage = Self(());
        for name in [NODE, WEB, SHOP] {
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        guard()?;
        for (pod, net, outside) in PODS {
            let gateway = format!("{net}.1");
            let peer = ["peer", "name", "eth0", "netns", pod];
            ip(&[&["-n", NODE, "link", "add", outside, "type", "veth"][..], &peer].concat())?;
            ip(&["-n", NODE, "address", "add", &format!("{gateway}/24"), "dev", outside])?;
            ip(&["-n", NODE, "link", "set", outside, "up"])?;
            ip(&["-n", pod, "address", "add", &format!("{net}.2/24"), "dev", "eth0"])?;
            ip(&["-n", pod, "link", "set", "eth0", "up"])?;
            ip(&["-n", pod, "route", "add", "default", "via", &gateway])?;
        }
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        step::shown("routing", &mut stage.command(NODE, "sh", &["-c", forward]))?;
        Ok(stage)
    }

    /// A command in one of them.
    pub(crate) fn command(&self, place: &str, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", place, program]).args(args);
        command
    }

    /// Starts a program in one of them, whose words nobody reads; it ends with the namespaces.
    pub(crate) fn start(&self, place: &str, program: &str, args: &[&str]) -> Result<Child> {
        let mut command = self.command(place, program, args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().with_context(|| format!("cannot start {program}"))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        strike();
    }
}

fn ip(args: &[&str]) -> Result<()> {
    step::shown("making the network", Command::new("ip").args(args))
}

/// Ends what runs in the namespaces, and takes them down; what is not there is passed over.
const STRIKE: &str = "for n in flowlog-demo-node flowlog-demo-web flowlog-demo-shop; do \
    [ -e /run/netns/$n ] || continue; ip netns pids $n | xargs -r kill 2>/dev/null; ip netns del $n; done";

fn strike() {
    let _ = system::output_of(Command::new("sh").args(["-c", STRIKE]));
}

/// Takes them down too when this program ends without having done so, as after Ctrl-C.
fn guard() -> Result<()> {
    let script = format!("tail --pid={} -f /dev/null; {STRIKE}", std::process::id());
    Command::new("setsid")
        .args(["sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
        .context("cannot start setsid")
}
