//! Some tasks of a text: the lines of the others taken out.

use super::layout::Layout;
use super::{Form, draft_name};
use crate::config::raw;
use crate::tree::{Tree, Value};

/// The text with these tasks only, each line of which stays as it is. `None` where the lines of one task cannot be told
/// from those of another.
pub(super) fn only(file: &str, text: &str, form: Form, only: &[&str]) -> Option<String> {
    let documents = raw::parse(file, text).ok()?;
    let layout = Layout::new(text)?;
    let wanted = |name: Option<&str>| name.is_some_and(|name| only.contains(&name));
    let mut out = String::new();
    if form == Form::Draft {
        out += text.get(..layout.line(head(&layout)))?;
        for (at, (place, root)) in documents.iter().enumerate() {
            let begins = if at == 0 { head(&layout) } else { place.line };
            let ends = documents.get(at + 1).map_or(layout.line_count() + 1, |(next, _)| next.line);
            let name = draft_name(root.as_ref()?).and_then(|name| word(&name.value));
            out += if wanted(name) { text.get(layout.line(begins)..layout.line(ends))? } else { "" };
        }
        return Some(out);
    }
    let [(_, Some(root))] = documents.as_slice() else { return None };
    let Value::Map(entries) = &root.value else { return None };
    let list = entries.iter().find(|entry| entry.key.eq_ignore_ascii_case("flowLogs"))?;
    let Value::List(tasks) = &list.value.value else { return None };
    let after = entries.iter().map(|entry| entry.place.line).filter(|line| *line > list.place.line).min();
    let items: Option<Vec<Item>> = tasks.iter().map(|task| Item::new(&layout, task)).collect();
    let items = items?;
    let first = items.first()?.begins;
    out += text.get(..layout.line(first))?;
    for (at, (task, item)) in tasks.iter().zip(&items).enumerate() {
        let next = items.get(at + 1).map(|next| next.begins);
        let to = next.or(after).unwrap_or(layout.line_count() + 1);
        let ends = item.ends(&layout, to);
        let (own, between) =
            (layout.line(item.begins)..layout.line(ends), layout.line(ends)..layout.line(to));
        let is_wanted = wanted(name(task));
        out += if is_wanted { text.get(own)? } else { "" };
        // What stands between two is nobody's; blank lines go with what is before them.
        let stays = is_wanted || next.is_none() || !layout.comments(ends, to).is_empty();
        out += if stays { text.get(between)? } else { "" };
    }
    let ends = after.map_or(text.len(), |line| layout.line(line));
    out += text.get(ends..)?;
    Some(out)
}

/// The line behind the comments of the whole file: those at its start that a blank line parts from what follows.
fn head(layout: &Layout<'_>) -> usize {
    let lines = (1..=layout.line_count()).map(|number| (number, layout.line_text(number).trim()));
    let comments = lines.take_while(|(_, text)| text.is_empty() || text.starts_with('#'));
    comments.filter(|(_, text)| text.is_empty()).last().map_or(1, |(number, _)| number + 1)
}

/// The name of a task.
pub(super) fn name(task: &Tree) -> Option<&str> {
    let Value::Map(entries) = &task.value else { return None };
    word(&entries.iter().find(|entry| entry.key.eq_ignore_ascii_case("name"))?.value)
}

fn word(tree: &Tree) -> Option<&str> {
    if let Value::Scalar { text, .. } = &tree.value { Some(text) } else { None }
}

/// Where an item of a list stands.
struct Item {
    /// Its first line, with the comments right above it that are not indented like what is inside of the one before.
    begins: usize,
    /// Its own first line, and how far that is indented.
    line: usize,
    indent: usize,
}

impl Item {
    /// `None` where other things stand on its first line.
    fn new(layout: &Layout<'_>, item: &Tree) -> Option<Self> {
        let line = item.place.line;
        let text = layout.line_text(line);
        let rest = text.trim_start_matches(' ').strip_prefix('-')?;
        if text.len() - rest.trim_start().len() + 1 != item.place.column {
            return None;
        }
        let indent = text.len() - rest.len() - 1;
        let is_its = |number: usize| is_comment_within(layout.line_text(number), indent);
        let above = (1..line).rev().take_while(|number| is_its(*number)).count();
        Some(Self { begins: line - above, line, indent })
    }

    /// The line behind its last one, where the next thing begins at line `to`: comments that are indented no more than it
    /// is, and blank lines, are not its own.
    fn ends(&self, layout: &Layout<'_>, to: usize) -> usize {
        let is_outside = |number: usize| {
            let text = layout.line_text(number);
            text.trim().is_empty() || is_comment_within(text, self.indent)
        };
        to - (self.line + 1..to).rev().take_while(|number| is_outside(*number)).count()
    }
}

fn is_comment_within(line: &str, indent: usize) -> bool {
    let text = line.trim_start();
    text.starts_with('#') && line.len() - text.len() <= indent
}
