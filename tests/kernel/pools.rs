//! Pools of addresses under a running daemon: filter, label and the kernel's rules follow them.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::PATIENCE;
use flowlog_tests::netns::{FAR, FAR6};
use flowlog_tests::records::{all, zstdcat};
use flowlog_tests::traffic::udp;
use serde_json::Value;

use crate::site::Site;

/// A pool whose manifest is Cilium's; `reserved` is a range, or empty.
fn manifest(name: &str, cidr: &str, reserved: &str) -> String {
    let family = if cidr.contains(':') { "ipv6" } else { "ipv4" };
    let range = if reserved.is_empty() { String::new() } else { format!(", reservedRange: '{reserved}'") };
    format!(
        "apiVersion: cilium.io/v2\nkind: CiliumPodIPPool\nmetadata: {{name: {name}}}\nspec: {{{family}: {{maskSize: 32, cidrs: \
         [{{cidr: '{cidr}'{range}}}]}}}}\n"
    )
}

/// Waits until a record of this port is on disk: labels are those of the moment at which a record is made.
fn written(logs: &Path, port: u16) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    let has = |line: &Value| line["flow"]["l4"]["UDP"]["destination_port"] == port;
    while !zstdcat(&logs.join("green.log.zst"), false).is_ok_and(|lines| lines.iter().any(has)) {
        ensure!(Instant::now() < until, "no record of port {port}");
        std::thread::yield_now();
    }
    Ok(())
}

/// Two tasks that name a pool.
fn site() -> Result<Site> {
    let site = Site::new()?;
    let tasks = format!(
        "flowLogs:\n- {{name: green, filePath: {0}/green.log, where: {{destination_pool: [green]}}}}\n- {{name: open, filePath: \
         {0}/open.log, where: {{destination_pool: [green, '!green=reserved']}}}}\n",
        site.path("logs").display()
    );
    fs::write(site.path("tasks/a.yaml"), tasks)?;
    Ok(site)
}

#[test]
fn a_pool_s_records_carry_its_label_and_no_others_are_kept() -> Result<()> {
    let site = site()?;
    let (logs, pair, green) = (site.path("logs"), &site.pair, site.path("pools/green.yaml"));
    // Of the other end the whole address, so that the kernel can reject whatever else is sent.
    fs::write(&green, manifest("green", &format!("{FAR}/32"), &format!("{FAR}-{FAR}")))?;
    let mut daemon = site.start(&[])?;
    let other = udp(pair, format!("[{FAR6}]:7002").parse()?, 5, 100)?;
    let reserved = udp(pair, format!("{FAR}:7001").parse()?, 5, 100)?;
    written(&logs, 7001)?;

    // The reserved range goes: the same address is open now.
    fs::write(&green, manifest("green", &format!("{FAR}/32"), ""))?;
    daemon.wait_for("the tasks have changed")?;
    let open = udp(pair, format!("{FAR}:7003").parse()?, 5, 100)?;
    written(&logs, 7003)?;

    // The pool is the other family's.
    fs::write(&green, manifest("green", &format!("{FAR6}/128"), ""))?;
    daemon.wait_for("the tasks have changed")?;
    let gone = udp(pair, format!("{FAR}:7004").parse()?, 5, 100)?;
    let six = udp(pair, format!("[{FAR6}]:7005").parse()?, 5, 100)?;
    written(&logs, 7005)?;

    // The pool is removed: the tasks stay as they were, and it is said.
    fs::remove_file(&green)?;
    let said = daemon.wait_for("it goes on as it was")?;
    ensure!(said.contains("no pool `green` is defined"), "{said}");
    let still = udp(pair, format!("[{FAR6}]:7006").parse()?, 5, 100)?;
    let ended = daemon.stop()?;
    ended.check()?;

    let labels = |stem: &str, port: u16| -> Result<Vec<String>> {
        let of_port = |record: &flowlog_tests::records::Record| {
            record.0["flow"]["l4"]["UDP"]["destination_port"] == port
        };
        let records = all(&logs, stem)?;
        Ok(records
            .iter()
            .filter(|record| of_port(record))
            .map(|record| record.0["flow"]["destination"]["labels"].to_string())
            .collect())
    };
    for (task, made, expected) in [
        ("green-", &reserved, Some(r#"["pool:green=reserved","reserved:unmanaged"]"#)),
        ("open-", &reserved, None),
        ("green-", &other, None),
        ("green-", &open, Some(r#"["pool:green","reserved:unmanaged"]"#)),
        ("open-", &open, Some(r#"["pool:green","reserved:unmanaged"]"#)),
        ("green-", &gone, None),
        ("green-", &six, Some(r#"["pool:green","reserved:unmanaged"]"#)),
        ("open-", &six, Some(r#"["pool:green","reserved:unmanaged"]"#)),
    ] {
        let found = labels(task, made.server.port())?;
        let right = match expected {
            None => found.is_empty(),
            Some(label) => found.first().is_some_and(|first| first == label),
        };
        ensure!(right, "{task} {made:?}: {found:?}");
    }
    ensure!(!labels("green-", still.server.port())?.is_empty(), "the task did not go on");
    // Datagrams to addresses of no pool were not even counted; some may have come while the rules were wider.
    let rejected = ended.number("/packets/rejected/packets")?;
    ensure!(rejected >= 5, "{}", ended.ledger);
    Ok(())
}

#[test]
fn a_pool_that_is_removed_leaves_its_tasks_also_over_a_restart() -> Result<()> {
    let site = site()?;
    let green = site.path("pools/green.yaml");
    fs::write(&green, manifest("green", &format!("{FAR}/32"), ""))?;
    let mut daemon = site.start(&[])?;
    fs::remove_file(&green)?;
    let said = daemon.wait_for("pool green is removed")?;
    ensure!(said.contains("green, open"), "{said}");
    daemon.wait_for("it goes on as it was")?;
    let why = "no pool `green` is defined any more; the task goes on with the addresses that it had";
    let is_said = |status: &str| status.contains("OLD VERSION") && status.contains(why);
    while !is_said(&site.status(&[])?) {
        std::thread::yield_now();
    }
    daemon.stop()?.check()?;
    let audit = fs::read_to_string(site.path("state/audit.log"))?;
    ensure!(
        audit.contains("\"pool_removed\"") && audit.contains("\"tasks\":[\"green\",\"open\"]"),
        "{audit}"
    );

    // Another start finds no pool, and the tasks as they were.
    let daemon = site.start(&[])?;
    let status = site.status(&[])?;
    ensure!(is_said(&status) && status.contains("task open runs as it was accepted last: "), "{status}");
    let made = udp(&site.pair, format!("{FAR}:7001").parse()?, 5, 100)?;
    let other = udp(&site.pair, format!("[{FAR6}]:7002").parse()?, 5, 100)?;
    written(&site.path("logs"), 7001)?;
    daemon.stop()?.check()?;
    for stem in ["green-", "open-"] {
        let records = all(&site.path("logs"), stem)?;
        let of = |port: u16| {
            records.iter().filter(|one| one.0["flow"]["l4"]["UDP"]["destination_port"] == port).count()
        };
        ensure!(of(made.server.port()) > 0 && of(other.server.port()) == 0, "{stem}: {records:?}");
    }
    Ok(())
}
