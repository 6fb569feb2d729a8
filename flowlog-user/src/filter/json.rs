//! Protobuf's JSON mapping as Hubble reads filters with it: strict about types.

use crate::tree::{Fields, Key, Problems, Tree, Value};

/// A field of a message: its proto name and its JSON name.
pub(super) type Name = (&'static str, &'static str);

/// Reads the values of a repeated field; those that are wrong are noted and left out. `None` when none remain, since
/// an empty list equals an absent field.
pub(super) fn list<T>(
    tree: &Tree,
    problems: &mut Problems,
    mut read: impl FnMut(&Tree, &mut Problems) -> Option<T>,
) -> Option<Vec<T>> {
    if let Value::Scalar { .. } = tree.value {
        let found = tree.kind();
        problems.error(&tree.place, format!("expected a list, found {found}; write it in brackets: [...]"));
        return None;
    }
    let mut values = Vec::new();
    for item in tree.list(problems) {
        values.extend(read(item, problems));
    }
    Some(values).filter(|values| !values.is_empty())
}

/// The fields of a message, by proto name; both spellings are accepted.
pub(super) fn message<'a>(tree: &'a Tree, what: &str, names: &[Name], problems: &mut Problems) -> Fields<'a> {
    if let Value::Null = tree.value {
        problems
            .error(&tree.place, format!("expected a map, found {}; write {{}} or remove it", tree.kind()));
        return Fields::default();
    }
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let find = |key: &str| match names.iter().find(|(name, camel)| key == *name || key == *camel) {
        Some((name, _)) => Key::Known(name),
        None => Key::Unknown,
    };
    tree.fields(what, &known, find, problems)
}

/// A `uint32`: a number, or a number in quotes.
pub(super) fn unsigned(tree: &Tree, problems: &mut Problems) -> Option<u32> {
    number(tree, problems)
}

/// A `uint64`: a number, or a number in quotes.
pub(super) fn unsigned_long(tree: &Tree, problems: &mut Problems) -> Option<u64> {
    number(tree, problems)
}

/// An `int32`: a number, or a number in quotes.
pub(super) fn signed(tree: &Tree, problems: &mut Problems) -> Option<i32> {
    number(tree, problems)
}

fn number<T: Bounded>(tree: &Tree, problems: &mut Problems) -> Option<T> {
    let number = scalar(tree).filter(|text| !text.starts_with('+')).and_then(|text| text.parse().ok());
    if number.is_none() {
        problems.error(&tree.place, format!("expected a whole number {}, found {}", T::BOUNDS, tree.kind()));
    }
    number
}

trait Bounded: std::str::FromStr {
    const BOUNDS: &'static str;
}

impl Bounded for u32 {
    const BOUNDS: &'static str = "from 0 to 4294967295";
}

impl Bounded for u64 {
    const BOUNDS: &'static str = "from 0 to 18446744073709551615";
}

impl Bounded for i32 {
    const BOUNDS: &'static str = "from -2147483648 to 2147483647";
}

/// The text of a scalar, quoted or not.
pub(super) fn scalar(tree: &Tree) -> Option<&str> {
    match &tree.value {
        Value::Scalar { text, .. } => Some(text),
        _ => None,
    }
}
