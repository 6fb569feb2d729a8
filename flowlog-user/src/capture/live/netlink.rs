//! A blocking rtnetlink socket for dumps, and a non-blocking one that says when to dump again.
//!
//! What a newer kernel sends and the decoder does not know is skipped, never an error.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::BytesMut;
use netlink_packet_route::RouteNetlinkMessage;
use rtnetlink::packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use rtnetlink::sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// How often a dump that the kernel calls inconsistent is asked for again.
const DUMP_TRIES: usize = 5;
/// linux/netlink.h: the dump was interrupted by a change.
const NLM_F_DUMP_INTR: u16 = 0x10;
const HEADER_BYTES: usize = 16;

pub(super) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Everything the kernel has for the request.
    pub(super) fn dump(&mut self, request: &RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut last = Vec::new();
        for _ in 0..DUMP_TRIES {
            let (answers, whole) = self.dump_once(request.clone())?;
            if whole {
                return Ok(answers);
            }
            last = answers;
        }
        Ok(last) // it never stands still; the change that interrupted it will be notified
    }

    fn dump_once(&mut self, request: RouteNetlinkMessage) -> io::Result<(Vec<RouteNetlinkMessage>, bool)> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;

        let (mut answers, mut whole) = (Vec::new(), true);
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for bytes in split(&datagram) {
                let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) else { continue };
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                whole &= message.header.flags & NLM_F_DUMP_INTR == 0;
                match message.payload {
                    NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                    NetlinkPayload::Done(_) => return Ok((answers, whole)),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }
}

/// What a batch of notifications was about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Links or addresses.
    pub(super) links: bool,
    /// A default route.
    pub(super) routes: bool,
    /// Devices that went, though one with the same index and name may have come since.
    pub(super) gone: BTreeSet<u32>,
    /// Notifications were lost: anything may have happened.
    pub(super) lost: bool,
}

/// Notifications of links, addresses and default routes.
pub(super) struct Notifications {
    socket: Socket,
    buffer: BytesMut,
}

impl Notifications {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        for group in [
            libc::RTNLGRP_LINK,
            libc::RTNLGRP_IPV4_IFADDR,
            libc::RTNLGRP_IPV6_IFADDR,
            libc::RTNLGRP_IPV4_ROUTE,
            libc::RTNLGRP_IPV6_ROUTE,
        ] {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Self { socket, buffer: BytesMut::with_capacity(1 << 16) })
    }

    /// Takes everything that is waiting. A full queue (ENOBUFS) means that anything may have changed.
    pub(super) fn take(&mut self) -> Changed {
        let mut changed = Changed::default();
        loop {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer, 0) {
                Ok(0) => return changed,
                Ok(_) => {
                    for message in split(&self.buffer) {
                        changed.note(message);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return changed,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    (changed.links, changed.routes, changed.lost) = (true, true, true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "netlink notifications failed, listing again");
                    return Changed { links: true, routes: true, lost: true, ..changed };
                }
            }
        }
    }
}

impl AsFd for Notifications {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Changed {
    pub(super) fn add(&mut self, other: Self) {
        self.links |= other.links;
        self.routes |= other.routes;
        self.lost |= other.lost;
        self.gone.extend(other.gone);
    }

    fn note(&mut self, message: &[u8]) {
        let kind = message.get(4..6).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_ne_bytes);
        match kind {
            libc::RTM_NEWROUTE | libc::RTM_DELROUTE => {
                // struct rtmsg: family, destination prefix length, ...; a default route has length 0.
                self.routes |= message.get(HEADER_BYTES + 1) == Some(&0);
            }
            libc::RTM_DELLINK => {
                self.links = true;
                // struct ifinfomsg: family (a port that leaves its bridge has one), padding, type, index.
                let index = message.get(HEADER_BYTES + 4..HEADER_BYTES + 8);
                if message.get(HEADER_BYTES) == Some(&0)
                    && let Some(index) = index.and_then(|bytes| bytes.try_into().ok())
                {
                    self.gone.insert(u32::from_ne_bytes(index));
                }
            }
            _ => self.links = true,
        }
    }
}

/// The messages of one datagram.
fn split(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?) as usize;
        let message = rest.get(..length).filter(|_| length >= HEADER_BYTES)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = HEADER_BYTES + payload.len();
        let mut bytes = u32::try_from(length).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(payload);
        bytes.resize(length.next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn datagrams_are_split_at_aligned_lengths() {
        let datagram = [message(16, &[1, 2, 3, 4, 5]), message(20, &[])].concat();
        let lengths: Vec<_> = split(&datagram).map(<[u8]>::len).collect();
        assert_eq!(lengths, [21, 16]);
    }

    #[test]
    fn broken_lengths_end_the_datagram() {
        for length in [0u32, 15, 17, u32::MAX] {
            let mut bytes = message(16, &[]);
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(split(&bytes).count(), 0, "{length}");
        }
        assert_eq!(split(&[1, 0]).count(), 0);
    }

    #[test]
    fn only_default_routes_count_as_a_change() {
        let mut changed = Changed::default();
        changed.note(&message(libc::RTM_NEWROUTE, &[2, 24, 0, 0]));
        assert_eq!(changed, Changed::default());
        changed.note(&message(libc::RTM_DELROUTE, &[10, 0, 0, 0]));
        assert_eq!(changed, Changed { routes: true, ..Changed::default() });
        changed.note(&message(libc::RTM_DELLINK, &[]));
        assert!(changed.links);
    }

    #[test]
    fn a_device_that_went_is_told_and_a_port_that_left_its_bridge_is_not() {
        let about = |family: u8| [&[family, 0, 1, 0][..], &77_u32.to_ne_bytes(), &[0; 8]].concat();
        let mut changed = Changed::default();
        changed.note(&message(libc::RTM_DELLINK, &about(7)));
        changed.note(&message(libc::RTM_NEWLINK, &about(0)));
        assert!(changed.links && changed.gone.is_empty(), "{changed:?}");
        changed.note(&message(libc::RTM_DELLINK, &about(0)));
        assert_eq!(changed.gone, BTreeSet::from([77]));
    }
}
