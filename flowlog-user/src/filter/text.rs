use super::json;
use crate::tree::{Problems, Tree};

/// Strings, one of which must be the flow's, letter for letter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Texts(Vec<String>);

impl Texts {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| item.text(problems).map(str::to_owned)).map(Self)
    }

    /// Reads names, none of which may be empty.
    pub(super) fn read_names(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            if text.is_empty() {
                problems.error(&item.place, "the name `` is empty; write one or remove the entry");
                return None;
            }
            Some(text.to_owned())
        })
        .map(Self)
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.any(|listed| listed == text)
    }

    /// Without regard to case, as methods of HTTP are compared.
    pub(super) fn matches_folded(&self, text: &str) -> bool {
        let fold = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
        let text = fold(text);
        self.any(|listed| fold(listed) == text)
    }

    pub(super) fn any(&self, test: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|listed| test(listed))
    }
}
