//! What a packet costs, beside an empty program and the least that any flow counter must do, in the same run.

use crate::loaded::{Beside, Loaded};
use crate::packets::*;
use flowlog_abi::{hook, names};
use flowlog_tests::guest::emulated;
use flowlog_tests::pools;
use flowlog_tests::rules::many;
use flowlog_user::capture::rules::Tables;
use flowlog_user::config;
use flowlog_user::task::rules;

const IN: &str = names::ETHERNET_PROGRAMS[hook::UPLINK_INGRESS as usize];
const REPEAT: u32 = 200_000;
const ROUNDS: usize = 7;

/// Nanoseconds of one run, the best of several rounds in turn, so that all meet the same noise.
fn best(loaded: &mut Loaded, cases: &[(&str, &[u8])]) -> Vec<f64> {
    let mut best = vec![f64::MAX; cases.len()];
    for _ in 0..ROUNDS {
        for (best, (program, data)) in best.iter_mut().zip(cases) {
            let run = loaded.run_as(program, data, Beside::default(), REPEAT);
            *best = best.min(run.duration.as_secs_f64() * 1e9);
        }
    }
    best
}

#[test]
fn a_known_flow_costs_little_more_than_the_least_there_is_to_do() {
    if emulated("what a packet costs") {
        return;
    }
    let mut loaded = Loaded::new();
    let [empty, reference] = names::BENCH_PROGRAMS;
    let packet = a_to_b(ACK, b"");
    loaded.run(IN, &packet);
    let ns = best(&mut loaded, &[(empty, &packet), (reference, &packet), (IN, &packet)]);
    let [empty, reference, known] = ns[..] else { unreachable!("three cases") };
    println!(
        "empty {empty:.0} ns, reference {reference:.0} ns, known flow {known:.0} ns: {:.2} x reference, {:.2} x net",
        known / reference,
        (known - empty) / (reference - empty)
    );
    assert!(2.0 * empty < reference, "the measure measures nothing");
    // The target is 1.3; machines are shared and the object may be built without optimising for them.
    assert!(known < 3.0 * reference, "{known} ns beside {reference} ns");
}

/// The median of one run for each frame, in nanoseconds: what is not in the cache yet can be met only once.
fn in_turn(loaded: &mut Loaded, program: &str, frames: &[Vec<u8>]) -> f64 {
    let mut ns: Vec<_> =
        frames.iter().map(|frame| loaded.run_as(program, frame, Beside::default(), 1).duration).collect();
    ns.sort();
    ns[ns.len() / 2].as_secs_f64() * 1e9
}

#[test]
fn a_rejected_connection_costs_less_than_a_counted_one_whatever_the_number_of_rules() {
    if emulated("what a packet costs") {
        return;
    }
    let mut loaded = Loaded::new();
    let [empty, reference] = names::BENCH_PROGRAMS;
    let known = a_to_b(ACK, b"");
    loaded.run(IN, &known);
    loaded.set_rules(&many(), 1);
    // Port 443 of A is wanted from both sides; all others are not.
    let frame = |port: u16| ethernet(0x0800, &ipv4(A4, B4, 6, &tcp(port, 80, ACK, &[], b"")));
    let rejected = frame(3_000);
    let ns = best(&mut loaded, &[(empty, &known), (reference, &known), (IN, &known), (IN, &rejected)]);
    let [_, reference_ns, passed, again] = ns[..] else { unreachable!("four cases") };
    assert!(loaded.hook(false).rejected_packets > 0, "nothing was rejected");

    let frames: Vec<_> = (4_000..5_024).map(frame).collect();
    let floors = [empty, reference].map(|program| in_turn(&mut loaded, program, &vec![known.clone(); 1_024]));
    let first = in_turn(&mut loaded, IN, &frames);
    let second = in_turn(&mut loaded, IN, &frames);
    println!(
        "10,000 prefixes and 1,000 ports: known flow {:.2} x reference, rejected again {:.2} x; one at a time: empty \
         {:.0} ns, reference {:.0} ns, first packet of 1,024 rejected connections {first:.0} ns, second {second:.0} ns",
        passed / reference_ns,
        again / reference_ns,
        floors[0],
        floors[1],
    );
    assert!(again < 1.5 * reference_ns, "{again} ns beside {reference_ns} ns");
    assert!(first < 8.0 * floors[1], "{first} ns beside {} ns", floors[1]);
}

/// The rules of a task that takes what comes from 1,000 pools of 16 blocks, beside 10,000 prefixes and 1,000 ports.
#[test]
fn a_thousand_pools_cost_a_first_packet_no_more_than_ten_thousand_prefixes() {
    if emulated("what a packet costs") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("pools.yaml", pools::manifests(1_000, 16)), ("task.yaml", pools::task(1_000))] {
        std::fs::write(folder.path().join(name), text).expect("room");
    }
    let plan = config::load(&[folder.path().to_owned()]).expect("tasks").plan;
    let pools = Tables::new(&rules(plan.tasks.iter().map(|task| &task.spec)));
    assert!(pools.widened.is_empty() && !pools.everything, "{:?}", pools.widened);
    let known = a_to_b(ACK, b"");
    let [_, reference] = names::BENCH_PROGRAMS;
    let first = |tables: &Tables| {
        let mut loaded = Loaded::new();
        loaded.set_rules(tables, 1);
        let frames: Vec<_> = (4_000..5_024)
            .map(|port| ethernet(0x0800, &ipv4(A4, B4, 6, &tcp(port, 80, ACK, &[], b""))))
            .collect();
        let floor = in_turn(&mut loaded, reference, &vec![known.clone(); 1_024]);
        let first = in_turn(&mut loaded, IN, &frames);
        assert_eq!(loaded.hook(false).rejected_packets, 1_024);
        first / floor
    };
    let (mut of_pools, mut of_prefixes): (Vec<_>, Vec<_>) =
        (0..5).map(|_| (first(&pools), first(&many()))).unzip();
    of_pools.sort_by(f64::total_cmp);
    of_prefixes.sort_by(f64::total_cmp);
    println!(
        "first packet of a rejected connection: {} prefixes of 1,000 pools {:.2} x reference, 10,000 prefixes and 1,000 ports \
         {:.2} x (target 3.5)",
        pools.prefixes.len(),
        of_pools[2],
        of_prefixes[2],
    );
    assert!(of_pools[2] < 2.0 * of_prefixes[2], "{of_pools:?} beside {of_prefixes:?}");
}
