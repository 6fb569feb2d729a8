/// `rateLimit`: so many records a second, after a pause as many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    per_second: u32,
    /// Nanoseconds' worth of records that may pass now.
    credit_ns: u64,
    at_ns: Option<i64>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl RateLimit {
    /// A limit that nothing has used yet.
    #[must_use]
    pub const fn new(per_second: u32) -> Self {
        Self { per_second, credit_ns: SECOND_NS, at_ns: None }
    }

    /// Records a second.
    #[must_use]
    pub const fn per_second(&self) -> u32 {
        self.per_second
    }

    /// Whether one more record may pass at that time; a time before the last one counts as the last one.
    pub fn passes(&mut self, now_ns: i64) -> bool {
        let at_ns = *self.at_ns.get_or_insert(now_ns);
        let elapsed_ns = u64::try_from(now_ns.saturating_sub(at_ns)).unwrap_or(0);
        self.at_ns = Some(at_ns.max(now_ns));
        self.credit_ns = self.credit_ns.saturating_add(elapsed_ns).min(SECOND_NS);
        // Rounded up, so that never more pass than are asked for.
        let cost_ns = SECOND_NS.div_ceil(u64::from(self.per_second).max(1));
        let passes = self.credit_ns >= cost_ns;
        if passes {
            self.credit_ns -= cost_ns;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lets_as_many_pass_as_it_says() {
        for rate in [1, 10, 1_000] {
            let mut limit = RateLimit::new(rate);
            // Ten times as many as are allowed, over ten seconds after one second's worth at once.
            let step_ns = i64::try_from(SECOND_NS / u64::from(rate) / 10).unwrap();
            let offered = 10 * 10 * i64::from(rate);
            let passed = (0..offered).filter(|n| limit.passes(n * step_ns)).count();
            let (least, most) = (10 * rate as usize, 11 * rate as usize);
            assert!((least..=most).contains(&passed), "{passed} at {rate} a second");
        }
    }

    #[test]
    fn time_that_goes_back_gives_nothing() {
        let mut limit = RateLimit::new(1);
        assert!(limit.passes(10) && !limit.passes(5) && !limit.passes(10));
        assert!(limit.passes(10 + 1_000_000_000));
    }
}
