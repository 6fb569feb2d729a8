use super::json;
use crate::tree::{Problems, Tree};

/// Numeric identities, one of which must be the endpoint's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identities(Vec<u32>);

impl Identities {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, json::unsigned).map(Self)
    }

    pub(super) fn matches(&self, identity: Option<u32>) -> bool {
        identity.is_some_and(|identity| self.0.contains(&identity))
    }
}
