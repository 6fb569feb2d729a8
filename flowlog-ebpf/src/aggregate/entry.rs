use super::around::{NOTHING, hidden_nothing};
use super::{of, of_mut};
use crate::Packet;
use flowlog_abi::{Direction, FlowEntry, Report, bpf_spin_lock, protocol, tcp};

/// Where and when packets were seen, and what they weigh.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// One of `flowlog_abi::hook`.
    pub hook: u8,
    /// Interface of the hook.
    pub ifindex: u32,
    /// Nanoseconds of CLOCK_MONOTONIC (or whatever clock the reports shall carry).
    pub now_ns: u64,
    /// Segments on the wire.
    pub packets: u64,
    /// Layer-2 bytes of the same.
    pub bytes: u64,
    /// Generation of the rules that let them pass.
    pub generation: u32,
}

impl Sight {
    /// Whether the packet was entering the node's stack.
    #[inline(always)]
    const fn is_ingress(&self) -> bool {
        self.hook & 1 == 0
    }
}

/// How a total is added to. The kernel's CPUs add to one entry at the same time.
pub trait Add {
    /// Adds `value` to `total`.
    fn add(total: &mut u64, value: u64);
}

/// [`Add`] for one thread.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Add for Plain {
    fn add(total: &mut u64, value: u64) {
        *total = total.wrapping_add(value);
    }
}

/// A SYN is sent again long before.
const RTT_NS_MAX: u64 = u32::MAX as u64;

const BLANK: Direction = Direction {
    packets: 0,
    bytes: 0,
    last_ns: 0,
    first_ns: 0,
    reported_packets: 0,
    reported_bytes: 0,
    ifindex: 0,
    hook: 0,
    arrived: 0,
    announced: 0,
    zero: 0,
    l4: [0; 8],
};

/// The entry of a connection first seen by this packet, which is not added yet; the tag is 0.
#[must_use]
pub fn new_entry(packet: &Packet, sight: &Sight, direction: usize, connection: u64) -> FlowEntry {
    let mut entry = FlowEntry {
        tag: 0,
        lock: bpf_spin_lock { val: 0 },
        generation: 0,
        rtt_ns: 0,
        directions: [BLANK; 2],
        started_ns: 0,
        last_report_ns: 0,
        connection: 0,
        interfaces: [0; 4],
        number: 0,
        lease: 0,
        opener: 0,
        midstream: 0,
        zero: 0,
        around: [NOTHING; 2],
    };
    write_entry(&mut entry, packet, sight, direction, connection);
    entry
}

/// [`new_entry`] in place, where all bytes are 0: zeroing is a call to a byte loop when the compiler does it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the opener is 0 or 1")]
pub const fn write_entry(
    entry: &mut FlowEntry,
    packet: &Packet,
    sight: &Sight,
    direction: usize,
    connection: u64,
) {
    entry.started_ns = sight.now_ns;
    entry.last_report_ns = sight.now_ns;
    entry.connection = connection;
    entry.generation = sight.generation;
    entry.opener = packet.opener(direction) as u8;
    entry.midstream = packet.midstream() as u8;
}

/// Adds a packet to its connection.
#[inline(always)]
pub fn add(entry: &mut FlowEntry, direction: usize, packet: &Packet, sight: &Sight) {
    add_with::<Plain>(entry, direction, packet, sight);
}

/// [`add`] with the caller's way to add to totals; everything else is plain stores, made only where something is new,
/// so that CPUs share the cache line of a busy connection as little as can be.
#[inline(always)]
pub fn add_with<A: Add>(entry: &mut FlowEntry, direction: usize, packet: &Packet, sight: &Sight) {
    cross(entry, sight.ifindex);
    add_side::<A>(of_mut(&mut entry.directions, direction), packet, sight);
    if packet.protocol == protocol::TCP && packet.tcp_flags & HANDSHAKE == tcp::SYN | tcp::ACK {
        note_rtt(entry, direction, sight.now_ns);
    }
}

/// The part of [`add_with`] that concerns one direction alone.
#[inline(always)]
pub fn add_side<A: Add>(side: &mut Direction, packet: &Packet, sight: &Sight) {
    if side.ifindex == 0 {
        side.hook = sight.hook;
        if packet.protocol != protocol::TCP {
            let [kind, code, ..] = &mut side.l4;
            *kind = packet.icmp_type;
            *code = packet.icmp_code;
        }
        side.ifindex = sight.ifindex;
    }
    if side.first_ns == 0 {
        side.first_ns = sight.now_ns;
    }
    if sight.is_ingress() && side.arrived == 0 {
        side.arrived = 1;
    }
    side.last_ns = sight.now_ns;
    if packet.protocol == protocol::TCP {
        add_flags(side, packet.tcp_flags);
    }
    A::add(&mut side.packets, sight.packets);
    A::add(&mut side.bytes, sight.bytes);
}

/// The flags that tell a SYN and a SYN-ACK from all else.
const HANDSHAKE: u8 = tcp::SYN | tcp::ACK | tcp::RST | tcp::FIN;

/// Notes how long the first answer to a SYN took. One that was sent twice does not tell which is answered.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "checked in the line before")]
fn note_rtt(entry: &mut FlowEntry, direction: usize, now_ns: u64) {
    let opener = entry.opener as usize;
    let asked = of(&entry.directions, opener).packets;
    if entry.rtt_ns == 0 && entry.midstream == 0 && opener != direction && asked == 1 {
        let rtt_ns = now_ns.saturating_sub(entry.started_ns);
        entry.rtt_ns = if rtt_ns > RTT_NS_MAX { u32::MAX } else { rtt_ns as u32 };
    }
}

/// Notes that the connection crossed an interface; the fifth and later ones are not named.
#[inline(always)]
pub fn cross(entry: &mut FlowEntry, ifindex: u32) {
    for interface in &mut entry.interfaces {
        if *interface == ifindex {
            return;
        }
        if *interface == 0 {
            *interface = ifindex;
            return;
        }
    }
}

/// Gives the entry of a closed connection, whose last report `last` has reached the ring, to the connection that this
/// packet opens; the packet is not added yet. Whoever calls this has the entry's lease.
///
/// Other CPUs may be adding at this moment. So totals are not set: what the report told is taken away from them, and a
/// packet that came too late for it counts, as if it had come a moment later, in the new connection. Where a direction
/// was counted first stays, except for the opener's: a packet that is between ingress and egress must find it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the opener is 0 or 1")]
pub fn reopen<A: Add>(
    entry: &mut FlowEntry,
    last: &Report,
    sight: &Sight,
    direction: usize,
    connection: u64,
) {
    entry.started_ns = sight.now_ns;
    entry.last_report_ns = sight.now_ns;
    entry.connection = connection;
    // Known to be zero, these become a memset: a call, which 6.1 refuses under a lock.
    let zero = core::hint::black_box(0);
    let [a, b, c, d] = &mut entry.interfaces;
    (*a, *b, *c, *d) = (zero, zero, zero, zero);
    entry.number = zero;
    entry.generation = sight.generation;
    entry.rtt_ns = 0;
    entry.opener = direction as u8 & 1;
    entry.midstream = 0;
    let [up, down] = &mut entry.around;
    let nothing = hidden_nothing();
    (*up, *down) = (nothing, nothing);
    forget_side::<A>(entry, last, 0);
    forget_side::<A>(entry, last, 1);
    let side = of_mut(&mut entry.directions, direction);
    side.ifindex = sight.ifindex;
    side.hook = sight.hook;
}

#[inline(always)]
fn forget_side<A: Add>(entry: &mut FlowEntry, last: &Report, direction: usize) {
    let told = of(&last.directions, direction);
    let side = of_mut(&mut entry.directions, direction);
    side.l4 = [0; 8];
    side.announced = 0;
    A::add(&mut side.packets, told.packets.wrapping_neg());
    A::add(&mut side.bytes, told.bytes.wrapping_neg());
    let zero = core::hint::black_box(0_u64);
    side.reported_packets = zero;
    side.reported_bytes = zero;
    if side.packets == 0 {
        side.first_ns = zero;
        side.last_ns = zero;
    } else {
        side.first_ns = side.last_ns;
    }
}

/// Sets the byte of each flag: a store of 1 can be lost to nobody, a byte of bits could.
#[inline(always)]
fn add_flags(side: &mut Direction, flags: u8) {
    if spread(flags) & !u64::from_le_bytes(side.l4) == 0 {
        return;
    }
    let mut bit = flags;
    for seen in &mut side.l4 {
        if bit & 1 == 1 && *seen == 0 {
            *seen = 1;
        }
        bit >>= 1;
    }
}

/// Bit n of the byte to the lowest bit of byte n.
#[inline(always)]
const fn spread(flags: u8) -> u64 {
    let one_bit_a_byte = (flags as u64).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    (one_bit_a_byte.wrapping_add(0x7f7f_7f7f_7f7f_7f7f) | one_bit_a_byte) >> 7 & 0x0101_0101_0101_0101
}

/// The flag byte again, from the bytes of the flags.
#[inline(always)]
pub(super) fn gather(l4: [u8; 8]) -> u8 {
    let mut flags = 0;
    for seen in l4.into_iter().rev() {
        flags = flags << 1 | (seen & 1);
    }
    flags
}

/// Whether a direction has been seen with this TCP flag (one bit of `flowlog_abi::tcp`).
#[inline(always)]
pub(super) fn has_flag(entry: &FlowEntry, direction: usize, flag: u8) -> bool {
    u64::from_le_bytes(of(&entry.directions, direction).l4) & spread(flag) != 0
}
