use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ranges::range_shown;
use super::{Defined, PoolForm};
use crate::limits::POOL_BLOCKS_MAX;
use crate::record::{AddressSet, Overlap, Pools};
use crate::tree::Problem;

/// The pools of all files.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// As one division of the address space.
    pub pools: Arc<Pools>,
    /// Those that are in force, by name, with their files.
    pub defined: BTreeMap<Box<str>, (PathBuf, Defined)>,
    /// Pools that are not in force because somebody else has their name.
    pub refused: Vec<Problem>,
    /// What is allowed and worth knowing.
    pub warnings: Vec<Problem>,
}

/// A pool that has another definition than before.
pub(in crate::config) struct Other<'a> {
    pub(in crate::config) name: &'a str,
    pub(in crate::config) file: &'a Path,
    /// What is different.
    pub(in crate::config) what: String,
    /// It is an older version of the same.
    pub(in crate::config) is_older: bool,
}

/// Pairs of overlapping pools of which each is told.
const OVERLAPS_TOLD: usize = 20;

/// Joins the pools of files, given in byte order. Of Cilium's two versions of a pool the newer one counts. Of other pools
/// of one name that which is in force stays, and of new ones the first counts. `now` gives file and form of what is in
/// force of a name, which has these definitions.
pub(in crate::config) fn join<'a>(
    files: impl IntoIterator<Item = (&'a Path, &'a [Defined])>,
    now: impl Fn(&str, &[(&'a Path, &'a Defined)]) -> Option<(&'a Path, PoolForm)>,
) -> Joined {
    let mut joined = Joined::default();
    let mut by_name: BTreeMap<&str, Vec<(&Path, &Defined)>> = BTreeMap::new();
    for (file, pools) in files {
        for defined in pools {
            by_name.entry(&defined.pool.name).or_default().push((file, defined));
        }
    }
    let mut blocks = 0;
    for (name, all) in by_name {
        let Some((file, winner)) = counts(&all, now(name, &all)) else { continue };
        for (_, other) in all.iter().filter(|(_, other)| !std::ptr::eq(*other, winner)) {
            joined.tell(winner, other);
        }
        blocks += winner.pool.blocks.len();
        if blocks > POOL_BLOCKS_MAX {
            let message = format!(
                "all pools together have at most {POOL_BLOCKS_MAX} CIDRs and ranges; this one is left out"
            );
            joined.refused.push(Problem { place: winner.place.clone(), message });
            continue;
        }
        joined.defined.insert(name.into(), (file.to_owned(), winner.clone()));
    }
    let all: Vec<_> = joined.defined.values().map(|(_, defined)| defined.pool.clone()).collect();
    joined.pools = Arc::new(Pools::new(all));
    joined.overlaps();
    joined
}

/// Which of several definitions of a name counts.
fn counts<'a>(
    all: &[(&'a Path, &'a Defined)],
    before: Option<(&Path, PoolForm)>,
) -> Option<(&'a Path, &'a Defined)> {
    let in_force = |(file, defined): &&(&'a Path, &'a Defined)| {
        before.is_some_and(|(own, old)| own == *file && old.is_ciliums() == defined.form.is_ciliums())
    };
    let (_, first) = all.iter().find(in_force).or(all.first())?;
    let same_kind = |defined: &Defined| defined.form.is_ciliums() == first.form.is_ciliums();
    let newest = all
        .iter()
        .map(|(_, defined)| *defined)
        .filter(|defined| same_kind(defined))
        .map(|one| one.form)
        .max();
    let mut best = all.iter().filter(|(_, defined)| Some(defined.form) == newest);
    best.clone().find(in_force).or(best.next()).copied()
}

impl PoolForm {
    pub(in crate::config) const fn is_ciliums(self) -> bool {
        matches!(self, Self::CiliumV2alpha1 | Self::CiliumV2)
    }
}

impl Joined {
    /// Two definitions of one name.
    fn tell(&mut self, winner: &Defined, other: &Defined) {
        let (name, spot) = (&winner.pool.name, winner.place.spot());
        let place = other.place.clone();
        if winner.form.is_ciliums() && other.form < winner.form {
            let difference = match difference(winner, other) {
                None => "it says the same".to_owned(),
                Some(difference) => format!("they differ: {difference}"),
            };
            let message = format!(
                "pool `{name}` is there as {} at {spot} too, which counts; {difference}; remove this one when no older Cilium \
                 needs it",
                winner.form
            );
            self.warnings.push(Problem { place, message });
        } else {
            let message =
                format!("pool `{name}` is defined at {spot} already; choose another name or remove one");
            self.refused.push(Problem { place, message });
        }
    }

    /// Pools of which an older version counts than did before, or another file with other addresses.
    pub(in crate::config) fn other_than<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = Other<'a>> {
        self.defined.iter().filter_map(|(name, (file, now))| {
            let (old_file, old) = before.defined.get(name)?;
            let is_older = old.form.is_ciliums() && now.form.is_ciliums() && now.form < old.form;
            let is_moved = old_file != file && old.pool != now.pool;
            let counts = match (is_older, is_moved) {
                (true, _) => format!("{} counts instead of {}", now.form, old.form),
                (false, true) => {
                    format!("it is defined in {} instead of {}", file.display(), old_file.display())
                }
                (false, false) => return None,
            };
            let sets = |of: &Self| of.pools.addresses(name).map(|sets| sets.map(Clone::clone));
            let ([old_open, old_reserved], [open, reserved]) = (sets(before)?, sets(self)?);
            let (had, has) =
                (AddressSet::union([&old_open, &old_reserved]), AddressSet::union([&open, &reserved]));
            let all = AddressSet::union([&had, &has]).len();
            let what = format!(
                "{counts}: {} addresses more, {} fewer, {} reserved instead of {}",
                all.saturating_sub(had.len()),
                all.saturating_sub(has.len()),
                reserved.len(),
                old_reserved.len()
            );
            Some(Other { name, file, what, is_older })
        })
    }

    fn overlaps(&mut self) {
        let overlaps = self.pools.overlaps();
        let mut tell = |overlap: &Overlap, message: String| {
            if let Some((_, winner)) = self.defined.get(&overlap.winner) {
                self.warnings.push(Problem { place: winner.place.clone(), message });
            }
        };
        for overlap in overlaps.iter().take(OVERLAPS_TOLD) {
            tell(overlap, told(overlap));
        }
        if let (Some(more), Some(overlap)) =
            (overlaps.len().checked_sub(OVERLAPS_TOLD), overlaps.get(OVERLAPS_TOLD))
        {
            let message =
                format!("pools overlap at {more} more prefixes; the longer prefix counts, then the name");
            tell(overlap, message);
        }
    }
}

/// Which pools have a prefix, whose it is, and why.
fn told(overlap: &Overlap) -> String {
    let Overlap { prefix, winner, same, around } = overlap;
    let mut names: Vec<String> =
        [winner].into_iter().chain(same).chain(around).map(|name| format!("`{name}`")).collect();
    names.sort_unstable();
    let have = if names.len() == 2 { "both have" } else { "all have" };
    let last = names.pop().unwrap_or_default();
    let why = match (same.is_empty(), around.is_empty()) {
        (true, _) => "whose prefix is longer",
        (false, true) => "whose name comes first",
        (false, false) => "whose prefix is longest and whose name comes first",
    };
    format!("pools {} and {last} {have} {prefix}: it belongs to `{winner}`, {why}", names.join(", "))
}

/// What two definitions of a pool do not agree about.
fn difference(newer: &Defined, older: &Defined) -> Option<String> {
    let texts = |defined: &Defined| -> Vec<String> {
        let mut texts: Vec<String> = defined.blocks_shown().collect();
        texts.sort_unstable();
        texts
    };
    let (new, old) = (texts(newer), texts(older));
    let only = |these: &[String], those: &[String]| -> String {
        let only: Vec<&str> =
            these.iter().filter(|text| !those.contains(text)).map(String::as_str).take(8).collect();
        if only.is_empty() { "nothing more".into() } else { only.join(", ") }
    };
    (new != old)
        .then(|| format!("{} has {}, {} has {}", newer.form, only(&new, &old), older.form, only(&old, &new)))
}

impl Defined {
    /// What to say where this one counts although there is a newer version of it, which is not valid.
    pub(in crate::config) fn instead_of(&self, newer: &Self) -> Option<Problem> {
        let is_older = self.form.is_ciliums() && newer.form.is_ciliums() && self.form < newer.form;
        let message = || {
            format!(
                "this version of pool `{}` is in force as long as the file of its {}, at {}, is not valid and no text of that \
                 was accepted before; correct that file, and keep this one until then",
                self.pool.name,
                newer.form,
                newer.place.spot()
            )
        };
        is_older.then(|| Problem { place: self.place.clone(), message: message() })
    }

    /// Its CIDRs and ranges as texts.
    pub fn blocks_shown(&self) -> impl Iterator<Item = String> + '_ {
        self.pool.blocks.iter().map(|block| {
            let mut text = range_shown(block.is_v4, block.range);
            if block.reserved == [block.range] {
                return text + ", all of it reserved";
            }
            for (at, range) in block.reserved.iter().enumerate() {
                text += if at == 0 { " without " } else { " and " };
                text += &range_shown(block.is_v4, *range);
            }
            text
        })
    }
}
