use super::json;
use crate::tree::{Problems, Tree};

/// Pods or services as `namespace/prefix`, one of which must fit the flow's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespaced(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pattern {
    /// Empty stands for any.
    namespace: String,
    /// How the name begins.
    prefix: String,
}

/// Where a name without a slash is looked for.
const DEFAULT_NAMESPACE: &str = "default";

impl Namespaced {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            if text.is_empty() {
                let message = "`` is no name; expected `namespace/prefix`, `namespace/` or `/prefix`";
                problems.error(&item.place, message);
                return None;
            }
            let mut parts = text.split('/').map(str::to_owned);
            // What follows a second slash does not count.
            Some(match (parts.next().unwrap_or_default(), parts.next()) {
                (namespace, Some(prefix)) => Pattern { namespace, prefix },
                (prefix, None) => Pattern { namespace: DEFAULT_NAMESPACE.into(), prefix },
            })
        })
        .map(Self)
    }

    pub(super) fn matches(&self, namespace: &str, name: &str) -> bool {
        let named = !namespace.is_empty() || !name.is_empty();
        named
            && self.0.iter().any(|wanted| {
                (wanted.namespace.is_empty() || wanted.namespace == namespace)
                    && name.starts_with(&wanted.prefix)
            })
    }
}
