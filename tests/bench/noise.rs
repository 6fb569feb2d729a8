//! The machine against itself: how far apart two equal measurements are today, so how far the others can be trusted.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;

use flowlog_tests::measure::{Case, in_turn};
use flowlog_tests::report::{Figure, Target};

use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench =
    Bench { name: "noise", about: "the same work twice: what today's machine can tell apart", run };

/// Large enough for the caches to take part, small enough for a round of about a millisecond.
const BYTES: usize = 1 << 20;

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let data: Vec<u8> = (0..=u8::MAX).cycle().take(BYTES).collect();
    let round = || {
        let began = Instant::now();
        let sum = black_box(&data).iter().fold(0u64, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte));
        black_box(sum);
        Ok(began.elapsed().as_nanos() as f64 / BYTES as f64)
    };
    let mut cases = [Case::new("work", round), Case::new("the same work", round)];
    let series = in_turn(settings.rounds, &mut cases)?;
    let [one, other] = &series[..] else { return Ok(Vec::new()) };
    Ok(vec![Figure::beside("noise: the same work twice", one, other, "ns/byte", Target::AtMost(1.05))])
}
