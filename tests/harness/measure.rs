//! Cases timed in turn, and what may be said about their ratio.

use std::io::{IsTerminal, Write};

/// One thing to be measured: each call is one round and returns its figure (nanoseconds an item, bytes a second, ...).
pub struct Case<'a> {
    /// What it is, for the progress line.
    pub name: String,
    /// One round.
    pub round: Box<dyn FnMut() -> anyhow::Result<f64> + 'a>,
}

impl<'a> Case<'a> {
    /// A case.
    pub fn new(name: impl Into<String>, round: impl FnMut() -> anyhow::Result<f64> + 'a) -> Self {
        Self { name: name.into(), round: Box::new(round) }
    }
}

/// A case's figures, one a round, in the order of the rounds.
#[derive(Clone, Debug)]
pub struct Series(Vec<f64>);

impl Series {
    /// What was measured elsewhere, one figure a round.
    pub const fn of(figures: Vec<f64>) -> Self {
        Self(figures)
    }

    /// The figures themselves.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The median of the rounds.
    pub fn median(&self) -> f64 {
        Spread::of(self.0.clone()).median
    }

    /// This series over another, round by round: what disturbs a round disturbs both sides of it.
    pub fn over(&self, floor: &Self) -> Spread {
        Spread::of(self.0.iter().zip(&floor.0).map(|(value, floor)| value / floor).collect())
    }
}

/// A median and the interval that holds the true one with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Spread {
    /// From single observations: order statistics, which ask nothing of the noise but that rounds are independent.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let at = |rank: usize| values.get(rank.min(n.saturating_sub(1))).copied().unwrap_or(f64::NAN);
        // Ranks n/2 -+ 0.98 sqrt(n): the normal form of the binomial interval of a median; rounded to the safe side.
        let reach = n.isqrt() + 1;
        let low = (n / 2).saturating_sub(reach);
        let median = if n.is_multiple_of(2) {
            f64::midpoint(at((n / 2).saturating_sub(1)), at(n / 2))
        } else {
            at(n / 2)
        };
        Self { median, low: at(low), high: at(n.saturating_sub(1 + low)) }
    }
}

/// Runs all cases in turn, `rounds` times, after one round that is thrown away.
pub fn in_turn(rounds: usize, cases: &mut [Case<'_>]) -> anyhow::Result<Vec<Series>> {
    let mut said = std::time::Instant::now();
    let mut series = vec![Series(Vec::with_capacity(rounds)); cases.len()];
    for round in 0..=rounds {
        for (case, series) in cases.iter_mut().zip(&mut series) {
            if said.elapsed() >= std::time::Duration::from_secs(1) {
                said = std::time::Instant::now();
                progress(&format!("round {round} of {rounds}: {}", case.name));
            }
            let figure = (case.round)()?;
            if round > 0 {
                series.0.push(figure);
            }
        }
    }
    Ok(series)
}

/// Says on stderr what is being measured: rewrites the line on a terminal, else a line each.
pub fn progress(text: &str) {
    let mut err = std::io::stderr().lock();
    let said = if err.is_terminal() { write!(err, "\r\x1b[K{text}") } else { writeln!(err, "{text}") };
    // Nobody is hurt when stderr is closed.
    drop(said.and_then(|()| err.flush()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A binomial count says with which probability the ranks around the middle hold the true median.
    fn confidence(n: u32, low: u32, high: u32) -> f64 {
        let choose = |k: u32| (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product::<f64>();
        (low + 1..=high).map(choose).sum::<f64>() / 2f64.powi(n.cast_signed())
    }

    #[test]
    fn the_interval_holds_the_median_with_the_confidence_it_claims() {
        for n in [9, 15, 21, 41, 101] {
            let spread = Spread::of((0..n).map(f64::from).collect());
            #[expect(clippy::cast_possible_truncation, reason = "ranks of a hundred values")]
            let (low, high) = (spread.low as u32, spread.high as u32);
            assert!(confidence(n, low, high) >= 0.95, "{n} rounds: {spread:?}");
            assert!(low <= n / 2 && n / 2 <= high, "{n} rounds: {spread:?}");
        }
    }

    #[test]
    fn rounds_are_compared_with_their_own_floor() {
        let (values, floors) = (Series(vec![2.0, 20.0, 200.0]), Series(vec![1.0, 10.0, 100.0]));
        assert_eq!(values.over(&floors), Spread { median: 2.0, low: 2.0, high: 2.0 });
    }

    #[test]
    fn the_first_round_warms_up_and_all_cases_take_turns() {
        let order = std::cell::RefCell::new(Vec::new());
        let case = |name: &'static str, figure: f64| {
            let order = &order;
            Case::new(name, move || {
                order.borrow_mut().push(name);
                Ok(figure)
            })
        };
        let series = in_turn(2, &mut [case("a", 1.0), case("b", 2.0)]).expect("measured");
        assert_eq!(*order.borrow(), ["a", "b", "a", "b", "a", "b"]);
        assert_eq!(series.iter().map(|series| series.0.len()).collect::<Vec<_>>(), [2, 2]);
    }
}
