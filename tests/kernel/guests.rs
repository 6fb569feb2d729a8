//! Beside programs of others: what we see of packets that they pass, drop, send elsewhere or end the chain for, and that
//! nothing of theirs is ever touched.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aya::programs::TcAttachType;
use flowlog_tests::daemon::{Daemon, PATIENCE};
use flowlog_tests::guest::hooks;
use flowlog_tests::neighbour::{Neighbour, Place, Verdict, chain};
use flowlog_tests::netns::Netns;
use flowlog_tests::records::{Tuple, all};
use flowlog_tests::topology::{Seen, host, ip, seen, veth};
use flowlog_user::capture::live::{self, HookMode, Live};
use rustix::process::Signal;

use crate::end_to_end::{EVERYTHING, tasks};

/// When another's program comes, and where it wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// It is there when flowlog comes.
    Before,
    /// It comes later and takes the place that it is given.
    After,
    /// It comes later and asks to be in front of all.
    InFront,
}

pub(crate) const SIDES: [TcAttachType; 2] = [TcAttachType::Ingress, TcAttachType::Egress];
/// Where redirected packets leave by.
const ASIDE: &str = "aside0";

/// An interface with another's program.
struct Port {
    name: String,
    number: u8,
    verdict: Verdict,
    when: When,
    place: Place,
    /// Name of the program.
    program: &'static str,
}

impl Port {
    /// Whether packets come by us: theirs is behind ours, or lets them through to it.
    fn is_seen(&self) -> bool {
        self.when != When::InFront || self.verdict == Verdict::Pass
    }

    fn arrives(&self) -> bool {
        matches!(self.verdict, Verdict::Pass | Verdict::Ok)
    }

    fn address(&self, host: u8) -> String {
        format!("10.1.{}.{host}", self.number)
    }

    /// Datagrams to the node, and from it.
    fn counts(&self) -> [u64; 2] {
        [10 + u64::from(self.number), 40 + u64::from(self.number)]
    }

    /// Of the first, and of the second.
    fn tuples(&self) -> [Tuple; 2] {
        let ends = [(self.address(2), 2_000), (self.address(1), 1_000)];
        let tuple =
            |[from, to]: [&(String, u64); 2]| ("UDP".to_owned(), from.0.clone(), from.1, to.0.clone(), to.1);
        [tuple([&ends[0], &ends[1]]), tuple([&ends[1], &ends[0]])]
    }
}

struct Net {
    node: Netns,
    _world: Netns,
    _aside: Netns,
    ports: Vec<Port>,
    /// Of the node and of the world, by port.
    sockets: Vec<[UdpSocket; 2]>,
    neighbours: Vec<Neighbour>,
}

fn socket(netns: &Netns, address: String) -> Result<UdpSocket> {
    let opening = netns.enter(move || {
        let socket = UdpSocket::bind(&address).with_context(|| address.clone())?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    opening.join().map_err(|_| anyhow::anyhow!("a host died"))?
}

/// The places that `when` stands for.
fn place(hook: &str, when: When) -> Place {
    match (hook, when) {
        ("tcx", When::InFront) => Place::First,
        ("tcx", _) => Place::Last,
        // Somebody else's filter at the priority that we take.
        (_, When::Before | When::InFront) => Place::Clsact(1, 1),
        (_, When::After) => Place::Clsact(0, 0),
    }
}

impl Net {
    /// An interface for each kind of neighbour at each place, all of them between the node and the world.
    fn new(hook: &str) -> Result<Self> {
        let (node, world, aside) = (host("node")?, host("world")?, host("aside")?);
        veth((&node, ASIDE), (&aside, "there"))?;
        let elsewhere = node.run(&["cat", &format!("/sys/class/net/{ASIDE}/ifindex")])?.trim().parse()?;
        let mut ports = Vec::new();
        for when in [When::Before, When::After, When::InFront] {
            for verdict in [Verdict::Pass, Verdict::Ok, Verdict::Drop, Verdict::Redirect(elsewhere)] {
                ports.push((verdict, when, place(hook, when), "neighbour"));
            }
        }
        if hook == "tcx" {
            // Filters come after all of TCX.
            ports.push((Verdict::Drop, When::Before, Place::Clsact(1, 1), "filter"));
        } else {
            // Neither its name nor its handle makes it ours.
            ports.push((Verdict::Pass, When::Before, Place::Clsact(1, 0xf10), "fl_up_in"));
        }
        let ports: Vec<_> = (1..)
            .zip(ports)
            .map(|(number, (verdict, when, place, program))| Port {
                name: format!("port{number}"),
                number,
                verdict,
                when,
                place,
                program,
            })
            .collect();
        let mut sockets = Vec::new();
        for port in &ports {
            let there = format!("w{}", port.number);
            veth((&node, &port.name), (&world, &there))?;
            for (netns, own, name, ends) in [(&node, 1, &port.name, [1, 2]), (&world, 2, &there, [2, 1])] {
                let [mac, other] = ends.map(|end| format!("02:0{end}:00:00:00:{:02x}", port.number));
                ip(
                    netns,
                    &[
                        &format!("link set {name} address {mac}"),
                        &format!("address add {}/24 dev {name}", port.address(own)),
                        &format!("neighbour replace {} lladdr {other} dev {name}", port.address(3 - own)),
                    ],
                )?;
            }
            sockets.push([
                socket(&node, format!("{}:1000", port.address(1)))?,
                socket(&world, format!("{}:2000", port.address(2)))?,
            ]);
        }
        Ok(Self { node, _world: world, _aside: aside, ports, sockets, neighbours: Vec::new() })
    }

    fn attach(&mut self, wanted: impl Fn(When) -> bool) -> Result<()> {
        for port in self.ports.iter().filter(|port| wanted(port.when)) {
            let attached = Neighbour::attach(&self.node, &port.name, port.program, port.verdict, port.place);
            self.neighbours.push(attached.with_context(|| port.name.clone())?);
        }
        Ok(())
    }

    /// What is at all hooks and is theirs, and how much of it is ours.
    fn chains(&self) -> Result<(Vec<String>, usize)> {
        let (mut theirs, mut ours) = (Vec::new(), 0);
        for port in &self.ports {
            for side in SIDES {
                for line in chain(&self.node, &port.name, side)? {
                    if line.contains("fl_ep_") {
                        ours += 1;
                    } else {
                        theirs.push(format!("{} {side:?}: {line}", port.name));
                    }
                }
            }
        }
        Ok((theirs, ours))
    }

    /// Sends over every port in both directions and waits for what is to arrive.
    fn send(&self) -> Result<()> {
        for (port, [near, far]) in self.ports.iter().zip(&self.sockets) {
            let before = self.node.counter(&port.name, "rx_packets")?;
            let [to_node, from_node] = port.counts();
            for (from, to, count, address) in [
                (far, near, to_node, format!("{}:1000", port.address(1))),
                (near, far, from_node, format!("{}:2000", port.address(2))),
            ] {
                for _ in 0..count {
                    from.send_to(&[7; 100], &address)?;
                }
                let mut left = if port.arrives() { count } else { 0 };
                let started = Instant::now();
                while left > 0 {
                    match to.recv(&mut [0; 200]) {
                        Ok(_) => left -= 1,
                        Err(_) => std::thread::sleep(Duration::from_millis(1)),
                    }
                    ensure!(started.elapsed() < PATIENCE, "{}: {left} of {count} are missing", port.name);
                }
            }
            let started = Instant::now();
            while self.node.counter(&port.name, "rx_packets")? < before + to_node {
                ensure!(started.elapsed() < PATIENCE, "{}: not all have come", port.name);
            }
            for socket in [near, far] {
                ensure!(socket.recv(&mut [0; 200]).is_err(), "{}: more than that arrived", port.name);
            }
        }
        Ok(())
    }

    /// What the records must say: packets of each direction, and whether they are duplicates.
    fn expected(&self) -> BTreeMap<(Tuple, bool), (u64, &str)> {
        let mut expected = BTreeMap::new();
        for port in &self.ports {
            let redirects = matches!(port.verdict, Verdict::Redirect(_));
            for (tuple, count) in port.tuples().into_iter().zip(port.counts()) {
                if port.is_seen() {
                    expected.insert((tuple.clone(), false), (count, port.name.as_str()));
                } else if redirects {
                    // Where they leave by is the first place at which we see them.
                    expected.insert((tuple.clone(), false), (count, ASIDE));
                }
            }
            if port.is_seen() && redirects {
                let [to_node, from_node] = port.tuples();
                // From one endpoint of this node to another.
                expected.insert((to_node, true), (port.counts()[0], ASIDE));
                // What is made here has come through no interface, so nothing tells that it was counted before.
                expected.insert((from_node, false), (2 * port.counts()[1], port.name.as_str()));
            }
        }
        expected
    }
}

#[test]
fn what_others_do_to_packets_before_and_after_us() -> Result<()> {
    for hook in hooks() {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let tasks = tasks(folder.path(), EVERYTHING)?;
        let mut net = Net::new(hook)?;
        net.attach(|when| when == When::Before)?;
        let words = ["--hook", hook];
        let daemon = Daemon::start(&net.node, &tasks, &logs, &words)?;
        net.attach(|when| when != When::Before)?;
        let (theirs, ours) = net.chains()?;
        ensure!(theirs.len() == 2 * net.ports.len(), "{hook}: {theirs:#?}");
        ensure!(ours == 2 * net.ports.len(), "{hook}: {ours} hooks are ours");
        net.send().with_context(|| (*hook).to_owned())?;
        daemon.stop()?.check()?;

        let seen = seen(&all(&logs, "all-")?);
        let expected = net.expected();
        for (flow, (packets, interface)) in &expected {
            let there = seen.get(flow).cloned().unwrap_or_default();
            let told = (there.packets, there.interface.as_str());
            ensure!(told == (*packets, *interface), "{hook}, {flow:?}: {packets} at {interface}, {there:?}");
        }
        let more: BTreeMap<&(Tuple, bool), &Seen> =
            seen.iter().filter(|(flow, _)| !expected.contains_key(flow)).collect();
        ensure!(more.is_empty(), "{hook}, beside what was expected: {more:#?}");

        // An orderly end, a kill, and a start after it: nothing of theirs is touched.
        let unchanged = |ours: Option<usize>| -> Result<()> {
            let now = net.chains()?;
            ensure!(now.0 == theirs, "{hook}: {:#?} instead of {theirs:#?}", now.0);
            ensure!(ours.is_none_or(|ours| ours == now.1), "{hook}: {} hooks are ours", now.1);
            Ok(())
        };
        unchanged(Some(0))?;
        let daemon = Daemon::start(&net.node, &tasks, &logs, &words)?;
        daemon.signal(Signal::KILL)?;
        drop(daemon);
        unchanged(None)?;
        let daemon = Daemon::start(&net.node, &tasks, &logs, &words)?;
        unchanged(Some(2 * net.ports.len()))?;
        daemon.stop()?.check()?;
        unchanged(Some(0))?;
    }
    Ok(())
}

/// Priority 1 in the hands of a filter of another kind leaves no room in front of it. What it lets through is counted,
/// and that it is in front is said.
#[test]
fn where_no_place_is_left_in_front_it_is_said() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let (node, world) = (host("node")?, host("world")?);
    for (number, name, matches) in [(1, "some", "10.1.7.7/32"), (2, "every", "0.0.0.0/0")] {
        let there = format!("w{number}");
        veth((&node, name), (&world, &there))?;
        ip(&node, &[&format!("address add 10.1.{number}.1/24 dev {name}")])?;
        ip(&world, &[&format!("address add 10.1.{number}.2/24 dev {there}")])?;
        node.run(&["tc", "qdisc", "add", "dev", name, "clsact"])?;
        let filter = format!(
            "tc filter add dev {name} ingress protocol ip prio 1 u32 match ip src {matches} flowid 1:1"
        );
        node.run(&filter.split(' ').collect::<Vec<_>>())?;
    }
    let theirs = ["some", "every"].map(|name| chain(&node, name, TcAttachType::Ingress));
    let tasks = tasks(folder.path(), EVERYTHING)?;
    let mut daemon = Daemon::spawn(&node, &tasks, &logs, &["--hook", "clsact"])?;
    for name in ["some", "every"] {
        let said = daemon.wait_for("not first at this hook")?;
        ensure!(said.contains(name) && said.contains("ingress"), "{said}");
    }
    daemon.wait_for("\"watching\"")?;
    for number in 1..=2 {
        world.run(&["ping", "-q", "-c", "5", "-i", "0.01", &format!("10.1.{number}.1")])?;
    }
    daemon.stop()?.check()?;
    let mut sums = BTreeMap::<String, u64>::new();
    for record in all(&logs, "all-")? {
        *sums.entry(record.text("IP/source").to_owned()).or_default() += record.amount("packets");
    }
    // The second filter takes every packet at ingress; the answers pass egress, where we are first.
    let expected = [("10.1.1.1", 5), ("10.1.1.2", 5), ("10.1.2.1", 5)];
    let expected: BTreeMap<_, _> = expected.into_iter().map(|(ip, n)| (ip.to_owned(), n)).collect();
    ensure!(sums == expected, "{sums:?}");
    for (before, name) in theirs.into_iter().zip(["some", "every"]) {
        ensure!(chain(&node, name, TcAttachType::Ingress)? == before?, "{name}: a filter has changed");
    }
    Ok(())
}

/// What the capture says that the interface's hooks may not see, once that is `wanted` (or nothing).
fn until_blind(
    live: &mut Live,
    wanted: Option<&str>,
    mut meanwhile: impl FnMut() -> Result<()>,
) -> Result<()> {
    let started = Instant::now();
    loop {
        live.poll(&mut |_| ())?;
        let states = live.interfaces();
        let blind = states.iter().find(|state| state.name == "port").context("the interface")?.blind;
        let is_there = match (wanted, blind) {
            (Some(wanted), Some(blind)) => blind.contains(wanted),
            (None, None) => true,
            _ => false,
        };
        if is_there {
            return Ok(());
        }
        ensure!(started.elapsed() < PATIENCE, "{wanted:?} was never said, {blind:?} is");
        meanwhile()?;
    }
}

#[test]
fn who_comes_in_front_later_or_takes_everything_away_is_noticed() -> Result<()> {
    for hook in hooks() {
        let (node, world) = (Arc::new(host("node")?), host("world")?);
        veth((&node, "port"), (&world, "w0"))?;
        ip(&node, &["address add 10.1.1.1/24 dev port"])?;
        ip(&world, &["address add 10.1.1.2/24 dev w0"])?;
        let inside = Arc::clone(&node);
        let watching = node.enter(move || -> Result<()> {
            let mode = if *hook == "tcx" { HookMode::Tcx } else { HookMode::Clsact };
            let lookout_ns = 50_000_000;
            let mut live =
                Live::start(&live::Options { hook: mode, lookout_ns, ..live::Options::default() })?;
            let in_front = place(hook, When::InFront);
            until_blind(&mut live, None, || Ok(()))?;
            let other = Neighbour::attach(&inside, "port", "other", Verdict::Pass, in_front)?;
            until_blind(&mut live, Some("not first at this hook"), || Ok(()))?;
            drop(other);
            until_blind(&mut live, None, || Ok(()))?;
            // The first one may wait for an address in vain.
            let some = || world.run(&["ping", "-q", "-c", "3", "-i", "0.2", "10.1.1.1"]).map(drop);
            some()?;
            let other = Neighbour::attach(&inside, "port", "other", Verdict::Drop, in_front)?;
            let flood = ["ping", "-q", "-c", "150", "-i", "0", "-W", "0.01", "10.1.1.1"];
            until_blind(&mut live, Some("passes packets"), || {
                drop(world.run(&flood)); // nobody answers
                Ok(())
            })?;
            drop(other);
            until_blind(&mut live, None, some)?;
            // Somebody takes away what is not his.
            if *hook == "clsact" {
                inside.run(&["tc", "qdisc", "delete", "dev", "port", "clsact"])?;
                let started = Instant::now();
                while chain(&inside, "port", SIDES[1])?.is_empty() {
                    live.poll(&mut |_| ())?;
                    ensure!(started.elapsed() < PATIENCE, "never attached again");
                }
                some()?;
            }
            let ledger = live.stop(&mut |_| ())?;
            let seen = ledger.hooks.iter().map(|(_, _, hook)| hook.seen_packets);
            ensure!(seen.clone().all(|seen| seen > 0), "{:?}", seen.collect::<Vec<_>>());
            Ok(())
        });
        watching
            .join()
            .map_err(|_| anyhow::anyhow!("the capture died"))?
            .with_context(|| (*hook).to_owned())?;
    }
    Ok(())
}
