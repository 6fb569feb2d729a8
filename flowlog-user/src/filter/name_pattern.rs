use std::hash::{Hash, Hasher};

use regex::Regex;

use super::json;
use crate::limits::NAME_PATTERNS_BYTES_MAX;
use crate::record::Texts;
use crate::tree::{Problems, Tree};

/// Patterns of names in which `*` stands for any run of letters, digits, `-` and `.`.
#[derive(Clone, Debug)]
pub struct NamePatterns {
    patterns: Vec<String>,
    regex: Regex,
    /// For nodes whose name says no cluster: the node's part of the patterns that take the default one.
    bare: Option<Regex>,
}

impl PartialEq for NamePatterns {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl Eq for NamePatterns {}

impl Hash for NamePatterns {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.patterns.hash(state);
    }
}

/// Any name: components of letters, digits, `-` and `_`, with dots between them.
const ANY: &str = "(?:[-0-9_a-z]+(?:\\.[-0-9_a-z]+)*)";

/// The cluster of a node whose name does not say one.
const DEFAULT_CLUSTER: &str = "default";

impl NamePatterns {
    /// Reads patterns of DNS names.
    pub(super) fn read_fqdn(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        Self::read(tree, problems, |text| Ok((translate(text)?, None)))
    }

    /// Reads patterns of nodes: `cluster/node`, where an empty part, or none, stands for any.
    pub(super) fn read_node(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        Self::read(tree, problems, |text| {
            let (cluster, node) = match text.split('/').collect::<Vec<_>>()[..] {
                [""] => return Err("is empty; expected `cluster/node`, `cluster/` or `node`".into()),
                [node] => ("", node),
                [cluster, node] => (cluster, node),
                _ => {
                    return Err(
                        "has more than one slash; expected `cluster/node`, `cluster/` or `node`".into()
                    );
                }
            };
            let part = |part: &str| if part.is_empty() { Ok(ANY.into()) } else { translate(part) };
            let (cluster, node) = (part(cluster)?, part(node)?);
            let default =
                whole(std::slice::from_ref(&cluster)).is_ok_and(|regex| regex.is_match(DEFAULT_CLUSTER));
            Ok((format!("{cluster}/{node}"), default.then_some(node)))
        })
    }

    fn read(
        tree: &Tree,
        problems: &mut Problems,
        translate: impl Fn(&str) -> Result<(String, Option<String>), String>,
    ) -> Option<Self> {
        let mut patterns = Vec::new();
        let mut bare = Vec::new();
        let alternatives = json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            match translate(text) {
                Ok((pattern, node)) => {
                    patterns.push(text.to_owned());
                    bare.extend(node);
                    Some(pattern)
                }
                Err(what) => {
                    problems.error(&item.place, format!("the pattern `{text}` {what}"));
                    None
                }
            }
        })?;
        if alternatives.iter().map(String::len).sum::<usize>() > NAME_PATTERNS_BYTES_MAX {
            problems.error(&tree.place, "the patterns are too large; use fewer or shorter ones");
            return None;
        }
        let bare = if bare.is_empty() { None } else { whole(&bare).ok() };
        match whole(&alternatives) {
            Ok(regex) => Some(Self { patterns, regex, bare }),
            Err(error) => {
                problems.error(&tree.place, format!("the patterns are too large: {error}; use fewer"));
                None
            }
        }
    }

    /// Whether one of the names fits.
    pub(super) fn matches_any(&self, names: Texts<'_>) -> bool {
        names.iter().any(|name| self.regex.is_match(name))
    }

    /// Whether the node's name fits.
    pub(super) fn matches_node(&self, name: &str) -> bool {
        match name {
            "" => false,
            name if name.contains('/') => self.regex.is_match(name),
            name => self.bare.as_ref().is_some_and(|bare| bare.is_match(name)),
        }
    }
}

/// An expression that one of the alternatives is the whole of.
fn whole(alternatives: &[String]) -> Result<Regex, regex::Error> {
    Regex::new(&format!("\\A(?:{})\\z", alternatives.join("|")))
}

/// A pattern as a regular expression, or what is wrong with it.
fn translate(pattern: &str) -> Result<String, String> {
    let pattern = pattern.trim();
    let pattern = pattern.strip_suffix('.').unwrap_or(pattern).to_lowercase();
    if pattern.is_empty() {
        return Err("is empty; write a name, or * for any".into());
    }
    if pattern.ends_with('.') {
        return Err("ends in more than one dot; leave them out".into());
    }
    let mut regex = String::new();
    for c in pattern.chars() {
        match c {
            '.' => regex.push_str("\\."),
            '*' => regex.push_str("[-.0-9a-z]*"),
            '-' | '_' | '0'..='9' | 'a'..='z' => regex.push(c),
            _ => return Err(format!("has `{c}` in it; only letters, digits, `-`, `_`, `.` and `*` may be")),
        }
    }
    Ok(regex)
}
