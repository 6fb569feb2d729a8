//! Floods of dropped packets: each packet is in a record, or in a counter of what was lost.

use std::time::Duration;

use anyhow::{Result, ensure};
use flowlog_tests::flood::{Told, flooded, frame};
use flowlog_tests::guest::long;
use flowlog_tests::netns::Pair;

/// A flood for 1 s, or 10 in the long form.
fn made(sources: u32) -> Result<(Told, u64)> {
    let pair = Pair::new(false)?;
    let seconds = if long() { 10 } else { 1 };
    let told = flooded(&pair.near, sources, Duration::from_secs(seconds))?;
    let Told { flood, cpus, records, lost, .. } = &told;
    println!(
        "{cpus} CPUs, {sources} sources: {} drops, {:.0} a second, {:.0} ns of a CPU each; {records} records, {lost} lost",
        flood.frames,
        flood.rate(),
        flood.ns(),
    );
    Ok((told, seconds))
}

#[test]
fn one_kind_is_counted_to_the_packet_in_few_records() -> Result<()> {
    let (told, seconds) = made(1)?;
    let frames = told.flood.frames;
    ensure!((told.packets, told.lost) == (frames, 0), "{told:?}");
    ensure!(told.bytes == frames * frame().len() as u64, "{told:?}");
    ensure!(told.records <= 3 + seconds / 5, "{told:?}");
    Ok(())
}

/// 65,536 kinds of drops, of which there is room for 8,192 between two looks.
#[test]
fn more_kinds_than_there_is_room_for_lose_what_they_say_they_lost() -> Result<()> {
    let (told, _) = made(1 << 16)?;
    let frames = told.flood.frames;
    // Lost is counted for the whole machine, where little else is dropped meanwhile.
    let accounted = told.packets + told.lost;
    ensure!(told.packets <= frames && (frames..frames + 1_000).contains(&accounted), "{accounted}: {told:?}");
    ensure!(told.full > 0 && told.full == told.lost, "{told:?}");
    ensure!(told.said == told.lost, "in the file {}, counted {}", told.said, told.lost);
    Ok(())
}
