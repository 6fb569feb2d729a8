use super::json;
use crate::tree::{Problems, Tree};

/// Values of `is_reply`, one of which must be the flow's. A flow that has none matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replies(Vec<bool>);

impl Replies {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, Tree::boolean).map(Self)
    }

    pub(super) fn matches(&self, is_reply: Option<bool>) -> bool {
        is_reply.is_some_and(|is_reply| self.0.contains(&is_reply))
    }
}
