//! What a packet costs, beside an empty program and the least that any flow counter must do, in the same run.

use crate::loaded::{Beside, Loaded};
use crate::packets::*;
use flowlog_abi::{hook, names};

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
