use crate::FlowKey;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What dropped packets are added up by: one direction of a connection, dropped for one reason in one place. The value
/// is a [`crate::Direction`] of which nothing is ever reported.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct DropKey {
    /// The connection.
    pub flow: FlowKey,
    /// Address of the kernel's code that gave the packet up.
    pub location: u64,
    /// The kernel's `enum skb_drop_reason`, with a subsystem in the upper half; 0 where the kernel has none.
    pub reason: u32,
    /// Inode number of the network namespace; 0 = not known.
    pub netns: u32,
    /// Interface in that namespace; 0 = not known.
    pub ifindex: u32,
    /// 0 from the low to the high side, 1 back.
    pub direction: u8,
    /// 1 when the packet came in through an interface of the namespace, 0 when it was made there.
    pub arrived: u8,
    /// Always 0.
    pub zero: [u8; 2],
}

/// What became of the buffers that the kernel freed as dropped, on one CPU. Each is in `seen` and in exactly one of
/// the others but the last two.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Drops {
    /// Everything that the program was shown.
    pub seen: u64,
    /// Freed for a reason that is none: delivered after all.
    pub no_drop: u64,
    /// No task wants drops of the connection.
    pub rejected: u64,
    /// IP, but not to be understood.
    pub unparsed: u64,
    /// Not IP: other frames, and what was never a packet of a network (unix and netlink sockets).
    pub not_ip: u64,
    /// Added up.
    pub added: u64,
    /// Lost: the table had no room.
    pub lost_full: u64,
    /// Lost: the kernel refused the insert for another reason.
    pub lost_refused: u64,
    /// Lost: dropped while this CPU was in the middle of another drop.
    pub lost_nested: u64,
    /// Lost: the kernel's memory could not be read where it should be.
    pub lost_unread: u64,
    /// Packets (segments on the wire) in what was added up.
    pub added_packets: u64,
    /// Bytes of the same: layer 2 without FCS, or from the IP header on where there was no link header (yet).
    pub added_bytes: u64,
}

/// Where the running kernel keeps what is read of a dropped packet, in bytes from the beginning of each struct; and what
/// the tracepoint's arguments are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[expect(missing_docs, reason = "struct, then member, as the kernel names them")]
pub struct Places {
    pub skb_head: u32,
    pub skb_data: u32,
    pub skb_end: u32,
    pub skb_len: u32,
    pub skb_data_len: u32,
    pub skb_mac_header: u32,
    pub skb_network_header: u32,
    pub skb_protocol: u32,
    pub skb_dev: u32,
    pub skb_sk: u32,
    pub skb_dst: u32,
    pub skb_iif: u32,
    pub skb_vlan_tci: u32,
    /// Where a word lies that has one of the bits of `vlan_mask` set when there is a tag in the metadata.
    pub skb_vlan: u32,
    pub vlan_mask: u32,
    pub shared_gso_size: u32,
    pub shared_gso_segs: u32,
    pub dev_ifindex: u32,
    pub dev_net: u32,
    pub dev_name: u32,
    pub net_inum: u32,
    pub sock_net: u32,
    pub dst_dev: u32,
    /// 1 when the third argument is the reason.
    pub has_reason: u32,
    /// 1 when the fourth argument is the receiving socket.
    pub has_socket: u32,
    /// Reasons that are none.
    pub no_drop: [u32; 2],
}

/// Bytes of an interface's name, with a zero behind it (IFNAMSIZ).
pub const DEVICE_NAME_BYTES: usize = 16;

/// Bytes of `struct sk_buff` that are read: all that [`Places`] speaks of ends before.
pub const SKB_BYTES: usize = 256;
/// The same of `struct skb_shared_info`.
pub const SHARED_BYTES: usize = 32;
