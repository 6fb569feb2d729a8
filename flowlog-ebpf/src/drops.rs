//! The way of one dropped packet, from the tracepoint to exactly one counter.
//!
//! The kernel's memory is read through places that the daemon looked up in the kernel's own description of its types.
//! The tracepoint comes in every context, in the middle of other programs and of itself: nothing is shared with the
//! programs at interfaces but what they only look up.
#![expect(unsafe_code, reason = "the kernel's memory, helpers, and map values behind raw pointers")]

use crate::atomic::{Atomic, clear};
use crate::maps::{
    FLOWLOG_DROP_A, FLOWLOG_DROP_B, FLOWLOG_DROP_D, FLOWLOG_DROP_N, FLOWLOG_DROP_T, FLOWLOG_DROPS,
    FLOWLOG_FIRSTS, PLACES,
};
use crate::rules::Control;
use aya_ebpf::bindings::{BPF_ANY, BPF_NOEXIST};
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::helpers::generated::bpf_probe_read_kernel;
use aya_ebpf::programs::RawTracePointContext;
use core::arch::asm;
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use flowlog_abi::{DEVICE_NAME_BYTES, Direction, DropKey, Drops, Places, SHARED_BYTES, SKB_BYTES};
use flowlog_ebpf::fragments::{FragmentKey, LATER};
use flowlog_ebpf::{Add as _, Bytes, Packet, Sight, add_side, measure, parse_raw_ip};

const EEXIST: i32 = -17;
const E2BIG: i32 = -7;
/// Headers that are looked at.
const HEADER_BYTES: usize = 192;
/// Bounds what the verifier must assume of an offset within them.
const HEADER_MASK: usize = 0xff;
/// Longest link header that is believed.
const LINK_BYTES_MAX: u32 = 64;
/// `mac_header` of a packet that has none.
const NO_HEADER: u32 = 0xffff;
/// Below are namespaces that the kernel cannot have made (`PROC_DYNAMIC_FIRST` and the initial ones).
const INODE_MIN: u32 = 0xefff_ff00;
/// Bits of a destination that are no address.
const DST_BITS: u64 = 3;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// This CPU's place to look at one drop.
#[repr(C, align(8))]
pub(crate) struct Desk {
    /// 1 while somebody is at it.
    taken: u64,
    skb: [u64; SKB_BYTES / 8],
    shared: [u64; SHARED_BYTES / 8],
    /// Headers from the network header on, and room for what a bounded offset could reach.
    headers: [u8; HEADER_MASK + 1 + 64],
    packet: Packet,
    key: DropKey,
    fragment: FragmentKey,
    fresh: Direction,
    /// The device, where there is one; its namespace and number, and its name.
    device: u64,
    place: [u32; 2],
    name: [u8; DEVICE_NAME_BYTES],
}

/// What became of a drop.
enum Fate {
    NoDrop,
    Rejected,
    Unparsed,
    NotIp,
    Added { packets: u64, bytes: u64 },
    Full,
    Refused,
    Unread,
}

/// Looks at a dropped packet and counts it.
#[inline(always)]
pub(crate) fn look(context: &RawTracePointContext) {
    let (Some(drops), Some(desk)) = (FLOWLOG_DROPS.get_ptr_mut(0), FLOWLOG_DROP_D.get_ptr_mut(0)) else {
        return;
    };
    // SAFETY: this CPU's own. What interrupts this one adds to two counters, atomically, and goes.
    let (drops, taken) = unsafe { (&mut *drops, &raw mut (*desk).taken) };
    Atomic::add(&mut drops.seen, 1);
    // SAFETY: as above.
    unsafe {
        if taken.read_volatile() != 0 {
            Atomic::add(&mut drops.lost_nested, 1);
            return;
        }
        taken.write_volatile(1);
    }
    // SAFETY: nobody else is at the desk.
    settle(drops, &add(context, unsafe { &mut *desk }));
    // SAFETY: as above.
    unsafe { taken.write_volatile(0) };
}

#[inline(always)]
fn settle(drops: &mut Drops, fate: &Fate) {
    match fate {
        Fate::NoDrop => drops.no_drop += 1,
        Fate::Rejected => drops.rejected += 1,
        Fate::Unparsed => drops.unparsed += 1,
        Fate::NotIp => drops.not_ip += 1,
        Fate::Added { packets, bytes } => {
            drops.added += 1;
            drops.added_packets += packets;
            drops.added_bytes += bytes;
        }
        Fate::Full => drops.lost_full += 1,
        Fate::Refused => drops.lost_refused += 1,
        Fate::Unread => drops.lost_unread += 1,
    }
}

/// One of the numbers that the daemon has found, which the verifier knows.
#[inline(always)]
fn number(at: usize) -> u32 {
    let places: *const u8 = (&raw const PLACES).cast();
    // SAFETY: within the global's value; volatile, since it is written before the program is loaded.
    unsafe { places.add(at).cast::<u32>().read_volatile() }
}

macro_rules! place {
    ($member:ident) => {
        number(offset_of!(Places, $member))
    };
}

/// Why the packet was dropped, unless it was not.
#[inline(always)]
fn reason(context: &RawTracePointContext) -> Option<u32> {
    if place!(has_reason) == 0 {
        return Some(0);
    }
    let reason = context.arg::<u64>(2) as u32;
    let [none, consumed] = [0, 4].map(|at| number(offset_of!(Places, no_drop) + at));
    (reason != none && reason != consumed).then_some(reason)
}

#[inline(always)]
fn add(context: &RawTracePointContext, desk: &mut Desk) -> Fate {
    let Some(reason) = reason(context) else { return Fate::NoDrop };
    // SAFETY: the helper reads, or fails; the copy is as long as said.
    if unsafe { !copy(desk.skb.as_mut_ptr().cast(), SKB_BYTES as u32, context.arg::<u64>(0)) } {
        return Fate::Unread;
    }
    let skb = Skb { bytes: desk.skb.as_ptr().cast() };
    let protocol = u16::from_be(skb.half(place!(skb_protocol)));
    if protocol != IPV4 && protocol != IPV6 {
        return Fate::NotIp;
    }
    let Some(extent) = Extent::of(&skb) else { return Fate::Unparsed };
    // SAFETY: as above; the length is bounded by the room there.
    unsafe {
        let headers = desk.headers.as_mut_ptr().cast();
        if !copy(headers, extent.readable, skb.word(place!(skb_head)) + u64::from(extent.start)) {
            return Fate::Unread;
        }
    }
    let headers = Headers {
        bytes: desk.headers.as_ptr() as usize,
        readable: extent.readable as usize,
        length: extent.length as usize,
    };
    match parse_raw_ip(&headers) {
        Ok(packet) => desk.packet = packet,
        Err(_) => return Fate::Unparsed,
    }
    if desk.packet.fragment & LATER != 0 {
        complete(&mut desk.packet, &mut desk.fragment);
    }
    let (packets, bytes) = weigh(&skb, &extent, desk);
    let (flow, direction) = desk.packet.key();
    if !Control::read().wants_dropped(&flow) {
        return Fate::Rejected;
    }
    let receiver = if place!(has_socket) == 0 { 0 } else { context.arg::<u64>(3) };
    let (netns, ifindex, device) = whereabouts(&skb, receiver);
    desk.device = device;
    desk.place = [netns, ifindex];
    desk.key = DropKey {
        flow,
        location: context.arg::<u64>(1),
        reason,
        netns,
        ifindex,
        direction: direction as u8,
        arrived: u8::from(skb.quarter(place!(skb_iif)) != 0 || is_coming(&skb)),
        zero: [0; 2],
    };
    into_table(desk, packets, bytes)
}

/// Copies from the kernel's memory; whether that could be read.
///
/// # Safety
/// `to` has room for so many bytes.
#[inline(always)]
unsafe fn copy(to: *mut u8, bytes: u32, from: u64) -> bool {
    // SAFETY: by the contract above; the helper itself bears any address.
    unsafe { bpf_probe_read_kernel(to.cast(), bytes, from as *const _) == 0 }
}

/// A number from the kernel's memory.
#[inline(always)]
fn peek<T: Copy>(from: u64) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the helper fills all of it or none and says which; only numbers are asked for.
    unsafe { copy(value.as_mut_ptr().cast(), size_of::<T>() as u32, from).then(|| value.assume_init()) }
}

/// The copy of `struct sk_buff`.
#[derive(Clone, Copy)]
struct Skb {
    bytes: *const u8,
}

impl Skb {
    /// The daemon vouches for the place; the mask is for the verifier where it does not know the number.
    #[inline(always)]
    fn at<T: Copy>(&self, place: u32) -> T {
        // SAFETY: within the copy, and as aligned as the kernel keeps its own members.
        unsafe { ptr::read(self.bytes.add(place as usize & (SKB_BYTES - size_of::<T>())).cast()) }
    }

    #[inline(always)]
    fn word(&self, place: u32) -> u64 {
        self.at(place)
    }

    #[inline(always)]
    fn quarter(&self, place: u32) -> u32 {
        self.at(place)
    }

    #[inline(always)]
    fn half(&self, place: u32) -> u16 {
        self.at(place)
    }
}

/// Where a packet lies in its buffer.
struct Extent {
    /// Where the network header begins, from the buffer's beginning.
    start: u32,
    /// Bytes in front of it that are a link header.
    link_bytes: u32,
    /// Bytes from the network header to the packet's end.
    length: u32,
    /// Bytes of them that can be read here.
    readable: u32,
}

impl Extent {
    /// `None` where the numbers contradict each other.
    #[inline(always)]
    fn of(skb: &Skb) -> Option<Self> {
        let begin = skb.word(place!(skb_data)).wrapping_sub(skb.word(place!(skb_head))) as u32;
        let (length, paged) = (skb.quarter(place!(skb_len)), skb.quarter(place!(skb_data_len)));
        let start = u32::from(skb.half(place!(skb_network_header)));
        let link = u32::from(skb.half(place!(skb_mac_header)));
        // Behind the network header when transport headers have been pulled, before it when a link header is there.
        let end = begin.wrapping_add(length.wrapping_sub(paged));
        let linear = end.wrapping_sub(start);
        if end <= start || paged > length {
            return None;
        }
        let link_bytes = start.wrapping_sub(link);
        let has_link = link != NO_HEADER && link < start && link_bytes <= LINK_BYTES_MAX;
        Some(Self {
            start,
            link_bytes: if has_link { link_bytes } else { 0 },
            length: linear.wrapping_add(paged),
            readable: if linear > HEADER_BYTES as u32 { HEADER_BYTES as u32 } else { linear },
        })
    }
}

/// The copy of a packet's headers.
struct Headers {
    bytes: usize,
    readable: usize,
    length: usize,
}

impl Bytes for Headers {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        if offset > HEADER_MASK || offset + N > self.readable {
            return None;
        }
        let mut from = offset & HEADER_MASK;
        // SAFETY: a sum of registers, in assembly because the compiler must not split it into others than those the
        // verifier then knows the bounds of. What is read is inside the desk: `N` is no larger than the room behind.
        unsafe {
            asm!("{from} += {start}", from = inout(reg) from, start = in(reg) self.bytes,
                options(pure, nomem, nostack));
            Some(crate::skb::load::<N>(from))
        }
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.length
    }

    #[inline(always)]
    fn forget(&self, offset: usize) -> usize {
        crate::skb::forget(offset, self.length)
    }
}

/// Gives a later fragment the ports of its first, where an interface showed that.
#[inline(always)]
fn complete(packet: &mut Packet, key: &mut FragmentKey) {
    *key = FragmentKey::of(packet);
    if let Some(first) = FLOWLOG_FIRSTS.get_ptr_mut(&*key) {
        // SAFETY: from a look-up of this run, and a helper without arguments; other CPUs store much the same.
        unsafe { (*first).complete(packet, bpf_ktime_get_ns()) };
    }
}

/// Packets and bytes that the buffer stands for.
#[inline(always)]
fn weigh(skb: &Skb, extent: &Extent, desk: &mut Desk) -> (u64, u64) {
    let Desk { packet, shared, .. } = desk;
    let from = skb.word(place!(skb_head)) + u64::from(skb.quarter(place!(skb_end)));
    // SAFETY: as long as said; the places are within it, by the mask at the latest.
    let (segments, segment_bytes) = unsafe {
        if copy(shared.as_mut_ptr().cast(), SHARED_BYTES as u32, from) {
            let half = |place: u32| {
                ptr::read(shared.as_ptr().cast::<u8>().add(place as usize & (SHARED_BYTES - 2)).cast::<u16>())
            };
            (half(place!(shared_gso_segs)), half(place!(shared_gso_size)))
        } else {
            (0, 0)
        }
    };
    packet.header_bytes += extent.link_bytes;
    let tagged = skb.quarter(place!(skb_vlan)) & place!(vlan_mask) != 0;
    let length = u64::from(extent.length) + u64::from(extent.link_bytes);
    measure(packet, length, segments.into(), segment_bytes.into(), tagged)
}

/// Inode number of the network namespace that a member at this address points to; 0 where that is none. (Numbers
/// throughout: of what is not there the compiler leaves anything, which the verifier does not bear.)
#[inline(always)]
fn namespace(member: u64) -> u32 {
    let net = peek(member).unwrap_or(0);
    let inode = if net == 0 { 0 } else { peek(net + u64::from(place!(net_inum))).unwrap_or(0) };
    if inode < INODE_MIN { 0 } else { inode }
}

#[inline(always)]
fn of_socket(socket: u64) -> u32 {
    if socket == 0 { 0 } else { namespace(socket + u64::from(place!(sock_net))) }
}

/// Namespace and number of a device; 0 and 0 where it is none.
#[inline(always)]
fn of_device(device: u64) -> (u32, u32) {
    let netns = if device == 0 { 0 } else { namespace(device + u64::from(place!(dev_net))) };
    if netns == 0 {
        return (0, 0);
    }
    let ifindex: u32 = peek(device + u64::from(place!(dev_ifindex))).unwrap_or(0);
    if ifindex == 0 || ifindex >> 31 != 0 { (0, 0) } else { (netns, ifindex) }
}

/// Whether a packet that has not come far enough to have a mark of its interface is coming in: what is made here belongs to
/// a socket.
#[inline(always)]
fn is_coming(skb: &Skb) -> bool {
    skb.word(place!(skb_sk)) == 0 && skb.word(place!(skb_dev)) != 0
}

/// Network namespace, interface and device; 0 for what cannot be found out.
#[inline(always)]
fn whereabouts(skb: &Skb, receiver: u64) -> (u32, u32, u64) {
    let arrived = skb.quarter(place!(skb_iif));
    // Sockets keep other things where the device was: what is no device shows by a namespace that is none, or not the
    // receiver's.
    let mut owner = of_socket(receiver);
    let device = skb.word(place!(skb_dev));
    let (netns, ifindex) = of_device(device);
    if netns != 0 && (owner == 0 || owner == netns) {
        return (netns, ifindex, device);
    }
    if owner == 0 {
        owner = of_socket(skb.word(place!(skb_sk)));
    }
    if arrived != 0 {
        return (owner, arrived, 0);
    }
    // Made here and not yet at a device: the one it is on the way to.
    let route = skb.word(place!(skb_dst)) & !DST_BITS;
    let towards = if route == 0 { 0 } else { peek(route + u64::from(place!(dst_dev))).unwrap_or(0) };
    let (netns, ifindex) = of_device(towards);
    if owner == 0 || owner == netns { (netns, ifindex, towards) } else { (owner, 0, 0) }
}

/// Remembers what the interface is called: in other namespaces nobody else could tell.
#[inline(always)]
fn remember_name(desk: &mut Desk) {
    let from = desk.device.wrapping_add(u64::from(place!(dev_name)));
    // SAFETY: as long as said.
    let named = unsafe { desk.device != 0 && copy(desk.name.as_mut_ptr(), DEVICE_NAME_BYTES as u32, from) };
    if named {
        let _ = FLOWLOG_DROP_N.insert(&desk.place, &desk.name, BPF_ANY.into());
    }
}

/// Adds a packet to what was dropped like it.
#[inline(always)]
fn into_table(desk: &mut Desk, packets: u64, bytes: u64) -> Fate {
    // SAFETY: a number written whole; volatile, so that it is not read again.
    let turn = FLOWLOG_DROP_T.get_ptr(0).map_or(0, |turn| unsafe { ptr::read_volatile(turn) });
    let first = turn & 1 == 0;
    let find = |key: &DropKey| {
        if first { FLOWLOG_DROP_A.get_ptr_mut(key) } else { FLOWLOG_DROP_B.get_ptr_mut(key) }
    };
    let found = match find(&desk.key) {
        Some(entry) => Some(entry),
        None => {
            // SAFETY: this CPU's own; zero is a value of each of its integers.
            unsafe { clear(&raw mut desk.fresh) };
            let inserted = if first {
                FLOWLOG_DROP_A.insert(&desk.key, &desk.fresh, BPF_NOEXIST.into())
            } else {
                FLOWLOG_DROP_B.insert(&desk.key, &desk.fresh, BPF_NOEXIST.into())
            };
            match inserted {
                Ok(()) | Err(EEXIST) => {
                    remember_name(desk);
                    find(&desk.key)
                }
                Err(E2BIG) => return Fate::Full,
                Err(_) => return Fate::Refused,
            }
        }
    };
    let Some(entry) = found else { return Fate::Refused };
    // SAFETY: from a look-up of this run; the daemon takes entries away only when no program is left that could know
    // of them. Totals are added to atomically, all else bears concurrent stores.
    let (entry, now_ns) = unsafe { (&mut *entry, bpf_ktime_get_ns()) };
    let sight = Sight { hook: 0, ifindex: 1, now_ns, packets, bytes, generation: 0 };
    add_side::<Atomic>(entry, &desk.packet, &sight);
    Fate::Added { packets, bytes }
}
