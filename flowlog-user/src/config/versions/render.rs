//! A tree as a text, for texts that cannot be edited.

use super::comments::Comments;
use super::edit::plain;
use crate::tree::{Entry, Tree, Value};

/// As YAML in block style, each line indented by `indent` and with its end; comments are taken from where they are.
pub(super) fn yaml(tree: &Tree, indent: usize, comments: &mut Comments) -> String {
    let pad = " ".repeat(indent);
    let mut out = String::new();
    match &tree.value {
        Value::Map(entries) if !entries.is_empty() => {
            for entry in entries {
                out += &comments.above(&entry.place, indent);
                out += &format!("{pad}{}", plain(&entry.key));
                out += &after_colon(entry, indent, comments);
            }
        }
        Value::List(items) if !items.is_empty() => {
            for item in items {
                out += &comments.above(&item.place, indent);
                if let Value::Map(entries) = &item.value
                    && let Some(first) = entries.first()
                {
                    out += &comments.above(&first.place, indent);
                }
                let beside = if is_line(item) { comments.beside(&item.place) } else { String::new() };
                let text = yaml(item, indent + 2, comments);
                let text = text.get(indent + 2..).unwrap_or_default().trim_end_matches('\n');
                out += &format!("{pad}- {text}{beside}\n");
            }
        }
        _ => out += &format!("{pad}{}\n", json(tree)),
    }
    out
}

/// Whether it is written in one line.
const fn is_line(tree: &Tree) -> bool {
    match &tree.value {
        Value::Map(entries) => entries.is_empty(),
        Value::List(items) => items.is_empty(),
        _ => true,
    }
}

fn after_colon(entry: &Entry, indent: usize, comments: &mut Comments) -> String {
    let beside = comments.beside(&entry.place);
    if is_line(&entry.value) {
        format!(": {}{beside}\n", json(&entry.value))
    } else {
        format!(":{beside}\n{}", yaml(&entry.value, indent + 2, comments))
    }
}

/// As JSON in one line.
pub(super) fn json(tree: &Tree) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    match &tree.value {
        Value::Null => "null".into(),
        // What was a number or a truth value stays one.
        Value::Scalar { text: word, quoted: false } if is_json(word) => word.clone(),
        Value::Scalar { text: word, .. } => text(word),
        Value::List(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| format!("{}: {}", text(&entry.key), json(&entry.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn is_json(word: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(word).is_ok_and(|value| value.is_number() || value.is_boolean())
}
