//! Removes the clsact filters that a killed flowlog left behind, and nobody else's. (A TCX link goes with the
//! process that held it.)

use std::collections::HashSet;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use aya::maps::MapInfo;
use aya::programs::links::Link as _;
use aya::programs::tc::{SchedClassifierLink, TcHandle};
use aya::programs::{ProgramInfo, loaded_programs};
use flowlog_abi::names;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcFilterBpfOption, TcMessage, TcOption};

use super::attach::Side;
use super::links::{Link, Links};
use super::netlink::Netlink;

/// TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS or _EGRESS).
const PARENTS: [(Side, u32); 2] = [(Side::Ingress, 0xffff_fff2), (Side::Egress, 0xffff_fff3)];

/// Held by each running flowlog of a network namespace, so that none takes a living one's filters for stale. An
/// abstract socket belongs to the namespace and goes with the process.
pub(super) struct Presence(#[expect(dead_code, reason = "held, not read")] Option<UnixListener>);

/// Takes the namespace's mark if no other flowlog runs here, and only then removes what is stale.
pub(super) fn clean(netlink: &mut Netlink, links: &Links) -> Presence {
    let listener = SocketAddr::from_abstract_name("flowlog-capture")
        .and_then(|address| UnixListener::bind_addr(&address));
    match listener {
        Ok(listener) => {
            remove_stale(netlink, links);
            Presence(Some(listener))
        }
        Err(error) => {
            tracing::info!(%error, "another flowlog watches this network namespace, leaving all filters alone");
            Presence(None)
        }
    }
}

fn remove_stale(netlink: &mut Netlink, links: &Links) {
    let mut ours = None;
    for link in links.values() {
        for (side, parent) in PARENTS {
            for filter in filters(netlink, link, side, parent) {
                // Programs are looked through only when some filter may be ours.
                if ours.get_or_insert_with(our_programs).contains(&filter.program) {
                    filter.remove(link);
                }
            }
        }
    }
}

struct Filter {
    side: Side,
    priority: u16,
    handle: u32,
    program: u32,
}

impl Filter {
    fn remove(&self, link: &Link) {
        let removed = SchedClassifierLink::attached(
            &link.name,
            self.side.attach_type(),
            self.priority,
            TcHandle::from(self.handle),
            None,
        )
        .map_err(|error| error.to_string())
        .and_then(|filter| filter.detach().map_err(|error| error.to_string()));
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
fn filters(netlink: &mut Netlink, link: &Link, side: Side, parent: u32) -> Vec<Filter> {
    let mut request = TcMessage::default();
    request.header.index = i32::try_from(link.ifindex).unwrap_or(0);
    request.header.parent = parent.into();
    let answers = netlink.dump(&RouteNetlinkMessage::GetTrafficFilter(request)).unwrap_or_default();
    answers
        .into_iter()
        .filter_map(|answer| match answer {
            RouteNetlinkMessage::NewTrafficFilter(message) => Some(message),
            _ => None,
        })
        .filter(|message| u32::try_from(message.header.index) == Ok(link.ifindex))
        .filter_map(|message| {
            let (name, program) = program_of(&message);
            let priority = u16::try_from(message.header.info >> 16).unwrap_or(0);
            (is_ours(name?) && u32::from(message.header.parent) == parent).then_some(Filter {
                side,
                priority,
                handle: message.header.handle.into(),
                program: program?,
            })
        })
        .collect()
}

fn program_of(message: &TcMessage) -> (Option<&str>, Option<u32>) {
    let (mut name, mut id) = (None, None);
    for attribute in &message.attributes {
        let TcAttribute::Options(options) = attribute else { continue };
        for option in options {
            match option {
                TcOption::Bpf(TcFilterBpfOption::ProgName(text)) => name = Some(text.as_str()),
                TcOption::Bpf(TcFilterBpfOption::ProgId(number)) => id = Some(*number),
                _ => {}
            }
        }
    }
    (name, id)
}

fn is_ours(name: &str) -> bool {
    names::ETHERNET_PROGRAMS.contains(&name) || names::RAW_IP_PROGRAMS.contains(&name)
}

/// Ids of the programs with one of our names that also use our maps.
fn our_programs() -> HashSet<u32> {
    let mut ours = HashSet::new();
    for program in loaded_programs() {
        match program {
            Ok(program) => {
                if program.name_as_str().is_some_and(is_ours) && uses_our_maps(&program) {
                    ours.insert(program.id());
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

fn uses_our_maps(program: &ProgramInfo) -> bool {
    let maps: Vec<_> = program
        .map_ids()
        .ok()
        .flatten()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|id| MapInfo::from_id(id).ok())
        .collect();
    let uses = |name: &str| maps.iter().any(|map| map.name_as_str() == Some(name));
    uses(names::FLOWS) && uses(names::RING)
}
