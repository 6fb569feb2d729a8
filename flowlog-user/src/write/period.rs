use std::time::{Duration, Instant};

use super::Spec;
use crate::clock::wall_ns;

const DAY_NS: i64 = 86_400_000_000_000;
/// The wall clock may step: it is looked at again after this time at the latest.
const LOOK_MAX: Duration = Duration::from_mins(1);

/// When the period of the clock ends in which `ns` lies (nanoseconds since the Unix epoch): a whole multiple of the
/// task's interval since the epoch, where files are to end with those, or the day in UTC, where names hold it.
pub(super) fn end_ns(spec: &Spec, is_dated: bool, ns: i64) -> Option<i64> {
    let aligned = spec.rotation_interval.filter(|_| spec.rotation_aligned);
    let aligned = aligned.and_then(|interval| i64::try_from(interval.as_nanos()).ok());
    let period = [aligned, is_dated.then_some(DAY_NS)].into_iter().flatten().min()?.max(1);
    Some(ns.div_euclid(period).saturating_add(1).saturating_mul(period))
}

/// Whether a moment of the wall clock has come.
pub(super) fn is_over(end_ns: Option<i64>) -> bool {
    end_ns.is_some_and(|end_ns| wall_ns() >= end_ns)
}

/// When to look whether it has.
pub(super) fn look_at(end_ns: Option<i64>) -> Option<Instant> {
    let left = Duration::from_nanos(u64::try_from(end_ns?.saturating_sub(wall_ns())).unwrap_or(0));
    Some(Instant::now() + left.min(LOOK_MAX))
}

#[cfg(test)]
mod tests {
    use super::super::writer::tests::{ZSTD, spec};
    use super::*;

    #[test]
    fn periods_end_with_the_clock() {
        let path = std::path::Path::new("/l");
        let at =
            |text: &str| i64::try_from(text.parse::<jiff::Timestamp>().unwrap().as_nanosecond()).unwrap();
        let plain = spec(path, ZSTD);
        for (secs, aligned, dated, from, want) in [
            (3600, true, false, "2026-11-30T20:14:26.5Z", Some("2026-11-30T21:00:00Z")),
            (3600, true, false, "2026-11-30T21:00:00Z", Some("2026-11-30T22:00:00Z")),
            (86_400, true, false, "2026-11-30T20:14:26Z", Some("2026-12-01T00:00:00Z")),
            (900, true, true, "2026-11-30T23:50:00Z", Some("2026-12-01T00:00:00Z")),
            (604_800, true, true, "2026-11-30T23:50:00Z", Some("2026-12-01T00:00:00Z")),
            (3600, false, true, "2026-11-30T20:14:26Z", Some("2026-12-01T00:00:00Z")),
            (3600, false, false, "2026-11-30T20:14:26Z", None),
            (3600, true, false, "1969-12-31T23:59:59.9Z", Some("1970-01-01T00:00:00Z")),
        ] {
            let spec = Spec {
                rotation_interval: Some(Duration::from_secs(secs)),
                rotation_aligned: aligned,
                ..plain.clone()
            };
            assert_eq!(end_ns(&spec, dated, at(from)), want.map(at), "{secs} {from}");
        }
        assert_eq!(end_ns(&Spec { rotation_aligned: true, ..plain }, false, 0), None);
        assert!(is_over(Some(0)) && !is_over(Some(i64::MAX)) && !is_over(None));
        assert!(look_at(Some(i64::MAX)).unwrap() <= Instant::now() + LOOK_MAX && look_at(None).is_none());
    }
}
