//! Selectors of Kubernetes in a pool, which say to whom Cilium gives its addresses: checked, and nothing else.

use super::known;
use crate::tree::{Problems, Tree};

const SELECTOR: &[&str] = &["matchLabels", "matchExpressions"];
const EXPRESSION: &[&str] = &["key", "operator", "values"];
const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

pub(super) fn check(selector: &Tree, problems: &mut Problems) {
    let fields = selector.fields("key", SELECTOR, |key| known(SELECTOR, key), problems);
    for entry in fields.get("matchLabels").map_or(&[][..], |labels| labels.map(problems)) {
        entry.value.text(problems);
    }
    for item in fields.get("matchExpressions").map_or(&[][..], |list| list.list(problems)) {
        expression(item, problems);
    }
}

fn expression(item: &Tree, problems: &mut Problems) {
    let errors = problems.errors.len();
    let fields = item.fields("key", EXPRESSION, |key| known(EXPRESSION, key), problems);
    let values = fields.get("values").map_or(&[][..], |values| values.list(problems));
    for value in values {
        value.text(problems);
    }
    if problems.errors.len() > errors {
        return;
    }
    let (Some(key), Some(operator)) = (fields.get("key"), fields.get("operator")) else {
        let missing = if fields.get("key").is_none() { "key" } else { "operator" };
        problems.error(&item.place, format!("{missing} is required; add it"));
        return;
    };
    key.text(problems);
    let Some(text) = operator.text(problems) else { return };
    match (text, values.is_empty()) {
        ("In" | "NotIn", true) => {
            problems.error(&item.place, format!("`{text}` needs values; add some"));
        }
        ("Exists" | "DoesNotExist", false) => {
            problems.error(&item.place, format!("`{text}` takes no values; remove them"));
        }
        _ if OPERATORS.contains(&text) => {}
        _ => problems.unknown(&operator.place, "operator", text, &OPERATORS),
    }
}
