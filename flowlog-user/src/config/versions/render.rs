//! A tree as a text, for texts that cannot be edited.

use super::edit::plain;
use crate::tree::{Entry, Tree, Value};

/// As YAML in block style, each line indented by `indent` and with its end.
pub(super) fn yaml(tree: &Tree, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match &tree.value {
        Value::Map(entries) if !entries.is_empty() => entries
            .iter()
            .map(|entry| format!("{pad}{}{}", plain(&entry.key), after_colon(entry, indent)))
            .collect(),
        Value::List(items) if !items.is_empty() => items
            .iter()
            .map(|item| {
                let text = yaml(item, indent + 2);
                format!("{pad}- {}", text.get(indent + 2..).unwrap_or_default())
            })
            .collect(),
        _ => format!("{pad}{}\n", json(tree)),
    }
}

fn after_colon(entry: &Entry, indent: usize) -> String {
    let is_empty = match &entry.value.value {
        Value::Map(entries) => entries.is_empty(),
        Value::List(items) => items.is_empty(),
        _ => true,
    };
    if is_empty {
        format!(": {}\n", json(&entry.value))
    } else {
        format!(":\n{}", yaml(&entry.value, indent + 2))
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
