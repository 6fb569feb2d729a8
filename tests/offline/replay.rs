//! `flowlog replay` against tshark.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;

/// The folder of captures, if it is there.
fn captures() -> Option<PathBuf> {
    let given = std::env::var_os("FLOWLOG_PCAPS").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/pcaps"));
    if folder.is_dir() {
        return Some(folder);
    }
    println!("no captures at {}: set FLOWLOG_PCAPS to run this test", folder.display());
    None
}

/// Every capture is read or refused with a reason, its ledger closes, and nothing panics.
#[test]
fn the_ledger_closes_on_every_capture() -> Result<()> {
    let Some(folder) = captures() else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let tasks = work.path().join("tasks.yaml");
    std::fs::write(&tasks, "flowLogs:\n  - {name: all, filePath: /var/log/flowlog/all.log}\n")?;
    let mut read = 0;
    for kind in ["tcpdump", "zeek"] {
        for entry in std::fs::read_dir(folder.join(kind))? {
            let pcap = entry?.path();
            let output = Command::new(binary())
                .args(["replay", "-o", "json", "--pcap"])
                .arg(&pcap)
                .arg("--tasks")
                .arg(&tasks)
                .arg("--output-dir")
                .arg(work.path().join("out"))
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(!said.contains("panicked"), "{}: {said}", pcap.display());
            let ledger: serde_json::Value = serde_json::from_slice(&output.stdout)
                .with_context(|| format!("{}: {said}", pcap.display()))?;
            ensure!(ledger["closes"] == true, "{}: {}", pcap.display(), ledger["sums"]);
            match output.status.code() {
                Some(0) => read += 1,
                _ => ensure!(said.contains(&*pcap.to_string_lossy()), "{}: {said}", pcap.display()),
            }
        }
    }
    ensure!(read > 200, "only {read} captures could be read");
    Ok(())
}
