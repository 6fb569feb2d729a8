use super::json;
use crate::record::{Facts, VERDICT_DROPPED};
use crate::tree::{Problems, Tree};

/// Yes or no, one of which must be the flow's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replies(Vec<bool>);

impl Replies {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, Tree::boolean).map(Self)
    }

    /// Hubble leaves `is_reply` out of dropped flows; they count as no replies.
    pub(super) fn matches_reply(&self, facts: &impl Facts) -> bool {
        let is_reply = facts.is_reply().or_else(|| (facts.verdict() == VERDICT_DROPPED).then_some(false));
        is_reply.is_some_and(|is_reply| self.matches(is_reply))
    }

    pub(super) fn matches(&self, value: bool) -> bool {
        self.0.contains(&value)
    }
}
