//! Pools of addresses: manifests of Cilium's `CiliumPodIPPool` and our own `AddressPool` in, one division of the address
//! space out.

mod cilium;
mod join;
mod own;
mod ranges;
mod selector;

use std::fmt;

use super::resources::{get, kind};
use crate::filter::is_pool_name;
use crate::limits::POOL_BLOCKS_MAX;
use crate::record::Pool;
use crate::tree::{Key, Place, Problems, Tree};

pub use join::Joined;
pub(super) use join::{Other, join};

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

impl PoolForm {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::CiliumV2alpha1, Self::CiliumV2, Self::Own];
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

/// The kinds of pools.
pub(super) const KINDS: [&str; 2] = [cilium::KIND, own::KIND];

/// Whether a document is a pool, by its kind.
pub(super) fn is_one(document: &Tree) -> bool {
    kind(document).is_some_and(|kind| KINDS.contains(&kind))
}

/// Reads a pool, noting everything that is wrong with it.
pub(super) fn read(document: &Tree, problems: &mut Problems) -> Option<Defined> {
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
