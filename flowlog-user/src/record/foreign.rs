use super::facts::{Address, Counters, End, EventKind, Facts, Layer, Texts};
use super::schema::{AGENT_EVENT, DEBUG_EVENT, EXPORT_EVENT, FLOW, LOST_EVENT};
use super::{Message, NO_FLOW, TunnelKind, Value};

/// Numbers under which the monitor knows agent and debug events; filters by event type ask for them.
const MESSAGE_TYPE_AGENT: i32 = 130;
const MESSAGE_TYPE_DEBUG: i32 = 2;

/// An event that somebody else recorded: a line of Hubble's export, or of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign(Message);

impl Foreign {
    /// An `ExportEvent`, or a bare `Flow`, which is put into one. Nothing else is an event.
    #[must_use]
    pub fn new(message: Message) -> Option<Self> {
        if *message.descriptor() == EXPORT_EVENT {
            return Some(Self(message));
        }
        if *message.descriptor() != FLOW {
            return None;
        }
        let mut fields = Vec::new();
        for spec in EXPORT_EVENT.fields {
            let value = match spec.name {
                "flow" => Some(Value::Message(message.clone())),
                name => message.get(name).cloned(),
            };
            fields.extend(value.map(|value| (spec, value)));
        }
        Some(Self(Message::new(&EXPORT_EVENT, fields)))
    }

    /// The whole event.
    #[must_use]
    pub const fn event(&self) -> &Message {
        &self.0
    }

    /// The flow in it.
    #[must_use]
    pub fn flow(&self) -> Option<&Message> {
        self.0.message("flow")
    }

    /// Gives an end of the flow a label more, in its place by the alphabet.
    pub fn add_label(&mut self, end: End, label: &str) {
        if self.flow().is_none() {
            return;
        }
        let endpoint = self.0.message_mut("flow").and_then(|flow| flow.message_mut(end.name()));
        let Some(endpoint) = endpoint else { return };
        let mut labels = endpoint.list("labels").to_vec();
        let is_after = |other: &Value| matches!(other, Value::Text(text) if **text > *label);
        let at = labels.iter().position(is_after).unwrap_or(labels.len());
        labels.insert(at, Value::Text(label.into()));
        endpoint.set("labels", Value::List(labels));
    }

    /// When it was, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn time_ns(&self) -> Option<i64> {
        self.0.time_ns("time").or_else(|| self.flow()?.time_ns("time"))
    }

    fn endpoint(&self, end: End) -> Option<&Message> {
        self.message().message(end.name())
    }

    fn l4(&self) -> Option<&Message> {
        self.message().message("l4")
    }
}

impl End {
    /// Name of the endpoint's message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
        }
    }
}

impl Layer {
    const ALL: [Self; 10] = [
        Self::Tcp,
        Self::Udp,
        Self::Sctp,
        Self::Icmpv4,
        Self::Icmpv6,
        Self::Vrrp,
        Self::Igmp,
        Self::Dns,
        Self::Http,
        Self::Kafka,
    ];

    /// The union and the member's name in it.
    const fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::Tcp => ("l4", "TCP"),
            Self::Udp => ("l4", "UDP"),
            Self::Sctp => ("l4", "SCTP"),
            Self::Icmpv4 => ("l4", "ICMPv4"),
            Self::Icmpv6 => ("l4", "ICMPv6"),
            Self::Vrrp => ("l4", "VRRP"),
            Self::Igmp => ("l4", "IGMP"),
            Self::Dns => ("l7", "dns"),
            Self::Http => ("l7", "http"),
            Self::Kafka => ("l7", "kafka"),
        }
    }
}

impl Facts for Foreign {
    fn kind(&self) -> EventKind {
        if let Some(flow) = self.flow() {
            let event_type = flow.message("event_type");
            return EventKind::Flow(event_type.map(|event| (event.signed("type"), event.signed("sub_type"))));
        }
        for (_, value) in self.0.fields() {
            let Value::Message(message) = value else { continue };
            let of = message.descriptor();
            if *of == LOST_EVENT {
                return EventKind::Lost;
            }
            for (event, number) in [(&AGENT_EVENT, MESSAGE_TYPE_AGENT), (&DEBUG_EVENT, MESSAGE_TYPE_DEBUG)] {
                if *of == *event {
                    return EventKind::Other(number, message.signed("type"));
                }
            }
        }
        EventKind::None
    }

    fn address(&self, end: End) -> Address<'_> {
        Address::Text(self.message().message("IP").map_or("", |ip| ip.text(end.name())))
    }

    fn port(&self, end: End) -> Option<u32> {
        let l4 = self.l4()?;
        let member = ["TCP", "UDP", "SCTP"].into_iter().find_map(|name| l4.message(name))?;
        let name = match end {
            End::Source => "source_port",
            End::Destination => "destination_port",
        };
        u32::try_from(member.unsigned(name)).ok()
    }

    fn tcp_flags(&self) -> Option<u16> {
        let flags = self.l4()?.message("TCP")?.message("flags")?;
        let set = flags.descriptor().fields.iter().enumerate();
        Some(
            set.filter(|(_, spec)| flags.boolean(spec.name) == Some(true))
                .fold(0, |set, (bit, _)| set | 1 << bit),
        )
    }

    fn layers(&self) -> u16 {
        Layer::ALL
            .into_iter()
            .filter(|layer| {
                let (union, member) = layer.place();
                self.message().message(union).is_some_and(|union| union.message(member).is_some())
            })
            .fold(0, |layers, layer| layers | layer.bit())
    }

    fn identity(&self, end: End) -> Option<u32> {
        u32::try_from(self.endpoint(end)?.unsigned("identity")).ok()
    }

    fn labels(&self, end: End) -> Texts<'_> {
        Texts::Many(self.endpoint(end).map_or(&[], |endpoint| endpoint.list("labels")))
    }

    fn verdict(&self) -> i32 {
        self.message().signed("verdict")
    }

    fn drop_reason(&self) -> i32 {
        self.message().signed("drop_reason_desc")
    }

    fn traffic_direction(&self) -> i32 {
        self.message().signed("traffic_direction")
    }

    fn ip_version(&self) -> i32 {
        self.message().message("IP").map_or(0, |ip| ip.signed("ipVersion"))
    }

    fn is_reply(&self) -> Option<bool> {
        self.message().boolean("is_reply")
    }

    fn any_interface(&self, test: impl Fn(u32, &str) -> bool) -> bool {
        self.message().message("interface").is_some_and(|interface| {
            test(u32::try_from(interface.unsigned("index")).unwrap_or(0), interface.text("name"))
        })
    }

    fn node_name(&self) -> &str {
        self.message().text("node_name")
    }

    fn has_uuid(&self, wanted: &str) -> bool {
        self.message().text("uuid") == wanted
    }

    fn with_message<T>(&self, look: impl FnOnce(&Message) -> T) -> T {
        look(self.message())
    }

    fn message(&self) -> &Message {
        self.flow().unwrap_or(&NO_FLOW)
    }

    fn vlans(&self) -> Option<[u16; 2]> {
        let Some(Value::Free(_, ours)) = self.message().get("extensions") else { return None };
        Some(["vlan", "inner_vlan"].map(|key| match ours.get(key) {
            Some(super::Json::Unsigned(number)) => u16::try_from(*number).unwrap_or(0),
            _ => 0,
        }))
    }

    fn tunnel(&self) -> (&str, u32) {
        let tunnel = self.message().message("tunnel");
        let hubble = match tunnel.map_or(0, |tunnel| tunnel.signed("protocol")) {
            1 => TunnelKind::Vxlan.name(),
            2 => TunnelKind::Geneve.name(),
            _ => "",
        };
        let kind = match self.message().get("extensions") {
            Some(Value::Free(_, ours)) => match ours.get("tunnel") {
                Some(super::Json::Text(text)) => text,
                _ => hubble,
            },
            _ => hubble,
        };
        (kind, tunnel.and_then(|tunnel| u32::try_from(tunnel.unsigned("vni")).ok()).unwrap_or(0))
    }

    fn counters(&self) -> Option<Counters> {
        let Some(Value::Free(_, ours)) = self.message().get("extensions") else { return None };
        let number = |key| match ours.get(key) {
            Some(super::Json::Unsigned(number)) => Some(*number),
            _ => None,
        };
        let time = |key| match ours.get(key) {
            Some(super::Json::Text(text)) => text.parse::<jiff::Timestamp>().ok(),
            _ => None,
        };
        let lasted = time("started").zip(time("last_seen"));
        let lasted = lasted.map(|(from, to)| to.duration_since(from).as_nanos());
        Some(Counters {
            packets: number("packets")?,
            bytes: number("bytes")?,
            duration_ns: lasted.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0),
            connection: number("connection"),
            duplicate: matches!(ours.get("duplicate"), Some(super::Json::Bool(true))),
        })
    }
}
