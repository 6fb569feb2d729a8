//! `rateLimit`: what is left out is counted, and the file says so.

use std::process::Command;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_tests::records::{files, zstdcat};
use serde_json::Value;

#[test]
fn what_is_more_than_the_limit_is_counted_and_said() -> Result<()> {
    let work = tempfile::tempdir()?;
    let (tasks, flows, out) =
        (work.path().join("t.yaml"), work.path().join("flows.json"), work.path().join("out"));
    std::fs::write(
        &tasks,
        "flowLogs:\n- {name: few, filePath: /l/few.log, rateLimit: 2}\n- {name: all, filePath: /l/all.log}\n",
    )?;
    // Ten a second for ten seconds.
    let lines: String = (0..100)
        .map(|n| {
            let time = format!("2026-01-01T00:00:{:02}.{}Z", n / 10, n % 10);
            format!("{{\"flow\":{{\"time\":\"{time}\",\"verdict\":\"FORWARDED\"}},\"node_name\":\"n\",\"time\":\"{time}\"}}\n")
        })
        .collect();
    std::fs::write(&flows, lines)?;
    let output = Command::new(binary())
        .args(["replay", "-o", "json", "--flows"])
        .arg(&flows)
        .arg("--tasks")
        .arg(&tasks)
        .arg("--output-dir")
        .arg(&out)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ledger: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(ledger["closes"] == true, "{ledger}");
    let few = ledger["tasks"].as_array().and_then(|tasks| tasks.iter().find(|task| task["task"] == "few"));
    let number = |name: &str| few.and_then(|few| few[name].as_u64()).unwrap_or(0);
    let (matched, written, limited) = (number("matched"), number("written"), number("rate_limited"));
    // Two at once after a pause, then two for each of not quite ten seconds.
    ensure!(matched == 100 && written + limited == 100 && (20..=22).contains(&written), "{ledger}");
    for file in files(&out)? {
        let events = zstdcat(&file, true)?;
        let records = events.iter().filter(|event| event.get("flow").is_some()).count() as u64;
        let lost: u64 = events
            .iter()
            .filter_map(|event| event.pointer("/lost_events/num_events_lost")?.as_str()?.parse::<u64>().ok())
            .sum();
        let few = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("few"));
        let expected = if few { (written, limited) } else { (100, 0) };
        ensure!((records, lost) == expected, "{}: {records} records, {lost} lost", file.display());
        let said = events.iter().any(|event| event.to_string().contains("at the rate limit"));
        ensure!(said == few, "{events:?}");
    }
    Ok(())
}
