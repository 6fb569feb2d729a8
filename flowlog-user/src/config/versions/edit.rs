//! Conversions as edits of a text, which leave everything alone that is not part of the form. `None` where a text is laid
//! out in a way that these do not know.

use std::ops::Range;
use std::path::Path;

use super::layout::Layout;
use super::mark::{KEY, Mark};
use super::tree::{file_path, renamed};
use super::{Form, draft_name};
use crate::config::raw::Document;
use crate::tree::{Entry, Place, Tree, Value};

/// Pieces of the text and what stands there instead.
type Edits = Vec<(Range<usize>, String)>;

fn apply(text: &str, range: Range<usize>, mut edits: Edits) -> Option<String> {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut out, mut at) = (String::new(), range.start);
    for (piece, instead) in edits {
        out += text.get(at..piece.start)?;
        out += &instead;
        at = piece.end;
    }
    out += text.get(at..range.end)?;
    Some(out)
}

/// Changes `apiVersion`, `kind` and the mark of a document whose tasks stay as they are.
pub(super) fn header(layout: &Layout<'_>, root: &Tree, to: Form, mark: Option<&Mark>) -> Option<String> {
    let Value::Map(entries) = &root.value else { return None };
    let start = layout.at(&root.place)?;
    let wanted = to.header().map(|(version, kind)| [("apiVersion", version), ("kind", kind)]);
    let mut edits = Edits::new();
    let (mut missing, mut first) = (Vec::new(), None);
    if layout.text.get(start..)?.starts_with('{') {
        let is_header = |entry: &Entry| matches!(entry.key.as_str(), "apiVersion" | "kind" | KEY);
        if entries.iter().any(is_header) {
            return None;
        }
        let quoted = wanted.into_iter().flatten().map(|(key, value)| format!("\"{key}\": \"{value}\", "));
        let mark = mark.map(|mark| format!("\"{KEY}\": {mark}, "));
        edits.push((start + 1..start + 1, quoted.chain(mark).collect()));
        return apply(layout.text, 0..layout.text.len(), edits);
    }
    for (at, key) in ["apiVersion", "kind"].into_iter().enumerate() {
        let found = entries.iter().find(|entry| entry.key == key);
        let value = wanted.and_then(|wanted| wanted.get(at).copied()).map(|(_, value)| value);
        match (found, value) {
            (Some(entry), Some(value)) => edits.push((scalar(layout, &entry.value)?, value.into())),
            (Some(entry), None) => edits.push(gone(layout, entries, entry)?),
            (None, Some(value)) => missing.push(format!("{key}: {value}")),
            (None, None) => {}
        }
    }
    if let Some(entry) = entries.iter().find(|entry| entry.key == KEY) {
        edits.push(gone(layout, entries, entry)?);
    }
    missing.extend(mark.map(|mark| format!("{KEY}: {mark}")));
    for entry in entries {
        first.get_or_insert(entry);
    }
    let first: &Entry = first?;
    let (line, indent) = (layout.line(first.place.line), " ".repeat(first.place.column.saturating_sub(1)));
    let missing: String = missing.iter().map(|line| format!("{indent}{line}\n")).collect();
    edits.push((line..line, missing));
    apply(layout.text, 0..layout.text.len(), edits)
}

/// Where the text of a plain or quoted scalar stands, quotes included.
fn scalar(layout: &Layout<'_>, tree: &Tree) -> Option<Range<usize>> {
    let Value::Scalar { text, .. } = &tree.value else { return None };
    word(layout, &tree.place, text)
}

/// Where a word stands that begins at a place, quotes included.
fn word(layout: &Layout<'_>, place: &Place, word: &str) -> Option<Range<usize>> {
    let at = layout.at(place)?;
    let rest = layout.text.get(at..)?;
    let quoted = ['"', '\''].map(|quote| format!("{quote}{word}{quote}"));
    let found = quoted.iter().map(String::as_str).chain([word]).find(|form| rest.starts_with(form))?;
    Some(at..at + found.len())
}

/// Takes an entry of a block map away; its comments stay.
fn gone(layout: &Layout<'_>, entries: &[Entry], entry: &Entry) -> Option<(Range<usize>, String)> {
    let from = entry.place.line;
    let next = entries.iter().map(|other| other.place.line).filter(|line| *line > from).min();
    let to = match &entry.value.value {
        Value::Scalar { .. } => from + 1,
        _ => next.unwrap_or(layout.line_count() + 1),
    };
    let shared = entries.iter().filter(|other| (from..to).contains(&other.place.line)).count() > 1;
    let indent = " ".repeat(entry.place.column.saturating_sub(1));
    let comments = layout.comments(from, to).into_iter().map(|comment| format!("{indent}{comment}\n"));
    (!shared).then(|| (layout.line(from)..layout.line(to), comments.collect()))
}

/// Makes a list of tasks of resources, each in a document of its own.
pub(super) fn from_draft(
    layout: &Layout<'_>,
    documents: &[Document],
    folder: &Path,
    mark: Option<&Mark>,
) -> Option<String> {
    let documents: Vec<(usize, &Tree)> =
        documents.iter().filter_map(|(place, root)| Some((place.line, root.as_ref()?))).collect();
    let (_, first) = documents.first()?;
    let Value::Map(entries) = &first.value else { return None };
    let head = entries.iter().map(|entry| entry.place.line).min()?;
    let mut out = layout.text.get(..layout.line(head))?.to_owned();
    let (version, kind) = Form::V1.header()?;
    out += &format!("apiVersion: {version}\nkind: {kind}\n");
    out += &mark.map(|mark| format!("{KEY}: {mark}\n")).unwrap_or_default();
    out += "flowLogs:\n";
    for (at, (begins, document)) in documents.iter().enumerate() {
        let from = if at == 0 { head } else { *begins };
        let to = documents.get(at + 1).map_or(layout.line_count() + 1, |(line, _)| *line);
        out += &item(layout, document, from, to, folder)?;
    }
    Some(out)
}

/// A resource in the lines from `from` to before `to`.
fn item(layout: &Layout<'_>, document: &Tree, from: usize, to: usize, folder: &Path) -> Option<String> {
    let Value::Map(entries) = &document.value else { return None };
    let name = draft_name(document)?;
    let line = name.place.line;
    let Value::Scalar { text: name, .. } = &name.value.value else { return None };
    let spec = entries.iter().find(|entry| entry.key == "spec")?;
    let Value::Map(keys) = &spec.value.value else { return None };
    let (begins, column) = (keys.first()?.place.line, keys.first()?.place.column);
    let after = entries.iter().map(|entry| entry.place.line).filter(|line| *line > spec.place.line).min();
    let ends = after.unwrap_or(to);
    if begins <= spec.place.line || keys.iter().any(|key| key.place.column != column) {
        return None;
    }
    // What stands between is about the first key.
    let begins = spec.place.line + 1;
    let mut out = String::new();
    let outside = (from..begins).chain(ends..to).filter(|number| *number != line);
    for comment in outside.filter_map(|number| layout.comment(number)) {
        out += &format!("  {comment}\n");
    }
    let beside = layout.comment(line).map(|comment| format!(" {comment}")).unwrap_or_default();
    out += &format!("  - name: {}{beside}\n", plain(name));
    out += &format!("    filePath: {}\n", plain(&file_path(name, folder)));
    let mut edits = Edits::new();
    for key in keys.iter().filter(|key| renamed(&key.key) != key.key) {
        edits.push((word(layout, &key.place, &key.key)?, renamed(&key.key).into()));
    }
    let body = apply(layout.text, layout.line(begins)..layout.line(ends), edits)?;
    for line in body.lines() {
        let rest = line.trim_start_matches(' ');
        let indent = (line.len() - rest.len() + 4).saturating_sub(column - 1);
        if rest == "---" || rest == "..." {
            return None;
        }
        out += &if rest.is_empty() { "\n".to_owned() } else { format!("{}{rest}\n", " ".repeat(indent)) };
    }
    Some(out)
}

/// A text as a scalar of YAML.
pub(super) fn plain(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let rest = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte));
    let word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if first && rest && !word { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
