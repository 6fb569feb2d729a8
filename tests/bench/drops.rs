//! What a dropped packet costs with the program on the kernel's tracepoint, beside the same packet without it.

use std::time::Duration;

use anyhow::{Result, ensure};

use flowlog_tests::drops::Watch;
use flowlog_tests::flood::{dam, flooded, frame};
use flowlog_tests::measure::{Case, Series, Spread, in_turn, progress};
use flowlog_tests::netns::Pair;
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::wire::{Flood, flood, wire};

use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "drops",
    about: "a dropped packet with the hook and without it, and how many a second are recorded",
    run,
};

/// A round of one side.
const ROUND: Duration = Duration::from_millis(100);
/// Each round starts and stops a daemon.
const ROUNDS_MAX: usize = 21;
/// A flood in full.
const FLOOD: Duration = Duration::from_secs(10);
/// Drops a second that are recorded without a loss.
const RATE_MIN: f64 = 1e6;

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    ensure!(rustix::process::geteuid().is_root(), "programs are loaded into the kernel, which needs root");
    let mut figures = beside(settings.rounds.min(ROUNDS_MAX))?;
    figures.extend(in_full(settings.duration.unwrap_or(FLOOD))?);
    Ok(figures)
}

/// With the hook beside without, in turn.
fn beside(rounds: usize) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let (wire, frame) = (wire(folder.path())?, frame());
    let pair = Pair::alone()?;
    dam(&pair.near)?;
    let mut figures = Vec::new();
    for (name, cpus, sources) in [
        ("one kind", 1, 1),
        ("one kind, two CPUs", 2, 1),
        ("4,096 kinds", 1, 1 << 12),
        ("65,536 kinds, room for 8,192", 1, 1 << 16),
    ] {
        progress(&format!("drops: {name}"));
        let round = |watched: bool| -> Result<f64> {
            let watch = if watched { Some(Watch::start(&pair.near)?) } else { None };
            let ns = flood(&pair.near, &wire, &frame, (cpus, sources), ROUND)?.ns();
            watch.map(Watch::stop).transpose()?;
            Ok(ns)
        };
        let mut cases = [Case::new("without", || round(false)), Case::new("with", || round(true))];
        let series = in_turn(rounds, &mut cases)?;
        let [without, with] = &series[..] else { return Ok(Vec::new()) };
        let title = format!("drops: {name}, with the hook beside without");
        figures.push(Figure::beside(title, with, without, "ns", Target::None));
        let own = with.values().iter().zip(without.values()).map(|(with, without)| with - without);
        let title = format!("drops: {name}, the hook alone");
        figures.push(Figure::alone(title, Spread::of(own.collect()), "ns", Target::None));
    }
    Ok(figures)
}

/// From all CPUs at full speed, without the hook and with it; what is recorded is what nftables counted, or is counted as
/// lost.
fn in_full(time: Duration) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, sources, target) in
        [("one kind", 1, Target::AtLeast(RATE_MIN)), ("65,536 kinds", 1 << 16, Target::None)]
    {
        progress(&format!("drops: a flood of {name} for {} s, without and with the hook", time.as_secs()));
        let floor = unseen(sources, time)?;
        let told = flooded(&Pair::alone()?.near, sources, time)?;
        // Nothing is unaccounted for; what is lost is counted for the whole machine, where little else is dropped.
        ensure!(
            told.packets + told.lost >= told.flood.frames && told.packets <= told.flood.frames,
            "{told:?}"
        );
        let title = |what: &str| format!("drops: flood of {name}, {what}");
        let beside = |what: &str, of: fn(&Flood) -> f64, unit| {
            let [with, without] = [&told.flood, &floor].map(|flood| Series::of(vec![of(flood)]));
            Figure::beside(title(what), &with, &without, unit, Target::None)
        };
        let alone = |what: &str, value: f64, unit, target| {
            Figure::alone(title(what), Spread { median: value, low: value, high: value }, unit, target)
        };
        let frames = told.flood.frames as f64;
        figures.extend([
            beside("a second, of a machine with other work", Flood::rate, "/s"),
            beside("cost of each", Flood::ns, "ns"),
            alone("a second of all CPUs' whole time", told.cpus as f64 * 1e9 / told.flood.ns(), "/s", target),
            alone("dropped", frames, "packets", Target::None),
            alone("in records", told.packets as f64, "packets", Target::None),
            alone("lost and counted", told.lost as f64, "drops", Target::None),
            alone("records", told.records as f64, "records", Target::None),
        ]);
    }
    Ok(figures)
}

/// The same flood while no daemon runs.
fn unseen(sources: u32, time: Duration) -> Result<Flood> {
    let folder = tempfile::tempdir()?;
    let (wire, pair) = (wire(folder.path())?, Pair::alone()?);
    dam(&pair.near)?;
    let cpus = std::thread::available_parallelism()?.get();
    flood(&pair.near, &wire, &frame(), (cpus, sources), time)
}
