//! A minute of a day.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_user::record::Format;
use flowlog_user::write::{Chunk, Roots, Spec, Writer};

use super::{lines, spec};

/// 2026-11-30T00:00:00Z.
const DAY_NS: i64 = 1_795_996_800_000_000_000;
const MINUTE_NS: i64 = 60_000_000_000;
const MINUTES: u64 = 1440;

/// A day in files of 10 MiB, 24 MB of them (1 GB in the long form): one minute costs under 2 % of the bytes.
#[test]
#[ignore = "writes a gigabyte: cargo xtask test --long"]
fn a_minute_of_a_day_costs_under_two_per_cent() -> Result<()> {
    let bytes: u64 = if flowlog_tests::guest::long() { 1 << 30 } else { 24 << 20 };
    // A line of these takes about 19 bytes compressed.
    let records = bytes / MINUTES / 19;
    let folder = tempfile::tempdir()?;
    let spec = Spec { total_bytes_max: u64::MAX, ..spec("t", &folder.path().join("f/a.log")) };
    let (mut writer, _) = Writer::open(&spec, &Roots::new(&[folder.path().into()])?)?;
    for minute in 0..MINUTES {
        let at_ns = DAY_NS + i64::try_from(minute)? * MINUTE_NS;
        let last_ns = at_ns + MINUTE_NS - 1;
        // Every record is of the whole minute, by its file's index; its own time decides in the end.
        let time = format!("2026-11-30T{:02}:{:02}:30Z", minute / 60, minute % 60);
        let text = lines(minute * records, (minute + 1) * records).replace("2026-11-30T20:14:26Z", &time);
        writer.append(&Chunk {
            format: Format::Json,
            lines: text.into(),
            records: u32::try_from(records)?,
            first_ns: at_ns,
            last_ns,
            seen_from_ns: at_ns,
        })?;
        writer.tick(Instant::now() + Duration::from_secs(30))?;
    }
    writer.close()?;
    let output = Command::new(binary())
        .args(["cat", "--stats", "--since", "2026-11-30T13:21:00Z", "--until", "2026-11-30T13:21:59Z"])
        .arg(folder.path().join("f"))
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |key: &str| stats[key].as_u64().context("a number");
    let (read, all) = (number("read_bytes")?, number("file_bytes")?);
    println!("{read} of {all} bytes read, {} files", number("files")?);
    ensure!(number("records")? == records, "{stats}");
    ensure!(all > bytes * 8 / 10, "only {all} bytes were made");
    ensure!(read * 50 < all, "{read} of {all} bytes were read");
    Ok(())
}
