//! The clsact filters of a hook as the kernel lists them: in the order in which they see packets.

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcFilterBpfOption, TcMessage, TcOption};

use super::attach::Side;
use super::netlink::Netlink;

/// One filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) priority: u16,
    /// 0: the head of a priority, which holds the filters after it.
    pub(super) handle: u32,
    /// Name and number of its program, if it runs one.
    pub(super) name: Option<String>,
    pub(super) program: Option<u32>,
}

/// Everything at a hook; nothing where there is no clsact qdisc.
pub(super) fn list(netlink: &mut Netlink, ifindex: u32, side: Side) -> io::Result<Vec<Filter>> {
    let parent = parent(side);
    let mut request = TcMessage::default();
    request.header.index = i32::try_from(ifindex).unwrap_or(0);
    request.header.parent = parent.into();
    let answers = netlink.dump(&RouteNetlinkMessage::GetTrafficFilter(request))?;
    let filters = answers.into_iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewTrafficFilter(message)
            if u32::try_from(message.header.index) == Ok(ifindex)
                && u32::from(message.header.parent) == parent =>
        {
            Some(from_message(&message))
        }
        _ => None,
    });
    Ok(filters.collect())
}

/// TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS or _EGRESS).
const fn parent(side: Side) -> u32 {
    match side {
        Side::Ingress => 0xffff_fff2,
        Side::Egress => 0xffff_fff3,
    }
}

fn from_message(message: &TcMessage) -> Filter {
    let mut filter = Filter {
        priority: u16::try_from(message.header.info >> 16).unwrap_or(0),
        handle: message.header.handle.into(),
        ..Filter::default()
    };
    for attribute in &message.attributes {
        let TcAttribute::Options(options) = attribute else { continue };
        for option in options {
            match option {
                TcOption::Bpf(TcFilterBpfOption::ProgName(text)) => filter.name = Some(text.clone()),
                TcOption::Bpf(TcFilterBpfOption::ProgId(number)) => filter.program = Some(*number),
                _ => {}
            }
        }
    }
    filter
}
