//! Exact draining: known totals at full speed on every CPU, compared per flow, while entries are taken out of the table
//! all the time and others put in their places at once. And that this would show if it were not exact: an object with
//! wide windows for races, with each protocol that is wrong.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aya::maps::{HashMap, Map, MapData, MapInfo};
use aya::programs::{SchedClassifier, TcAttachType, TestRun as _, TestRunOptions, loaded_programs};
use flowlog_abi::{FlowEntry, FlowKey, Report, names};
use flowlog_ebpf::{Timeouts, parse_ethernet, tag};
use flowlog_tests::bpffs::Bpffs;
use flowlog_tests::guest::hooks;
use flowlog_tests::netns::{INTERFACE, Pair, run};
use flowlog_user::capture::Captured;
use flowlog_user::capture::live::{self, Live, Removal};
use flowlog_user::record::rules::{Group, Rules};
use zerocopy::{FromBytes as _, FromZeros as _};

use crate::packets::*;

/// Packets by connection and direction.
type Sums = BTreeMap<Flow, u64>;

/// A key's bytes and a direction.
type Flow = ([u8; size_of::<FlowKey>()], usize);

/// Flows that the generators send all the time, all of them on each CPU.
const FLOWS: u32 = 48;

/// So few that there is always a packet on its way into an entry that is taken out.
const HOT: u32 = 3;

/// Port of flows that the generators send.
const SENT: u16 = 1_000;

/// So many connections are ready to be entered.
const STRAYS: usize = 64;

/// Port of flows to which nobody sends.
const NOBODY: u16 = 3_000;

/// The same numbers each time.
struct Seed(u64);

impl Seed {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn datagram(source: u32, port: u16) -> Vec<u8> {
    let from = Ipv4Addr::from(0x0a00_0000 | source).octets();
    ethernet(0x0800, &ipv4(from, B4, 17, &udp(port, 53, b"exact")))
}

fn place(frame: &[u8]) -> (FlowKey, usize) {
    parse_ethernet(frame).expect("a packet").key()
}

fn flow((key, direction): (FlowKey, usize)) -> Flow {
    (zerocopy::transmute!(key), direction)
}

/// The program at the pair's near end, by the kernel's list.
fn attached() -> Result<SchedClassifier> {
    let as_link = || SchedClassifier::query_tcx(INTERFACE, TcAttachType::Ingress);
    let mut programs = if hooks().contains(&"tcx") { as_link()?.1 } else { Vec::new() };
    let info = if programs.is_empty() {
        let filters = run("tc", &["filter", "show", "dev", INTERFACE, "ingress"])?;
        let id = filters.split_once(" id ").and_then(|(_, rest)| rest.split_whitespace().next());
        let id: u32 = id.with_context(|| format!("no filter in {filters}"))?.parse()?;
        loaded_programs().flatten().find(|info| info.id() == id).context("the filter's program")?
    } else {
        programs.swap_remove(0)
    };
    Ok(SchedClassifier::from_program_info(info, "attached".into())?)
}

/// Shows a program a packet so many times, as if it had come in at the interface.
fn show(program: &SchedClassifier, ifindex: u32, frame: &[u8], repeat: u32) -> Result<()> {
    let mut context = [0; 192];
    // __sk_buff.ifindex of linux/bpf.h.
    context[40..44].copy_from_slice(&ifindex.to_ne_bytes());
    let options =
        TestRunOptions { data_in: Some(frame), ctx_in: Some(&context), repeat, ..TestRunOptions::default() };
    program.test_run(options).map(drop).context("a test run")
}

fn ifindex() -> Result<u32> {
    let text = std::fs::read_to_string(format!("/proc/thread-self/net/dev_snmp6/{INTERFACE}"))?;
    let number = text.lines().find_map(|line| line.strip_prefix("ifIndex")).context("ifIndex")?;
    Ok(number.trim().parse()?)
}

/// What is told, and what of it.
#[derive(Default)]
struct Heard {
    sums: Sums,
    alone: u64,
    ended: u64,
    /// Packets of flows to which nobody sends.
    strays: u64,
}

impl Heard {
    fn take(&mut self, captured: &Captured<'_>) {
        let report = match captured {
            Captured::Bytes(bytes) => Report::read_from_bytes(bytes).expect("a report"),
            Captured::End(report, _) => {
                self.ended += 1;
                **report
            }
            Captured::Drop(_) => return,
        };
        self.alone += u64::from(report.what & 1);
        for (direction, side) in report.directions.iter().enumerate() {
            let told = side.packets.wrapping_sub(side.reported_packets);
            if told > 0 {
                self.strays += u64::from(report.key.low_port == NOBODY || report.key.high_port == NOBODY);
                let sum = self.sums.entry(flow((report.key, direction))).or_default();
                *sum = sum.wrapping_add(told);
            }
        }
    }
}

/// One run: which object, how entries leave, what else goes on.
#[derive(Clone, Default)]
struct Case {
    object: Option<Arc<[u8]>>,
    removal: Removal,
    table_entries: u32,
    ring_bytes: u32,
    /// Rules change all the time.
    reload: bool,
    /// The daemon starts again over pinned tables all the time.
    restart: bool,
    /// Nobody drains the ring for so long at a time.
    pause_ms: u64,
    /// Stops as soon as this many entries have been taken out.
    removals: u64,
    /// Or after so long.
    limit: Option<Duration>,
    /// Or when packets are told of a flow to which nobody sends.
    or_strays: bool,
    /// Few flows, and nothing in the table but them and what took the places that they left: each is taken out as often
    /// as can be.
    hot: bool,
}

#[derive(Default)]
struct Outcome {
    sent: Sums,
    heard: Heard,
    lost: u64,
    ring_full: u64,
    table_full: u64,
    restarts: u32,
    /// What the hook says it was shown.
    seen: u64,
}

impl Outcome {
    /// Packets that flows lack, and packets that flows have too many: another's.
    fn errors(&self) -> (u64, u64) {
        let (mut missing, mut wrong) = (0, 0);
        for (flow, sent) in &self.sent {
            let heard = self.heard.sums.get(flow).copied().unwrap_or(0);
            missing += sent.saturating_sub(heard);
            wrong += heard.saturating_sub(*sent);
        }
        for (flow, heard) in &self.heard.sums {
            if !self.sent.contains_key(flow) {
                wrong += heard;
            }
        }
        (missing, wrong)
    }
}

fn options(case: &Case, pin: Option<PathBuf>) -> live::Options {
    // Whatever is looked at is over.
    let timeouts = Timeouts { udp_ns: 0, active_ns: 0, ..Timeouts::default() };
    live::Options {
        table_entries: if case.table_entries == 0 { 4096 } else { case.table_entries },
        ring_bytes: if case.ring_bytes == 0 { 1 << 20 } else { case.ring_bytes },
        // Reports only where a case is about the ring; they would spend the time that races need.
        timeouts: if case.pause_ms > 0 { timeouts } else { Timeouts { active_ns: u64::MAX, ..timeouts } },
        report_start: case.pause_ms > 0,
        sweep_ns: 0,
        removal: case.removal,
        object: case.object.clone(),
        pin,
        ..live::Options::default()
    }
}

fn rules(round: u16) -> Rules {
    let group =
        Group { protocols: Some([17].into()), source_ports: Some([round].into()), ..Group::default() };
    Rules { groups: vec![group, Group { protocols: Some([17].into()), ..Group::default() }] }
}

type Table = HashMap<MapData, [u8; size_of::<FlowKey>()], [u8; size_of::<FlowEntry>()]>;

/// The table that a program counts into.
fn table(program: &SchedClassifier) -> Result<Table> {
    for id in program.info()?.map_ids()?.unwrap_or_default() {
        if MapInfo::from_id(id)?.name_as_str() == Some(names::FLOWS) {
            return Ok(Table::try_from(Map::from_map_data(MapData::from_id(id)?)?)?);
        }
    }
    anyhow::bail!("the program has no table")
}

/// A connection without packets, as a program enters it; made beforehand, since entering it must not take long.
fn stray(number: u32) -> Stray {
    let (key, _) = place(&datagram(0x20_0000 + number, NOBODY));
    let mut entry = FlowEntry::new_zeroed();
    entry.tag = tag(&key);
    (zerocopy::transmute!(key), zerocopy::transmute!(entry))
}

type Stray = ([u8; size_of::<FlowKey>()], [u8; size_of::<FlowEntry>()]);

/// The generator of one CPU: until stopped, each flow in a random order; what it has sent.
fn generate(
    seed: u64,
    flows: u32,
    stop: &AtomicBool,
    program: &SchedClassifier,
    ifindex: u32,
) -> Result<Sums> {
    let mut seed = Seed(seed);
    let frames: Vec<_> = (0..flows).map(|n| datagram(n, SENT)).collect();
    let mut sent = vec![0_u64; frames.len()];
    while !stop.load(Ordering::Relaxed) {
        let at = usize::try_from(seed.next(flows.into()))?;
        let repeat = 1 + u32::try_from(seed.next(40))?;
        show(program, ifindex, &frames[at], repeat)?;
        sent[at] += u64::from(repeat);
    }
    Ok(frames.iter().zip(sent).map(|(frame, sent)| (flow(place(frame)), sent)).collect())
}

/// Stops the generators, also when what is tested panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a case in the pair's near namespace until enough entries have gone.
fn play(pair: &Pair, case: Case, pin: Option<PathBuf>) -> Result<Outcome> {
    let playing = pair.near.enter(move || {
        let (ifindex, options) = (ifindex()?, options(&case, pin));
        let mut live = Some(Live::start(&options)?);
        let stop = AtomicBool::new(false);
        let mut outcome = Outcome::default();
        std::thread::scope(|scope| -> Result<()> {
            let mut generators = Vec::new();
            for seed in [11, 29] {
                let (program, stop) = (attached()?, &stop);
                let flows = if case.hot { HOT } else { FLOWS };
                generators.push(scope.spawn(move || generate(seed, flows, stop, &program, ifindex)));
            }
            let drained = {
                let _stop = Stop(&stop);
                drain(&mut live, &case, &options, &mut outcome, ifindex)
            };
            for generator in generators {
                for (flow, sent) in generator.join().map_err(|_| anyhow::anyhow!("a generator died"))?? {
                    *outcome.sent.entry(flow).or_default() += sent;
                }
            }
            drained
        })?;
        let mut live = live.context("a capture")?;
        let heard = &mut outcome.heard;
        // With pins a stop leaves the table as it is.
        let until = Instant::now() + Duration::from_secs(10);
        let mut left = usize::from(live.is_pinned());
        while left > 0 && Instant::now() < until {
            live.poll(&mut |captured| heard.take(&captured))?;
            left = 0;
            live.standing(|_| left += 1)?;
        }
        let ledger = live.stop(&mut |captured| heard.take(&captured))?;
        let (.., hook) = ledger.hooks.iter().find(|(_, side, _)| *side == "ingress").context("a hook")?;
        (outcome.seen, outcome.lost) = (hook.seen_packets, hook.lost_packets);
        (outcome.ring_full, outcome.table_full) = (ledger.kernel.ring_full, ledger.kernel.table_full);
        Ok(outcome)
    });
    playing.join().map_err(|_| anyhow::anyhow!("the capture died"))?
}

/// Drains, takes entries out, and puts others in their places at once, until enough are gone.
fn drain(
    slot: &mut Option<Live>,
    case: &Case,
    options: &live::Options,
    outcome: &mut Outcome,
    ifindex: u32,
) -> Result<()> {
    let (mut program, mut other, started) = (attached()?, 0_u32, Instant::now());
    let mut flows = table(&program)?;
    let (mut round, mut strays) = (0_u32, Vec::new());
    while outcome.heard.ended < case.removals
        && !(case.or_strays && outcome.heard.strays > 0)
        && started.elapsed() < case.limit.unwrap_or(Duration::from_secs(30))
    {
        let live = slot.as_mut().context("a capture")?;
        let heard = &mut outcome.heard;
        while strays.len() < STRAYS {
            other += 1;
            strays.push(stray(other));
        }
        live.poll(&mut |captured| {
            // The third actor: what was freed a moment ago is another flow's now, to which nobody sends.
            if let Captured::End(report, _) = captured
                && (!case.hot || report.key.low_port == SENT || report.key.high_port == SENT)
                && let Some((key, entry)) = strays.pop()
            {
                // A full table has no room for it, which is the programs' affair.
                let _ = flows.insert(key, entry, 0);
            }
            heard.take(&captured);
        })?;
        // And some that do get packets.
        for _ in 0..if case.hot { 0 } else { 4 } {
            other += 1;
            let frame = datagram(0x10_0000 + other, 2_000);
            show(&program, ifindex, &frame, 1)?;
            *outcome.sent.entry(flow(place(&frame))).or_default() += 1;
        }
        std::thread::sleep(Duration::from_millis(case.pause_ms));
        round += 1;
        if case.reload {
            live.set_rules(&rules(u16::try_from(round & 0xffff)?))?;
        }
        if case.restart && round.is_multiple_of(3) {
            let heard = &mut outcome.heard;
            live.stop(&mut |captured| heard.take(&captured))?;
            // The folder is locked as long as the old one lives.
            drop(slot.take());
            *slot = Some(Live::start(options)?);
            program = attached()?;
            flows = table(&program)?;
            outcome.restarts += 1;
        }
    }
    Ok(())
}

/// An object with features for this test alone.
fn object(features: &str, name: &str) -> Result<Arc<[u8]>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join("target/ebpf").join(name);
    let words = ["xtask", "build-ebpf", "--features", features, "--output", &path.to_string_lossy()];
    let output = std::process::Command::new("cargo").args(words).current_dir(&root).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(std::fs::read(&path)?.into())
}

#[test]
fn no_packet_is_lost_or_counted_into_another_flow_whatever_goes_on() -> Result<()> {
    let removals = 1_000;
    let cases = [
        ("eviction", Case { removals, ..Case::default() }),
        ("a full table", Case { removals, table_entries: 64, ..Case::default() }),
        ("a full ring", Case { removals: 300, ring_bytes: 4096, pause_ms: 20, ..Case::default() }),
        ("reload", Case { removals, reload: true, ..Case::default() }),
        ("restart", Case { removals, restart: true, ..Case::default() }),
    ];
    let bpffs = Bpffs::new()?;
    for (name, case) in cases {
        let pair = Pair::new(false)?;
        let pin = case.restart.then(|| bpffs.path().join("flowlog"));
        let outcome = play(&pair, case.clone(), pin)?;
        let all: u64 = outcome.sent.values().sum();
        let (missing, wrong) = outcome.errors();
        println!(
            "{name}: {all} packets of {} flows, {} entries taken out, {} alone, {} lost, ring full {}, table full {}, {} \
             restarts: {missing} missing, {wrong} wrong",
            outcome.sent.len(),
            outcome.heard.ended,
            outcome.heard.alone,
            outcome.lost,
            outcome.ring_full,
            outcome.table_full,
            outcome.restarts,
        );
        ensure!(outcome.seen == all, "{name}: the hook was shown {}", outcome.seen);
        ensure!(wrong == 0, "{name}: {wrong} counted into another flow");
        ensure!(missing == outcome.lost, "{name}: {missing} missing, {} said to be lost", outcome.lost);
        ensure!(outcome.heard.ended >= case.removals, "{name}: only {} removals", outcome.heard.ended);
        ensure!((outcome.table_full > 0) == (case.table_entries > 0), "{name}: no such thing happened");
        ensure!((outcome.ring_full > 0) == (case.pause_ms > 0), "{name}: no such thing happened");
        ensure!((outcome.restarts > 1) == case.restart, "{name}: no such thing happened");
    }
    Ok(())
}

/// Needs CPUs that run beside each other: on a machine with far more to do than it can, races hardly happen.
#[test]
#[ignore = "builds two objects and runs for minutes: `cargo xtask test --long`"]
fn what_is_wrong_is_noticed_and_what_is_right_stands_wide_windows() -> Result<()> {
    let slow = object("slow", "slow.o")?;
    let boolean = object("slow,boolean-mark", "slow-boolean.o")?;
    let case = |object: &Arc<[u8]>, removal, removals| Case {
        object: Some(Arc::clone(object)),
        removal,
        removals,
        hot: true,
        limit: Some(Duration::from_secs(180)),
        ..Case::default()
    };
    let cases = [
        ("as it should be", case(&slow, Removal::Exact, 4_000), false),
        // Each removal waits for a grace period, so it takes the longest.
        ("a boolean mark", Case { or_strays: true, ..case(&boolean, Removal::Exact, u64::MAX) }, true),
        ("no grace period", case(&slow, Removal::WithoutGrace, 60_000), true),
        ("read and delete", case(&slow, Removal::Unmarked, 20_000), true),
    ];
    for (name, case, noticed) in cases {
        let outcome = play(&Pair::new(false)?, case, None)?;
        let all: u64 = outcome.sent.values().sum();
        let (missing, wrong) = outcome.errors();
        println!(
            "{name}: {all} packets, {} entries taken out, {} lost: {missing} missing, {wrong} wrong",
            outcome.heard.ended, outcome.lost
        );
        ensure!(outcome.seen == all, "{name}: the hook was shown {}", outcome.seen);
        let errors = missing.saturating_sub(outcome.lost) + wrong;
        ensure!((errors > 0) == noticed, "{name}: {missing} missing, {wrong} wrong, {} lost", outcome.lost);
    }
    Ok(())
}
