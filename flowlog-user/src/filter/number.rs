use super::json;
use crate::tree::{Problems, Tree};

/// Numbers, one of which must be the flow's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unsigned(Vec<u64>);

impl Unsigned {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, json::unsigned_long).map(Self)
    }

    pub(super) fn matches(&self, number: u64) -> bool {
        self.0.contains(&number)
    }
}
