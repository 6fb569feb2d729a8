//! The same lines made the slow way, for the tests: every path of the field table looked up in a list of values,
//! put into an ordered tree. Shares nothing with the encoder but the field table, `record`'s facts and the text of
//! `Summary`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::record::fields::{FIELDS, Mask};
use crate::record::schema::DROP_REASON;
use crate::record::{Dropped, End, Flow, L4, Node, Tunnel, TunnelKind};

/// An object keeps its keys in order, which `serde_json`'s does not.
#[derive(Debug)]
enum Tree {
    Object(Vec<(String, Tree)>),
    Leaf(Value),
}

impl Tree {
    fn child(&mut self, key: &str) -> &mut Tree {
        let Self::Object(entries) = self else { panic!("{key} below a leaf") };
        let at = entries.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
            entries.push((key.into(), Self::Object(Vec::new())));
            entries.len() - 1
        });
        &mut entries[at].1
    }

    fn text(&self) -> String {
        match self {
            Self::Leaf(value) => value.to_string(),
            Self::Object(entries) => {
                let entries: Vec<_> =
                    entries.iter().map(|(key, value)| format!("{}:{}", json!(key), value.text())).collect();
                format!("{{{}}}", entries.join(","))
            }
        }
    }
}

/// The line of a flow.
pub(super) fn line(flow: &Flow, node: &Node, mask: &Mask) -> String {
    let mut tree = Tree::Object(Vec::new());
    tree.child("flow");
    for (field, path) in FIELDS {
        let keep = mask.keep.has(*field);
        let parts: Vec<&str> = path.split('.').collect();
        let (leaf, messages) = parts.split_last().unwrap();
        let mut at = tree.child("flow");
        let mut reached = true;
        for end in 1..=messages.len() {
            let message = messages[..end].join(".");
            let member =
                end == 2 && (messages[0] == "l4" || messages[0] == "l7") || end == 3 && messages[1] == "l4";
            reached = (keep && present(flow, &message))
                || (mask.named.has(*field) && (!member || present(flow, &message)));
            if !reached {
                break;
            }
            at = at.child(messages[end - 1]);
            if message == "extensions" {
                *at.child("@type") = Tree::Leaf(json!("type.googleapis.com/google.protobuf.Struct"));
                at = at.child("value");
            }
        }
        if reached
            && keep
            && let Some(value) = value(flow, node, path)
        {
            *at.child(leaf) = Tree::Leaf(value);
        }
    }
    for path in ["node_name", "time"] {
        let field = FIELDS.iter().find(|(_, name)| *name == path).unwrap().0;
        if mask.keep.has(field)
            && let Some(value) = value(flow, node, path)
        {
            *tree.child(path) = Tree::Leaf(value);
        }
    }
    // What Go escapes beyond JSON can only stand inside strings.
    let mut text = tree.text();
    for c in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
        text = text.replace(c, &format!("\\u{:04x}", u32::from(c)));
    }
    text + "\n"
}

fn present(flow: &Flow, message: &str) -> bool {
    match message {
        "emitter" | "IP" | "source" | "destination" | "event_type" | "extensions" => true,
        "interface" => flow.interfaces[0] != 0,
        "l4" => flow.l4 != L4::Other,
        "tunnel" | "tunnel.IP" => flow.tunnel.is_some(),
        "tunnel.l4" | "tunnel.l4.UDP" => {
            matches!(flow.tunnel, Some(Tunnel { kind: TunnelKind::Vxlan | TunnelKind::Geneve, .. }))
        }
        "l4.TCP" | "l4.TCP.flags" => matches!(flow.l4, L4::Tcp { .. }),
        "l4.UDP" => matches!(flow.l4, L4::Udp { .. }),
        "l4.SCTP" => matches!(flow.l4, L4::Sctp { .. }),
        "l4.ICMPv4" => matches!(flow.l4, L4::Icmpv4 { .. }),
        "l4.ICMPv6" => matches!(flow.l4, L4::Icmpv6 { .. }),
        _ => false,
    }
}

/// A field's value; `None` where it is absent, zero, empty or false.
fn value(flow: &Flow, node: &Node, path: &str) -> Option<Value> {
    let nonzero = |value: u64| (value != 0).then(|| json!(value));
    let yes = |value: bool| value.then_some(Value::Bool(true));
    let name = |index: u32| node.interfaces.get(&index).map(|interface| interface.name.clone());
    match path {
        "time" | "extensions.last_seen" => Some(json!(rfc3339(flow.last_seen_ns))),
        "uuid" => Some(json!(uuid(flow, node))),
        "emitter.name" => Some(json!("flowlog")),
        "emitter.version" => Some(json!(env!("CARGO_PKG_VERSION"))),
        "verdict" => Some(json!(if flow.dropped.is_some() { "DROPPED" } else { "FORWARDED" })),
        "IP.source" => Some(json!(flow.source.to_string())),
        "IP.destination" => Some(json!(flow.destination.to_string())),
        "IP.ipVersion" => Some(json!(if flow.source.is_ipv4() { "IPv4" } else { "IPv6" })),
        "source.identity" => nonzero(flow.source_identity.number().into()),
        "source.labels" => Some(json!(flow.labels(End::Source, node).iter().collect::<Vec<_>>())),
        "destination.identity" => nonzero(flow.destination_identity.number().into()),
        "destination.labels" => Some(json!(flow.labels(End::Destination, node).iter().collect::<Vec<_>>())),
        "Type" => Some(json!("L3_L4")),
        "node_name" => (!node.name.is_empty()).then(|| json!(node.name)),
        "event_type.type" => Some(json!(if flow.dropped.is_some() { 1 } else { 4 })),
        "event_type.sub_type" => nonzero(flow.event_type().1.unsigned_abs().into()),
        "traffic_direction" => Some(json!(flow.traffic_direction().name())),
        "trace_observation_point" | "trace_reason" if flow.dropped.is_some() => None,
        "trace_observation_point" => Some(json!(flow.hook.trace_observation_point())),
        "trace_reason" => Some(json!(flow.trace_reason()?)),
        "is_reply" => flow.is_reply.map(|is_reply| json!(is_reply)),
        "interface.index" => nonzero(flow.interfaces[0].into()),
        "interface.name" => name(flow.interfaces[0]).filter(|name| !name.is_empty()).map(Value::String),
        "Summary" => Some(json!(summary(flow))),
        "extensions.event" => Some(json!(flow.event.name())),
        "extensions.end_reason" => flow.end_reason.map(|reason| json!(reason.name())),
        "extensions.connection" => Some(json!(flow.connection)),
        "extensions.started" => Some(json!(rfc3339(flow.started_ns))),
        "extensions.first_seen" => Some(json!(rfc3339(flow.first_seen_ns))),
        "extensions.packets" => Some(json!(flow.packets)),
        "extensions.bytes" => Some(json!(flow.bytes)),
        "extensions.packets_total" => Some(json!(flow.packets_total)),
        "extensions.bytes_total" => Some(json!(flow.bytes_total)),
        "extensions.midstream" => yes(flow.midstream),
        "extensions.duplicate" => yes(flow.duplicate),
        "extensions.fragment" => yes(flow.fragment),
        "extensions.vlan" => nonzero(flow.vlans[0].into()),
        "extensions.inner_vlan" => nonzero(flow.vlans[1].into()),
        "extensions.tunnel" => flow.tunnel.map(|tunnel| {
            json!(match tunnel.kind {
                TunnelKind::Vxlan => "vxlan",
                TunnelKind::Geneve => "geneve",
                TunnelKind::Gre => "gre",
                TunnelKind::Ipip => "ipip",
                TunnelKind::Ip6ip => "ip6ip",
            })
        }),
        "extensions.rtt" => nonzero(flow.rtt_ns.into()),
        "extensions.interfaces" => {
            let crossed: Vec<_> = flow.interfaces.into_iter().filter(|index| *index != 0).collect();
            let names: Vec<_> =
                crossed.iter().map(|index| name(*index).unwrap_or_else(|| index.to_string())).collect();
            (names.len() > 1).then(|| json!(names))
        }
        _ => match path.strip_prefix("l4.") {
            Some(path) => transport(flow.l4, path),
            None if path.starts_with("tunnel.") => of_tunnel(flow.tunnel.as_ref()?, path),
            None => of_drop(flow.dropped.as_ref()?, path),
        },
    }
}

fn of_tunnel(tunnel: &Tunnel, path: &str) -> Option<Value> {
    let nonzero = |value: u64| (value != 0).then(|| json!(value));
    match path {
        "tunnel.protocol" => match tunnel.kind {
            TunnelKind::Vxlan => Some(json!("VXLAN")),
            TunnelKind::Geneve => Some(json!("GENEVE")),
            _ => None,
        },
        "tunnel.IP.source" => Some(json!(tunnel.source.to_string())),
        "tunnel.IP.destination" => Some(json!(tunnel.destination.to_string())),
        "tunnel.IP.ipVersion" => Some(json!(if tunnel.source.is_ipv4() { "IPv4" } else { "IPv6" })),
        "tunnel.l4.UDP.source_port" => nonzero(tunnel.ports.0.into()),
        "tunnel.l4.UDP.destination_port" => nonzero(tunnel.ports.1.into()),
        "tunnel.vni" => nonzero(tunnel.vni.into()),
        _ => None,
    }
}

fn of_drop(dropped: &Dropped, path: &str) -> Option<Value> {
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    let number = dropped.kind.hubble;
    match path {
        "drop_reason" => (number != 0).then(|| json!(number)),
        "drop_reason_desc" => DROP_REASON.name_of(number).filter(|_| number != 0).map(|name| json!(name)),
        "extensions.drop_reason" => text(&dropped.kind.reason),
        "extensions.drop_location" => text(&dropped.kind.location),
        "extensions.drop_netns" => (dropped.netns != 0).then(|| json!(dropped.netns)),
        "extensions.drop_interface" => text(dropped.interface.as_str()),
        _ => None,
    }
}

fn transport(l4: L4, path: &str) -> Option<Value> {
    let (member, leaf) = path.split_once('.')?;
    if l4.name() != Some(member) {
        return None;
    }
    let value: u64 = match (l4, leaf) {
        (L4::Icmpv4 { icmp_type, .. } | L4::Icmpv6 { icmp_type, .. }, "type") => icmp_type.into(),
        (L4::Icmpv4 { code, .. } | L4::Icmpv6 { code, .. }, "code") => code.into(),
        (_, "source_port") => l4.ports()?.0.into(),
        (_, "destination_port") => l4.ports()?.1.into(),
        (L4::Tcp { flags, .. }, _) => {
            let flag = leaf.strip_prefix("flags.")?;
            let bit = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"]
                .iter()
                .position(|name| *name == flag)?;
            return (flags & (1 << bit) != 0).then_some(Value::Bool(true));
        }
        _ => 0,
    };
    (value != 0).then(|| json!(value))
}

fn rfc3339(ns: i64) -> String {
    let text = Timestamp::from_nanosecond(ns.into()).unwrap().strftime("%Y-%m-%dT%H:%M:%S.%9f").to_string();
    let text = [".000000000", "000000", "000"].iter().find_map(|end| text.strip_suffix(end)).unwrap_or(&text);
    format!("{text}Z")
}

fn uuid(flow: &Flow, node: &Node) -> String {
    let bits = format!(
        "{:034b}{:053b}{:02b}{}{:032b}",
        node.boot % (1 << 34),
        flow.connection,
        flow.cadence,
        u8::from(flow.high_to_low),
        flow.number
    );
    let bits = format!("{}1000{}10{}", &bits[..48], &bits[48..60], &bits[60..]);
    let digits = |from: usize, to: usize| {
        let nibbles = (from..to).map(|at| u8::from_str_radix(&bits[4 * at..4 * at + 4], 2).unwrap());
        nibbles.map(|nibble| format!("{nibble:x}")).collect::<String>()
    };
    [digits(0, 8), digits(8, 12), digits(12, 16), digits(16, 20), digits(20, 32)].join("-")
}

/// The text is taken apart by golden tests; here only its shape is made again.
fn summary(flow: &Flow) -> String {
    let mut text = Vec::new();
    flow.summary(&mut text);
    String::from_utf8(text).unwrap()
}
