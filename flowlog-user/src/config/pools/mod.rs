//! Pools of addresses: manifests of Cilium's `CiliumPodIPPool` and our own `AddressPool` in, one division of the address
//! space out.

mod cilium;
mod join;
mod own;
mod ranges;

use std::fmt;

use crate::filter::is_pool_name;
use crate::limits::POOL_BLOCKS_MAX;
use crate::record::Pool;
use crate::tree::{Key, Place, Problems, Tree, Value};

pub use join::Joined;
pub(super) use join::join;

/// A pool and where it was defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The pool.
    pub pool: Pool,
    /// Where its name stands.
    pub place: Place,
    /// In which form.
    pub form: PoolForm,
}

/// The forms of a pool, older ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PoolForm {
    /// Cilium's first one.
    CiliumV2alpha1,
    /// Cilium's.
    CiliumV2,
    /// `flowlog.io/v1`.
    Own,
}

impl fmt::Display for PoolForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CiliumV2alpha1 => "cilium.io/v2alpha1",
            Self::CiliumV2 => "cilium.io/v2",
            Self::Own => "flowlog.io/v1",
        })
    }
}

/// Kubernetes' own list, as `kubectl get -o yaml` prints several.
const LIST: &str = "List";

/// Whether a document is about pools, by its kind.
pub(super) fn is_one(document: &Tree) -> bool {
    matches!(kind(document), Some(cilium::KIND | cilium::LIST | own::KIND | LIST))
}

/// Reads the pools of a document, noting everything that is wrong with them.
pub(super) fn read(document: &Tree, problems: &mut Problems) -> Vec<Defined> {
    match kind(document) {
        Some(cilium::LIST | LIST) => {
            let Some(items) = get(document, "items") else {
                problems.error(&document.place, "a list has `items`; add them, or remove the document");
                return Vec::new();
            };
            let mut pools = Vec::new();
            for item in items.list(problems) {
                match kind(item) {
                    Some(cilium::KIND | own::KIND) => pools.extend(one(item, problems)),
                    other => {
                        let found = other.map_or_else(|| "nothing".to_owned(), |kind| format!("`{kind}`"));
                        let message = format!(
                            "expected kind {} or {}, found {found}; remove it",
                            cilium::KIND,
                            own::KIND
                        );
                        problems.error(&item.place, message);
                    }
                }
            }
            pools
        }
        _ => one(document, problems).into_iter().collect(),
    }
}

fn one(document: &Tree, problems: &mut Problems) -> Option<Defined> {
    let errors = problems.errors.len();
    let defined = match kind(document) {
        Some(own::KIND) => own::read(document, problems),
        _ => cilium::read(document, problems),
    }?;
    if problems.errors.len() == errors && defined.pool.blocks.is_empty() {
        let message = format!("pool `{}` has no addresses; give it some or remove it", defined.pool.name);
        problems.error(&defined.place, message);
    }
    if defined.pool.blocks.len() > POOL_BLOCKS_MAX {
        problems.error(&defined.place, format!("a pool has at most {POOL_BLOCKS_MAX} CIDRs and ranges"));
    }
    Some(defined)
}

fn kind(document: &Tree) -> Option<&str> {
    match &get(document, "kind")?.value {
        Value::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

/// The value of a key.
fn get<'a>(tree: &'a Tree, key: &str) -> Option<&'a Tree> {
    let Value::Map(entries) = &tree.value else { return None };
    let found = entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
    found.filter(|tree| !matches!(tree.value, Value::Null))
}

/// `metadata.name`; whatever else stands in `metadata` is somebody else's.
fn name(document: &Tree, problems: &mut Problems) -> Option<(Box<str>, Place)> {
    let Some(name) = get(document, "metadata").and_then(|metadata| get(metadata, "name")) else {
        problems.error(&document.place, "metadata.name is required; add one");
        return None;
    };
    let text = name.text(problems)?;
    if !is_pool_name(text) {
        let message = format!(
            "`{text}` is no name of a pool: expected small letters, digits, `-` and `.`, with a letter or digit at both \
             ends"
        );
        problems.error(&name.place, message);
        return None;
    }
    Some((text.into(), name.place.clone()))
}

fn known(keys: &'static [&'static str], key: &str) -> Key {
    keys.iter().find(|name| **name == key).map_or(Key::Unknown, |name| Key::Known(name))
}
