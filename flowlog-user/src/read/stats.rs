use std::fmt;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::range::seen_ns;

/// Gaps that are listed at most; they are all counted.
const GAPS_MAX: usize = 100;

/// What files hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Files read.
    pub files: u64,
    /// Bytes of these files.
    pub file_bytes: u64,
    /// Bytes of them that were read: an index lets the rest be passed over.
    pub read_bytes: u64,
    /// Bytes of text that came out.
    pub text_bytes: u64,
    /// Records of flows.
    pub records: u64,
    /// Lines about the log itself.
    pub notices: u64,
    /// Records that these lines say were lost.
    pub lost: u64,
    /// First and last moment of any record, nanoseconds since the Unix epoch.
    pub range_ns: Option<(i64, i64)>,
    /// How often a task stopped and began again.
    pub gaps: u64,
    /// From when to when, nanoseconds since the Unix epoch; the first hundred.
    pub gap_ns: Vec<(i64, i64)>,
}

impl Stats {
    /// Counts a line. `stopped_ns` is when its task stopped, if it had, and is kept up to date.
    pub(super) fn count(&mut self, value: &Value, stopped_ns: &mut Option<i64>) {
        let seen = seen_ns(value);
        if let (Some(from), Some((first, _))) = (*stopped_ns, seen) {
            self.gaps += 1;
            if self.gap_ns.len() < GAPS_MAX {
                self.gap_ns.push((from, first));
            }
        }
        *stopped_ns = None;
        if value.get("flow").is_some() {
            self.records += 1;
            if let Some((first, last)) = seen {
                let (from, to) = self.range_ns.unwrap_or((first, last));
                self.range_ns = Some((from.min(first), to.max(last)));
            }
            return;
        }
        self.notices += 1;
        let lost = value.get("lost_events").and_then(|lost| lost.get("num_events_lost"));
        self.lost += lost.and_then(|lost| lost.as_u64().or_else(|| lost.as_str()?.parse().ok())).unwrap_or(0);
        if value.get("node_status").and_then(|status| status.get("state_change")?.as_str())
            == Some("NODE_GONE")
        {
            *stopped_ns = seen.map(|(_, last)| last);
        }
    }

    /// Text bytes for each byte on disk, in hundredths.
    fn ratio(&self) -> u64 {
        self.text_bytes.saturating_mul(100).checked_div(self.read_bytes).unwrap_or(0)
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self, damage: &[super::Damage]) -> Value {
        let pair = |(from, to): (i64, i64)| json!([time(from), time(to)]);
        // Hundredths are exact enough for a person, and comparable.
        let ratio = u32::try_from(self.ratio()).map_or(f64::INFINITY, f64::from) / 100.0;
        let damage: Vec<_> = damage
            .iter()
            .map(|damage| json!({ "file": damage.path, "from": damage.offset, "to": damage.end, "what": damage.what }))
            .collect();
        json!({
            "files": self.files, "file_bytes": self.file_bytes, "read_bytes": self.read_bytes,
            "text_bytes": self.text_bytes, "ratio": ratio, "records": self.records, "notices": self.notices, "lost": self.lost,
            "range": self.range_ns.map(pair), "gaps": self.gaps,
            "gap_list": self.gap_ns.iter().map(|gap| pair(*gap)).collect::<Vec<_>>(), "damage": damage,
        })
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "records   {}", self.records)?;
        writeln!(f, "notices   {} ({} records lost)", self.notices, self.lost)?;
        writeln!(f, "files     {}, {} bytes, {} of them read", self.files, self.file_bytes, self.read_bytes)?;
        writeln!(
            f,
            "text      {} bytes, ratio {}.{:02}",
            self.text_bytes,
            self.ratio() / 100,
            self.ratio() % 100
        )?;
        match self.range_ns {
            Some((from, to)) => writeln!(f, "from      {}\nto        {}", time(from), time(to))?,
            None => writeln!(f, "from      -\nto        -")?,
        }
        writeln!(f, "gaps      {}", self.gaps)?;
        for (from, to) in &self.gap_ns {
            writeln!(f, "  {} to {}", time(*from), time(*to))?;
        }
        Ok(())
    }
}

fn time(ns: i64) -> String {
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}
