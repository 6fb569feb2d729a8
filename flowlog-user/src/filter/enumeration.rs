use super::json;
use crate::record::schema::Enumeration;
use crate::tree::{Problems, Tree, Value, hint, nearest};

/// Numbers of an enum, one of which must be the flow's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Numbers(Vec<i32>);

/// Names that a message lists when none is near.
const NAMES_LISTED_MAX: usize = 16;

impl Numbers {
    /// Reads names (case counts) or numbers.
    pub(super) fn read(tree: &Tree, of: &Enumeration, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| read(item, of, problems)).map(Self)
    }

    pub(super) fn matches(&self, number: i32) -> bool {
        self.0.contains(&number)
    }
}

fn read(item: &Tree, of: &Enumeration, problems: &mut Problems) -> Option<i32> {
    let Value::Scalar { text, quoted } = &item.value else {
        problems.error(&item.place, format!("expected a name or number, found {}", item.kind()));
        return None;
    };
    if let Some(number) = of.number_of(text) {
        return Some(number);
    }
    // Enums are open: a number without a name is allowed and equals nothing.
    if !quoted && let Ok(number) = text.parse() {
        return Some(number);
    }
    let known: Vec<&str> = of.values.iter().map(|(name, _)| *name).collect();
    let hint = match nearest(text, &known) {
        None if known.len() > NAMES_LISTED_MAX => format!("expected a name of Hubble's {}", of.name),
        _ => hint(text, &known),
    };
    problems.error(&item.place, format!("unknown value `{text}`; {hint}"));
    None
}
