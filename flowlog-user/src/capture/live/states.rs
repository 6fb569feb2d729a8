//! Each interface with what is done about it.

use std::collections::{BTreeMap, BTreeSet};

use super::links::{self, Links};
use super::netlink::Netlink;
use super::select::{Choice, Selection};
use super::{Error, HookKind, InterfaceState, Options};

/// Each interface with its role, or the reason it is left out; needs no privilege.
pub(super) fn preview(options: &Options) -> Result<Vec<InterfaceState>, Error> {
    let selection = Selection::new(options)?;
    let mut netlink = Netlink::open().map_err(Error::Netlink)?;
    let routes = links::default_routes(&mut netlink).map_err(Error::Netlink)?;
    let links = links::list(&mut netlink, &routes).map_err(Error::Netlink)?;
    Ok(states(&links, &selection.choose(&links), &BTreeMap::new(), |_| None))
}

pub(super) fn states(
    links: &Links,
    choice: &Choice,
    failed: &BTreeMap<u32, String>,
    hook: impl Fn(u32) -> Option<HookKind>,
) -> Vec<InterfaceState> {
    links
        .values()
        .map(|link| {
            let role = choice.get(&link.ifindex).and_then(|role| role.as_ref().ok()).copied();
            let left_out = choice.get(&link.ifindex).and_then(|role| role.as_ref().err());
            InterfaceState {
                ifindex: link.ifindex,
                name: link.name.clone(),
                role,
                hook: hook(link.ifindex),
                reason: failed.get(&link.ifindex).or(left_out).cloned(),
                blind: None,
            }
        })
        .collect()
}

/// What each interface has counted, received and sent, with its name.
pub(super) fn passed() -> Result<BTreeMap<u32, (String, u64)>, Error> {
    let mut netlink = Netlink::open().map_err(Error::Netlink)?;
    let names = links::list(&mut netlink, &BTreeSet::new()).map_err(Error::Netlink)?;
    let counted = links::passed(&mut netlink).map_err(Error::Netlink)?;
    let named = |(ifindex, passed): (u32, links::Passed)| {
        Some((ifindex, (names.get(&ifindex)?.name.clone(), passed.received + passed.sent)))
    };
    Ok(counted.into_iter().filter_map(named).collect())
}
