use jiff::Timestamp;

use super::Compression;

/// What may follow a finished file's extension.
const SUFFIXES: [&str; 3] = ["", ".zst", ".gz"];

/// The names of one task's files: `<stem>-<UTC><ext>[.zst|.gz]`, live `<stem><ext>[.zst]`. Earlier versions told files
/// of one millisecond apart by `-n` behind the time; those are still known.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The name as configured, where it holds `{date}`.
    dated: Option<(String, Compression)>,
    stem: String,
    ext: String,
    /// The live file.
    pub(super) live: String,
    /// What the live and the finished-but-not-yet-gzipped file carry behind the extension.
    suffix: &'static str,
}

impl Names {
    pub(super) fn new(name: &str, compression: Compression) -> Self {
        // A leading dot begins a hidden file's name, not an extension.
        let at = name.rfind('.').filter(|at| *at > 0).unwrap_or(name.len());
        let (stem, ext) = name.split_at(at);
        let suffix = match compression {
            Compression::Zstd { .. } => ".zst",
            Compression::Gzip { .. } | Compression::None => "",
        };
        let dated = name.contains(DATE).then(|| (name.to_owned(), compression));
        Self { dated, stem: stem.into(), ext: ext.into(), live: format!("{name}{suffix}"), suffix }
    }

    /// The names of a day, where the name holds `{date}`; `None` where they are that already.
    pub(super) fn of_day(&self, ns: i64) -> Option<Self> {
        let (name, compression) = self.dated.clone()?;
        let at = Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::UNIX_EPOCH);
        let of_day = Self::new(&name.replace(DATE, &at.strftime("%Y-%m-%d").to_string()), compression);
        (of_day.live != self.live).then_some(Self { dated: Some((name, compression)), ..of_day })
    }

    /// Whether the names hold a day.
    pub(super) const fn is_dated(&self) -> bool {
        self.dated.is_some()
    }

    /// What takes the live file's place once it is whole.
    pub(super) fn unfinished(&self) -> String {
        format!("{}.tmp", self.live)
    }

    /// What is to take the live file's place, and what took it until it has its finished name.
    pub(super) fn next(&self) -> String {
        format!("{}.next", self.live)
    }

    /// The same for what is on its way from the live to its finished name.
    pub(super) fn on_the_way(&self) -> Self {
        Self { live: self.next(), ..self.clone() }
    }

    /// Those of names in order among which all of the task's finished files are: thousands of tasks may share a folder.
    pub(super) fn among<'a>(&self, sorted: &'a [String]) -> &'a [String] {
        let begin = match &self.dated {
            None => self.stem.as_str(),
            Some((template, _)) => template.split(DATE).next().unwrap_or_default(),
        };
        let from = sorted.partition_point(|name| name.as_str() < begin);
        let rest = sorted.get(from..).unwrap_or_default();
        let count = rest.partition_point(|name| name.starts_with(begin));
        rest.get(..count).unwrap_or_default()
    }

    /// What a finished file's name begins with, whatever its day: what follows.
    fn behind_stem<'a>(&self, name: &'a str) -> Option<&'a str> {
        let Some((template, _)) = &self.dated else { return name.strip_prefix(self.stem.as_str()) };
        let (stem, _) = template.split_at(template.rfind('.').filter(|at| *at > 0).unwrap_or(template.len()));
        let mut rest = name;
        for (at, part) in stem.split(DATE).enumerate() {
            if at > 0 {
                let (day, behind) = rest.split_at_checked(DAY.len())?;
                rest = behind;
                fits(day, DAY).then_some(())?;
            }
            rest = rest.strip_prefix(part)?;
        }
        Some(rest)
    }

    /// What every finished file's name looks like, as a glob.
    pub(super) fn pattern(&self, compression: Compression) -> String {
        let suffix = if matches!(compression, Compression::Gzip { .. }) { ".gz" } else { self.suffix };
        format!("{}-*{}{suffix}", self.stem, self.ext)
    }

    /// The finished name for a file of that time.
    pub(super) fn finished(&self, ns: i64) -> String {
        format!("{}{}", self.base(ns), self.suffix)
    }

    /// Every name that a finished file of that time may have.
    pub(super) fn variants(&self, ns: i64) -> [String; 3] {
        SUFFIXES.map(|suffix| format!("{}{suffix}", self.base(ns)))
    }

    fn base(&self, ns: i64) -> String {
        format!("{}-{}{}", self.stem, stamp(ns), self.ext)
    }

    /// The time in the newest finished name among these, nanoseconds since the Unix epoch.
    pub(super) fn newest_ns(&self, names: &[String]) -> Option<i64> {
        let stamps = names.iter().filter_map(|name| Some(self.parse(name)?.0));
        stamps.filter_map(unstamp).max()
    }

    /// The earliest time by which a file is named that sorts behind this one, also where this one is deleted; ns since the
    /// Unix epoch.
    pub(super) fn behind(&self, name: &str) -> i64 {
        let stamp = self.parse(name).and_then(|(stamp, _)| unstamp(stamp));
        stamp.map_or(i64::MIN, |ns| ns.saturating_add(MILLISECOND_NS))
    }

    /// Time stamp and number of one of this task's finished files; `None` for every other file.
    pub(super) fn parse<'a>(&self, name: &'a str) -> Option<(&'a str, u32)> {
        let rest = self.behind_stem(name)?.strip_prefix('-')?;
        let (stamp, rest) = rest.split_at_checked(STAMP.len())?;
        if !fits(stamp, STAMP) {
            return None;
        }
        SUFFIXES.iter().find_map(|suffix| {
            let middle = rest.strip_suffix(suffix)?.strip_suffix(self.ext.as_str())?;
            Some((stamp, number(middle)?))
        })
    }
}

/// What stands between time stamp and extension: nothing, or `-` and a number from 1.
fn number(middle: &str) -> Option<u32> {
    if middle.is_empty() {
        return Some(0);
    }
    let digits = middle.strip_prefix('-')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    plain.then(|| digits.parse().ok()).flatten()
}

/// Whether a text has a shape, in which `0` stands for a digit.
fn fits(text: &str, shape: &[u8]) -> bool {
    let fits = |(byte, want): (u8, &u8)| if *want == b'0' { byte.is_ascii_digit() } else { byte == *want };
    text.len() == shape.len() && text.bytes().zip(shape).all(fits)
}

/// Stands for the day, in a name.
const DATE: &str = "{date}";
/// The shape of a day.
const DAY: &[u8; 10] = b"0000-00-00";
/// Names tell files a millisecond apart.
pub(super) const MILLISECOND_NS: i64 = 1_000_000;
/// The shape of a time stamp; `0` stands for a digit.
const STAMP: &[u8; 20] = b"00000000T000000.000Z";

/// UTC to the millisecond; what lies outside the years 0 to 9999 becomes the epoch.
fn stamp(ns: i64) -> String {
    let at = Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    at.strftime("%Y%m%dT%H%M%S.%3fZ").to_string()
}

/// What a stamp says; nothing where it is no time, or none that nanoseconds reach (the year 2262).
fn unstamp(stamp: &str) -> Option<i64> {
    let text = format!("{}+0000", stamp.strip_suffix('Z')?);
    let at = Timestamp::strptime("%Y%m%dT%H%M%S%.f%z", text).ok()?;
    i64::try_from(at.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // date -u -d @1796069666 gives 2026-11-30T20:14:26.
    const NS: i64 = 1_796_069_666_123_999_999;

    #[test]
    fn names_carry_the_time_of_the_first_record() {
        let names = Names::new("connections.log", Compression::Zstd { level: 3 });
        assert_eq!(names.live, "connections.log.zst");
        assert_eq!(names.finished(NS), "connections-20261130T201426.123Z.log.zst");
        let names = Names::new("events", Compression::Gzip { level: 6 });
        assert_eq!(names.live, "events");
        assert_eq!(names.finished(NS), "events-20261130T201426.123Z");
        assert_eq!(Names::new(".hidden", Compression::None).finished(0), ".hidden-19700101T000000.000Z");
    }

    #[test]
    fn a_name_with_the_date_changes_with_the_day_and_knows_those_of_other_days() {
        let names = Names::new("{date}-a.log", Compression::None).of_day(NS).unwrap();
        assert_eq!(names.live, "2026-11-30-a.log");
        assert_eq!(names.finished(NS), "2026-11-30-a-20261130T201426.123Z.log");
        assert!(names.of_day(NS + 3 * 3_600_000_000_000).is_none());
        assert_eq!(names.of_day(NS + 4 * 3_600_000_000_000).unwrap().live, "2026-12-01-a.log");
        assert_eq!(names.parse("2025-01-01-a-20250101T000000.000Z.log"), Some(("20250101T000000.000Z", 0)));
        assert_eq!(names.parse("2025-01-x1-a-20250101T000000.000Z.log"), None);
        assert_eq!(names.parse("2025-01-01-b-20250101T000000.000Z.log"), None);
        assert!(Names::new("a.log", Compression::None).of_day(NS).is_none());
    }

    #[test]
    fn the_newest_name_is_found_whatever_its_day_and_number() {
        let names = Names::new("{date}.log", Compression::None).of_day(NS).unwrap();
        let list = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = names.newest_ns(&list(&[
            "2026-11-30-20261130T201426.122Z.log.gz",
            "2026-11-29-20261130T201426.123Z-7.log",
            "2026-11-30-20261130T201426.122Z.log.zst",
            "2026-11-30-99991231T235959.999Z.log", // Beyond what can be reckoned with.
            "other-20301130T201426.122Z.log",
        ]));
        assert_eq!(found, Some(NS / 1_000_000 * 1_000_000));
        assert_eq!(names.newest_ns(&list(&["2026-11-30.log"])), None);
    }

    #[test]
    fn of_names_in_order_all_of_the_task_are_among_few() {
        let all = ["a-1.log", "b", "b-20261130T201426.122Z.log", "b-x", "b.log", "ba", "c", "e2026-11-30-f"];
        let all = all.map(str::to_owned);
        let among = |name: &str| Names::new(name, Compression::None).among(&all).to_vec();
        assert_eq!(among("b.log"), all[1..6]);
        assert_eq!(among("0.log"), [""; 0]);
        assert_eq!(among("d.log"), [""; 0]);
        assert_eq!(among("e{date}-f.log"), all[7..]);
        assert_eq!(among("{date}.log"), all);
    }

    #[test]
    fn only_own_finished_files_are_recognised() {
        let names = Names::new("a.log", Compression::Zstd { level: 3 });
        let stamp = "20261130T201426.123Z";
        for (name, want) in [
            ("a-20261130T201426.123Z.log.zst", Some((stamp, 0))),
            ("a-20261130T201426.123Z-12.log.zst", Some((stamp, 12))),
            ("a-20261130T201426.123Z.log", Some((stamp, 0))),
            ("a-20261130T201426.123Z.log.gz", Some((stamp, 0))),
            ("a.log.zst", None),
            ("a-b-20261130T201426.123Z.log.zst", None),
            ("ab-20261130T201426.123Z.log.zst", None),
            ("a-20261130T201426.123Z.txt.zst", None),
            ("a-20261130T201426.123Z.log.xz", None),
            ("a-20261130T201426.123Z.log.gz.tmp", None),
            ("a-20261130T201426.123Z-.log.zst", None),
            ("a-20261130T201426.123Z-01.log.zst", None),
            ("a-20261130T201426.123Zx.log.zst", None),
            ("a-20261130T20142x.123Z.log.zst", None),
            ("a-20261130", None),
            ("a-é0261130T201426.123Z.log", None),
        ] {
            assert_eq!(names.parse(name), want, "{name}");
        }
        let bare = Names::new("a", Compression::None);
        assert_eq!(bare.parse("a-20261130T201426.123Z"), Some((stamp, 0)));
        assert_eq!(bare.parse("a-20261130T201426.123Z-3.gz"), Some((stamp, 3)));
        assert_eq!(bare.parse("a-20261130T201426.123Z.log.gz"), None);
    }
}
