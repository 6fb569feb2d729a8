//! Adding up what cargo's test runs say.

/// Tests by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Ran and passed.
    pub(crate) passed: u64,
    /// Ran and failed.
    pub(crate) failed: u64,
    /// Did not run: ignored. (Filtered out is not skipped: nobody asked for those.)
    pub(crate) skipped: u64,
}

impl Counts {
    /// Adds a line of cargo's output, if it is a test binary's result.
    pub(crate) fn add(&mut self, line: &str) {
        let Some(rest) = line.trim_start().strip_prefix("test result:") else { return };
        let numbers = rest.split(['.', ';']).filter_map(|part| {
            let (number, what) = part.trim().split_once(' ')?;
            Some((number.parse::<u64>().ok()?, what))
        });
        for (number, what) in numbers {
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_up() {
        let mut counts = Counts::default();
        let text = "running 3 tests\ntest a ... ok\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s\n\
            test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s\n\
            test not_a_result: 5 passed;\n";
        text.lines().for_each(|line| counts.add(line));
        assert_eq!(counts.to_string(), "13 passed, 2 failed, 1 skipped");
    }
}
