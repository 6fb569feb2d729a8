//! Characters beyond the first 65,536 in JSON, where two escapes stand for one; YAML has one for them, and refuses halves.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// Bytes of such a pair: `\ud83d\ude00`.
const PAIR: usize = 12;

/// Where pairs stand in a text of JSON, as byte offsets, and which characters they are. None in what is no JSON: there the
/// same may be a text as it stands.
fn pairs(text: &str) -> Vec<(usize, char)> {
    let may_be = text.contains("\\ud") || text.contains("\\uD");
    if !may_be || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Vec::new();
    }
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + PAIR / 2)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut pairs = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let units = unit(at).zip(unit(at + PAIR / 2)).map(|(high, low)| [high, low]);
        let mut decoded = char::decode_utf16(units.into_iter().flatten());
        match (decoded.next(), decoded.next()) {
            (Some(Ok(character)), None) => {
                pairs.push((at, character));
                at += PAIR;
            }
            // An escape of something else: what follows the backslash is part of it.
            _ => at += 2,
        }
    }
    pairs
}

/// The text with other characters in place of such pairs, so that all of it stands where it stood.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    replaced(text, |_| r"\u0078\u0078".to_owned()).0
}

/// The text with YAML's escapes for such pairs, and by how much what follows on their lines was moved.
pub(super) fn joined(text: &str) -> (Cow<'_, str>, Moved) {
    replaced(text, |character| format!("\\U{:08x}", u32::from(character)))
}

fn replaced(text: &str, by: impl Fn(char) -> String) -> (Cow<'_, str>, Moved) {
    let pairs = pairs(text);
    if pairs.is_empty() {
        return (text.into(), Moved::default());
    }
    let (mut out, mut copied, mut moved) = (String::new(), 0, Moved::default());
    let (mut line, mut column, mut missing) = (1, 0, 0);
    for (at, character) in pairs {
        let before = text.get(copied..at).unwrap_or_default();
        let last = before.rsplit('\n').next().unwrap_or_default();
        if last.len() < before.len() {
            line += before.matches('\n').count();
            (column, missing) = (0, 0);
        }
        column += last.chars().count();
        let by = by(character);
        missing += PAIR.saturating_sub(by.len());
        moved.0.push((line, column, missing));
        column += by.len();
        out.extend([before, &by]);
        copied = at + PAIR;
    }
    out += text.get(copied..).unwrap_or_default();
    (out.into(), moved)
}

/// Lines and columns, from 1 and from 0, and how many characters are missing of the line behind each.
#[derive(Debug, Default)]
pub(super) struct Moved(Vec<(usize, usize, usize)>);

impl Moved {
    /// The column that a place had, counted from 0.
    pub(super) fn column(&self, line: usize, column: usize) -> usize {
        let after = self.0.partition_point(|(its, at, _)| (*its, *at) < (line, column));
        let before = after.checked_sub(1).and_then(|before| self.0.get(before));
        column + before.filter(|(its, ..)| *its == line).map_or(0, |(.., missing)| *missing)
    }
}
