//! Starting, stopping, dying: nothing stays behind, nothing is lost that was flushed, and every refusal names its
//! cause and its remedy.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aya::programs::{SchedClassifier, TcAttachType};
use flowlog_tests::daemon::{Daemon, PATIENCE, binary};
use flowlog_tests::guest::{emulated, hooks, pace};
use flowlog_tests::netns::{FAR, INTERFACE, Netns, Pair, run};
use flowlog_tests::records::{Record, all, files, sums, zstdcat};
use flowlog_tests::traffic::{ping, udp};
use rustix::process::{Pid, Signal};

use crate::end_to_end::{EVERYTHING, tasks};

/// Programs of ours that are attached in a namespace: TCX as the kernel lists them, clsact as tc does.
pub(crate) fn attached(netns: &Netns) -> Result<usize> {
    let filters =
        ["ingress", "egress"].map(|side| netns.run(&["tc", "filter", "show", "dev", INTERFACE, side]));
    let filters = filters.into_iter().filter_map(Result::ok).collect::<String>();
    let tcx = netns.enter(|| -> Result<usize> {
        let mut ours = 0;
        if !hooks().contains(&"tcx") {
            return Ok(0);
        }
        for side in [TcAttachType::Ingress, TcAttachType::Egress] {
            let (_, programs) = SchedClassifier::query_tcx(INTERFACE, side)?;
            ours += programs
                .iter()
                .filter(|program| program.name_as_str().is_some_and(|n| n.starts_with("fl_")))
                .count();
        }
        Ok(ours)
    });
    let tcx = tcx.join().map_err(|_| anyhow::anyhow!("the query died"))??;
    Ok(tcx + filters.lines().filter(|line| line.contains(" fl_")).count())
}

/// A task for stdout is no file below a log root, wherever the daemon runs.
#[test]
fn a_daemon_writes_a_task_to_its_stdout() -> Result<()> {
    let pair = Pair::new(false)?;
    let folder = tempfile::tempdir()?;
    let tasks = folder.path().join("tasks.yaml");
    std::fs::write(
        &tasks,
        "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {name: out, filePath: stdout}\n",
    )?;
    let mut command = pair.near.command(binary().to_str().context("a plain path")?);
    command.arg("run").arg("--tasks").arg(&tasks).arg("--log-root").arg(folder.path().join("log"));
    command.arg("--state-dir").arg(folder.path().join("state")).current_dir("/");
    command.env("FLOWLOG_SOCKET", "none").env("FLOWLOG_LISTEN", "none");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let said = BufReader::new(child.stderr.take().context("stderr")?);
    let mut told = Vec::new();
    for line in said.lines() {
        told.push(line?);
        if told.last().is_some_and(|line| line.contains("watching")) {
            ping(&pair, FAR, 3)?;
            break;
        }
    }
    let mut first = String::new();
    BufReader::new(child.stdout.take().context("stdout")?).read_line(&mut first)?;
    let pid = Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM)?;
    child.wait()?;
    let flow: serde_json::Value = serde_json::from_str(&first).with_context(|| told.join("\n"))?;
    ensure!(flow["flow"]["l4"]["ICMPv4"].is_object(), "{first}");
    Ok(())
}

/// Waits until `done` holds.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !done()? {
        ensure!(started.elapsed() < PATIENCE, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[test]
fn both_signals_and_the_clock_stop_it_in_order_and_nothing_stays_attached() -> Result<()> {
    for (hook, stop) in [("tcx", Some(Signal::TERM)), ("clsact", Some(Signal::INT)), ("auto", None)] {
        if hook == "tcx" && !hooks().contains(&hook) {
            continue;
        }
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let pair = Pair::new(false)?;
        let time = if stop.is_some() { "1h".to_owned() } else { format!("{}s", pace()) };
        let daemon = Daemon::start(
            &pair.near,
            &tasks(folder.path(), EVERYTHING)?,
            &logs,
            &["--hook", hook, "--for", &time],
        )?;
        ensure!(attached(&pair.near)? > 0, "{hook}: nothing is attached");
        ping(&pair, FAR, 3)?;
        let ended = match stop {
            Some(signal) => {
                daemon.signal(signal)?;
                daemon.wait()?
            }
            None => daemon.wait()?,
        };
        ended.check().with_context(|| hook.to_owned())?;
        ensure!(attached(&pair.near)? == 0, "{hook}: something stays attached");
        let sums = sums(&all(&logs, "all-")?);
        ensure!(sums.len() == 2 && sums.values().all(|sum| sum.packets == 3), "{hook}: {sums:?}");
        // Finished: one file under its final name, none live.
        let names: Vec<_> = files(&logs)?;
        ensure!(names.len() == 1 && !names[0].ends_with("all.log.zst"), "{names:?}");
    }
    Ok(())
}

#[test]
fn a_killed_daemon_leaves_readable_files_and_the_next_one_cleans_up() -> Result<()> {
    for hook in hooks() {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        let pair = Pair::new(false)?;
        let tasks = tasks(folder.path(), EVERYTHING)?;
        let daemon = Daemon::start(&pair.near, &tasks, &logs, &["--hook", hook])?;
        let made = udp(&pair, format!("{FAR}:5353").parse()?, 200, 100)?;
        let live = logs.join("all.log.zst");
        // Both starts are flushed a second after they came.
        until("the flush", || Ok(live.is_file() && zstdcat(&live, false)?.len() == 2))?;
        daemon.signal(Signal::KILL)?;
        drop(daemon);
        ensure!(zstdcat(&live, false)?.len() == 2, "the flushed records are gone");
        let left = attached(&pair.near)?;
        ensure!((left > 0) == (*hook == "clsact"), "{hook}: {left} programs are left");

        let mut daemon = Daemon::spawn(&pair.near, &tasks, &logs, &["--hook", hook])?;
        daemon.wait_for("was in the live file's place")?;
        daemon.wait_for("\"watching\"")?;
        ensure!(attached(&pair.near)? == 2, "{hook}: stale filters beside ours");
        ping(&pair, FAR, 2)?;
        daemon.stop()?.check()?;
        ensure!(attached(&pair.near)? == 0, "{hook}: something stays attached");
        let files = files(&logs)?;
        ensure!(files.len() == 2, "{files:?}");
        let salvaged = zstdcat(&files[0], false)?;
        let port = salvaged[0].pointer("/flow/l4/UDP/source_port").and_then(serde_json::Value::as_u64);
        ensure!(port == Some(made.client.port().into()), "{salvaged:?}");
    }
    Ok(())
}

#[test]
fn the_first_record_is_on_disk_within_two_seconds_and_idling_costs_next_to_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::alone()?;
    // Ten interfaces in all.
    for n in 1..10 {
        let (own, other) = (format!("more{n}"), format!("peer{n}"));
        run(
            "ip",
            &[
                "link",
                "add",
                &own,
                "netns",
                pair.near.name(),
                "type",
                "veth",
                "peer",
                "name",
                &other,
                "netns",
                pair.far.name(),
            ],
        )?;
        pair.near.run(&["ip", "link", "set", &own, "up"])?;
        pair.far.run(&["ip", "link", "set", &other, "up"])?;
    }
    let tasks = tasks(folder.path(), EVERYTHING)?;
    let pinging = pair.near.command("ping").args(["-q", "-i", "0.02", FAR]).stdout(Stdio::null()).spawn()?;
    let live = logs.join("all.log.zst");
    let started = Instant::now();
    let daemon = Daemon::spawn(&pair.near, &tasks, &logs, &[])?;
    until("the first record", || Ok(live.is_file() && !zstdcat(&live, false)?.is_empty()))?;
    let took = started.elapsed();
    let mut pinging = pinging;
    pinging.kill()?;
    pinging.wait()?;
    if emulated("how long the start takes, and what idling costs") {
        return daemon.stop()?.check();
    }
    ensure!(took < Duration::from_secs(2), "the first record took {took:?}");

    let pid = daemon.pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: u64 = resident.split_whitespace().next().context("a number")?.parse()?;
    let before = cpu_ticks(pid)?;
    let idle = Duration::from_secs(10);
    std::thread::sleep(idle); // What is measured is time itself.
    let ticks = cpu_ticks(pid)? - before;
    // 100 ticks a second: half a percent of ten seconds is 5 ticks.
    println!("first record after {took:?}; idle: {kib} KiB resident, {ticks} ticks of CPU in {idle:?}");
    // A debug build's own code is 80 MB long, of which more is resident than of the 20 MB that are shipped.
    let limit = if cfg!(debug_assertions) { 80 } else { 64 };
    ensure!(kib < limit << 10, "{kib} KiB resident");
    let limit = if cfg!(debug_assertions) { 10 } else { 5 };
    ensure!(ticks <= limit, "{ticks} ticks in {idle:?}");
    daemon.stop()?.check()
}

#[test]
fn flows_whose_interfaces_are_all_gone_end_as_unwatched() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let (near, far) = (pair.near.name(), pair.far.name());
    run("ip", &["link", "add", "fl1", "netns", near, "type", "veth", "peer", "name", "fl1", "netns", far])?;
    for (netns, address) in [(&pair.near, "10.78.0.1/24"), (&pair.far, "10.78.0.2/24")] {
        netns.run(&["ip", "address", "add", address, "dev", "fl1"])?;
        netns.run(&["ip", "link", "set", "fl1", "up"])?;
    }
    let daemon = Daemon::start(&pair.near, &tasks(folder.path(), EVERYTHING)?, &logs, &[])?;
    let made = udp(&pair, format!("{FAR}:5353").parse()?, 10, 100)?;
    udp(&pair, "10.78.0.2:5354".parse()?, 10, 100)?;
    pair.near.run(&["ip", "link", "delete", INTERFACE])?;
    let live = logs.join("all.log.zst");
    let ends = || -> Result<Vec<Record>> {
        let records = zstdcat(&live, false)?.into_iter().map(Record);
        Ok(records.filter(|record| record.extension("end_reason") == "unwatched").collect())
    };
    until("the end of a flow of the interface that is gone", || Ok(live.is_file() && !ends()?.is_empty()))?;
    daemon.stop()?.check()?;
    for (tuple, sum) in sums(&all(&logs, "all-")?).iter().filter(|(tuple, _)| tuple.0 == "UDP") {
        let gone = tuple.2 == u64::from(made.client.port()) || tuple.4 == u64::from(made.client.port());
        let reason = if gone { "unwatched" } else { "shutdown" };
        ensure!((sum.ends, sum.reason.as_str()) == (1, reason), "{tuple:?}: {sum:?}");
        ensure!(sum.packets == 10, "{tuple:?}: {sum:?}");
    }
    Ok(())
}

/// User and system time of a process in clock ticks.
fn cpu_ticks(pid: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit_once(')').context("stat has a name")?.1.split_whitespace().collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}

/// Runs `flowlog run` to its end in a namespace.
fn refused(netns: &Netns, prefix: &[&str], tasks: &Path, logs: &Path, more: &[&str]) -> Result<Output> {
    let binary = binary();
    let mut words: Vec<&str> = prefix.to_vec();
    words.push(binary.to_str().context("path")?);
    let mut command: Command = netns.command(words[0]);
    command.args(&words[1..]).arg("run").arg("--tasks").arg(tasks).arg("--log-root").arg(logs);
    command.arg("--state-dir").arg(logs.with_file_name("state")).args(more);
    Ok(command.stdin(Stdio::null()).output()?)
}

/// What the command is run under, tasks, further arguments, exit code, words that must be said.
type Refusal<'a> = (&'a [&'a str], &'a Path, &'a [&'a str], i32, &'a [&'a str]);

#[test]
fn every_refusal_names_cause_and_remedy_and_leaves_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let good = tasks(folder.path(), EVERYTHING)?;
    let file = |name: &str, text: &str| -> Result<std::path::PathBuf> {
        let path = folder.path().join(name);
        std::fs::write(&path, text.replace("LOGS", &logs.to_string_lossy()))?;
        Ok(path)
    };
    let broken = file("broken.yaml", "flowLogs: [\n")?;
    let unknown =
        file("unknown.yaml", "flowLogs:\n  - name: a\n    filePath: LOGS/a.log\n    includefilter: []\n")?;
    let twice = file(
        "twice.yaml",
        "flowLogs:\n  - {name: a, filePath: LOGS/a.log}\n  - {name: a, filePath: LOGS/b.log}\n",
    )?;
    let outside = file("outside.yaml", "flowLogs:\n  - {name: a, filePath: /tmp-elsewhere/a.log}\n")?;
    let missing = folder.path().join("missing.yaml");
    let unprivileged = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"];
    // A file stands where the folder should.
    let unwritable = broken.to_str().context("path")?;
    let cases: [Refusal<'_>; 10] = [
        (&unprivileged, &good, &[], 1, &["CAP_BPF", "CAP_NET_ADMIN"]),
        (&[], &good, &["--interface", "eth7"], 1, &["eth7", INTERFACE]),
        (&[], &broken, &[], 1, &["broken.yaml:"]),
        (&[], &unknown, &[], 1, &["unknown.yaml:4:", "includefilter", "includeFilters"]),
        (&[], &twice, &[], 1, &["twice.yaml:3:", "twice.yaml:2:"]),
        (&[], &outside, &[], 1, &["/tmp-elsewhere/a.log", "--log-root"]),
        (&[], &missing, &[], 1, &["missing.yaml"]),
        (&[], &good, &["--log-root", unwritable], 1, &["log root", "broken.yaml", "--log-root"]),
        (&[], &good, &["--for", "soon"], 2, &["soon", "90s"]),
        (&[], &good, &["--interfaces", "eth0"], 2, &["--interface"]),
    ];
    for (prefix, tasks, more, code, said) in cases {
        let output = refused(&pair.near, prefix, tasks, &logs, more)?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(code),
            "{more:?} {}: {:?} {text}",
            tasks.display(),
            output.status
        );
        for word in said {
            ensure!(text.contains(word), "{more:?} {}: {word} is not in: {text}", tasks.display());
        }
        ensure!(attached(&pair.near)? == 0, "{text}: something stays attached");
        ensure!(files(&logs)?.is_empty(), "{text}: {:?}", files(&logs)?);
    }
    Ok(())
}

#[test]
fn it_says_so_when_nothing_passes_and_when_no_interface_is_watched() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), EVERYTHING)?;
    let mut daemon = Daemon::start(&pair.near, &tasks, &logs, &["--live"])?;
    let hint = daemon.wait_for("nothing has passed")?;
    ensure!(hint.contains("ping") && hint.contains("interfaces"), "{hint}");
    daemon.stop()?.check()?;
    ensure!(files(&logs)?.is_empty(), "a file without a record: {:?}", files(&logs)?);

    let empty = Netns::new("empty")?;
    let mut daemon = Daemon::spawn(&empty, &tasks, &logs, &[])?;
    daemon.wait_for("no interface is watched")?;
    daemon.wait_for("\"watching\"")?;
    daemon.stop()?.check()
}

#[test]
fn an_interface_that_goes_leaves_its_counts_and_nothing_else() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let daemon = Daemon::start(&pair.near, &tasks(folder.path(), EVERYTHING)?, &logs, &[])?;
    ping(&pair, FAR, 5)?;
    pair.far.run(&["ip", "link", "delete", INTERFACE])?;
    // It comes back, as another interface of the same name, and is watched again.
    let (near, far) = (pair.near.name(), pair.far.name());
    run(
        "ip",
        &["link", "add", INTERFACE, "netns", near, "type", "veth", "peer", "name", INTERFACE, "netns", far],
    )?;
    pair.near.run(&["ip", "address", "add", "10.78.0.1/24", "dev", INTERFACE])?;
    pair.far.run(&["ip", "address", "add", "10.78.0.2/24", "dev", INTERFACE])?;
    for netns in [&pair.near, &pair.far] {
        netns.run(&["ip", "link", "set", INTERFACE, "up"])?;
    }
    until("the new interface's programs", || Ok(attached(&pair.near)? == 2))?;
    ping(&pair, "10.78.0.2", 7)?;
    daemon.stop()?.check()?;
    let sums = sums(&all(&logs, "all-")?);
    let packets = |from: &str, to: &str| {
        sums.get(&("ICMPv4".into(), from.into(), 0, to.into(), 0)).map_or(0, |sum| sum.packets)
    };
    ensure!((packets("10.77.0.1", FAR), packets(FAR, "10.77.0.1")) == (5, 5), "{sums:?}");
    ensure!((packets("10.78.0.1", "10.78.0.2"), packets("10.78.0.2", "10.78.0.1")) == (7, 7), "{sums:?}");
    Ok(())
}

#[test]
fn what_passes_while_no_daemon_runs_is_said_where_nothing_is_pinned() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), EVERYTHING)?;
    Daemon::start(&pair.near, &tasks, &logs, &[])?.stop()?.check()?;
    ping(&pair, FAR, 5)?;
    // Five requests and five answers, by the interface.
    let mut daemon = Daemon::spawn(&pair.near, &tasks, &logs, &[])?;
    let said = daemon.wait_for("passed while no flowlog ran")?;
    ensure!(said.contains("\"packets\":10"), "{said}");
    ping(&pair, FAR, 1)?;
    daemon.stop()?.check()?;
    let mut told: Vec<String> = Vec::new();
    for file in files(&logs)? {
        let lines = zstdcat(&file, true)?.into_iter();
        told.extend(lines.filter_map(|line| Some(line.pointer("/node_status/message")?.to_string())));
    }
    told.retain(|line| line.contains("did not run"));
    ensure!(told.len() == 1 && told[0].contains("at most 10 packets"), "{told:?}");
    // Told once.
    let ended = Daemon::start(&pair.near, &tasks, &logs, &[])?.stop()?;
    let again = ended.log.iter().filter(|line| line.contains("while no flowlog ran"));
    ensure!(again.count() == 0, "{:?}", ended.log);
    Ok(())
}

#[test]
fn two_daemons_of_one_second_give_no_uuid_twice() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let one = tasks(folder.path(), EVERYTHING)?;
    let other = folder.path().join("other.yaml");
    std::fs::write(&other, std::fs::read_to_string(&one)?.replace("all.log", "other.log"))?;
    let mut daemons =
        [Daemon::spawn(&pair.near, &one, &logs, &[])?, Daemon::spawn(&pair.near, &other, &logs, &[])?];
    for daemon in &mut daemons {
        daemon.wait_for("\"watching\"")?;
    }
    ping(&pair, FAR, 3)?;
    for daemon in daemons {
        daemon.stop()?.check()?;
    }
    let records = [all(&logs, "all-")?, all(&logs, "other-")?].concat();
    let uuids: std::collections::BTreeSet<_> = records.iter().map(|record| record.text("uuid")).collect();
    ensure!(records.len() == 8, "a start and an end each way from each: {}", records.len());
    ensure!(uuids.len() == 8, "{uuids:?}");
    Ok(())
}

#[test]
fn two_daemons_never_share_a_file() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), EVERYTHING)?;
    let first = Daemon::start(&pair.near, &tasks, &logs, &[])?;
    let output = refused(&pair.near, &[], &tasks, &logs, &[])?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && text.contains("all.log.zst"), "{text}");
    ping(&pair, FAR, 2)?;
    first.stop()?.check()?;
    ensure!(sums(&all(&logs, "all-")?).values().all(|sum| sum.packets == 2), "the first one was disturbed");
    Ok(())
}

#[test]
fn a_full_table_and_a_small_ring_lose_nothing_uncounted() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    let pair = Pair::new(false)?;
    let more = ["--table-entries", "64", "--ring-bytes", "65536"];
    let daemon = Daemon::start(&pair.near, &tasks(folder.path(), EVERYTHING)?, &logs, &more)?;
    let flows = 1_000;
    for flow in 0..flows {
        udp(&pair, format!("{FAR}:{}", 20_000 + flow).parse()?, 1, 50)?;
    }
    let ended = daemon.stop()?;
    ended.check()?;
    let records: u64 = sums(&all(&logs, "all-")?).values().map(|sum| sum.packets).sum();
    let [counted, alone, lost] =
        ["counted", "alone", "lost"].map(|part| ended.number(&format!("/packets/{part}/packets")));
    let (counted, alone, lost) = (counted?, alone?, lost?);
    ensure!(alone > 0, "the table was never full");
    ensure!(counted + alone + lost == flows, "{counted} counted, {alone} alone, {lost} lost");
    ensure!(records == counted + alone, "{records} packets in records, {counted} counted and {alone} alone");
    Ok(())
}
