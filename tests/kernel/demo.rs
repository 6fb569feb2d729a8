//! What `cargo xtask run --demo` shows.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_tests::records::{all, files};

#[test]
fn the_demo_shows_what_it_promises_and_leaves_no_namespace() -> Result<()> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let xtask = target.join("xtask/debug/xtask");
    if !xtask.exists() {
        println!("SKIPPED: xtask is not built; `cargo xtask test` builds it");
        return Ok(());
    }
    let output = Command::new(xtask).args(["demo-stage", "play"]).arg(binary()).arg("3s").output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{said}");
    for word in ["BUSIEST PAIRS", "10.77.1.2", "healthy", "closes", "NODE_GONE task web: flowlog was stopped"]
    {
        ensure!(said.contains(word), "no {word} in\n{said}");
    }
    let logs = target.join("demo-run/logs");
    ensure!(files(&logs)?.len() == 3, "{:?}", files(&logs)?);
    // The name server's task was untouched by the change: what it holds is port 53 and nothing else.
    let dns = all(&logs, "dns")?;
    let of_dns = |record: &flowlog_tests::records::Record| {
        [record.number("l4/UDP/source_port"), record.number("l4/UDP/destination_port")].contains(&53)
    };
    ensure!(dns.len() > 10 && dns.iter().all(of_dns), "{} records", dns.len());
    let left = Command::new("ip").args(["netns", "list"]).output()?;
    ensure!(!String::from_utf8_lossy(&left.stdout).contains("flowlog-demo"), "a namespace was left");
    Ok(())
}
