use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// A range of time, both ends included; an end that is `None` is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// Nanoseconds since the Unix epoch.
    pub since_ns: Option<i64>,
    /// Nanoseconds since the Unix epoch.
    pub until_ns: Option<i64>,
}

impl TimeRange {
    /// Reads a point in time: RFC 3339, or a duration such as `10m` before now.
    ///
    /// # Errors
    /// What was expected.
    pub fn point(text: &str, now_ns: i64) -> Result<i64, String> {
        if let Ok(at) = text.parse::<Timestamp>() {
            return i64::try_from(at.as_nanosecond()).map_err(|_| format!("`{text}` is out of reach"));
        }
        let wrong =
            || format!("`{text}` is no time; write e.g. 2026-11-30T20:00:00Z, or 10m for ten minutes ago");
        let ago = text.parse::<SignedDuration>().map_err(|_| wrong())?;
        let ago = i64::try_from(ago.as_nanos()).map_err(|_| wrong())?;
        Ok(now_ns.saturating_sub(ago))
    }

    /// Whether everything is in it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.since_ns.is_none() && self.until_ns.is_none()
    }

    /// Whether any moment from `first_ns` to `last_ns` is in it.
    #[must_use]
    pub fn overlaps(&self, first_ns: i64, last_ns: i64) -> bool {
        self.since_ns.is_none_or(|since| last_ns >= since)
            && self.until_ns.is_none_or(|until| first_ns <= until)
    }
}

/// When the packets of a record were seen: from `first_seen` to `last_seen`, else its time; `None` without any.
pub(super) fn seen_ns(value: &Value) -> Option<(i64, i64)> {
    let flow = value.get("flow");
    let ours = flow.and_then(|flow| flow.get("extensions")?.get("value"));
    let at = |key| ours.and_then(|ours| ns(ours.get(key)));
    let time = ns(value.get("time").or_else(|| flow?.get("time")));
    let last = at("last_seen").or(time);
    Some((at("first_seen").or(last)?, last?))
}

fn ns(value: Option<&Value>) -> Option<i64> {
    let at = value?.as_str()?.parse::<Timestamp>().ok()?;
    i64::try_from(at.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time() {
        let now = 1_796_069_666_000_000_000; // date -u -d 2026-11-30T20:14:26Z +%s
        for (text, want) in [
            ("2026-11-30T20:14:26Z", now),
            ("2026-11-30T21:14:26+01:00", now),
            ("10m", now - 600_000_000_000),
            ("1h30m", now - 5_400_000_000_000),
            ("0s", now),
        ] {
            assert_eq!(TimeRange::point(text, now), Ok(want), "{text}");
        }
        for text in ["", "yesterday", "2026-11-30", "10"] {
            assert!(TimeRange::point(text, now).unwrap_err().contains("10m"), "{text}");
        }
    }

    #[test]
    fn a_record_is_in_a_range_when_any_of_its_time_is() {
        let range = TimeRange { since_ns: Some(10), until_ns: Some(20) };
        for (first, last, want) in
            [(0, 9, false), (0, 10, true), (12, 13, true), (20, 30, true), (21, 30, false), (0, 99, true)]
        {
            assert_eq!(range.overlaps(first, last), want, "{first} {last}");
        }
    }
}
