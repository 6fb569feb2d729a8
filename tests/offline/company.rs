//! A task's file is the same, uuid apart, whether the task runs alone or in company.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_tests::generated::{frame, task};
use flowlog_tests::random::Random;
use flowlog_tests::records::{files, zstdcat};
use serde_json::Value;

/// What tasks differ in beside filters and mask. At most four rhythms may run at once.
const OTHERS: [&str; 6] = [
    "",
    ", events: [start, end]",
    ", events: [end]",
    ", updateInterval: 90s",
    ", rateLimit: 3",
    ", events: [start, end], rateLimit: 3",
];

/// A capture of connections that are opened, used for minutes, answered or not, and closed or not.
fn capture(random: &mut Random, packets: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for number in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(number.to_le_bytes());
    }
    let mut micros = 1_760_000_000_000_000_u64;
    for _ in 0..packets {
        micros += random.below(1_500_000) as u64;
        let packet = frame(random);
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        for number in [seconds, rest, packet.len() as u64, packet.len() as u64] {
            file.extend(u32::try_from(number).expect("short").to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// What each task wrote: events by file, without their uuid.
fn replayed(pcap: &Path, tasks: &str, folder: &Path) -> Result<BTreeMap<String, Vec<Value>>> {
    std::fs::create_dir_all(folder)?;
    let file = folder.join("tasks.yaml");
    std::fs::write(&file, format!("flowLogs:\n{tasks}"))?;
    let out = folder.join("out");
    let output = Command::new(binary())
        .args(["replay", "-o", "json", "--node-name", "node-1", "--pcap"])
        .arg(pcap)
        .arg("--tasks")
        .arg(&file)
        .arg("--output-dir")
        .arg(&out)
        .output()?;
    ensure!(output.status.success(), "{tasks}: {}", String::from_utf8_lossy(&output.stderr));
    let ledger: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(ledger["closes"] == true, "{ledger}");
    let mut found = BTreeMap::new();
    for file in files(&out)? {
        let mut events = zstdcat(&file, true)?;
        // Lines about the log itself tell when it was written.
        events.retain(|event| event.get("flow").is_some());
        for event in &mut events {
            if let Some(flow) = event.get_mut("flow").and_then(Value::as_object_mut) {
                flow.remove("uuid");
            }
        }
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        found.insert(name.unwrap_or_default(), events);
    }
    Ok(found)
}

fn compare(seed: u64, tasks: usize, packets: usize) -> Result<usize> {
    let mut random = Random::new(seed);
    let work = tempfile::tempdir()?;
    let pcap = work.path().join("all.pcap");
    std::fs::write(&pcap, capture(&mut random, packets))?;
    let tasks: Vec<String> = (0..tasks).map(|number| task(&mut random, number, "/l", &OTHERS)).collect();
    let together = replayed(&pcap, &tasks.concat(), &work.path().join("together"))?;
    let mut alone = BTreeMap::new();
    for (number, task) in tasks.iter().enumerate() {
        alone.extend(replayed(&pcap, task, &work.path().join(number.to_string()))?);
    }
    let mut said = String::new();
    for (file, events) in &together {
        if alone.get(file) != Some(events) {
            write!(said, "{file}: {} events, {} alone; ", events.len(), alone.get(file).map_or(0, Vec::len))?;
        }
    }
    ensure!(said.is_empty() && together.len() == alone.len(), "seed {seed}: {said}{}", tasks.concat());
    Ok(together.values().map(Vec::len).sum())
}

#[test]
fn a_task_writes_the_same_alone_and_in_company() -> Result<()> {
    let long = flowlog_tests::guest::long();
    let mut events = 0;
    for seed in 0..if long { 200 } else { 4 } {
        events += compare(seed, 6, 600)?;
    }
    ensure!(events > 2_000, "only {events} events: the test compares nothing");
    Ok(())
}
