use std::time::Duration;

use jiff::fmt::friendly::SpanParser;

use crate::tree::{Problems, Tree, Value};

/// Reads a duration in Go's syntax (`30s`, `1h30m`).
pub(super) fn parse(tree: &Tree) -> Result<Duration, String> {
    let text = match &tree.value {
        Value::Scalar { text, .. } => text,
        _ => return Err(format!("expected a duration such as 30s or 1h30m, found {}", tree.kind())),
    };
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    SpanParser::new()
        .parse_unsigned_duration(text)
        .map_err(|_| format!("expected a duration such as 30s or 1h30m, found {}", tree.kind()))
}

/// Reads a duration of at least `min`.
pub(super) fn read(tree: &Tree, min: Duration, problems: &mut Problems) -> Option<Duration> {
    match parse(tree) {
        Ok(duration) if duration >= min => return Some(duration),
        Ok(_) => problems.error(&tree.place, format!("expected at least {min:?}, found {}", tree.kind())),
        Err(message) => problems.error(&tree.place, message),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Place;

    /// Expected values: Go's `time.ParseDuration`.
    #[test]
    fn go_durations() {
        let table = [
            ("30s", Some(30_000)),
            ("1h30m", Some(5_400_000)),
            ("1h30m15s", Some(5_415_000)),
            ("1.5h", Some(5_400_000)),
            ("250ms", Some(250)),
            ("0s", Some(0)),
            ("0", Some(0)),
            ("30", None),
            ("", None),
            ("1x", None),
            ("-1s", None),
        ];
        for (text, expected) in table {
            let value = Value::Scalar { text: text.into(), quoted: true };
            let tree = Tree { place: Place::file("f"), value };
            assert_eq!(parse(&tree).ok(), expected.map(Duration::from_millis), "{text}");
        }
    }
}
