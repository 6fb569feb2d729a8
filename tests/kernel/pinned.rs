//! Restarts over pinned tables: what comes while no daemon runs is counted, and what a killed one lost is said.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aya::maps::{HashMap, Map, MapData};
use flowlog_abi::{FlowEntry, FlowKey, names};
use flowlog_tests::bpffs::Bpffs;
use flowlog_tests::daemon::{Daemon, PATIENCE};
use flowlog_tests::guest::{hooks, long};
use flowlog_tests::netns::{FAR, INTERFACE, NEAR, Pair, run};
use flowlog_tests::records::{Record, files, zstdcat};
use rustix::process::Signal;
use serde_json::Value;

use crate::end_to_end::tasks;
use crate::lifecycle::until;

/// Every report becomes a record at once.
const EVERYTHING: &str = "
flowLogs:
  - name: all
    filePath: LOGS/all.log
    fileMaxBackups: 1000
";
const FLOWS: u16 = 4;
const FIRST_PORT: u16 = 7_001;

/// Datagrams at a steady rate from near to far, each flow as many, until stopped; then how many.
struct Traffic {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Traffic {
    fn start(pair: &Pair) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = pair.near.enter(move || -> Result<u64> {
            let sockets = (0..FLOWS)
                .map(|n| {
                    let socket = UdpSocket::bind((NEAR, 30_001 + n))?;
                    socket.connect((FAR, FIRST_PORT + n))?;
                    Ok(socket)
                })
                .collect::<Result<Vec<_>>>()?;
            let mut sent = 0;
            while !seen.load(Ordering::Relaxed) {
                for socket in &sockets {
                    // Nobody listens; the answers (ICMP) come back as an error of the next attempt.
                    while socket.send(b"steady").is_err() {}
                }
                sent += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
            Ok(sent)
        });
        Self { stop, thread }
    }

    fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the sender died"))?
    }
}

/// All that a folder's files say, those of killed daemons too.
fn lines(logs: &Path) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for file in files(logs)? {
        all.extend(zstdcat(&file, false)?);
    }
    Ok(all)
}

/// Packets of each flow's datagrams by its destination port.
fn datagrams(lines: &[Value]) -> BTreeMap<u64, u64> {
    let mut sums = BTreeMap::new();
    for record in lines.iter().filter(|line| line.get("flow").is_some()).cloned().map(Record) {
        let (protocol, source, _, _, port) = record.tuple();
        if protocol == "UDP" && source == NEAR {
            *sums.entry(port).or_default() += record.amount("packets");
        }
    }
    sums
}

struct Bench {
    pair: Pair,
    bpffs: Bpffs,
    folder: tempfile::TempDir,
    tasks: PathBuf,
}

impl Bench {
    fn new() -> Result<Self> {
        let (pair, bpffs, folder) = (Pair::new(false)?, Bpffs::new()?, tempfile::tempdir()?);
        let tasks = tasks(folder.path(), EVERYTHING)?;
        Ok(Self { pair, bpffs, folder, tasks })
    }

    fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    fn pins(&self) -> String {
        self.bpffs.path().join("flowlog").to_string_lossy().into_owned()
    }

    fn daemon(&self, more: &[&str]) -> Result<Daemon> {
        let pins = self.pins();
        let words = [&["--pin", &pins, "--active-timeout", "1s"], more].concat();
        Daemon::start(&self.pair.near, &self.tasks, &self.logs(), &words)
    }

    /// Waits until every flow has ended and the files say so, and stops the daemon in order.
    fn finish(&self, daemon: Daemon) -> Result<Value> {
        let started = std::time::Instant::now();
        loop {
            let ends: BTreeSet<String> = lines(&self.logs())?
                .into_iter()
                .map(Record)
                .filter(|record| record.event() == "end" && record.extension("end_reason") == "idle")
                .map(|record| format!("{:?}", record.tuple()))
                .collect();
            // The datagrams; the errors that answer them are flows of their own.
            if ends.iter().filter(|tuple| tuple.contains("UDP")).count() == usize::from(FLOWS) {
                break;
            }
            ensure!(started.elapsed() < PATIENCE, "not all flows have ended: {ends:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        let ended = daemon.stop()?;
        ensure!(ended.status.success(), "{}", ended.log.join("\n"));
        Ok(ended.ledger)
    }
}

/// Datagrams counted at the hooks by all daemons together.
fn counted(ledger: &Value) -> Result<u64> {
    let hooks = ledger["hooks"].as_array().context("hooks")?;
    let egress = hooks.iter().find(|hook| hook["side"] == "egress").context("an egress hook")?;
    egress["packets"]["counted"]["packets"].as_u64().context("a number")
}

#[test]
fn orderly_restarts_lose_nothing() -> Result<()> {
    for hook in hooks() {
        let bench = Bench::new()?;
        let mut daemon = bench.daemon(&["--hook", hook])?;
        let traffic = Traffic::start(&bench.pair);
        for _ in 0..if long() { 50 } else { 4 } {
            daemon.stop()?;
            daemon = bench.daemon(&["--hook", hook])?;
        }
        daemon.stop()?;
        let sent = traffic.stop()?;
        let daemon = bench.daemon(&["--hook", hook, "--idle-timeout", "1s"])?;
        let ledger = bench.finish(daemon)?;
        ensure!(counted(&ledger)? == sent * u64::from(FLOWS), "{sent} of each were sent: {ledger}");
        let lines = lines(&bench.logs())?;
        let expected: BTreeMap<_, _> = (0..FLOWS).map(|n| (u64::from(FIRST_PORT + n), sent)).collect();
        ensure!(datagrams(&lines) == expected, "{hook}: {:?}, {sent} of each were sent", datagrams(&lines));
        ensure!(
            lines.iter().all(|line| line.get("lost_events").is_none()),
            "{:?}",
            lines.iter().find(|line| line.get("lost_events").is_some())
        );
        let starts = lines.iter().filter(|line| Record((*line).clone()).event() == "start");
        ensure!(starts.count() <= 2 * usize::from(FLOWS), "a connection began twice");
        let mut uuids = BTreeSet::new();
        for line in lines.iter().filter_map(|line| line.pointer("/flow/uuid")) {
            ensure!(uuids.insert(line.to_string()), "{line} comes twice");
        }
        // Taking the pins away takes everything down.
        std::fs::remove_dir_all(bench.pins()).or_else(|_| run("rm", &["-r", &bench.pins()]).map(drop))?;
    }
    Ok(())
}

#[test]
fn a_kill_loses_no_count_of_the_kernel_and_the_next_start_says_what_it_lost() -> Result<()> {
    let bench = Bench::new()?;
    let mut daemon = bench.daemon(&[])?;
    let traffic = Traffic::start(&bench.pair);
    let mut delay_ms = 137;
    for _ in 0..if long() { 50 } else { 6 } {
        delay_ms = (delay_ms * 7 + 311) % 1_900;
        std::thread::sleep(Duration::from_millis(delay_ms));
        daemon.signal(Signal::KILL)?;
        drop(daemon);
        daemon = bench.daemon(&[])?;
    }
    daemon.signal(Signal::KILL)?;
    drop(daemon);
    let sent = traffic.stop()?;
    let daemon = bench.daemon(&["--idle-timeout", "1s"])?;
    let ledger = bench.finish(daemon)?;
    let all = sent * u64::from(FLOWS);
    ensure!(counted(&ledger)? == all, "{all} were sent: {ledger}");
    let lines = lines(&bench.logs())?;
    let sums = datagrams(&lines);
    ensure!(sums.values().all(|sum| *sum <= sent), "{sums:?}, {sent} of each were sent");
    let written: u64 = sums.values().sum();
    // Each loss is said in words beside the number of records; the answers' packets are in it too.
    let said: u64 = lines
        .iter()
        .filter_map(|line| line.pointer("/node_status/message").and_then(Value::as_str))
        .filter_map(|text| text.split("at most ").nth(1)?.split(' ').next()?.parse::<u64>().ok())
        .sum();
    println!("{all} sent, {written} in records, at most {said} said to be lost");
    ensure!(written + said >= all, "{written} written, {said} said to be lost, {all} sent");
    // What was in files and not yet noted is said to be lost as well, and the answers to the datagrams are.
    ensure!(written + said < all + all / 5, "{written} written, {said} said to be lost, {all} sent");
    Ok(())
}

#[test]
fn a_link_whose_device_is_gone_and_tables_of_another_size_are_no_obstacle() -> Result<()> {
    let bench = Bench::new()?;
    let daemon = bench.daemon(&["--table-entries", "1000"])?;
    let traffic = Traffic::start(&bench.pair);
    daemon.stop()?;
    // Other sizes mean other tables; what the first ones hold is read to its end.
    let daemon = bench.daemon(&["--table-entries", "2000"])?;
    daemon.stop()?;
    let sent = traffic.stop()?;
    // The device goes while no daemon runs, and another comes under its name.
    let (near, far) = (bench.pair.near.name(), bench.pair.far.name());
    bench.pair.near.run(&["ip", "link", "delete", INTERFACE])?;
    run(
        "ip",
        &["link", "add", INTERFACE, "netns", near, "type", "veth", "peer", "name", INTERFACE, "netns", far],
    )?;
    for netns in [&bench.pair.near, &bench.pair.far] {
        netns.run(&["ip", "link", "set", INTERFACE, "up"])?;
    }
    let daemon = bench.daemon(&["--table-entries", "2000", "--idle-timeout", "1s"])?;
    bench.finish(daemon)?;
    let lines = lines(&bench.logs())?;
    let sums = datagrams(&lines);
    ensure!(sums.values().sum::<u64>() == sent * u64::from(FLOWS), "{sums:?}, {sent} of each were sent");
    Ok(())
}

#[test]
fn tables_of_another_layout_are_said_to_be_lost_and_replaced() -> Result<()> {
    let bench = Bench::new()?;
    let daemon = bench.daemon(&[])?;
    let traffic = Traffic::start(&bench.pair);
    std::thread::sleep(Duration::from_millis(200)); // So that there is something.
    traffic.stop()?;
    daemon.stop()?;
    let netns = files(Path::new(&bench.pins()))?.pop().context("a folder of the namespace")?;
    let tables = files(&netns)?.into_iter().find(|path| !path.ends_with("links")).context("tables")?;
    let (_, sizes) =
        tables.to_str().and_then(|path| path.rsplit('/').next()?.split_once('-')).context("a name")?;
    let other = netns.join(format!("0badcafe-{sizes}"));
    std::fs::rename(&tables, &other)?;
    let flows: HashMap<_, [u8; size_of::<FlowKey>()], [u8; size_of::<FlowEntry>()]> =
        HashMap::try_from(Map::from_map_data(MapData::from_pin(other.join(names::FLOWS))?)?)?;
    let there = flows.keys().count();
    ensure!(there >= usize::from(FLOWS), "only {there} connections");

    let mut daemon = Daemon::spawn(
        &bench.pair.near,
        &bench.tasks,
        &bench.logs(),
        &["--pin", &bench.pins(), "--active-timeout", "1s", "--idle-timeout", "1s"],
    )?;
    let said = daemon.wait_for("tables of another version")?;
    ensure!(said.contains(&format!(":{there}")) || said.contains(&format!(": {there}")), "{there}: {said}");
    // It is said first, and done then.
    until("the old tables' end", || Ok(!other.exists()))?;
    ensure!(!other.exists() && tables.exists(), "{:?}", files(&netns)?);
    let before: u64 = datagrams(&lines(&bench.logs())?).values().sum();
    let sent = Traffic::start(&bench.pair);
    std::thread::sleep(Duration::from_millis(200));
    let sent = sent.stop()? * u64::from(FLOWS);
    let ledger = bench.finish(daemon)?;
    ensure!(counted(&ledger)? == sent, "{sent} were sent: {ledger}");
    let now: u64 = datagrams(&lines(&bench.logs())?).values().sum();
    ensure!(now - before == sent, "{now} in records, {before} before, {sent} were sent");
    Ok(())
}

#[test]
fn two_daemons_do_not_share_pins_and_other_places_are_refused() -> Result<()> {
    let bench = Bench::new()?;
    let daemon = bench.daemon(&[])?;
    let pins = bench.pins();
    let folder = tempfile::tempdir()?;
    let other = tasks(folder.path(), EVERYTHING)?;
    let start =
        |pins: &str| Daemon::start(&bench.pair.near, &other, &folder.path().join("logs"), &["--pin", pins]);
    let second = start(&pins);
    let said = format!("{:#}", second.err().context("a second daemon on the same pins")?);
    ensure!(said.contains("another flowlog uses it"), "{said}");
    daemon.stop()?;
    let plain = bench.folder.path().join("plain").to_string_lossy().into_owned();
    std::fs::create_dir(&plain)?;
    let elsewhere = start(&plain);
    let said = format!("{:#}", elsewhere.err().context("pins in a plain folder")?);
    ensure!(said.contains("mount -t bpf"), "{said}");
    Ok(())
}
