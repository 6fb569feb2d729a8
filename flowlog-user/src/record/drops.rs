//! What the kernel says of a packet that it drops, and Hubble's word for it.

use std::sync::Mutex;

/// Kinds of drops that are told apart: the kernel's code has fewer places where packets are dropped.
const KINDS_MAX: usize = 4096;

/// Why and where packets were dropped. There are few of these, each stays as long as the process.
#[derive(Debug, PartialEq, Eq)]
pub struct DropKind {
    /// Number in Hubble's `DropReason`; 0 = Hubble has no word for it.
    pub hubble: i32,
    /// The kernel's name of the reason; empty where the kernel gives none.
    pub reason: String,
    /// The function that gave the packet up; empty where that is not known.
    pub location: String,
}

/// Longest name of an interface, its end included (IFNAMSIZ).
const NAME_BYTES: usize = 16;

/// Name of an interface in another network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignName([u8; NAME_BYTES]);

impl ForeignName {
    /// Cut to what the kernel allows.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut bytes = [0; NAME_BYTES];
        let ends = name.char_indices().map(|(at, letter)| at + letter.len_utf8());
        let end = ends.take_while(|end| *end < NAME_BYTES).last().unwrap_or(0);
        bytes.iter_mut().zip(name.bytes().take(end)).for_each(|(to, from)| *to = from);
        Self(bytes)
    }

    /// The name; empty for none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// What a record of dropped packets says beside the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Why and where.
    pub kind: &'static DropKind,
    /// Inode number of the network namespace; 0 = not known.
    pub netns: u32,
    /// The interface's name, where the record has none: it is not watched, or in another namespace than flowlog.
    pub interface: ForeignName,
}

impl DropKind {
    /// The kind of this reason and place, made if it is new.
    #[must_use]
    pub fn of(reason: &str, location: &str) -> &'static Self {
        static KINDS: Mutex<Vec<&'static DropKind>> = Mutex::new(Vec::new());
        let mut kinds = KINDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = |kind: &&&'static Self| kind.reason == reason && kind.location == location;
        if let Some(kind) = kinds.iter().find(known) {
            return kind;
        }
        static OTHER: DropKind = DropKind { hubble: 0, reason: String::new(), location: String::new() };
        if kinds.len() >= KINDS_MAX {
            return &OTHER;
        }
        let hubble = hubble(reason, location);
        let kind = Self { hubble, reason: plain(reason), location: plain(location) };
        let kind: &'static Self = Box::leak(Box::new(kind));
        kinds.push(kind);
        kind
    }
}

/// Frees the buffers that another one was made of, whatever becomes of that.
const PARTS: &str = "skb_release_data";
/// Frees any list of buffers; kernels before 6.3 name this in place of its caller.
const LISTS: [&str; 2] = ["kfree_skb_list_reason", "kfree_skb_list"];

impl DropKind {
    /// Whether it tells of parts of another buffer: fragments that were put together, segments that GRO has merged. They
    /// are freed as if they were dropped when the whole is, also when that was delivered; their bytes are the whole's.
    /// `netns` is 0 for fragments, which have no device any more.
    #[must_use]
    pub fn is_of_parts(&self, netns: u32) -> bool {
        let location = function(&self.location);
        let is_unspecified = matches!(self.reason.as_str(), "" | "NOT_SPECIFIED");
        location == PARTS || is_unspecified && netns == 0 && LISTS.contains(&location)
    }
}

/// A place without the module, which stands behind the function (`veth_xdp_rcv_skb [veth]`).
fn function(location: &str) -> &str {
    location.split(' ').next().unwrap_or_default()
}

/// ASCII that needs no escapes in any format.
fn plain(name: &str) -> String {
    let is_plain =
        |letter: &char| letter.is_ascii_graphic() && !"\"\\<>&".contains(*letter) || *letter == ' ';
    name.chars().map(|letter| if is_plain(&letter) { letter } else { '_' }).collect()
}

/// Functions that forward packets: what is wrong with a header there is that its time to live is over.
const FORWARDING: [&str; 2] = ["ip_forward", "ip6_forward"];

/// Functions that drop what a program of XDP told them to, for no reason of the kernel's.
const XDP: [&str; 2] = ["do_xdp_generic", "veth_xdp_rcv_skb"];

/// Number of Hubble's word (`flow.DropReason`, Cilium 1.19.4) for a reason of the kernel; 0 where there is none.
fn hubble(reason: &str, location: &str) -> i32 {
    let location = function(location);
    match reason {
        "MAC_INVALID_SOURCE" | "LOCAL_MAC" => 130,
        "OTHERHOST" => 131,
        "IP_RPFILTER" | "IP_LOCAL_SOURCE" | "IP_INVALID_SOURCE" => 132,
        "NETFILTER_DROP" | "SOCKET_FILTER" | "XFRM_POLICY" | "BPF_CGROUP_EGRESS" | "TC_EGRESS"
        | "TC_INGRESS" | "XDP" | "SECURITY_HOOK" => 133,
        "IP_INHDR" if FORWARDING.contains(&location) => 196,
        "NOT_SPECIFIED" if XDP.contains(&location) => 133,
        "PKT_TOO_SMALL"
        | "HDR_TRUNC"
        | "IP_INHDR"
        | "IP_CSUM"
        | "TCP_CSUM"
        | "UDP_CSUM"
        | "ICMP_CSUM"
        | "SKB_CSUM"
        | "TCP_FLAGS"
        | "TCP_INVALID_SEQUENCE"
        | "TCP_INVALID_END_SEQUENCE"
        | "TCP_INVALID_ACK_SEQUENCE"
        | "TCP_INVALID_SYN"
        | "VXLAN_INVALID_HDR"
        | "DEV_HDR" => 134,
        "UNHANDLED_PROTO" => 139,
        "IP_NOPROTO" | "INVALID_PROTO" => 142,
        "NEIGH_CREATEFAIL" | "NEIGH_FAILED" | "NEIGH_QUEUEFULL" | "NEIGH_DEAD" | "NEIGH_HH_FILLFAIL" => 150,
        "IPV6_BAD_EXTHDR" => 156,
        "PKT_TOO_BIG" => 157,
        "FQ_HORIZON_LIMIT" => 162,
        "IP_OUTNOROUTES" | "IP_INNOROUTES" | "IP_INADDRERRORS" | "IP_INVALID_DEST" | "IP_LOCALNET" => 169,
        "IPV6_NDISC_FRAG"
        | "IPV6_NDISC_HOP_LIMIT"
        | "IPV6_NDISC_BAD_CODE"
        | "IPV6_NDISC_BAD_OPTIONS"
        | "IPV6_NDISC_NS_OTHERHOST" => 176,
        "NO_SOCKET" => 178,
        "VXLAN_VNI_NOT_FOUND" => 183,
        "TCP_MINTTL" => 196,
        "QDISC_DROP" | "QDISC_OVERLIMIT" | "QDISC_CONGESTED" | "CAKE_FLOOD" | "FQ_BAND_LIMIT"
        | "FQ_FLOW_LIMIT" => 198,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::schema::DROP_REASON;

    #[test]
    fn hubbles_words_are_hubbles() {
        for (reason, location, word) in [
            ("NETFILTER_DROP", "nf_hook_slow", "POLICY_DENIED"),
            ("TC_INGRESS", "sch_handle_ingress", "POLICY_DENIED"),
            ("NOT_SPECIFIED", "veth_xdp_rcv_skb", "POLICY_DENIED"),
            ("NOT_SPECIFIED", "veth_xdp_rcv_skb [veth]", "POLICY_DENIED"),
            ("IP_INHDR", "ip_forward", "TTL_EXCEEDED"),
            ("IP_INHDR", "ip_rcv_core", "INVALID_PACKET_DROPPED"),
            ("UNHANDLED_PROTO", "", "UNSUPPORTED_L3_PROTOCOL"),
            ("IP_RPFILTER", "ip_rcv_finish_core", "INVALID_SOURCE_IP"),
            ("PKT_TOO_BIG", "", "IP_FRAGMENTATION_NOT_SUPPORTED"),
            ("IP_OUTNOROUTES", "", "FIB_LOOKUP_FAILED"),
            ("NO_SOCKET", "tcp_v4_rcv", "SOCKET_LOOKUP_FAILED"),
            ("SOCKET_RCVBUFF", "", "DROP_REASON_UNKNOWN"),
            ("TCP_LISTEN_OVERFLOW", "", "DROP_REASON_UNKNOWN"),
            ("", "somewhere", "DROP_REASON_UNKNOWN"),
        ] {
            let kind = DropKind::of(reason, location);
            assert_eq!(DROP_REASON.name_of(kind.hubble), Some(word), "{reason} {location}");
            assert!(std::ptr::eq(kind, DropKind::of(reason, location)));
        }
    }

    #[test]
    fn parts_of_another_buffer_are_told_from_packets() {
        for (reason, location, netns, is_of_parts) in [
            ("NOT_SPECIFIED", "skb_release_data", 0, true),
            ("NETFILTER_DROP", "skb_release_data", 7, true),
            ("NOT_SPECIFIED", "kfree_skb_list_reason", 0, true),
            ("", "kfree_skb_list", 0, true),
            ("NOT_SPECIFIED", "kfree_skb_list_reason", 7, false),
            ("QDISC_DROP", "kfree_skb_list_reason", 0, false),
            ("NOT_SPECIFIED", "ip6_mc_input", 0, false),
            ("", "", 0, false),
        ] {
            let kind = DropKind::of(reason, location);
            assert_eq!(kind.is_of_parts(netns), is_of_parts, "{reason} {location} {netns}");
        }
    }

    #[test]
    fn names_of_interfaces_are_cut_as_the_kernel_cuts_them() {
        assert_eq!(ForeignName::new("eth0").as_str(), "eth0");
        assert_eq!(ForeignName::default().as_str(), "");
        assert_eq!(ForeignName::new("abcdefghijklmnop").as_str(), "abcdefghijklmno");
        assert_eq!(ForeignName::new("abcdefghijklmn\u{e9}").as_str(), "abcdefghijklmn");
    }
}
