use super::json;
use crate::record::Message;
use crate::tree::{Problems, Tree};

/// CEL expressions, one of which must be true of the flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expressions(Vec<String>);

impl Expressions {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            problems.error(&item.place, "CEL is not served by this version yet; remove it");
            None
        })
        .map(Self)
    }

    pub(super) fn matches(&self, _flow: &Message) -> bool {
        self.0.is_empty()
    }
}
