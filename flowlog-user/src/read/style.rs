use std::fmt::Display;

use jiff::Timestamp;
use serde_json::Value;

/// How flows are printed for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Pods, services and DNS names in the place of addresses.
    pub translate: bool,
    /// The node that saw it.
    pub node: bool,
    /// With a terminal's colours, in layouts that have them.
    pub colour: bool,
    /// How times are written; `None` is the layout's own way.
    pub time: Option<TimeFormat>,
}

impl Default for Style {
    fn default() -> Self {
        Self { translate: true, node: false, colour: false, time: None }
    }
}

/// The ways to write a time that Hubble's client knows, always in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// `2026-11-30`
    YearMonthDay,
    /// `2026-11-30T20Z`
    YearMonthDayHour,
    /// `2026-11-30T20:14Z`
    YearMonthDayHourMinute,
    /// `Nov 30 20:14:26.123`
    #[default]
    StampMilli,
    /// `2026-11-30T20:14:26Z`
    Rfc3339,
    /// The same with up to three digits behind the point.
    Rfc3339Milli,
    /// The same with up to six.
    Rfc3339Micro,
    /// The same with up to nine.
    Rfc3339Nano,
    /// `Mon, 30 Nov 2026 20:14:26 +0000`
    Rfc1123Z,
}

impl TimeFormat {
    /// Every format with the client's name for it.
    pub const ALL: [(&'static str, Self); 9] = [
        ("YearMonthDay", Self::YearMonthDay),
        ("YearMonthDayHour", Self::YearMonthDayHour),
        ("YearMonthDayHourMinute", Self::YearMonthDayHourMinute),
        ("StampMilli", Self::StampMilli),
        ("RFC3339", Self::Rfc3339),
        ("RFC3339Milli", Self::Rfc3339Milli),
        ("RFC3339Micro", Self::Rfc3339Micro),
        ("RFC3339Nano", Self::Rfc3339Nano),
        ("RFC1123Z", Self::Rfc1123Z),
    ];

    /// The format of a name, whatever the case of its letters.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, format)| format)
    }

    fn write(self, at: Timestamp) -> String {
        let seconds = "%Y-%m-%dT%H:%M:%S";
        match self {
            Self::YearMonthDay => at.strftime("%Y-%m-%d").to_string(),
            Self::YearMonthDayHour => at.strftime("%Y-%m-%dT%HZ").to_string(),
            Self::YearMonthDayHourMinute => at.strftime("%Y-%m-%dT%H:%MZ").to_string(),
            Self::StampMilli => at.strftime("%b %e %H:%M:%S.%3f").to_string(),
            Self::Rfc3339 => format!("{}Z", at.strftime(seconds)),
            Self::Rfc3339Milli => format!("{}{}Z", at.strftime(seconds), fraction(at, 3)),
            Self::Rfc3339Micro => format!("{}{}Z", at.strftime(seconds), fraction(at, 6)),
            Self::Rfc3339Nano => format!("{}{}Z", at.strftime(seconds), fraction(at, 9)),
            Self::Rfc1123Z => at.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string(),
        }
    }
}

/// The first so many digits behind the point and the point, without zeros at the end; nothing when all are zero.
fn fraction(at: Timestamp, digits: usize) -> String {
    let text = format!("{:09}", at.subsec_nanosecond());
    let kept = text.get(..digits).unwrap_or(&text).trim_end_matches('0');
    if kept.is_empty() { String::new() } else { format!(".{kept}") }
}

/// A terminal's colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Magenta = 35,
    Cyan = 36,
}

impl Style {
    /// A text in a colour, where there are colours.
    pub(super) fn paint(self, colour: Colour, text: impl Display) -> String {
        if self.colour { format!("\x1b[{}m{text}\x1b[0m", colour as u8) } else { text.to_string() }
    }

    /// A flow's time as asked for, or as Go's StampMilli.
    pub(super) fn time(self, line: &Value) -> String {
        let time = line.get("flow").and_then(|flow| flow.get("time")).or_else(|| line.get("time"));
        let at = time.and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
        at.map_or_else(|| "N/A".into(), |at| self.time.unwrap_or_default().write(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected as Go's `time.Format` writes these layouts.
    #[test]
    fn times_are_written_as_go_does() {
        let at: Timestamp = "2026-12-01T04:05:06.120300000Z".parse().unwrap();
        let told: Vec<String> = TimeFormat::ALL.iter().map(|(_, format)| format.write(at)).collect();
        assert_eq!(
            told,
            [
                "2026-12-01",
                "2026-12-01T04Z",
                "2026-12-01T04:05Z",
                "Dec  1 04:05:06.120",
                "2026-12-01T04:05:06Z",
                "2026-12-01T04:05:06.12Z",
                "2026-12-01T04:05:06.1203Z",
                "2026-12-01T04:05:06.1203Z",
                "Tue, 01 Dec 2026 04:05:06 +0000",
            ]
        );
        let whole: Timestamp = "2026-12-01T04:05:06Z".parse().unwrap();
        assert_eq!(TimeFormat::Rfc3339Nano.write(whole), "2026-12-01T04:05:06Z");
        assert_eq!(TimeFormat::from_name("rfc3339nano"), Some(TimeFormat::Rfc3339Nano));
        assert_eq!(TimeFormat::from_name("Kitchen"), None);
    }

    #[test]
    fn only_who_wants_colours_gets_them() {
        let colourful = Style { colour: true, ..Style::default() };
        assert_eq!(colourful.paint(Colour::Cyan, "10.0.0.1:80"), "\x1b[36m10.0.0.1:80\x1b[0m");
        assert_eq!(Style::default().paint(Colour::Cyan, "10.0.0.1:80"), "10.0.0.1:80");
    }
}
