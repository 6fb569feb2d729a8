//! A configuration tree that knows where each of its nodes stands; rooms read their `Spec` from it.
//!
//! In: built by `config` (the only one that knows YAML). Out: nodes with file, line, column and key path, and
//! [`Problems`], the list of everything that is wrong. What never happens here: I/O, stopping at the first error.

mod shape;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use shape::Shape;

use crate::limits::CONFIG_PROBLEMS_MAX;

/// Where a node stands. Line and column count from 1; 0 stands for the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// Line, from 1; 0 for the whole file.
    pub line: usize,
    /// Column, from 1; 0 for the whole file.
    pub column: usize,
    /// Key path, e.g. `flowLogs[2].includeFilters[0].source_ip`.
    pub path: String,
}

impl Place {
    /// A file as a whole.
    #[must_use]
    pub fn file(file: &str) -> Self {
        Self { file: file.into(), line: 0, column: 0, path: String::new() }
    }

    /// The place without its key path, as a second place in a message.
    #[must_use]
    pub fn spot(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        Ok(())
    }
}

/// A value that remembers where it stood; two are equal wherever they stand.
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// Where.
    pub place: Place,
    /// What.
    pub value: T,
}

impl<T: PartialEq> PartialEq for Placed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Placed<T> {}

impl<T: Hash> Hash for Placed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Where the value stands.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A scalar, and whether it was quoted in the file (`"80"` is a string, `80` a number).
    Scalar {
        /// Its text.
        text: String,
        /// It was quoted, so it is a string whatever it looks like.
        quoted: bool,
    },
    /// A list.
    List(Vec<Tree>),
    /// A map in file order; keys are unique.
    Map(Vec<Entry>),
}

/// An entry of a map.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// What it holds.
    pub value: Tree,
}

/// One thing that is wrong, or questionable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What, what was expected and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Everything found while reading a tree.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    /// What makes the configuration invalid.
    pub errors: Vec<Problem>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Problem>,
    /// Errors and warnings that were too many to be kept.
    omitted: [usize; 2],
}

impl Problems {
    /// Notes an error.
    pub fn error(&mut self, place: &Place, message: impl Into<String>) {
        note(&mut self.errors, &mut self.omitted[0], place, message);
    }

    /// Notes a warning.
    pub fn warning(&mut self, place: &Place, message: impl Into<String>) {
        note(&mut self.warnings, &mut self.omitted[1], place, message);
    }

    /// Says of a file, when it is read, what was too much to be said.
    pub fn close(&mut self, file: &str) {
        let of = [(&mut self.errors, "errors"), (&mut self.warnings, "warnings")];
        for ((problems, what), omitted) in of.into_iter().zip(&mut self.omitted) {
            if *omitted > 0 {
                let message = format!("{omitted} more {what} are not shown");
                problems.push(Problem { place: Place::file(file), message });
                *omitted = 0;
            }
        }
    }

    /// Notes a word that is none of `known`, with the nearest one.
    pub fn unknown(&mut self, place: &Place, what: &str, word: &str, known: &[&str]) {
        self.error(place, format!("unknown {what} `{}`; {}", shown(word), hint(word, known)));
    }
}

fn note(problems: &mut Vec<Problem>, omitted: &mut usize, place: &Place, message: impl Into<String>) {
    // Those before may be of another file; each has its own.
    let of_file = || problems.iter().rev().take_while(|problem| problem.place.file == place.file);
    if *omitted > 0 || of_file().take(CONFIG_PROBLEMS_MAX).count() == CONFIG_PROBLEMS_MAX {
        *omitted += 1;
    } else {
        problems.push(Problem { place: place.clone(), message: message.into() });
    }
}

impl fmt::Display for Problems {
    /// The errors, a line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.errors.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        Ok(())
    }
}

/// `did you mean ...?`, or the list of words where none is near.
#[must_use]
pub fn hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("expected one of {}", known.join(", ")),
    }
}

/// Keys of one form of a task file, and what they are called in another.
const CALLED: [(&str, &str); 4] = [
    ("includeFilters", "filters"),
    ("filters", "includeFilters"),
    ("expiration", "end"),
    ("end", "expiration"),
];

/// The word that is probably meant, if any is near; never one that turns what is included into what is excluded.
#[must_use]
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    let distance = |said: &str| strsim::damerau_levenshtein(&word, &said.to_lowercase());
    let called = CALLED.iter().filter_map(|(said, meant)| {
        let meant = known.iter().find(|name| *name == meant)?;
        (!known.contains(said)).then_some((distance(said), *meant))
    });
    let plain = known.iter().map(|candidate| (distance(candidate), *candidate));
    let inverts = |candidate: &str, near: usize| {
        let other = match (candidate.strip_prefix("exclude"), candidate.strip_prefix("include")) {
            (Some(rest), _) => format!("include{rest}"),
            (_, Some(rest)) => format!("exclude{rest}"),
            _ => return false,
        };
        distance(&other) <= near
    };
    plain
        .filter(|(near, candidate)| !inverts(candidate, *near))
        .chain(called)
        .min_by_key(|(near, _)| *near)
        .filter(|(near, _)| *near <= 1 + word.chars().count() / 3)
        .map(|(_, candidate)| candidate)
}

/// What a key of a map is, as [`Tree::fields`] is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// This field.
    Known(&'static str),
    /// This field in a spelling that is accepted with a warning.
    Respelt(&'static str),
    /// None.
    Unknown,
}

/// The fields of a map that are there and not null, under their proper names.
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(&'static str, &'a Entry)>);

impl<'a> Fields<'a> {
    /// The field's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Tree> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// The field's entry.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&'a Entry> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, entry)| *entry)
    }

    /// All fields in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'a Entry)> + '_ {
        self.0.iter().copied()
    }
}

impl Tree {
    /// The value as a string. What YAML takes for a number or a boolean must be quoted.
    pub fn text(&self, problems: &mut Problems) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, quoted } if *quoted || !is_number_or_boolean(text) => Some(text),
            Value::Scalar { text, .. } => {
                let message = format!("expected a string, found `{text}`; write it in quotes: \"{text}\"");
                problems.error(&self.place, message);
                None
            }
            _ => {
                problems.error(&self.place, format!("expected a string, found {}", self.kind()));
                None
            }
        }
    }

    /// The value as a whole number within the bounds.
    pub fn integer(&self, low: u64, high: u64, problems: &mut Problems) -> Option<u64> {
        if let Value::Scalar { text, quoted: false } = &self.value
            && let Ok(number) = text.parse::<u64>()
            && (low..=high).contains(&number)
        {
            return Some(number);
        }
        problems.error(
            &self.place,
            format!("expected a whole number from {low} to {high}, found {}", self.kind()),
        );
        None
    }

    /// The value as `true` or `false`.
    pub fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        match &self.value {
            Value::Scalar { text, quoted: false } if is_true(text) => Some(true),
            Value::Scalar { text, quoted: false } if is_false(text) => Some(false),
            _ => {
                problems.error(&self.place, format!("expected true or false, found {}", self.kind()));
                None
            }
        }
    }

    /// The entries of a map by their proper names; `find` says what a key is, `known` lists the names for the
    /// message about an unknown one. Null values count as absent, as in JSON.
    pub fn fields(
        &self,
        what: &str,
        known: &[&str],
        find: impl Fn(&str) -> Key,
        problems: &mut Problems,
    ) -> Fields<'_> {
        let mut fields: Vec<(&'static str, &Entry)> = Vec::new();
        for entry in self.map(problems) {
            let name = match find(&entry.key) {
                Key::Known(name) => name,
                Key::Respelt(name) => {
                    problems.warning(&entry.place, format!("read as `{name}`; write it like that"));
                    name
                }
                Key::Unknown => {
                    problems.unknown(&entry.place, what, &entry.key, known);
                    continue;
                }
            };
            match fields.iter().find(|(taken, _)| *taken == name) {
                Some((_, first)) => {
                    let message =
                        format!("`{name}` stands here twice, first at {}; keep one", first.place.spot());
                    problems.error(&entry.place, message);
                }
                None => fields.push((name, entry)),
            }
        }
        fields.retain(|(_, entry)| !matches!(entry.value.value, Value::Null));
        Fields(fields)
    }

    /// The value as a list; null is an empty one.
    pub fn list(&self, problems: &mut Problems) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Null => &[],
            _ => {
                problems.error(&self.place, format!("expected a list, found {}", self.kind()));
                &[]
            }
        }
    }

    /// The value as a map; null is an empty one.
    pub fn map(&self, problems: &mut Problems) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Null => &[],
            _ => {
                problems.error(&self.place, format!("expected a map, found {}", self.kind()));
                &[]
            }
        }
    }

    /// What the value is, for messages.
    #[must_use]
    pub fn kind(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Scalar { text, quoted: true } => format!("the string \"{}\"", shown(text)),
            Value::Scalar { text, quoted: false } => format!("`{}`", shown(text)),
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a map".into(),
        }
    }
}

/// A text of the user's as it can stand in a message: not too long, and nothing in it that a terminal obeys.
fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    let mut shown = String::new();
    for c in text.chars().take(CHARS_MAX) {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    if text.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

fn is_true(text: &str) -> bool {
    matches!(text, "true" | "True" | "TRUE")
}

fn is_false(text: &str) -> bool {
    matches!(text, "false" | "False" | "FALSE")
}

fn is_number_or_boolean(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    let prefixed = |prefix: &str, radix: u32| {
        digits
            .strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix)))
    };
    let decimal =
        digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && digits.parse::<f64>().is_ok();
    is_true(text) || is_false(text) || decimal || prefixed("0x", 16) || prefixed("0o", 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_quotes_is_short_and_harmless() {
        let kind = |text: &str| {
            Tree { place: Place::file("t"), value: Value::Scalar { text: text.into(), quoted: true } }.kind()
        };
        assert_eq!(kind("é\u{1b}[31m\n"), "the string \"é\\u{1b}[31m\\n\"");
        assert_eq!(kind(&"x".repeat(100)), format!("the string \"{}\"", "x".repeat(100)));
        assert_eq!(kind(&"é".repeat(10_000_000)), format!("the string \"{}…\"", "é".repeat(100)));
    }
}
