//! Metrics, health and status of the running daemon, compared with the kernel's own counters.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::{Daemon, PATIENCE, binary};
use flowlog_tests::http::{get, series, unix};
use flowlog_tests::netns::{FAR, INTERFACE, Pair};
use flowlog_tests::traffic::{ping, udp};
use serde_json::{Value, json};

use crate::end_to_end::{EVERYTHING, tasks};

const LISTEN: &str = "127.0.0.1:9477";

fn start(pair: &Pair, folder: &Path, text: &str) -> Result<Daemon> {
    pair.near.run(&["ip", "link", "set", "lo", "up"])?;
    let socket = folder.join("flowlog.sock");
    let more = ["--listen", LISTEN, "--socket", socket.to_str().context("a plain path")?];
    Daemon::start(&pair.near, &tasks(folder, text)?, &folder.join("logs"), &more)
}

/// Asks over the unix socket.
fn ask(folder: &Path, path: &str) -> Result<(u16, String)> {
    get(unix(&folder.join("flowlog.sock"))?, path)
}

/// Asks over TCP, from inside the namespace.
fn ask_tcp(pair: &Pair, path: &'static str) -> Result<(u16, String)> {
    let asked = pair.near.enter(move || get(TcpStream::connect(LISTEN)?, path));
    asked.join().map_err(|_| anyhow::anyhow!("the client died"))?
}

fn status(folder: &Path) -> Result<Output> {
    let server = format!("unix://{}", folder.join("flowlog.sock").display());
    Ok(Command::new(binary()).args(["status", "--server", &server]).output()?)
}

/// Asks until the answer is as wanted.
fn until(what: &str, mut ask: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !ask()? {
        ensure!(started.elapsed() < PATIENCE, "{what} never came");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

#[test]
fn the_metrics_say_what_the_interface_and_the_file_say() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let packets = || -> Result<[u64; 2]> {
        let read = |name| pair.near.counter(INTERFACE, name);
        Ok([read("rx_packets")? + read("tx_packets")?, read("rx_bytes")? + read("tx_bytes")?])
    };
    let daemon = start(&pair, folder.path(), EVERYTHING)?;
    let before = packets()?;
    ping(&pair, FAR, 20)?;
    udp(&pair, format!("{FAR}:5353").parse()?, 500, 100)?;
    let passed = packets()?;
    let (passed, passed_bytes) = (passed[0] - before[0], passed[1] - before[1]);

    let page = std::cell::RefCell::new(String::new());
    let of = |name: &str| series(&page.borrow()).get(name).copied().unwrap_or_default();
    until("every packet", || {
        *page.borrow_mut() = ask(folder.path(), "/metrics")?.1;
        Ok(of("flowlog_packets_total{outcome=\"counted\"}") >= passed as f64)
    })?;
    assert_eq!(of("flowlog_packets_total{outcome=\"counted\"}"), passed as f64);
    assert_eq!(of("flowlog_bytes_total{outcome=\"counted\"}"), passed_bytes as f64);
    // One ping session and one socket's datagrams.
    assert_eq!(of("flowlog_connections_total"), 2.0);
    assert_eq!(of("flowlog_table_entries"), 2.0);
    assert_eq!(of("flowlog_interfaces{role=\"endpoint\",watched=\"true\"}"), 1.0);
    assert_eq!(of("flowlog_ledger_imbalance"), 0.0);
    assert_eq!(of("flowlog_task_active{task=\"all\"}"), 1.0);
    until("the starts of both connections, each direction", || {
        *page.borrow_mut() = ask(folder.path(), "/metrics")?.1;
        Ok(of("flowlog_task_written_records_total{task=\"all\"}") >= 4.0)
    })?;

    let at = of("flowlog_task_last_record_timestamp_seconds{task=\"all\"}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
    assert!((0.0..60.0).contains(&(now - at)), "{at} is not just before {now}");

    let answer = status(folder.path())?;
    let said = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.status.success(), "{said}");
    assert!(said.contains("ledger: closes") && said.contains("healthy"), "{said}");
    let json: Value = serde_json::from_str(&ask(folder.path(), "/status")?.1)?;
    let mut interfaces = pair.near.command(binary().to_str().context("a plain path")?);
    interfaces.args(["interfaces", "--server"]).arg(folder.path().join("flowlog.sock"));
    let list = String::from_utf8(interfaces.output()?.stdout)?;
    let row = |name: &str| {
        let row = list.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
        row.map(|row| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).unwrap_or_default()
    };
    let told = passed.to_string();
    assert_eq!(row(INTERFACE)[2..3], ["endpoint"], "{list}");
    assert!(["tcx", "clsact"].contains(&row(INTERFACE)[3].as_str()) && row(INTERFACE)[4] == told, "{list}");
    assert!(row("lo")[2..].join(" ").starts_with("- - - - not watched: loopback"), "{list}");
    assert!(list.contains("Not to be seen from here") && !list.contains("No daemon answers"), "{list}");
    assert_eq!(json.pointer("/ledger/packets/counted/packets"), Some(&passed.into()));
    assert_eq!(ask_tcp(&pair, "/readyz")?.0, 200);
    assert_eq!(ask_tcp(&pair, "/healthz")?.0, 200);
    assert_eq!(ask_tcp(&pair, "/status")?.0, 404, "names and paths are not for everybody");
    daemon.stop()?.check()
}

#[test]
fn a_refused_file_is_told_and_leaves_the_node_ready() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let daemon = start(&pair, folder.path(), EVERYTHING)?;
    std::fs::write(folder.path().join("tasks.yaml"), "flowLogs:\n  - name: all\n    filePth: /x\n")?;
    until("the refusal", || Ok(!status(folder.path())?.status.success()))?;
    let said = String::from_utf8_lossy(&status(folder.path())?.stdout).into_owned();
    assert!(said.contains("NOT HEALTHY") && said.contains("filePath is required"), "{said}");
    assert_eq!(ask_tcp(&pair, "/readyz")?.0, 200);
    let page = series(&ask(folder.path(), "/metrics")?.1);
    assert_eq!(page.get("flowlog_task_changes_total{op=\"failure\"}"), Some(&1.0));
    daemon.stop()?.check()
}

/// A task that asks for what no record has runs, and is not silent about it.
#[test]
fn what_no_record_has_is_told_of_the_task_that_asks_for_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let pods = EVERYTHING.replace(
        "events:",
        "includeFilters: [{source_pod: [shop/web], destination_port: [\"80\"]}, {dns_query: [x]}]\n    events:",
    );
    let daemon = start(&pair, folder.path(), &pods)?;
    let json: Value = serde_json::from_str(&ask(folder.path(), "/status")?.1)?;
    let accepted = json
        .pointer("/tasks/0/conditions")
        .and_then(Value::as_array)
        .and_then(|all| all.iter().find(|condition| condition["type"] == "Accepted"))
        .context("a condition")?;
    assert_eq!(accepted["status"], true, "{accepted}");
    assert_eq!(accepted["reason"], "FieldsNotRecorded", "{accepted}");
    let message = accepted["message"].as_str().context("a message")?;
    assert!(message.contains("dns_query, source_pod") && !message.contains("port"), "{message}");
    let page = series(&ask(folder.path(), "/metrics")?.1);
    assert_eq!(page.get("flowlog_task_unrecorded_fields{task=\"all\"}"), Some(&2.0));
    assert!(status(folder.path())?.status.success(), "it is healthy all the same");
    daemon.stop()?.check()
}

/// What never ran is told too: it has no task whose state could say so.
#[test]
fn a_new_file_that_is_refused_is_told_until_it_is_mended() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let files = folder.path().join("tasks");
    std::fs::create_dir(&files)?;
    let good = std::fs::read_to_string(tasks(folder.path(), EVERYTHING)?)?;
    std::fs::write(files.join("good.yaml"), &good)?;
    pair.near.run(&["ip", "link", "set", "lo", "up"])?;
    let socket = folder.path().join("flowlog.sock");
    let more = ["--listen", LISTEN, "--socket", socket.to_str().context("a plain path")?];
    let daemon = Daemon::start(&pair.near, &files, &folder.path().join("logs"), &more)?;
    assert!(status(folder.path())?.status.success());
    let bad = files.join("new.yaml");
    let other = good.replace("name: all", "name: other").replace("all.log", "other.log");
    for text in [
        other.replace("events:", "evnts:"),
        format!(
            "apiVersion: flowlog.io/v1\nkind: FlowLogs\n{}    where: {{source_pool: [nowhere]}}\n",
            other.trim_start()
        ),
    ] {
        std::fs::write(&bad, text)?;
        until("the refusal", || Ok(!status(folder.path())?.status.success()))?;
        let said = String::from_utf8_lossy(&status(folder.path())?.stdout).into_owned();
        assert!(said.contains("NOT HEALTHY") && said.contains("new.yaml"), "{said}");
        assert_eq!(ask_tcp(&pair, "/readyz")?.0, 200);
        std::fs::write(&bad, &other)?;
        until("health", || Ok(status(folder.path())?.status.success()))?;
    }
    daemon.stop()?.check()
}

#[test]
fn silent_clients_take_places_for_seconds_and_nothing_else() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let daemon = start(&pair, folder.path(), EVERYTHING)?;
    let silent = pair
        .near
        .enter(|| -> Result<Vec<TcpStream>> { (0..64).map(|_| Ok(TcpStream::connect(LISTEN)?)).collect() });
    let silent = silent.join().map_err(|_| anyhow::anyhow!("the client died"))??;
    // The other listener has places of its own, and the capture does not notice.
    assert_eq!(ask(folder.path(), "/healthz")?.0, 200);
    ping(&pair, FAR, 5)?;
    until("the pings", || {
        let page = series(&ask(folder.path(), "/metrics")?.1);
        Ok(page.get("flowlog_packets_total{outcome=\"counted\"}") == Some(&10.0))
    })?;
    // The places are free again when the header has not come in time, though the clients hold on.
    until("a free place", || Ok(ask_tcp(&pair, "/healthz").is_ok_and(|(code, _)| code == 200)))?;
    drop(silent);
    daemon.stop()?.check()
}

#[test]
fn an_address_that_is_taken_is_named_with_its_remedy() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let first = start(&pair, folder.path(), EVERYTHING)?;
    let other = tempfile::tempdir()?;
    let tasks = tasks(other.path(), EVERYTHING)?;
    let logs = other.path().join("logs");
    let ended = Daemon::spawn(&pair.near, &tasks, &logs, &["--listen", LISTEN])?.wait()?;
    assert!(!ended.status.success());
    let said = ended.log.join("\n");
    assert!(said.contains(LISTEN) && said.contains("--listen none"), "{said}");
    let socket = folder.path().join("flowlog.sock");
    let taken = ["--socket", socket.to_str().context("a plain path")?];
    let ended = Daemon::spawn(&pair.near, &tasks, &logs, &taken)?.wait()?;
    assert!(!ended.status.success() && ended.log.join("\n").contains("another flowlog answers"));
    first.stop()?.check()?;
    assert!(!socket.exists(), "the socket goes with its daemon");
    let gone = status(folder.path())?;
    assert!(!gone.status.success());
    assert!(String::from_utf8_lossy(&gone.stderr).contains("no flowlog answers"));
    Ok(())
}

/// The Prometheus project's own checks, where they are installed: these words, and what to read.
fn promtool(words: &[&str], input: &str) -> Result<Option<Output>> {
    use std::io::Write;
    let promtool = std::env::var_os("PROMTOOL").unwrap_or_else(|| "promtool".into());
    if Command::new(&promtool).arg("--version").output().is_err() {
        println!("not run: promtool is not installed (Debian's package prometheus)");
        return Ok(None);
    }
    let mut check = Command::new(&promtool);
    check.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = check.spawn()?;
    check.stdin.take().context("stdin is piped")?.write_all(input.as_bytes())?;
    Ok(Some(check.wait_with_output()?))
}

/// The metrics of a daemon that has written something.
fn scrape() -> Result<String> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let daemon = start(&pair, folder.path(), EVERYTHING)?;
    ping(&pair, FAR, 1)?;
    let mut page = String::new();
    until("both directions' records", || {
        page = ask(folder.path(), "/metrics")?.1;
        Ok(page.contains("flowlog_task_written_records_total{task=\"all\"} 2"))
    })?;
    daemon.stop()?.check()?;
    Ok(page)
}

#[test]
fn promtool_finds_nothing_to_say() -> Result<()> {
    let Some(said) = promtool(&["check", "metrics"], &scrape()?)? else { return Ok(()) };
    ensure!(said.status.success() && said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
    Ok(())
}

/// Expressions anywhere in a dashboard.
fn expressions(of: &Value, found: &mut Vec<String>) {
    match of {
        Value::Object(members) => {
            found.extend(members.get("expr").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| expressions(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

#[test]
fn every_panel_shows_a_series_of_what_a_daemon_serves() -> Result<()> {
    let dashboard = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/grafana/flowlog.json");
    let (page, mut panels) = (scrape()?, Vec::new());
    expressions(&serde_json::from_slice(&std::fs::read(dashboard)?)?, &mut panels);
    ensure!(panels.len() > 10, "{panels:?}");
    // Two hours in which nothing changed: a rate of 0 is a series too.
    let input = series(&page).into_iter().map(|(name, value)| {
        let (name, labels) = name.split_once('{').unwrap_or((&name, "}"));
        let comma = if labels == "}" { "" } else { "," };
        json!({"series": format!("{name}{{instance=\"node-1\"{comma}{labels}"), "values": format!("{value}x120")})
    });
    let tests = panels.iter().map(|panel| {
        let asked = panel.replace("$node", ".*").replace("$__rate_interval", "5m");
        let one = json!([{"labels": "{}", "value": 1}]);
        json!({"expr": format!("count({asked}) > bool 0"), "eval_time": "2h", "exp_samples": one})
    });
    let tests = json!({"rule_files": [], "tests": [{
        "interval": "1m",
        "input_series": input.collect::<Vec<_>>(),
        "promql_expr_test": tests.collect::<Vec<_>>(),
    }]});
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), serde_json::to_vec(&tests)?)?;
    let path = file.path().to_str().context("a plain path")?;
    let Some(said) = promtool(&["test", "rules", path], "")? else { return Ok(()) };
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Ok(())
}
