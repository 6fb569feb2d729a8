use crate::{
    Around, Counters, Direction, DirectionReport, DropKey, Drops, FlowEntry, FlowKey, Groups, Kept, Ledger,
    Places, Rejected, Report, RuleBase, Told, TunnelRules,
};
use core::mem::{offset_of, size_of};

const fn mix(mut hash: u32, bytes: &[u8]) -> u32 {
    let mut at = 0;
    while at < bytes.len() {
        #[expect(clippy::indexing_slicing, reason = "a const loop bounded by the length")]
        let byte = bytes[at];
        hash = (hash ^ byte as u32).wrapping_mul(0x0100_0193); // FNV-1a
        at += 1;
    }
    hash
}

#[expect(clippy::cast_possible_truncation, reason = "offsets and sizes are far below 2^32")]
const fn mix_number(hash: u32, number: usize) -> u32 {
    mix(hash, &(number as u32).to_le_bytes())
}

macro_rules! layout {
    ($($name:ident { $($field:ident),* })*) => {{
        let mut hash = 0x811c_9dc5_u32;
        $(
            hash = mix(hash, stringify!($name).as_bytes());
            hash = mix_number(hash, size_of::<$name>());
            $(
                hash = mix(hash, stringify!($field).as_bytes());
                hash = mix_number(hash, offset_of!($name, $field));
            )*
            // Naming every field: one that is missing above does not compile.
            const _: fn(&$name) = |whole| { let $name { $($field: _),* } = whole; };
        )*
        hash
    }};
}

/// Computed from the names, offsets and sizes of every struct that crosses the boundary (FNV-1a, 32 bits).
/// An object whose self-test answers with another number was built from other sources.
pub const LAYOUT_ID: u32 = layout! {
    FlowKey { low, high, low_port, high_port, protocol, version, kind }
    Around { source, destination, vni, source_port, destination_port, vlan, inner_vlan, protocol, version, zero }
    TunnelRules { mode, ends, ports, kinds }
    Direction { packets, bytes, last_ns, first_ns, reported_packets, reported_bytes, ifindex, hook, arrived,
        announced, zero, l4 }
    FlowEntry { tag, lock, generation, rtt_ns, directions, started_ns, last_report_ns, connection, interfaces, number, lease,
        opener, midstream, zero, around }
    DirectionReport { packets, bytes, reported_packets, reported_bytes, first_ns, last_ns, ifindex, hook,
        tcp_flags, icmp_type, icmp_code }
    Report { key, directions, started_ns, connection, interfaces, generation, rtt_ns, number, what, opener, midstream, zero, around }
    Counters { seen_packets, seen_bytes, counted_packets, counted_bytes, elsewhere_packets, elsewhere_bytes,
        rejected_packets, rejected_bytes, unparsed_packets, unparsed_bytes, not_ip_packets, not_ip_bytes,
        alone_packets, alone_bytes, lost_packets, lost_bytes, inner_packets, inner_bytes }
    Groups { source, destination }
    RuleBase { ports, ipv4, ipv6, flows, drops }
    Rejected { tags, generation, count, keys }
    Told { records, packets, bytes }
    Kept { starts, ended, ending, settled, settled_ns }
    Ledger { ring_records, ring_full, reported_packets, reported_bytes, connections, reopened,
        table_full, insert_failed, removed }
    DropKey { flow, location, reason, netns, ifindex, direction, arrived, zero }
    Drops { seen, no_drop, rejected, unparsed, not_ip, added, lost_full, lost_refused, lost_nested, lost_unread,
        added_packets, added_bytes }
    Places { skb_head, skb_data, skb_end, skb_len, skb_data_len, skb_mac_header, skb_network_header, skb_protocol,
        skb_dev, skb_sk, skb_dst, skb_iif, skb_vlan_tci, skb_vlan, vlan_mask, shared_gso_size, shared_gso_segs,
        dev_ifindex, dev_net, dev_name, net_inum, sock_net, dst_dev, has_reason, has_socket, no_drop }
};
