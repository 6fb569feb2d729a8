//! What flowlog says its tables take is what the kernel accounts for them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use aya::maps::MapInfo;
use flowlog_abi::names;
use flowlog_tests::daemon::Daemon;
use flowlog_tests::netns::Pair;
use serde_json::Value;

use crate::end_to_end::{EVERYTHING, tasks};

/// Bytes that the kernel accounts for each map of a process, by id.
fn accounted(pid: u32) -> Result<BTreeMap<u32, u64>> {
    let mut maps = BTreeMap::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let text = std::fs::read_to_string(entry?.path()).unwrap_or_default();
        let number =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        if let (Some(id), Some(bytes)) = (number("map_id:"), number("memlock:")) {
            maps.insert(u32::try_from(id)?, bytes);
        }
    }
    Ok(maps)
}

#[test]
fn the_memory_of_the_tables_is_as_computed() -> Result<()> {
    for (entries, ring) in [("131072", "8388608"), ("1000000", "1048576"), ("1500", "65536")] {
        let folder = tempfile::tempdir()?;
        let (pair, tasks) = (Pair::new(false)?, tasks(folder.path(), EVERYTHING)?);
        let words = ["--table-entries", entries, "--ring-bytes", ring];
        let mut daemon = Daemon::spawn(&pair.near, &tasks, &folder.path().join("logs"), &words)?;
        let line: Value = serde_json::from_str(&daemon.wait_for("\"kernel memory\"")?)?;
        daemon.wait_for("\"watching\"")?;
        let said = |name: &str| {
            let fields = line.get("fields").unwrap_or(&line);
            fields.get(name).and_then(Value::as_u64).with_context(|| format!("{name} in {line}"))
        };
        let maps = accounted(daemon.pid())?;
        let table: u64 = maps
            .iter()
            .filter(|(id, _)| MapInfo::from_id(**id).is_ok_and(|map| map.name_as_str() == Some(names::FLOWS)))
            .map(|(_, bytes)| bytes)
            .sum();
        let all: u64 = maps.values().sum();
        daemon.stop()?.check()?;
        for (what, computed, kernel) in
            [("the table", said("table_bytes")?, table), ("all maps", said("total_bytes")?, all)]
        {
            println!("{entries} entries: {what} computed {computed}, kernel {kernel}");
            ensure!(kernel > 0, "the kernel accounts nothing for {what}");
            // In one part of ten; what is small beside the fixed part may be off by that.
            let off = computed.abs_diff(kernel);
            ensure!(off * 10 <= kernel, "{entries} entries: {what} computed {computed}, kernel {kernel}");
        }
    }
    Ok(())
}
