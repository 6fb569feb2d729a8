//! Interfaces that come, go, are renamed and come again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aya::maps::{HashMap, Map, MapData, MapInfo};
use aya::programs::loaded_programs;
use flowlog_abi::{FlowEntry, FlowKey, names};
use flowlog_tests::bpffs::Bpffs;
use flowlog_tests::daemon::{Daemon, binary};
use flowlog_tests::guest::{hooks, pace};
use flowlog_tests::neighbour::chain;
use flowlog_tests::netns::Netns;
use flowlog_tests::records::{Record, all, files};
use flowlog_tests::topology::{host, ip, veth};
use flowlog_tests::traffic::bound;
use rustix::process::Signal;

use crate::end_to_end::{EVERYTHING, tasks};
use crate::guests::SIDES;
use crate::lifecycle::until;

/// A node and what its interfaces lead to.
fn hosts() -> Result<(Netns, Netns)> {
    Ok((host("node")?, host("world")?))
}

/// The `n`th interface between them, named `name` at the node; not up at the node yet.
fn join(node: &Netns, world: &Netns, n: usize, name: &str) -> Result<()> {
    let there = format!("w{n}");
    veth((node, name), (world, &there))?;
    ip(node, &[&format!("link set {name} down")])?;
    for (netns, name, own, other) in [(node, name, 1, 2), (world, &*there, 2, 1)] {
        let mac = |end: u8| format!("02:0{end}:00:00:{:02x}:{:02x}", n >> 8, n & 255);
        ip(
            netns,
            &[
                &format!("link set {name} address {}", mac(own)),
                &format!("address add {}/30 dev {name}", address(n, own)),
                &format!("neighbour replace {} lladdr {} dev {name}", address(n, other), mac(other)),
            ],
        )?;
    }
    Ok(())
}

/// Of the node (1) or the world (2) at the `n`th interface.
fn address(n: usize, end: u8) -> String {
    format!("10.{}.{}.{}", 64 + n / 16_000, n / 64 % 250, n % 64 * 4 + usize::from(end))
}

/// Datagrams, one about each millisecond, from one end of the `n`th interface to the other, until stopped; when each
/// was sent.
fn send(
    netns: &Netns,
    n: usize,
    from: u8,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<Result<Vec<Instant>>> {
    let stop = Arc::clone(stop);
    netns.enter(move || {
        let socket = bound(|| UdpSocket::bind((address(n, from), 4_000)))?;
        let to = (address(n, 3 - from), 5_000);
        let mut sent = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            // Not before the interface is up; nobody listens, and the answers come back as errors.
            if socket.send_to(b"steady", &to).is_ok() {
                sent.push(now);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(sent)
    })
}

/// Datagrams of each direction that records have, by source.
fn datagrams(records: &[Record]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for record in records.iter().filter(|record| record.tuple().0 == "UDP") {
        *sums.entry(record.text("IP/source").to_owned()).or_default() += record.amount("packets");
    }
    sums
}

#[test]
fn a_new_interface_misses_nothing_from_a_quarter_of_a_second_on() -> Result<()> {
    for hook in hooks() {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let (node, world) = hosts()?;
        // Each packet is an answer of its own otherwise.
        world.run(&["sysctl", "-qw", "net.ipv4.icmp_ratemask=0"])?;
        let daemon = Daemon::start(&node, &tasks(folder.path(), EVERYTHING)?, &logs, &["--hook", hook])?;
        let mut runs = Vec::new();
        for n in 0..5 {
            let name = format!("new{n}");
            join(&node, &world, n, &name)?;
            let stop = Arc::new(AtomicBool::new(false));
            let senders = [send(&node, n, 1, &stop), send(&world, n, 2, &stop)];
            ip(&node, &[&format!("link set {name} up")])?;
            let up = Instant::now();
            std::thread::sleep(Duration::from_millis(700) * pace()); // What is measured is time itself.
            stop.store(true, Ordering::Relaxed);
            for (end, sender) in (1..).zip(senders) {
                let sent = sender.join().map_err(|_| anyhow::anyhow!("a sender died"))??;
                runs.push((address(n, end), up, sent));
            }
        }
        daemon.stop()?.check()?;
        let counted = datagrams(&all(&logs, "all-")?);
        let mut late = Vec::new();
        for (source, up, sent) in runs {
            // What is missed is what came before the program did: the first ones.
            let count = usize::try_from(counted.get(&source).copied().unwrap_or(0))?;
            ensure!(count > 0 && count <= sent.len(), "{hook}: {count} of {} from {source}", sent.len());
            let missed = sent.len() - count;
            let last = missed.checked_sub(1).and_then(|at| sent.get(at));
            late.push(last.map_or(Duration::ZERO, |last| last.saturating_duration_since(up)));
        }
        late.sort();
        println!("{hook}: the last packet that was missed came {late:?} after the interface was up");
        let most = Duration::from_millis(250) * pace();
        // One of ten may have met a machine that had no time for us.
        ensure!(late[late.len() - 2] < most && late[late.len() - 1] < 4 * most, "{hook}: {late:?}");
    }
    Ok(())
}

/// Many interfaces in one go: one process makes them all and sets them up.
fn hundred(node: &Netns, world: &Netns) -> Result<()> {
    let mut lines = String::new();
    for n in 0..100 {
        let [own, other] = [1, 2].map(|end| format!("02:0{end}:00:00:{:02x}:{:02x}", n >> 8, n & 255));
        lines.push_str(&format!(
            "link add many{n} address {own} type veth peer name w{n} address {other} netns {}\n\
             address add {}/30 dev many{n}\nlink set many{n} up\n\
             neighbour replace {} lladdr {other} dev many{n}\n",
            world.name(),
            address(n, 1),
            address(n, 2)
        ));
    }
    batch(node, &lines)?;
    let lines: String = (0..100)
        .map(|n| {
            format!(
                "address add {}/30 dev w{n}\nlink set w{n} up\nneighbour replace {} lladdr 02:01:00:00:{:02x}:{:02x} dev w{n}\n",
                address(n, 2),
                address(n, 1),
                n >> 8,
                n & 255
            )
        })
        .collect();
    batch(world, &lines)
}

fn batch(netns: &Netns, lines: &str) -> Result<()> {
    let mut child = netns.command("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn()?;
    child.stdin.take().context("stdin is piped")?.write_all(lines.as_bytes())?;
    ensure!(child.wait()?.success(), "ip -batch failed");
    Ok(())
}

#[test]
fn a_hundred_at_once_are_covered_within_five_seconds() -> Result<()> {
    for hook in hooks() {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let (node, world) = hosts()?;
        let daemon = Daemon::start(&node, &tasks(folder.path(), EVERYTHING)?, &logs, &["--hook", hook])?;
        let began = Instant::now();
        hundred(&node, &world)?;
        let made = began.elapsed();
        std::thread::sleep((Duration::from_secs(5) * pace()).saturating_sub(made)); // What is promised is a time.
        for (netns, own, other) in [(&node, 1, 2), (&world, 2, 1)] {
            let sending = netns.enter(move || -> Result<()> {
                for n in 0..100 {
                    let socket = bound(|| UdpSocket::bind((address(n, own), 4_000)))?;
                    socket.send_to(b"here", (address(n, other), 5_000))?;
                }
                Ok(())
            });
            sending.join().map_err(|_| anyhow::anyhow!("a sender died"))??;
        }
        daemon.stop()?.check()?;
        let counted = datagrams(&all(&logs, "all-")?);
        let missing: Vec<_> = (0..100)
            .flat_map(|n| [address(n, 1), address(n, 2)])
            .filter(|source| counted.get(source) != Some(&1))
            .collect();
        ensure!(missing.is_empty(), "{hook}: made in {made:?}; not seen after 5 s: {missing:?}");
    }
    Ok(())
}

/// What a daemon holds in the kernel: descriptors, its programs, the TCX links to them, entries of its maps.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    descriptors: usize,
    programs: BTreeSet<u32>,
    links: usize,
    flows: usize,
    observed: usize,
}

fn held(pid: u32) -> Result<Held> {
    let (mut descriptors, mut links) = (0, 0);
    let mut maps = BTreeMap::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let Ok(text) = std::fs::read_to_string(entry?.path()) else { continue };
        descriptors += 1;
        links += usize::from(text.contains("link_type:\ttcx"));
        if let Some(id) =
            text.lines().find_map(|line| line.strip_prefix("map_id:")?.trim().parse::<u32>().ok())
            && let Some(name) = MapInfo::from_id(id)?.name_as_str()
        {
            maps.insert(name.to_owned(), id);
        }
    }
    let id = |name: &str| maps.get(name).copied().with_context(|| format!("{name} is not in {maps:?}"));
    let open = |name: &str| -> Result<Map> { Ok(Map::from_map_data(MapData::from_id(id(name)?)?)?) };
    let flows: HashMap<_, [u8; size_of::<FlowKey>()], [u8; size_of::<FlowEntry>()]> =
        HashMap::try_from(open(names::FLOWS)?)?;
    let observed: HashMap<_, u32, u32> = HashMap::try_from(open(names::OBSERVED)?)?;
    let table = id(names::FLOWS)?;
    // Others' programs come and go meanwhile.
    let programs = loaded_programs()
        .filter_map(Result::ok)
        .filter(|program| program.map_ids().ok().flatten().is_some_and(|ids| ids.contains(&table)));
    Ok(Held {
        descriptors,
        programs: programs.map(|program| program.id()).collect(),
        links,
        flows: flows.keys().count(),
        observed: observed.keys().count(),
    })
}

#[test]
fn two_hundred_that_come_and_go_leave_nothing() -> Result<()> {
    let rounds = if pace() > 1 { 40 } else { 200 };
    for (hook, pinned) in hooks().iter().map(|hook| (*hook, false)).chain([("auto", true)]) {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let (node, world) = hosts()?;
        let bpffs = Bpffs::new()?;
        let pins = bpffs.path().join("flowlog").to_string_lossy().into_owned();
        let mut words = vec!["--hook", hook];
        if pinned {
            words.extend(["--pin", &pins]);
        }
        join(&node, &world, 999, "stays")?;
        ip(&node, &["link set stays up"])?;
        let daemon = Daemon::start(&node, &tasks(folder.path(), EVERYTHING)?, &logs, &words)?;
        let before = held(daemon.pid())?;
        let pinned_before = links(Path::new(&pins))?;
        for n in 0..rounds {
            let name = format!("brief{n}");
            join(&node, &world, n, &name)?;
            ip(&node, &[&format!("link set {name} up")])?;
            if n % 10 == 0 {
                // So that some have been attached and counted, and others go before they are, or while they are.
                until("the program", || {
                    Ok(chain(&node, &name, SIDES[0])?.iter().any(|line| line.contains("fl_")))
                })?;
                world.run(&["ping", "-q", "-c", "2", "-i", "0.01", &address(n, 1)])?;
            }
            ip(&node, &[&format!("link delete {name}")])?;
        }
        let mut now = held(daemon.pid())?;
        let waited = until("the table without what is gone", || {
            now = held(daemon.pid())?;
            Ok(now == before && links(Path::new(&pins))? == pinned_before)
        });
        ensure!(waited.is_ok(), "{hook}, pinned {pinned}: {before:?} before, {now:?} after");
        let ended = daemon.stop()?;
        ensure!(ended.status.success(), "{hook}: {}", ended.log.join("\n"));
        let ends = all(&logs, "all-")?;
        let ends = ends.iter().filter(|record| record.extension("end_reason") == "unwatched").count();
        ensure!(ends >= 2 * rounds / 10, "{hook}: {ends} connections of interfaces that are gone have ended");
    }
    Ok(())
}

/// How many links are pinned.
fn links(pins: &Path) -> Result<usize> {
    let Ok(netns) = std::fs::read_dir(pins) else { return Ok(0) };
    let mut count = 0;
    for folder in netns {
        count += files(&folder?.path().join("links"))?.len();
    }
    Ok(count)
}

/// Packets of each pair of source and interface.
fn by_interface(records: &[Record]) -> BTreeMap<(String, String), u64> {
    let mut sums = BTreeMap::new();
    for record in records {
        let of = (record.text("IP/source").to_owned(), record.text("interface/name").to_owned());
        *sums.entry(of).or_default() += record.amount("packets");
    }
    sums
}

/// The `n`th interface, named `name`, always of the same index, in the place of the one named `gone`. The daemon sleeps
/// meanwhile: it never sees a moment without either.
fn replace(
    daemon: &Daemon,
    (node, world): (&Netns, &Netns),
    gone: Option<&str>,
    n: usize,
    name: &str,
) -> Result<()> {
    let mut lines = gone.map(|gone| format!("link delete {gone}\n")).unwrap_or_default();
    lines.push_str(&format!(
        "link add {name} index 7001 address 02:01:00:00:00:01 type veth peer name p{n} address 02:02:00:00:00:01 netns {}\n\
         address add {}/30 dev {name}\nlink set {name} up\nneighbour replace {} lladdr 02:02:00:00:00:01 dev {name}\n",
        world.name(),
        address(n, 1),
        address(n, 2)
    ));
    daemon.signal(Signal::STOP)?;
    batch(node, &lines)?;
    daemon.signal(Signal::CONT)?;
    ip(
        world,
        &[
            &format!("address add {}/30 dev p{n}", address(n, 2)),
            &format!("link set p{n} up"),
            &format!("neighbour replace {} lladdr 02:01:00:00:00:01 dev p{n}", address(n, 1)),
        ],
    )
}

#[test]
fn an_index_that_comes_again_and_a_new_name_are_not_confused() -> Result<()> {
    for hook in hooks() {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let (node, world) = hosts()?;
        let tasks = tasks(folder.path(), EVERYTHING)?;
        let daemon = Daemon::start(&node, &tasks, &logs, &["--hook", hook])?;
        let ours = |name: &str| -> Result<Vec<String>> {
            let mut lines = Vec::new();
            for side in SIDES {
                lines.extend(chain(&node, name, side)?.into_iter().filter(|line| line.contains("fl_ep_")));
            }
            Ok(lines)
        };
        let again = |gone: Option<&str>, n: usize, name: &str| -> Result<()> {
            replace(&daemon, (&node, &world), gone, n, name)?;
            until("the programs", || Ok(ours(name)?.len() == 2))
        };
        let ping = |n: usize, count: &str| {
            world.run(&["ping", "-q", "-c", count, "-i", "0.01", &address(n, 1)]).map(drop)
        };
        again(None, 1, "one")?;
        ping(1, "5")?;
        again(Some("one"), 2, "two")?;
        ping(2, "6")?;
        // The same name, too.
        again(Some("two"), 3, "two")?;
        ping(3, "7")?;
        let before = ours("two")?;
        ip(&node, &["link set two down", "link set two name three", "link set three up"])?;
        ip(&node, &[&format!("neighbour replace {} lladdr 02:02:00:00:00:01 dev three", address(3, 2))])?;
        ping(3, "8")?;
        ensure!(ours("three")? == before, "{hook}: attached anew: {:?}, {before:?}", ours("three")?);
        let ended = daemon.stop()?;
        ended.check()?;

        let mut expected = BTreeMap::new();
        // A record says what the interface was called when it was made; the last one of a flow, at its end.
        for (n, name, count) in [(1, "one", 5), (2, "two", 6), (3, "two", 0), (3, "three", 15)] {
            for end in [1, 2] {
                expected.insert((address(n, end), name.to_owned()), count);
            }
        }
        let told = by_interface(&all(&logs, "all-")?);
        for n in 1..=3 {
            let of = |sums: &BTreeMap<(String, String), u64>| -> BTreeMap<String, u64> {
                let mut by_name = BTreeMap::<String, u64>::new();
                for ((source, name), count) in sums.iter().filter(|((source, _), _)| *source == address(n, 2))
                {
                    // The first packet is a record of its own, made before the new name.
                    let name = if source == &address(3, 2) { "two or three" } else { name };
                    *by_name.entry(name.to_owned()).or_default() += count;
                }
                by_name
            };
            ensure!(of(&told) == of(&expected), "{hook}: {told:#?}");
        }
        let hooks = ended.ledger["hooks"].as_array().context("hooks")?;
        let seen: BTreeMap<&str, u64> = hooks
            .iter()
            .filter(|hook| hook["side"] == "ingress")
            .filter_map(|hook| {
                Some((hook["interface"].as_str()?, hook["packets"]["seen"]["packets"].as_u64()?))
            })
            .collect();
        // What keeps index and name is one in the ledger.
        ensure!(seen == BTreeMap::from([("three", 21), ("(gone)", 5)]), "{hook}: {seen:?}");
    }
    Ok(())
}

#[test]
fn what_an_interface_is_decides_and_not_its_name() -> Result<()> {
    let (node, pod) = hosts()?;
    // Names of everything but what they are.
    for (name, there) in [("eth0", "lo7"), ("docker0", "vethab12"), ("wg0", "cali7")] {
        veth((&node, name), (&pod, there))?;
    }
    veth((&node, "up7"), (&pod, "eth9"))?;
    ip(
        &node,
        &[
            "link add cali1 type veth peer name cali2",
            "tuntap add dev vethcd34 mode tap",
            "link add lxc77 type bridge",
            "address add 10.9.9.1/24 dev up7",
            "route add default via 10.9.9.2",
        ],
    )?;
    let binary = binary();
    let said = node.run(&[binary.to_str().context("a plain path")?, "interfaces", "-o", "json"])?;
    let said: Vec<serde_json::Value> = serde_json::from_str(&said)?;
    let roles: BTreeMap<&str, &str> = said
        .iter()
        .map(|one| (one["name"].as_str().unwrap_or(""), one["role"].as_str().unwrap_or("none")))
        .collect();
    let expected = [
        ("cali1", "none"),
        ("cali2", "none"),
        ("docker0", "endpoint"),
        ("eth0", "endpoint"),
        ("lo", "none"),
        ("lxc77", "none"),
        ("up7", "uplink"),
        ("vethcd34", "none"),
        ("wg0", "endpoint"),
    ];
    ensure!(roles == BTreeMap::from(expected), "{roles:?}");
    Ok(())
}
