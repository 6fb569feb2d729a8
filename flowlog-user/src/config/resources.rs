//! Resources as Kubernetes prints them: one in each document, or several in the `items` of a list.

use super::pools;
use super::raw::Document;
use super::versions::Form;
use crate::tree::{Problems, Tree, Value};

/// Kubernetes' own list, as `kubectl get -o yaml` prints several, and what lists of one kind are called.
pub(super) const LIST: &str = "List";
const OWN_LISTS: [&str; 3] = ["CiliumPodIPPoolList", "AddressPoolList", "FlowLogList"];

/// The resources of all documents, those of lists one by one. A document that is no list is one, whatever it is. `None`
/// where there is nothing in them and that is meant: a list without items.
pub(super) fn all<'a>(documents: &'a [Document], problems: &mut Problems) -> Option<Vec<&'a Tree>> {
    let mut found = Vec::new();
    let mut is_meant = false;
    for root in documents.iter().filter_map(|(_, root)| root.as_ref()) {
        if !is_list(root) {
            found.push(root);
            continue;
        }
        let Some(items) = get(root, "items") else {
            problems.error(&root.place, "a list has `items`; add them, or remove the document");
            continue;
        };
        is_meant = true;
        found.extend(items.list(problems).iter().filter(|item| belongs(item, problems)));
    }
    of_one_sort(&found, problems);
    (!found.is_empty() || !is_meant).then_some(found)
}

/// Whether a document is a list of resources.
pub(super) fn is_list(document: &Tree) -> bool {
    kind(document).is_some_and(|kind| kind == LIST || OWN_LISTS.contains(&kind))
}

/// Whether an item is what lists may hold.
fn belongs(item: &Tree, problems: &mut Problems) -> bool {
    let belongs = pools::is_one(item) || is_draft(item);
    if !belongs {
        let kinds = [pools::KINDS.as_slice(), &["FlowLog"]].concat().join(", ");
        let message = match kind(item) {
            Some(kind) => format!("expected one of the kinds {kinds}, found `{kind}`; remove it"),
            None => format!("apiVersion and kind are missing; write into each item which of {kinds} it is"),
        };
        problems.error(&item.place, message);
    }
    belongs
}

fn is_draft(item: &Tree) -> bool {
    Form::of(item, &mut Problems::default()) == Some(Form::Draft)
}

/// Pools and tasks may not stand in one file.
fn of_one_sort(found: &[&Tree], problems: &mut Problems) {
    let is_pool = |tree: &&&Tree| pools::is_one(tree);
    if let (Some(_), Some(task)) = (found.iter().find(is_pool), found.iter().find(|tree| is_draft(tree))) {
        problems.error(&task.place, "a task among pools; put tasks and pools into files of their own");
    }
}

/// What a document says it is.
pub(super) fn kind(document: &Tree) -> Option<&str> {
    match &get(document, "kind")?.value {
        Value::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

/// The value of a key.
pub(super) fn get<'a>(tree: &'a Tree, key: &str) -> Option<&'a Tree> {
    let Value::Map(entries) = &tree.value else { return None };
    let found = entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
    found.filter(|tree| !matches!(tree.value, Value::Null))
}
