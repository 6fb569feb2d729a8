//! `fieldAggregate`: what records add up to, against the same records written one by one and added up here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_tests::records::all;
use serde_json::{Value, json};

/// Replays into `logs` with these tasks; what it prints at the end.
fn replay(work: &Path, tasks: &str, source: &[&str]) -> Result<Value> {
    let file = work.join("t.yaml");
    std::fs::write(&file, tasks)?;
    let output = Command::new(binary())
        .arg("replay")
        .args(source)
        .arg("--tasks")
        .arg(&file)
        .arg("--output-dir")
        .arg(work.join("logs"))
        .args(["--node-name", "node-1", "-o", "json"])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{said}");
    let ledger: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(ledger["closes"] == true, "{ledger}");
    Ok(ledger)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    counts: BTreeMap<String, u64>,
    connections: BTreeSet<u64>,
    packets: u64,
    bytes: u64,
    first: String,
    last: String,
}

#[test]
fn a_captures_records_add_up() -> Result<()> {
    let work = tempfile::tempdir()?;
    let pcap = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/quickstart.pcap");
    let tasks = "flowLogs:\n- {name: one, filePath: /l/one.log}\n\
         - {name: sum, filePath: /l/sum.log, fieldAggregate: [IP.source, l4.TCP.destination_port, extensions.event], \
         aggregationInterval: 1h}\n";
    let ledger = replay(work.path(), tasks, &["--pcap", pcap])?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut expected: BTreeMap<String, Sum> = BTreeMap::new();
    let records = all(&work.path().join("logs"), "one-")?;
    ensure!(records.len() == 12, "{} records", records.len());
    for record in &records {
        let flow = &record.0["flow"];
        let port = &flow["l4"]["TCP"]["destination_port"];
        let key = json!([flow["IP"]["source"], port, flow["extensions"]["value"]["event"]]);
        let ours = &flow["extensions"]["value"];
        let sum = expected.entry(key.to_string()).or_default();
        let direction = text(&flow["traffic_direction"]).to_lowercase();
        *sum.counts.entry(format!("{direction}_flow_count")).or_default() += 1;
        sum.connections.insert(ours["connection"].as_u64().context("a number")?);
        sum.packets += ours["packets"].as_u64().context("packets")?;
        sum.bytes += ours["bytes"].as_u64().context("bytes")?;
        let (first, last) = (text(&ours["first_seen"]), text(&ours["last_seen"]));
        if sum.first.is_empty() || first < sum.first {
            sum.first = first;
        }
        sum.last = sum.last.clone().max(last);
    }
    let lines = all(&work.path().join("logs"), "sum-")?;
    ensure!(lines.len() == expected.len() && lines.len() > 3, "{} of {}", lines.len(), expected.len());
    for line in &lines {
        let flow = &line.0["flow"];
        let ours = &flow["extensions"]["value"];
        let key = json!([flow["IP"]["source"], flow["l4"]["TCP"]["destination_port"], ours["event"]]);
        let sum = expected.get(&key.to_string()).with_context(|| format!("{key} is too much"))?;
        ensure!(flow["aggregate"] == json!(sum.counts), "{flow} {sum:?}");
        ensure!(ours["connections"] == sum.connections.len(), "{flow} {sum:?}");
        ensure!(ours["packets"] == sum.packets && ours["bytes"] == sum.bytes, "{flow} {sum:?}");
        ensure!(ours["first_seen"] == *sum.first && ours["last_seen"] == *sum.last, "{flow} {sum:?}");
        ensure!(line.0["node_name"] == "node-1" && flow.get("verdict").is_none(), "{flow}");
    }
    let task = &ledger["tasks"][1];
    ensure!(task["aggregated"] == json!({ "records": 12, "lines": lines.len(), "overflow": 0 }), "{task}");
    Ok(())
}

/// Written by hand after reference facts of Hubble 1.19.4: the fields that are named, the first flow's time, counts
/// without zeros, no `node_name` unless named, `fieldMask` not applied, other events written at once.
#[test]
fn hubbles_flows_as_hubble_adds_them_up() -> Result<()> {
    let work = tempfile::tempdir()?;
    let flow = |second: u8, verdict: &str, direction: &str| {
        let time = format!("2026-03-14T09:26:{second:02}Z");
        format!(
            "{{\"flow\":{{\"time\":\"{time}\",\"verdict\":\"{verdict}\",\"IP\":{{\"source\":\"10.0.0.1\"}},\"node_name\":\"n\"{direction}}},\
             \"node_name\":\"n\",\"time\":\"{time}\"}}\n"
        )
    };
    let (ingress, egress) = (",\"traffic_direction\":\"INGRESS\"", ",\"traffic_direction\":\"EGRESS\"");
    let flows = [
        flow(1, "FORWARDED", ingress),
        flow(2, "DROPPED", egress),
        "{\"lost_events\":{\"source\":\"PERF_EVENT_RING_BUFFER\",\"num_events_lost\":\"12\"},\"node_name\":\"n\",\"time\":\"2026-03-14T09:26:02Z\"}\n".into(),
        flow(3, "FORWARDED", egress),
        flow(4, "FORWARDED", egress),
        flow(5, "FORWARDED", ""),
        // The next interval: ten seconds after the first.
        flow(12, "FORWARDED", ingress),
    ];
    let source = work.path().join("flows.jsonl");
    std::fs::write(&source, flows.concat())?;
    let tasks = "flowLogs:\n- {name: sum, filePath: /l/sum.log, fieldMask: [IP], fieldAggregate: [verdict], \
         aggregationInterval: 10s, fieldMaskExact: true}\n";
    replay(work.path(), tasks, &["--flows", source.to_str().context("a plain path")?])?;
    let mut lines = Vec::new();
    for file in flowlog_tests::records::files(&work.path().join("logs"))? {
        lines.extend(flowlog_tests::records::zstdcat(&file, true)?);
    }
    let ours = |first: u8, last: u8| {
        json!({ "@type": "type.googleapis.com/google.protobuf.Struct", "value": {
            "first_seen": format!("2026-03-14T09:26:{first:02}Z"), "last_seen": format!("2026-03-14T09:26:{last:02}Z") } })
    };
    let time = |second: u8| format!("2026-03-14T09:26:{second:02}Z");
    let expected = [
        json!({ "lost_events": { "source": "PERF_EVENT_RING_BUFFER", "num_events_lost": "12" }, "node_name": "n",
            "time": time(2) }),
        json!({ "flow": { "time": time(1), "verdict": "FORWARDED", "extensions": ours(1, 5), "aggregate":
            { "ingress_flow_count": 1, "egress_flow_count": 2, "unknown_direction_flow_count": 1 } }, "time": time(1) }),
        json!({ "flow": { "time": time(2), "verdict": "DROPPED", "extensions": ours(2, 2), "aggregate":
            { "egress_flow_count": 1 } }, "time": time(2) }),
        json!({ "flow": { "time": time(12), "verdict": "FORWARDED", "extensions": ours(12, 12), "aggregate":
            { "ingress_flow_count": 1 } }, "time": time(12) }),
    ];
    ensure!(lines.len() == expected.len(), "{lines:?}");
    for expected in &expected {
        ensure!(lines.contains(expected), "{expected} is not in {lines:?}");
    }
    Ok(())
}
