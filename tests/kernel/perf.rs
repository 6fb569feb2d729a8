//! What a packet costs, beside an empty program and the least that any flow counter must do, in the same run.

use crate::loaded::{Beside, Loaded};
use crate::packets::*;
use flowlog_abi::{hook, names};
use flowlog_tests::guest::emulated;
use flowlog_tests::rules::many;

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
