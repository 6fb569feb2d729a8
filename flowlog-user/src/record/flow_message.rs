use std::net::IpAddr;

use super::fields::Mask;
use super::schema::{Descriptor, FLOW, Kind};
use super::{End, Flow, IpVersion, L4, Measured, Message, Node, Tunnel, Value};

/// A flow of ours as Hubble's message, with everything its line says: for filters that may ask for any field. Slow.
#[must_use]
pub fn flow_message(flow: &Flow, node: &Node) -> Message {
    let mut text = Vec::new();
    flow.summary(&mut text);
    let (event_type, sub_type) = flow.event_type();
    let [index, ..] = flow.interfaces;
    let name = node.interfaces.get(&index).map_or("", |interface| interface.name.as_str());
    let ip = |address: IpAddr| Value::Text(address.to_string().into());
    let mut fields = Fields::of(&FLOW);
    fields.set("time", time(flow.last_seen_ns));
    fields.text("uuid", &String::from_utf8_lossy(&flow.uuid(node)));
    fields.sub("emitter", |emitter| {
        emitter.text("name", "flowlog");
        emitter.text("version", env!("CARGO_PKG_VERSION"));
    });
    fields.number("verdict", flow.verdict().1.into());
    fields.number("drop_reason", flow.drop_reason().into());
    fields.sub("IP", |fields| {
        fields.set("source", ip(flow.source));
        fields.set("destination", ip(flow.destination));
        fields.number("ipVersion", flow.ip_version().number().into());
    });
    if flow.l4 != L4::Other {
        fields.sub("l4", |fields| l4(fields, flow.l4));
    }
    if let Some(tunnel) = &flow.tunnel {
        fields.sub("tunnel", |fields| self::tunnel(fields, tunnel));
    }
    for (end, identity) in
        [(End::Source, flow.source_identity), (End::Destination, flow.destination_identity)]
    {
        fields.sub(end.name(), |fields| {
            fields.number("identity", identity.number().into());
            let labels = flow.labels(end, node).iter();
            fields.set("labels", Value::List(labels.map(|label| Value::Text(label.into())).collect()));
        });
    }
    fields.name("Type", "L3_L4");
    fields.text("node_name", &node.name);
    fields.sub("event_type", |fields| {
        fields.number("type", event_type.into());
        fields.number("sub_type", sub_type.into());
    });
    fields.number("traffic_direction", flow.traffic_direction().number().into());
    if let Some(point) = flow.trace_observation_point() {
        fields.name("trace_observation_point", point);
    }
    if let Some(reason) = flow.trace_reason() {
        fields.name("trace_reason", reason);
    }
    fields.number("drop_reason_desc", flow.drop_reason().into());
    if let Some(is_reply) = flow.is_reply {
        fields.set("is_reply", Value::Bool(is_reply));
    }
    if index != 0 {
        fields.sub("interface", |fields| {
            fields.number("index", index.into());
            fields.text("name", name);
        });
    }
    fields.text("Summary", &String::from_utf8_lossy(&text));
    fields.set(
        "extensions",
        Value::Free("google.protobuf.Struct", Measured::of(flow, node, &Mask::ALL).to_json()),
    );
    fields.done()
}

fn tunnel(fields: &mut Fields, tunnel: &Tunnel) {
    if let Some(name) = tunnel.kind.hubble_name() {
        fields.name("protocol", name);
    }
    fields.sub("IP", |fields| {
        fields.text("source", &tunnel.source.to_string());
        fields.text("destination", &tunnel.destination.to_string());
        fields.number("ipVersion", IpVersion::of(tunnel.source).number().into());
    });
    if tunnel.kind.is_udp() {
        let (source_port, destination_port) = tunnel.ports;
        fields.sub("l4", |fields| l4(fields, L4::Udp { source_port, destination_port }));
    }
    fields.number("vni", tunnel.vni.into());
}

fn l4(fields: &mut Fields, l4: L4) {
    let Some(name) = l4.name() else { return };
    fields.sub(name, |fields| match l4 {
        L4::Tcp { source_port, destination_port, flags } => {
            ports(fields, source_port, destination_port);
            fields.sub("flags", |fields| {
                for (bit, spec) in fields.of.fields.iter().enumerate() {
                    if u16::from(flags) >> bit & 1 == 1 {
                        fields.set(spec.name, Value::Bool(true));
                    }
                }
            });
        }
        L4::Udp { source_port, destination_port } | L4::Sctp { source_port, destination_port } => {
            ports(fields, source_port, destination_port);
        }
        L4::Icmpv4 { icmp_type, code } | L4::Icmpv6 { icmp_type, code } => {
            fields.number("type", icmp_type.into());
            fields.number("code", code.into());
        }
        L4::Other => {}
    });
}

fn ports(fields: &mut Fields, source: u16, destination: u16) {
    fields.number("source_port", source.into());
    fields.number("destination_port", destination.into());
}

fn time(ns: i64) -> Value {
    let nanoseconds = u32::try_from(ns.rem_euclid(1_000_000_000)).unwrap_or(0);
    Value::Time(ns.div_euclid(1_000_000_000), nanoseconds)
}

/// A message in the making. Zero values are left out.
struct Fields {
    of: &'static Descriptor,
    set: Vec<(&'static super::schema::Spec, Value)>,
}

impl Fields {
    fn of(of: &'static Descriptor) -> Self {
        Self { of, set: Vec::new() }
    }

    fn set(&mut self, name: &str, value: Value) {
        self.set.extend(self.of.field(name).map(|spec| (spec, value)));
    }

    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.set(name, Value::Text(text.into()));
        }
    }

    fn number(&mut self, name: &str, number: i64) {
        if number != 0 {
            let unsigned =
                self.of.field(name).is_some_and(|spec| matches!(spec.kind, Kind::Uint32 | Kind::Uint64));
            let value = if unsigned { Value::Uint(number.unsigned_abs()) } else { Value::Int(number) };
            self.set(name, value);
        }
    }

    /// An enum by its value's name.
    fn name(&mut self, name: &str, value: &str) {
        if let Some(Kind::Enum(of)) = self.of.field(name).map(|spec| spec.kind) {
            self.number(name, of.number_of(value).unwrap_or(0).into());
        }
    }

    fn sub(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        if let Some(Kind::Message(of)) = self.of.field(name).map(|spec| spec.kind) {
            let mut fields = Self::of(of);
            fill(&mut fields);
            self.set(name, Value::Message(fields.done()));
        }
    }

    fn done(self) -> Message {
        Message::new(self.of, self.set)
    }
}
