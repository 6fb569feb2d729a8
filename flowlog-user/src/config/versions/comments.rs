//! Which comment belongs to what: one that stands alone to what comes next, one at the end of a line to that line.

use std::collections::{BTreeMap, BTreeSet};

use super::layout::Layout;
use crate::tree::{Place, Tree, Value};

/// The comments of a text that have not been written yet.
pub(super) struct Comments {
    before: BTreeMap<Spot, Vec<String>>,
    beside: BTreeMap<Spot, String>,
    after: Vec<String>,
}

/// A place: two that begin together are told apart by their paths, the inner one of which has the comment.
type Spot = (usize, usize, String);

fn spot(place: &Place) -> Spot {
    (place.line, place.column, place.path.clone())
}

impl Comments {
    /// Finds what each comment of a text belongs to among the keys and list items of these trees; `begins`: the lines at
    /// which further documents begin.
    pub(super) fn new(layout: &Layout<'_>, trees: &[Tree], begins: &[usize]) -> Self {
        let mut spots = BTreeSet::new();
        trees.iter().for_each(|tree| collect(tree, &mut spots));
        let mut comments = Self { before: BTreeMap::new(), beside: BTreeMap::new(), after: Vec::new() };
        for (line, column, text) in layout.placed_comments() {
            let text = text.trim_end().to_owned();
            let mut on_line = spots.range((line, 0, String::new())..(line, column, String::new()));
            if let Some(spot) = on_line.next_back() {
                comments.beside.insert(spot.clone(), text);
                continue;
            }
            // What follows in the same document, else what came last in it.
            let end = begins.iter().copied().find(|begins| *begins > line).unwrap_or(usize::MAX);
            let next =
                spots.range((line, 0, String::new())..).next().map(|(line, column, _)| (*line, *column));
            let same = |(line, column): (usize, usize)| {
                spots.range((line, column, String::new())..(line, column + 1, String::new())).next_back()
            };
            let next = next.filter(|(line, _)| *line < end).and_then(same);
            let last = || spots.range(..(line, 0, String::new())).next_back();
            match (next, begins.iter().any(|begins| *begins > line)) {
                (Some(spot), _) => comments.before.entry(spot.clone()).or_default().push(text),
                (None, true) => match last() {
                    Some(spot) => comments.before.entry(spot.clone()).or_default().push(text),
                    None => comments.after.push(text),
                },
                (None, false) => comments.after.push(text),
            }
        }
        comments
    }

    /// Takes the comments that stand above a place, as lines.
    pub(super) fn above(&mut self, place: &Place, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let comments = self.before.remove(&spot(place)).unwrap_or_default();
        comments.iter().map(|comment| format!("{pad}{comment}\n")).collect()
    }

    /// Takes the comment at the end of a place's line, with the space before it.
    pub(super) fn beside(&mut self, place: &Place) -> String {
        self.beside.remove(&spot(place)).map(|comment| format!(" {comment}")).unwrap_or_default()
    }

    /// Takes what is left: lines at the end.
    pub(super) fn rest(self) -> String {
        let all = self.before.into_values().flatten().chain(self.beside.into_values()).chain(self.after);
        all.map(|comment| format!("{comment}\n")).collect()
    }
}

fn collect(tree: &Tree, spots: &mut BTreeSet<Spot>) {
    match &tree.value {
        Value::Map(entries) => {
            for entry in entries {
                spots.insert(spot(&entry.place));
                collect(&entry.value, spots);
            }
        }
        Value::List(items) => {
            for item in items {
                spots.insert(spot(&item.place));
                collect(item, spots);
            }
        }
        Value::Null | Value::Scalar { .. } => {}
    }
}
