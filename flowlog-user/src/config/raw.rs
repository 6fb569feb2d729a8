//! YAML text to [`Tree`], the only place that knows YAML. JSON is YAML too.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::escapes::{Moved, joined};
use crate::limits;
use crate::tree::{Entry, Place, Problem, Tree, Value};

/// A document: where it begins, and what stands in it, if anything.
pub(super) type Document = (Place, Option<Tree>);

/// Reads all documents of a file.
///
/// # Errors
///
/// The one place at which reading had to stop; after it nothing in the file can be trusted.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Document>, Problem> {
    let (text, moved) = joined(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut builder = Builder::new(file, moved);
    for event in Parser::new_from_str(&text) {
        let (event, span) = event.map_err(|error| Problem {
            place: builder.here(*error.marker()),
            message: format!("this is not YAML: {}", error.info().to_lowercase()),
        })?;
        builder.take(event, span)?;
    }
    Ok(builder.documents)
}

/// A list or map whose end has not come yet.
struct Open {
    place: Place,
    anchor: usize,
    items: Items,
}

enum Items {
    List(Vec<Tree>),
    Map { entries: Vec<Entry>, seen: HashMap<String, Place>, key: Option<(String, Place)> },
}

struct Builder {
    file: Arc<str>,
    moved: Moved,
    open: Vec<Open>,
    anchors: HashMap<usize, Tree>,
    nodes: usize,
    alias_nodes: usize,
    documents: Vec<Document>,
}

impl Builder {
    fn new(file: &str, moved: Moved) -> Self {
        Self {
            file: file.into(),
            moved,
            open: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            alias_nodes: 0,
            documents: Vec::new(),
        }
    }

    /// Key path of the value that comes next.
    fn path(&self) -> String {
        match self.open.last() {
            None => String::new(),
            Some(Open { place, items: Items::List(items), .. }) => format!("{}[{}]", place.path, items.len()),
            Some(Open { place, items: Items::Map { key, .. }, .. }) => match key {
                Some((key, _)) if place.path.is_empty() => key.clone(),
                Some((key, _)) => format!("{}.{key}", place.path),
                None => place.path.clone(),
            },
        }
    }

    fn place(&self, mark: Marker, path: String) -> Place {
        // The parser counts columns from 0.
        let column = 1 + self.moved.column(mark.line(), mark.col());
        Place { file: Arc::clone(&self.file), line: mark.line(), column, path }
    }

    fn here(&self, mark: Marker) -> Place {
        self.place(mark, self.path())
    }

    fn fail<T>(&self, mark: Marker, message: impl Into<String>) -> Result<T, Problem> {
        Err(Problem { place: self.here(mark), message: message.into() })
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let mark = span.start;
        if matches!(event, Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..)) {
            self.nodes += 1;
            if self.nodes > limits::CONFIG_NODES_MAX {
                let max = limits::CONFIG_NODES_MAX;
                return self.fail(
                    mark,
                    format!("the file has more than {max} values; split it into several in one folder"),
                );
            }
        }
        match event {
            Event::DocumentStart(_) => {
                let place = self.place(mark, String::new());
                self.documents.push((place, None));
            }
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    return self.fail(mark, "YAML tags are not supported; write the value without its tag");
                }
                let place = self.here(mark);
                self.value(Tree { place, value: scalar(text.into_owned(), style) }, anchor)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(mark, anchor, tag.is_some(), Items::List(Vec::new()))?;
            }
            Event::MappingStart(anchor, tag) => {
                let items = Items::Map { entries: Vec::new(), seen: HashMap::new(), key: None };
                self.begin(mark, anchor, tag.is_some(), items)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { place, anchor, items }) = self.open.pop() {
                    let value = match items {
                        Items::List(items) => Value::List(items),
                        Items::Map { entries, .. } => Value::Map(entries),
                    };
                    self.value(Tree { place, value }, anchor)?;
                }
            }
            Event::Alias(anchor) => self.alias(mark, anchor)?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn begin(&mut self, mark: Marker, anchor: usize, tagged: bool, items: Items) -> Result<(), Problem> {
        if tagged {
            return self.fail(mark, "YAML tags are not supported; write the value without its tag");
        }
        if matches!(self.open.last(), Some(Open { items: Items::Map { key: None, .. }, .. })) {
            return self.fail(mark, "expected a key, found a list or map; write a plain word as the key");
        }
        if self.open.len() >= limits::CONFIG_DEPTH_MAX {
            let max = limits::CONFIG_DEPTH_MAX;
            return self
                .fail(mark, format!("lists and maps are nested deeper than {max}; no task needs that"));
        }
        let place = self.here(mark);
        self.open.push(Open { place, anchor, items });
        Ok(())
    }

    fn alias(&mut self, mark: Marker, anchor: usize) -> Result<(), Problem> {
        let Some(original) = self.anchors.get(&anchor) else {
            return self.fail(mark, "this alias stands inside what it names; write the value out");
        };
        self.alias_nodes += nodes(original);
        let depth = self.open.len() + depth(original);
        if self.alias_nodes > limits::CONFIG_ALIAS_NODES_MAX || depth > limits::CONFIG_DEPTH_MAX {
            return self.fail(mark, "aliases repeat too much; write the values out or use fewer aliases");
        }
        let mut copy = original.clone();
        let (from, to) = (copy.place.path.len(), self.path());
        rebase(&mut copy, from, &to);
        self.value(copy, 0)
    }

    /// A whole value: goes to the list or map that is open, as key or as value.
    fn value(&mut self, tree: Tree, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.anchors.insert(anchor, tree.clone());
        }
        match self.open.last_mut() {
            None => {
                if let Some((_, root)) = self.documents.last_mut() {
                    *root = Some(tree).filter(|tree| !matches!(tree.value, Value::Null));
                }
            }
            Some(Open { items: Items::List(items), .. }) => items.push(tree),
            Some(Open { items: Items::Map { entries, seen, key }, .. }) => match key.take() {
                Some((name, place)) => entries.push(Entry { key: name, place, value: tree }),
                None => *key = Some(new_key(tree, seen)?),
            },
        }
        Ok(())
    }
}

/// Makes a key of a scalar, unless the map has it already.
fn new_key(tree: Tree, seen: &mut HashMap<String, Place>) -> Result<(String, Place), Problem> {
    let Tree { mut place, value } = tree;
    let Value::Scalar { text, quoted } = value else {
        return Err(Problem {
            place,
            message: "expected a key, found nothing; write a plain word as the key".into(),
        });
    };
    if !place.path.is_empty() {
        place.path.push('.');
    }
    place.path.push_str(&text);
    if text == "<<" && !quoted {
        return Err(Problem { place, message: "merge keys are not supported; write the keys out".into() });
    }
    if let Some(first) = seen.get(&text) {
        let message = format!("`{text}` stands here twice, first at {}; keep one", first.spot());
        return Err(Problem { place, message });
    }
    seen.insert(text.clone(), place.clone());
    Ok((text, place))
}

fn scalar(text: String, style: ScalarStyle) -> Value {
    let quoted = !matches!(style, ScalarStyle::Plain);
    if !quoted && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") {
        return Value::Null;
    }
    Value::Scalar { text, quoted }
}

fn nodes(tree: &Tree) -> usize {
    1 + match &tree.value {
        Value::List(items) => items.iter().map(nodes).sum(),
        Value::Map(entries) => entries.iter().map(|entry| 1 + nodes(&entry.value)).sum(),
        Value::Null | Value::Scalar { .. } => 0,
    }
}

fn depth(tree: &Tree) -> usize {
    match &tree.value {
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Map(entries) => 1 + entries.iter().map(|entry| depth(&entry.value)).max().unwrap_or(0),
        Value::Null | Value::Scalar { .. } => 0,
    }
}

/// Gives a copied value the key path of the place where its alias stands; line and column stay the original's.
fn rebase(tree: &mut Tree, from: usize, to: &str) {
    let move_path = |path: &mut String| {
        let rest = path.get(from..).unwrap_or_default();
        *path = format!("{to}{rest}");
    };
    move_path(&mut tree.place.path);
    match &mut tree.value {
        Value::List(items) => items.iter_mut().for_each(|item| rebase(item, from, to)),
        Value::Map(entries) => {
            for entry in entries {
                move_path(&mut entry.place.path);
                rebase(&mut entry.value, from, to);
            }
        }
        Value::Null | Value::Scalar { .. } => {}
    }
}
