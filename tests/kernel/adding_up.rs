//! `fieldAggregate` in the daemon: lines come by the clock, whether or not anything else does.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::PATIENCE;
use flowlog_tests::netns::FAR;
use flowlog_tests::records::{all, zstdcat};
use flowlog_tests::traffic::udp;

use crate::reload::{Bench, CHANGED};

#[test]
fn aggregated_lines_come_when_their_interval_is_over_and_at_a_change() -> Result<()> {
    let bench = Bench::new()?;
    let task = |fields: &str, interval: &str| {
        let text = format!(
            "{{name: sum, filePath: LOGS/sum.log, fieldAggregate: [{fields}], aggregationInterval: {interval}, \
             includeFilters: [{{destination_ip: [\"{FAR}\"]}}]}}"
        );
        bench.write("a.yaml", &[&text])
    };
    task("IP.destination, l4.UDP.destination_port", "1s")?;
    let mut daemon = bench.start(&["--idle-timeout", "udp=1s"])?;
    for port in [7_100, 7_100, 7_101] {
        udp(&bench.pair, format!("{FAR}:{port}").parse()?, 20, 100)?;
    }
    // Nothing more is sent: the lines come all the same.
    let live = bench.path("logs").join("sum.log.zst");
    let until = Instant::now() + PATIENCE;
    let count = |line: &serde_json::Value| -> u64 {
        let counts = line["flow"]["aggregate"].as_object();
        counts.into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
    };
    let found = || -> Result<u64> {
        let lines = if live.is_file() { zstdcat(&live, false)? } else { Vec::new() };
        Ok(lines.iter().map(count).sum())
    };
    // A start and an end of each of three connections.
    while found()? < 6 {
        ensure!(Instant::now() < until, "only {} of 6 records are in lines", found()?);
        std::thread::sleep(Duration::from_millis(50));
    }
    // Another way of adding up: what was begun is written before.
    task("IP.destination", "1h")?;
    daemon.wait_for(CHANGED)?;
    udp(&bench.pair, format!("{FAR}:7102").parse()?, 30, 100)?;
    task("verdict", "1h")?;
    daemon.wait_for(CHANGED)?;
    let ended = daemon.stop()?;
    ended.check()?;
    let mut packets = std::collections::BTreeMap::new();
    for line in all(&bench.path("logs"), "sum-")? {
        let flow = &line.0["flow"];
        let port = flow["l4"]["UDP"]["destination_port"].as_u64();
        let key = (port, flow["verdict"].is_string());
        *packets.entry(key).or_insert(0) +=
            flow["extensions"]["value"]["packets"].as_u64().context("packets")?;
    }
    let of = |key| packets.get(&key).copied().unwrap_or(0);
    ensure!(of((Some(7_100), false)) == 40 && of((Some(7_101), false)) == 20, "{packets:?}");
    ensure!(of((None, false)) + of((None, true)) == 30, "{packets:?}");
    Ok(())
}
