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
        for (at, (place, root)) in documents.iter().enumerate() {
            let begins = if at == 0 { 1 } else { place.line };
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
    let starts: Option<Vec<usize>> = tasks.iter().map(|task| starts(&layout, task)).collect();
    let starts = starts?;
    let after = entries.iter().map(|entry| entry.place.line).filter(|line| *line > list.place.line).min();
    let ends = ends(&layout, *starts.last()?, after.unwrap_or(layout.line_count() + 1));
    out += text.get(..layout.line(*starts.first()?))?;
    for (at, (task, begins)) in tasks.iter().zip(&starts).enumerate() {
        let to = starts.get(at + 1).copied().unwrap_or(ends);
        out += if wanted(name(task)) { text.get(layout.line(*begins)..layout.line(to))? } else { "" };
    }
    out += text.get(layout.line(ends)..)?;
    Some(out)
}

/// The name of a task.
pub(super) fn name(task: &Tree) -> Option<&str> {
    let Value::Map(entries) = &task.value else { return None };
    word(&entries.iter().find(|entry| entry.key == "name")?.value)
}

fn word(tree: &Tree) -> Option<&str> {
    if let Value::Scalar { text, .. } = &tree.value { Some(text) } else { None }
}

/// The line at which an item of a list begins, with the comments right above it.
fn starts(layout: &Layout<'_>, item: &Tree) -> Option<usize> {
    let line = layout.line_text(item.place.line);
    let rest = line.trim_start_matches(' ').strip_prefix('-')?;
    if line.len() - rest.trim_start().len() + 1 != item.place.column {
        return None;
    }
    let is_comment = |number: usize| layout.line_text(number).trim_start().starts_with('#');
    let above = (1..item.place.line).rev().take_while(|number| is_comment(*number)).count();
    Some(item.place.line - above)
}

/// The line behind the last item of a list: comments that are indented less are not its own.
fn ends(layout: &Layout<'_>, last: usize, to: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let item =
        (last..to).map(|number| layout.line_text(number)).find(|line| line.trim_start().starts_with('-'));
    let inside = item.map_or(0, indent);
    let is_outside = |number: usize| {
        let line = layout.line_text(number);
        line.is_empty() || line.trim_start().starts_with('#') && indent(line) <= inside
    };
    let outside = (last..to).rev().take_while(|number| is_outside(*number)).count();
    to - outside
}
