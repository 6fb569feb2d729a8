//! Finds the clsact filters that an earlier flowlog left behind, and nobody else's: by program and map ids. (A TCX link
//! that is not pinned goes with the process that held it.)

use std::collections::{BTreeMap, HashMap};

use aya::maps::MapInfo;
use aya::programs::links::Link as _;
use aya::programs::tc::{SchedClassifierLink, TcHandle};
use aya::programs::{ProgramInfo, loaded_programs};
use flowlog_abi::names;

use super::attach::Side;
use super::filters;
use super::links::{Link, Links};
use super::netlink::Netlink;

/// Filters of a hook that are to be taken over: priority and handle.
pub(super) type Filters = BTreeMap<(u32, Side), (u16, u32)>;

/// Removes the filters that killed daemons left, if no other flowlog runs here whose they could be, and gives those that
/// count into the table with the number `table`: they are to be taken over.
pub(super) fn clean(netlink: &mut Netlink, links: &Links, only: bool, table: Option<u32>) -> Filters {
    let mut own = Filters::new();
    if !only && table.is_none() {
        return own;
    }
    let mut ours = None;
    for link in links.values() {
        for side in [Side::Ingress, Side::Egress] {
            for filter in named_like_ours(netlink, link, side) {
                // Programs are looked through only when some filter may be ours.
                let ours: &HashMap<u32, Vec<u32>> = ours.get_or_insert_with(our_programs);
                let Some(maps) = ours.get(&filter.program) else { continue };
                let known = (link.ifindex, side);
                if table.is_some_and(|table| maps.contains(&table)) && !own.contains_key(&known) {
                    own.insert(known, (filter.priority, filter.handle));
                } else if only {
                    filter.remove(link);
                }
            }
        }
    }
    own
}

/// Removes a filter that was to be taken over, and is not.
pub(super) fn remove(name: &str, side: Side, (priority, handle): (u16, u32)) -> Result<(), String> {
    SchedClassifierLink::attached(name, side.attach_type(), priority, TcHandle::from(handle), None)
        .map_err(|error| error.to_string())
        .and_then(|filter| filter.detach().map_err(|error| error.to_string()))
}

struct Filter {
    side: Side,
    priority: u16,
    handle: u32,
    program: u32,
}

impl Filter {
    fn remove(&self, link: &Link) {
        let removed = remove(&link.name, self.side, (self.priority, self.handle));
        match removed {
            Ok(()) => tracing::info!(
                interface = link.name,
                side = self.side.name(),
                "removed a filter left by a killed flowlog"
            ),
            Err(error) => {
                tracing::warn!(
                    interface = link.name,
                    side = self.side.name(),
                    error,
                    "cannot remove a filter left by a killed flowlog"
                );
            }
        }
    }
}

/// The filters of a hook that run a program with one of our names.
fn named_like_ours(netlink: &mut Netlink, link: &Link, side: Side) -> Vec<Filter> {
    let all = filters::list(netlink, link.ifindex, side).unwrap_or_default();
    all.into_iter()
        .filter(|filter| filter.name.as_deref().is_some_and(is_ours))
        .filter_map(|filter| {
            let filters::Filter { priority, handle, program, .. } = filter;
            Some(Filter { side, priority, handle, program: program? })
        })
        .collect()
}

fn is_ours(name: &str) -> bool {
    names::ETHERNET_PROGRAMS.contains(&name) || names::RAW_IP_PROGRAMS.contains(&name)
}

/// The programs with one of our names that also use our maps: the ids of both.
fn our_programs() -> HashMap<u32, Vec<u32>> {
    let mut ours = HashMap::new();
    for program in loaded_programs() {
        match program {
            Ok(program) => {
                if program.name_as_str().is_some_and(is_ours)
                    && let Some(maps) = our_maps(&program)
                {
                    ours.insert(program.id(), maps);
                }
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "cannot tell whether filters named like ours are stale, leaving them; start once as root to remove \
                     them (it takes CAP_SYS_ADMIN)"
                );
                break;
            }
        }
    }
    ours
}

/// Ids of the program's maps, if ours are among them.
fn our_maps(program: &ProgramInfo) -> Option<Vec<u32>> {
    let ids = program.map_ids().ok().flatten().unwrap_or_default();
    let maps: Vec<_> = ids.iter().filter_map(|id| MapInfo::from_id(*id).ok()).collect();
    let uses = |name: &str| maps.iter().any(|map| map.name_as_str() == Some(name));
    (uses(names::FLOWS) && uses(names::RING)).then_some(ids)
}
