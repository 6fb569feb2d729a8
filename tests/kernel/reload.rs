//! Tasks that change while traffic flows.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::{Daemon, Ended, PATIENCE};
use flowlog_tests::guest::{emulated, pace};
use flowlog_tests::netns::{FAR, Pair};
use flowlog_tests::records::{all, files, sums};
use flowlog_tests::traffic::udp;
use rustix::process::Signal;
use serde_json::Value;

/// What the daemon says when other tasks are in force.
pub(crate) const CHANGED: &str = "the tasks have changed";

/// A test's folders, with a daemon that watches `tasks`.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) pair: Pair,
}

impl Bench {
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["tasks", "logs"] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder, pair: Pair::new(false)? })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn start(&self, more: &[&str]) -> Result<Daemon> {
        Daemon::start(&self.pair.near, &self.path("tasks"), &self.path("logs"), more)
    }

    /// Writes a task file whole.
    pub(crate) fn write(&self, name: &str, tasks: &[&str]) -> Result<()> {
        let text = format!("flowLogs: [{}]\n", tasks.join(", "));
        let (new, file) = (self.path("tasks").join(format!(".{name}.new")), self.path("tasks").join(name));
        fs::write(&new, text.replace("LOGS", &self.path("logs").to_string_lossy()))?;
        Ok(fs::rename(new, file)?)
    }

    /// The lines of audit.log with this event.
    pub(crate) fn audit(&self, event: &str) -> Result<Vec<Value>> {
        let text = fs::read_to_string(self.path("state").join("audit.log"))?;
        let lines = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        Ok(lines.into_iter().filter(|line| line["event"] == event).collect())
    }

    pub(crate) fn files(&self, stem: &str) -> Result<Vec<PathBuf>> {
        let named =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(stem));
        Ok(files(&self.path("logs"))?.into_iter().filter(named).collect())
    }
}

/// A number of one task in the ledger.
fn of_task(ended: &Ended, task: &str, number: &str) -> Result<u64> {
    let tasks = ended.ledger["tasks"].as_array().context("the ledger has tasks")?;
    let task = tasks.iter().find(|one| one["task"] == task).with_context(|| format!("no task {task}"))?;
    task[number].as_u64().with_context(|| format!("no {number}"))
}

pub(crate) fn now() -> Result<Duration> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?)
}

/// RFC 3339 to the second, by `date`.
pub(crate) fn rfc3339(at: Duration) -> Result<String> {
    let text = flowlog_tests::netns::run("date", &["-u", "-d", &format!("@{}", at.as_secs()), "+%FT%TZ"])?;
    Ok(text.trim().to_owned())
}

/// Sets a flag at the end of a scope.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Other tasks come, change and go in another file while datagrams flow: the task that is not touched has
/// every packet once, in one file.
#[test]
fn an_untouched_task_loses_and_doubles_nothing_through_reloads() -> Result<()> {
    let reloads = if flowlog_tests::guest::long() { 1000 } else { 100 };
    let bench = Bench::new()?;
    bench.write("a.yaml", &["{name: all, filePath: LOGS/all.log, events: [start, end]}"])?;
    // Else the log says the same five times a minute.
    let mut daemon = bench.start(&["--verbose", "--active-timeout", "1s"])?;
    let done = AtomicBool::new(false);
    let made = std::thread::scope(|scope| -> Result<Vec<_>> {
        let sending = scope.spawn(|| -> Result<Vec<_>> {
            let ports = (5_000..30_000).take_while(|_| !done.load(Ordering::Relaxed));
            ports.map(|port| udp(&bench.pair, format!("{FAR}:{port}").parse()?, 500, 100)).collect()
        });
        // Set on every way out: the sender is waited for.
        let _last = OnDrop(&done);
        for round in 0..reloads {
            let (ports, interval) = (5_000 + round % 40, 1 + round % 3);
            // Every third round the task is another one, so that one comes and one goes.
            let name = format!("b{}", round / 3 % 2);
            bench.write("b.yaml", &[&format!(
                "{{name: {name}, filePath: LOGS/{name}.log, updateInterval: {interval}s, includeFilters: [{{destination_port: [\"{ports}\"]}}]}}"
            )])?;
            daemon.wait_for(CHANGED)?;
        }
        done.store(true, Ordering::Relaxed);
        sending.join().map_err(|_| anyhow::anyhow!("the sender died"))?
    })?;
    ensure!(made.len() > 10, "hardly anything was sent: {}", made.len());
    let ended = daemon.stop()?;
    ended.check()?;
    let records = all(&bench.path("logs"), "all-")?;
    let sums = sums(&records);
    for made in &made {
        let client = made.client.port();
        let out = sums
            .iter()
            .find(|(tuple, _)| tuple.2 == u64::from(client) && tuple.4 == u64::from(made.server.port()));
        let (_, sum) = out.with_context(|| format!("nothing of port {client}"))?;
        ensure!((sum.packets, sum.starts, sum.ends) == (500, 1, 1), "{made:?}: {sum:?}");
    }
    let sent: u64 = 500 * made.len() as u64;
    let out = sums.iter().filter(|(tuple, _)| (5_000..30_000).contains(&tuple.4) && tuple.3 == FAR);
    let total: u64 = out.map(|(_, sum)| sum.packets).sum();
    ensure!(total == sent, "{total} of {sent} packets");
    println!("{reloads} reloads, {sent} packets sent and recorded");
    let uuids: std::collections::BTreeSet<&str> = records.iter().map(|record| record.text("uuid")).collect();
    ensure!(uuids.len() == records.len(), "records are doubled");
    ensure!(bench.files("all")?.len() == 1, "{:?}", bench.files("all")?);
    ensure!(of_task(&ended, "all", "rotations")? == 1, "{}", ended.ledger["tasks"]);
    ensure!(of_task(&ended, "all", "written")? == records.len() as u64, "{}", ended.ledger["tasks"]);
    // Each change was one reload.
    let (accepted, changed) = (bench.audit("file_accepted")?.len(), bench.audit("changed")?.len());
    let (came, went) = (bench.audit("accepted")?.len(), bench.audit("removed")?.len());
    ensure!(
        (accepted, changed + came) == (reloads + 1, reloads + 1),
        "{accepted} texts, {changed} changes, {came} came, {went} went"
    );
    Ok(())
}

/// What a kubelet does: a new folder, then `..data` moves over.
fn swap(tasks: &Path, version: usize, text: &str) -> Result<Instant> {
    let name = format!("..version_{version}");
    fs::create_dir(tasks.join(&name))?;
    fs::write(tasks.join(&name).join("flowlogs.yaml"), text)?;
    symlink(&name, tasks.join("..data_tmp"))?;
    let at = Instant::now();
    fs::rename(tasks.join("..data_tmp"), tasks.join("..data"))?;
    if version > 0 {
        fs::remove_dir_all(tasks.join(format!("..version_{}", version - 1)))?;
    }
    Ok(at)
}

#[test]
fn a_swapped_config_map_reloads_exactly_once_and_soon() -> Result<()> {
    let bench = Bench::new()?;
    let tasks = bench.path("tasks");
    let text = |version: usize| {
        let mut text = String::from("flowLogs:\n");
        for task in 0..100 {
            let port = if task == 0 { 1 + version } else { 1 };
            text += &format!(
                "- {{name: t{task}, filePath: {}/t{task}.log, includeFilters: [{{destination_port: [\"{port}\"]}}]}}\n",
                bench.path("logs").display()
            );
        }
        text
    };
    swap(&tasks, 0, &text(0))?;
    symlink("..data/flowlogs.yaml", tasks.join("flowlogs.yaml"))?;
    // Else the log says the same five times a minute.
    let mut daemon = bench.start(&["--verbose"])?;
    let mut took = Vec::new();
    for version in 1..=100 {
        let at = swap(&tasks, version, &text(version))?;
        daemon.wait_for(CHANGED)?;
        took.push(at.elapsed());
    }
    took.sort_unstable();
    let (median, p99, max) = (took[49], took[98], took[99]);
    println!("100 tasks, from the rename to being in force: median {median:?}, p99 {p99:?}, longest {max:?}");
    daemon.stop()?.check()?;
    ensure!(bench.audit("file_accepted")?.len() == 101, "{:?}", bench.audit("file_accepted")?);
    let changed = bench.audit("changed")?;
    ensure!(changed.len() == 100 && changed.iter().all(|line| line["task"] == "t0"));
    ensure!(bench.audit("file_rejected")?.is_empty() && bench.audit("removed")?.is_empty());
    if emulated("how long a reload takes") {
        return Ok(());
    }
    // The target, 100 ms at p99, is for a machine that is not saturated, which one that runs tests is.
    ensure!(median < Duration::from_millis(250), "median {median:?}, p99 {p99:?}");
    Ok(())
}

#[test]
fn changes_of_every_kind_take_effect_and_bad_files_do_not() -> Result<()> {
    let bench = Bench::new()?;
    let task = |name: &str, more: &str| {
        format!("{{name: {name}, filePath: LOGS/{name}.log, events: [start, end]{more}}}")
    };
    bench.write("a.yaml", &[&task("a", "")])?;
    bench.write("b.yaml", &[&task("b", "")])?;
    let mut daemon = bench.start(&["--idle-timeout", "udp=1s"])?;
    let mut port = 6_000;
    let mut send = || -> Result<u64> {
        port += 1;
        udp(&bench.pair, format!("{FAR}:{port}").parse()?, 10, 100)?;
        Ok(port)
    };
    let first = send()?;
    // A bad file beside a good change: the one keeps its task, the other takes effect.
    fs::write(bench.path("tasks").join("a.yaml"), "flowLogs:\n  - {name: a, filePath: /elsewhere")?;
    daemon.wait_for("a.yaml:3:1: flowLogs[0]: ")?;
    bench.write(
        "b.yaml",
        &[
            &task("b", &format!(", includeFilters: [{{destination_port: [\"{}\"]}}]", first + 1)),
            &task("c", ""),
        ],
    )?;
    daemon.wait_for(CHANGED)?;
    let (second, third) = (send()?, send()?);
    // Another compression for the same task, and a path that is taken: refused alone.
    bench.write("a.yaml", &[&task("a", ", compressionLevel: 3"), "{name: d, filePath: LOGS/c.log}"])?;
    daemon.wait_for("is written by task `c`")?;
    daemon.wait_for(CHANGED)?;
    let fourth = send()?;
    // c gives its file up; d gets it without any change of its own file. SIGHUP alone changes nothing.
    bench.write("b.yaml", &[&task("b", "")])?;
    daemon.wait_for(CHANGED)?;
    daemon.signal(Signal::HUP)?;
    let fifth = send()?;
    let ended = daemon.stop()?;
    ended.check()?;
    // Connections whose start a task has written; their ends may come after a change.
    let started = |stem: &str| -> Result<Vec<u64>> {
        let sums = sums(&all(&bench.path("logs"), stem)?);
        let started = sums.iter().filter(|(tuple, sum)| sum.starts > 0 && (6_000..7_000).contains(&tuple.4));
        let mut ports: Vec<u64> = started.map(|(tuple, _)| tuple.4).collect();
        ports.sort_unstable();
        Ok(ports)
    };
    ensure!(started("a-")? == [first, second, third, fourth, fifth], "a: {:?}", started("a-")?);
    ensure!(started("b-")? == [first, second, fifth], "b: {:?}", started("b-")?);
    // The one file of c, then of d.
    ensure!(started("c-")? == [second, third, fourth, fifth], "c and d: {:?}", started("c-")?);
    ensure!(
        bench.files("a-")?.len() == 2 && bench.files("b-")?.len() == 1,
        "{:?}",
        files(&bench.path("logs"))?
    );
    for (event, count) in [("rejected", 1), ("removed", 1), ("file_rejected", 1)] {
        ensure!(bench.audit(event)?.len() == count, "{event}: {:?}", bench.audit(event)?);
    }
    let whole = fs::read_to_string(bench.path("state").join("audit.log"))?;
    ensure!(whole.contains("\"task\":\"d\""), "{whole}");
    Ok(())
}

#[test]
fn the_kernel_counts_for_a_new_task_what_it_rejected_before() -> Result<()> {
    let bench = Bench::new()?;
    let task = |port: u16| {
        format!(
            "{{name: p{port}, filePath: LOGS/p{port}.log, includeFilters: [{{destination_port: [\"{port}\"]}}]}}"
        )
    };
    bench.write("a.yaml", &[&task(5_353)])?;
    let mut daemon = bench.start(&[])?;
    let send = |port: u16, count| udp(&bench.pair, format!("{FAR}:{port}").parse()?, count, 50);
    send(5_353, 10)?;
    send(5_354, 20)?;
    bench.write("a.yaml", &[&task(5_353), &task(5_354)])?;
    daemon.wait_for(CHANGED)?;
    send(5_354, 30)?;
    bench.write("a.yaml", &[&task(5_354)])?;
    daemon.wait_for(CHANGED)?;
    send(5_353, 40)?;
    send(5_354, 50)?;
    let ended = daemon.stop()?;
    ended.check()?;
    let records = all(&bench.path("logs"), "p5354-")?;
    let sum: u64 = sums(&records).values().map(|sum| sum.packets).sum();
    ensure!(sum == 30 + 50, "{sum} packets in records");
    // Those before the one task, and those after the other that came when the kernel had been told.
    let rejected = ended.number("/packets/rejected/packets")?;
    ensure!((20..=20 + 40).contains(&rejected), "{rejected} packets were rejected");
    Ok(())
}

#[test]
fn start_and_end_are_kept_to_the_second() -> Result<()> {
    let bench = Bench::new()?;
    let (start, end) = (now()? + Duration::from_secs(6) * pace(), now()? + Duration::from_secs(9) * pace());
    bench.write(
        "a.yaml",
        &[
            &format!(
                "{{name: window, filePath: LOGS/window.log, start: \"{}\", end: \"{}\"}}",
                rfc3339(start)?,
                rfc3339(end)?
            ),
            "{name: past, filePath: LOGS/past.log, end: \"2020-01-01T00:00:00Z\"}",
            "{name: all, filePath: LOGS/all.log}",
        ],
    )?;
    let mut daemon = bench.start(&[])?;
    ensure!(bench.files("window")?.is_empty() && bench.files("past")?.is_empty(), "opened before its time");
    udp(&bench.pair, format!("{FAR}:6099").parse()?, 10, 100)?;
    daemon.wait_for(CHANGED)?;
    let began = now()?;
    ensure!(bench.files("window")?.len() == 1, "not opened at its time");
    udp(&bench.pair, format!("{FAR}:6100").parse()?, 10, 100)?;
    daemon.wait_for(CHANGED)?;
    let ended_at = now()?;
    let late = |at: Duration, due: Duration| at.checked_sub(Duration::from_secs(due.as_secs()));
    let (began, ended_at) =
        (late(began, start).context("too early")?, late(ended_at, end).context("too early")?);
    println!("started {began:?} and ended {ended_at:?} after its moment");
    ensure!(
        began < Duration::from_millis(500) * pace() && ended_at < Duration::from_millis(500) * pace(),
        "{began:?}, {ended_at:?}"
    );
    // Finished under its final name while the daemon runs on.
    let until = Instant::now() + PATIENCE;
    while bench.files("window-")?.len() != 1 {
        ensure!(Instant::now() < until, "never finished: {:?}", files(&bench.path("logs"))?);
        std::thread::sleep(Duration::from_millis(10));
    }
    udp(&bench.pair, format!("{FAR}:6101").parse()?, 10, 100)?;
    let ended = daemon.stop()?;
    ended.check()?;
    let sums = sums(&all(&bench.path("logs"), "window-")?);
    let packets =
        |port| -> u64 { sums.iter().filter(|(tuple, _)| tuple.4 == port).map(|(_, sum)| sum.packets).sum() };
    // Of a connection that was open before only what came from then on, which is nothing.
    ensure!([6099, 6100, 6101].map(packets) == [0, 10, 0], "{sums:?}");
    ensure!(bench.files("past")?.is_empty() && bench.files("all-")?.len() == 1);
    for event in ["started", "ended"] {
        let lines = bench.audit(event)?;
        ensure!(
            lines.iter().any(|line| line["task"] == "window" && line["cause"] == "clock"),
            "{event}: {lines:?}"
        );
    }
    Ok(())
}

/// One connection, seven tasks: one is there all the time, one leaves in the middle, one of another rhythm begins then,
/// and so does one of the same rhythm; three go on with another filter, of which one takes the connection before and
/// after, one only before and one only after.
#[test]
fn a_change_divides_an_open_connection_exactly() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("a.yaml", &["{name: all, filePath: LOGS/all.log, events: [start, end]}"])?;
    let filtered = |name: &str, port: u16| {
        format!(
            "{{name: {name}, filePath: LOGS/{name}.log, events: [start, end], includeFilters: [{{destination_port: ['{port}']}}]}}"
        )
    };
    let (stays, takes, drops) = (filtered("stays", 6300), filtered("takes", 1), filtered("drops", 6300));
    let old = "{name: old, filePath: LOGS/old.log, events: [start, end]}";
    bench.write("b.yaml", &[old, &stays, &takes, &drops])?;
    let mut daemon = bench.start(&[])?;
    let socket = |netns: &flowlog_tests::netns::Netns, address: String| {
        let bound = netns.enter(move || Ok(std::net::UdpSocket::bind(address)?));
        bound.join().map_err(|_| anyhow::anyhow!("a host died"))?
    };
    let (near, far) =
        (socket(&bench.pair.near, "0.0.0.0:0".into())?, socket(&bench.pair.far, format!("{FAR}:6300"))?);
    far.set_read_timeout(Some(PATIENCE))?;
    let send = |count: usize| -> Result<()> {
        for _ in 0..count {
            near.send_to(&[b'x'; 100], format!("{FAR}:6300"))?;
            far.recv(&mut [0; 200])?;
        }
        Ok(())
    };
    send(30)?;
    let stays = stays.replace("['6300']", "['6300', '7']");
    let (takes, drops) = (filtered("takes", 6300), filtered("drops", 1));
    bench.write(
        "b.yaml",
        &[
            "{name: new, filePath: LOGS/new.log, events: [end]}",
            "{name: same, filePath: LOGS/same.log, events: [start, end]}",
            &stays,
            &takes,
            &drops,
        ],
    )?;
    daemon.wait_for(CHANGED)?;
    send(12)?;
    daemon.stop()?.check()?;
    for (stem, packets, starts, ends) in [
        ("all-", 42, 1, 1),
        ("old-", 30, 1, 1),
        ("new-", 12, 0, 1),
        ("same-", 12, 0, 1),
        ("stays-", 42, 1, 2),
        ("takes-", 12, 0, 1),
        ("drops-", 30, 1, 1),
    ] {
        let sums = sums(&all(&bench.path("logs"), stem)?);
        let sum = sums.iter().find(|(tuple, _)| tuple.4 == 6300).map(|(_, sum)| sum);
        let sum = sum.with_context(|| format!("{stem} has nothing"))?;
        ensure!((sum.packets, sum.starts, sum.ends) == (packets, starts, ends), "{stem}: {sum:?}");
    }
    Ok(())
}

#[test]
fn a_killed_daemon_starts_again_with_what_was_accepted_last() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("a.yaml", &["{name: a, filePath: LOGS/a.log}"])?;
    bench.write("b.yaml", &["{name: b, filePath: LOGS/b.log}"])?;
    let daemon = bench.start(&[])?;
    daemon.signal(Signal::KILL)?;
    drop(daemon);
    fs::write(bench.path("tasks").join("a.yaml"), "flowLogs: 7")?;
    let mut daemon = Daemon::spawn(&bench.pair.near, &bench.path("tasks"), &bench.path("logs"), &[])?;
    daemon.wait_for("what it held is in force as it was accepted last")?;
    daemon.wait_for("\"watching\"")?;
    udp(&bench.pair, format!("{FAR}:6200").parse()?, 10, 100)?;
    daemon.stop()?.check()?;
    for stem in ["a-", "b-"] {
        ensure!(sums(&all(&bench.path("logs"), stem)?).values().any(|sum| sum.packets == 10), "{stem}");
    }
    ensure!(bench.audit("file_restored")?.len() == 1);
    Ok(())
}
