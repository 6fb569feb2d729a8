use std::hash::{Hash, Hasher};

use regex::bytes::{Regex, RegexBuilder};

use super::{json, re2};
use crate::limits::{REGEX_BYTES_MAX, REGEX_DEPTH_MAX};
use crate::tree::{Problems, Tree};

/// Regular expressions in RE2's syntax, one of which must be found in the flow's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Patterns(Vec<Pattern>);

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    source: String,
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// What RE2 does not accept, and what is too large.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        let translated = re2::translate(source)?;
        let regex = RegexBuilder::new(&translated)
            .size_limit(REGEX_BYTES_MAX)
            .nest_limit(REGEX_DEPTH_MAX)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(limit) => {
                    format!("it takes more than {limit} bytes when compiled; make it smaller")
                }
                error => error.to_string().lines().last().unwrap_or_default().replace("error: ", ""),
            })?;
        Ok(Self { source: source.to_owned(), regex })
    }

    /// Whether it is found anywhere in the text.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }
}

impl Patterns {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            Pattern::new(text)
                .map_err(|what| {
                    problems.error(&item.place, format!("`{text}` is no regular expression: {what}"));
                })
                .ok()
        })
        .map(Self)
    }

    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.0.iter().any(|pattern| pattern.is_in(text))
    }
}
