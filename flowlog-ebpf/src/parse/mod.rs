//! Bytes to [`Packet`]: one file per layer.
//!
//! In: the bytes of one packet as far as they are there. Out: a [`Packet`], or the reason why there is none.
//! What never happens here: guessing. A packet inside another one is looked at only where it is asked for
//! ([`inside`] a tunnel), and never inside an ICMP error.
//! A new link layer: a function like [`parse_ethernet`]; a new transport: an arm in `transport.rs`; a new tunnel: an arm
//! in `tunnel.rs`.

mod bytes;
mod ip;
mod link;
mod packet;
#[cfg(test)]
mod tests;
mod transport;
mod tunnel;
#[cfg(test)]
mod tunnel_tests;

pub use bytes::{Bytes, Captured};
pub use packet::Packet;
pub use tunnel::{inside, tunnel_kind, wants_inner};

use flowlog_abi::Reason;

/// Parses a packet that begins with an Ethernet header.
///
/// # Errors
/// The reason why the frame holds no IP packet that can be followed.
#[inline(always)]
pub fn parse_ethernet(bytes: &(impl Bytes + ?Sized)) -> Result<Packet, Reason> {
    let link::Payload { network, at, vlans } = link::ethernet(bytes, 0)?;
    let mut packet = match network {
        link::Network::Ipv4 => ip::ipv4(bytes, at)?,
        link::Network::Ipv6 => ip::ipv6(bytes, at)?,
    };
    packet.vlans = vlans;
    Ok(packet)
}

/// Parses a packet that begins with its IP header (tun, WireGuard, PPP).
///
/// # Errors
/// The reason why the packet cannot be followed.
#[inline(always)]
pub fn parse_raw_ip(bytes: &(impl Bytes + ?Sized)) -> Result<Packet, Reason> {
    let [first] = bytes.read::<1>(0).ok_or(Reason::TruncatedIp)?;
    match first >> 4 {
        4 => ip::ipv4(bytes, 0),
        6 => ip::ipv6(bytes, 0),
        _ => Err(Reason::BadVersion),
    }
}
