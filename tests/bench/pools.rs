//! 1,000 address pools of 16 blocks each: what a record's label costs, and a task that asks for all of them.

use std::cell::RefCell;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use flowlog_abi::{FlowKey, hook};
use flowlog_ebpf::{Sight, add, new_entry, parse_ethernet, report};
use flowlog_tests::measure::{Case, Spread, in_turn};
use flowlog_tests::pools::{manifests, task};
use flowlog_tests::report::{Figure, Target};
use flowlog_user::capture::rules::Tables;
use flowlog_user::clock::Clock;
use flowlog_user::config;
use flowlog_user::decode::{Cadence, Decoder};
use flowlog_user::enrich::Enricher;
use flowlog_user::filter::Classifier;
use flowlog_user::limits::RULE_PREFIXES_MAX;
use flowlog_user::record::{EndReason, Flow, Node};
use flowlog_user::task::rules;

use crate::filter::by_batches;
use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "pools",
    about: "1,000 address pools of 16 blocks: labels, a task that names them all, and the kernel's rules",
    run,
};

const POOLS: u32 = 1_000;
const BLOCKS: u32 = 16;
/// Records of a round: more than the processor remembers branches for.
const RECORDS: u32 = 100_000;

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("pools.yaml"), manifests(POOLS, BLOCKS))?;
    std::fs::write(folder.path().join("task.yaml"), task(POOLS))?;
    let began = Instant::now();
    let loaded = config::load(&[folder.path().to_owned()])?;
    let load_ms = began.elapsed().as_secs_f64() * 1e3;
    let began = Instant::now();
    let tables = Tables::new(&rules(loaded.plan.tasks.iter().map(|task| &task.spec)));
    let rules_ms = began.elapsed().as_secs_f64() * 1e3;
    ensure!(tables.widened.is_empty(), "{:?}", tables.widened);

    let node = Node { pools: loaded.pools.pools.clone(), ..Node::default() };
    let without = Node::default();
    let task = loaded.plan.tasks.first().context("a task")?;
    let mut classifier = Classifier::new([&*task.spec.filter]);
    let flows = RefCell::new(flows()?);
    let matched = flows.borrow().iter().filter(|flow| task.filter.matches(flow, &node)).count();
    let share = matched as f64 / f64::from(RECORDS);
    ensure!((0.1..0.9).contains(&share), "{share} of the records match; they are not those meant");

    let enricher = Enricher::new(Vec::new());
    let enrich = |node: &Node| {
        let began = Instant::now();
        enricher.enrich(&mut flows.borrow_mut(), node);
        Ok(began.elapsed().as_nanos() as f64 / f64::from(RECORDS))
    };
    let asked = RefCell::new(Vec::new());
    let mut cases = [
        Case::new("enrich without pools", || enrich(&without)),
        Case::new("enrich with pools", || enrich(&node)),
        Case::new("a task with every pool", || {
            let (mut tasks, mut taken) = (Vec::new(), 0);
            let ns = by_batches(&flows.borrow(), |batch| {
                classifier.begin(&node);
                for flow in batch {
                    classifier.classify(flow, &node, |flow| _ = black_box(flow), &mut tasks);
                    taken += tasks.len();
                }
            });
            ensure!(taken == matched, "{taken} taken, {matched} match");
            asked.borrow_mut().push(ns);
            Ok(ns)
        }),
    ];
    let series = in_turn(settings.rounds, &mut cases)?;
    drop(cases);
    let [floor, labels, _] = &series[..] else { return Ok(Vec::new()) };
    let exactly = |value: f64| Spread { median: value, low: value, high: value };
    let prefixes = f64::from(u32::try_from(tables.prefixes.len())?);
    Ok(vec![
        Figure::alone(
            "pools: a task that names 1,000 pools of 16",
            Spread::of(asked.borrow().iter().copied().skip(1).collect()),
            "ns/record",
            Target::AtMost(60.0),
        ),
        Figure::beside("pools: identities and labels of both ends", labels, floor, "ns/record", Target::None),
        Figure::alone(
            "pools: prefixes in the kernel",
            exactly(prefixes),
            "prefixes",
            Target::AtMost(RULE_PREFIXES_MAX as f64),
        ),
        Figure::alone("pools: reading 1,000 manifests", exactly(load_ms), "ms", Target::None),
        Figure::alone("pools: making the kernel's rules", exactly(rules_ms), "ms", Target::None),
    ])
}

/// Half of the senders lie among the pools, of both families; all receivers do.
fn flows() -> Result<Vec<Flow>> {
    let base = flow()?;
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut address = move |among: bool| -> IpAddr {
        let number = random();
        let low = number & 0xffff_ffff;
        match (among, number >> 40 & 7) {
            (true, 7) => {
                let block = u128::from(low % u64::from(POOLS * BLOCKS));
                Ipv6Addr::from_bits(0xfd00 << 112 | block << 96 | u128::from(number >> 43)).into()
            }
            (true, _) => Ipv4Addr::from_bits(0x6440_0000 | (low as u32 & 0x003f_ffff)).into(),
            (false, _) => Ipv4Addr::from_bits(low as u32).into(),
        }
    };
    Ok((0..RECORDS)
        .map(|at| Flow { source: address(at % 2 == 0), destination: address(true), ..base })
        .collect())
}

/// A record as the decoder makes it.
fn flow() -> Result<Flow> {
    let mut frame = [0; 54];
    frame.get_mut(12..14).context("a frame")?.copy_from_slice(&[8, 0]);
    let ip = [
        0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 1, 187, 0, 0, 0, 0, 0, 0,
        0, 0, 0x50, 2,
    ];
    frame.get_mut(14..14 + ip.len()).context("a frame")?.copy_from_slice(&ip);
    let packet = parse_ethernet(&frame[..]).map_err(|reason| anyhow::anyhow!("{reason:?}"))?;
    let (key, direction): (FlowKey, usize) = packet.key();
    let sight =
        Sight { hook: hook::UPLINK_EGRESS, ifindex: 2, now_ns: 1, packets: 1, bytes: 60, generation: 0 };
    let mut entry = new_entry(&packet, &sight, direction, 7);
    add(&mut entry, direction, &packet, &sight);
    let cadence = Cadence { start: true, update: true, end: true, interval_ns: 1 };
    let mut decoder = Decoder::new([Some(cadence), None, None, None]);
    let mut flows = decoder.flows();
    decoder.end(&report(&key, &entry), EndReason::Idle, Clock::wall(), &mut flows);
    flows.concat().first().copied().context("a record")
}
