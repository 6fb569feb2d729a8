//! A configuration tree that knows where each of its nodes stands; rooms read their `Spec` from it.
//!
//! In: built by `config` (the only one that knows YAML). Out: nodes with file, line, column and key path, and
//! [`Problems`], the list of everything that is wrong. What never happens here: I/O, stopping at the first error.

use std::fmt;
use std::sync::Arc;

/// Where a node stands. Line and column count from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// Key path, e.g. `flowLogs[2].includeFilters[0].source_ip`.
    pub path: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        Ok(())
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
}

impl Problems {
    /// Notes an error.
    pub fn error(&mut self, place: &Place, message: impl Into<String>) {
        self.errors.push(Problem { place: place.clone(), message: message.into() });
    }

    /// Notes a warning.
    pub fn warning(&mut self, place: &Place, message: impl Into<String>) {
        self.warnings.push(Problem { place: place.clone(), message: message.into() });
    }

    /// Notes a word that is none of `known`, with the nearest one.
    pub fn unknown(&mut self, place: &Place, what: &str, word: &str, known: &[&str]) {
        let nearest = known
            .iter()
            .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance <= 1 + word.len() / 3);
        match nearest {
            Some((_, candidate)) => self.error(place, format!("unknown {what} `{word}`; did you mean `{candidate}`?")),
            None => self.error(place, format!("unknown {what} `{word}`; expected one of {}", known.join(", "))),
        }
    }
}

impl Tree {
    /// The value as a string: any scalar that is not null.
    pub fn text(&self, problems: &mut Problems) -> Option<&str> {
        if let Value::Scalar { text, .. } = &self.value {
            return Some(text);
        }
        problems.error(&self.place, format!("expected a string, found {}", self.kind()));
        None
    }

    /// The value as a whole number within the bounds.
    pub fn integer(&self, low: u64, high: u64, problems: &mut Problems) -> Option<u64> {
        if let Value::Scalar { text, quoted: false } = &self.value
            && let Ok(number) = text.parse::<u64>()
            && (low..=high).contains(&number)
        {
            return Some(number);
        }
        problems.error(&self.place, format!("expected a whole number from {low} to {high}, found {}", self.kind()));
        None
    }

    /// The value as `true` or `false`.
    pub fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        match &self.value {
            Value::Scalar { text, quoted: false } if text == "true" => Some(true),
            Value::Scalar { text, quoted: false } if text == "false" => Some(false),
            _ => {
                problems.error(&self.place, format!("expected true or false, found {}", self.kind()));
                None
            }
        }
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
            Value::Scalar { text, quoted: true } => format!("the string \"{text}\""),
            Value::Scalar { text, quoted: false } => format!("`{text}`"),
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a map".into(),
        }
    }
}
