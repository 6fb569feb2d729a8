use std::borrow::Cow;
use std::ops::Deref;

use super::fields::{Field, Mask};
use super::{EndReason, Event, Flow, Json, Node, TunnelKind, rfc3339};

/// What flowlog measured of a flow and Hubble has no field for: the keys below `extensions`, typed. What is absent is
/// `None`, false, or an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named like the record's keys, with the unit behind times")]
pub struct Measured<'a> {
    pub event: Option<Event>,
    pub end_reason: Option<EndReason>,
    pub connection: Option<u64>,
    pub started_ns: Option<i64>,
    pub first_seen_ns: Option<i64>,
    pub last_seen_ns: Option<i64>,
    pub packets: Option<u64>,
    pub bytes: Option<u64>,
    pub packets_total: Option<u64>,
    pub bytes_total: Option<u64>,
    pub midstream: bool,
    pub interfaces: Names<'a>,
    pub duplicate: bool,
    pub fragment: bool,
    pub rtt_ns: Option<u64>,
    pub vlan: Option<u64>,
    pub inner_vlan: Option<u64>,
    pub tunnel: Option<TunnelKind>,
    pub drop_reason: Option<Cow<'a, str>>,
    pub drop_location: Option<Cow<'a, str>>,
    pub drop_netns: Option<u64>,
    pub drop_interface: Option<Cow<'a, str>>,
    /// Of records that are sums of others; the rest is what only these have.
    pub overflow: bool,
    pub connections: Option<u64>,
    pub duplicate_packets: Option<u64>,
    pub duplicate_bytes: Option<u64>,
}

/// Names. Up to four, which is what a record of ours has at most, take no memory of their own.
#[derive(Clone, Debug, Default)]
pub struct Names<'a> {
    few: [Cow<'a, str>; FEW],
    count: usize,
    /// All of them, where they are more.
    many: Vec<Cow<'a, str>>,
}

const FEW: usize = 4;

impl<'a> Names<'a> {
    /// Appends one.
    pub fn push(&mut self, name: Cow<'a, str>) {
        if let Some(place) = self.few.get_mut(self.count) {
            *place = name;
            self.count += 1;
            return;
        }
        if self.many.is_empty() {
            self.many.extend(std::mem::take(&mut self.few));
        }
        self.many.push(name);
    }
}

impl<'a> Deref for Names<'a> {
    type Target = [Cow<'a, str>];

    fn deref(&self) -> &Self::Target {
        if self.many.is_empty() { self.few.get(..self.count).unwrap_or_default() } else { &self.many }
    }
}

impl PartialEq for Names<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Names<'_> {}

impl<'a> FromIterator<Cow<'a, str>> for Names<'a> {
    fn from_iter<I: IntoIterator<Item = Cow<'a, str>>>(names: I) -> Self {
        let mut all = Self::default();
        names.into_iter().for_each(|name| all.push(name));
        all
    }
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A name of ours, which needs no escapes.
    Text(&'static str),
    /// A name of others.
    Foreign(&'a str),
    /// A number.
    Number(u64),
    /// Nanoseconds since the Unix epoch.
    Time(i64),
    /// True; there is no key for false.
    Yes,
    /// Names of others.
    Texts(&'a [Cow<'a, str>]),
}

/// Numbers of the fields of protobuf's `Measured`, and of the field of a record that holds it (`config/flowlog.proto`).
pub mod number {
    #![expect(missing_docs, reason = "named like the fields")]
    /// In the record, beside Hubble's 1 to 5, 1000 and 1001.
    pub const MEASURED: u32 = 2000;
    pub const EVENT: u32 = 1;
    pub const END_REASON: u32 = 2;
    pub const CONNECTION: u32 = 3;
    pub const STARTED: u32 = 4;
    pub const FIRST_SEEN: u32 = 5;
    pub const LAST_SEEN: u32 = 6;
    pub const PACKETS: u32 = 7;
    pub const BYTES: u32 = 8;
    pub const PACKETS_TOTAL: u32 = 9;
    pub const BYTES_TOTAL: u32 = 10;
    pub const MIDSTREAM: u32 = 11;
    pub const INTERFACES: u32 = 12;
    pub const DUPLICATE: u32 = 13;
    pub const FRAGMENT: u32 = 14;
    pub const RTT: u32 = 15;
    pub const VLAN: u32 = 16;
    pub const INNER_VLAN: u32 = 17;
    pub const TUNNEL: u32 = 18;
    pub const OVERFLOW: u32 = 19;
    pub const CONNECTIONS: u32 = 20;
    pub const DUPLICATE_PACKETS: u32 = 21;
    pub const DUPLICATE_BYTES: u32 = 22;
    pub const DROP_REASON: u32 = 23;
    pub const DROP_LOCATION: u32 = 24;
    pub const DROP_NETNS: u32 = 25;
    pub const DROP_INTERFACE: u32 = 26;
}

/// The column of a key, which has the unit in its name, or another one than Hubble's field of the same name.
#[must_use]
pub fn column_of(key: &str) -> &str {
    match key {
        "rtt" => "rtt_ns",
        "drop_reason" => "kernel_drop_reason",
        key => key,
    }
}

impl<'a> Measured<'a> {
    /// Of a flow, as far as the mask keeps it. Allocates only where more than one interface was crossed.
    #[must_use]
    pub fn of(flow: &'a Flow, node: &'a Node, mask: &Mask) -> Self {
        let keep = |field| mask.keep.has(field);
        let said = |text: &'a str, field| {
            Some(text).filter(|text| !text.is_empty() && keep(field)).map(Cow::Borrowed)
        };
        let dropped = flow.dropped.as_ref();
        let [vlan, inner_vlan] = flow.vlans;
        Self {
            event: keep(Field::ExtensionsEvent).then_some(flow.event),
            end_reason: flow.end_reason.filter(|_| keep(Field::ExtensionsEndReason)),
            connection: keep(Field::ExtensionsConnection).then_some(flow.connection),
            started_ns: keep(Field::ExtensionsStarted).then_some(flow.started_ns),
            first_seen_ns: keep(Field::ExtensionsFirstSeen).then_some(flow.first_seen_ns),
            last_seen_ns: keep(Field::ExtensionsLastSeen).then_some(flow.last_seen_ns),
            packets: keep(Field::ExtensionsPackets).then_some(flow.packets),
            bytes: keep(Field::ExtensionsBytes).then_some(flow.bytes),
            packets_total: keep(Field::ExtensionsPacketsTotal).then_some(flow.packets_total),
            bytes_total: keep(Field::ExtensionsBytesTotal).then_some(flow.bytes_total),
            midstream: flow.midstream && keep(Field::ExtensionsMidstream),
            interfaces: if keep(Field::ExtensionsInterfaces) {
                crossed(flow, node)
            } else {
                Names::default()
            },
            duplicate: flow.duplicate && keep(Field::ExtensionsDuplicate),
            fragment: flow.fragment && keep(Field::ExtensionsFragment),
            rtt_ns: (flow.rtt_ns != 0 && keep(Field::ExtensionsRtt)).then_some(flow.rtt_ns.into()),
            vlan: (vlan != 0 && keep(Field::ExtensionsVlan)).then_some(vlan.into()),
            inner_vlan: (inner_vlan != 0 && keep(Field::ExtensionsInnerVlan)).then_some(inner_vlan.into()),
            tunnel: flow.tunnel.map(|tunnel| tunnel.kind).filter(|_| keep(Field::ExtensionsTunnel)),
            drop_reason: dropped.and_then(|of| said(&of.kind.reason, Field::ExtensionsDropReason)),
            drop_location: dropped.and_then(|of| said(&of.kind.location, Field::ExtensionsDropLocation)),
            drop_netns: dropped
                .map(|of| of.netns.into())
                .filter(|netns| *netns != 0 && keep(Field::ExtensionsDropNetns)),
            drop_interface: dropped
                .and_then(|of| said(of.interface.as_str(), Field::ExtensionsDropInterface)),
            ..Self::default()
        }
    }

    /// The keys that are set with what they hold, in the order in which a record has them.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, Entry<'_>)> {
        let yes = |set: bool| set.then_some(Entry::Yes);
        let entries = [
            ("event", self.event.map(|event| Entry::Text(event.name()))),
            ("end_reason", self.end_reason.map(|reason| Entry::Text(reason.name()))),
            ("overflow", yes(self.overflow)),
            ("connections", self.connections.map(Entry::Number)),
            ("connection", self.connection.map(Entry::Number)),
            ("started", self.started_ns.map(Entry::Time)),
            ("first_seen", self.first_seen_ns.map(Entry::Time)),
            ("last_seen", self.last_seen_ns.map(Entry::Time)),
            ("packets", self.packets.map(Entry::Number)),
            ("bytes", self.bytes.map(Entry::Number)),
            ("duplicate_packets", self.duplicate_packets.map(Entry::Number)),
            ("duplicate_bytes", self.duplicate_bytes.map(Entry::Number)),
            ("packets_total", self.packets_total.map(Entry::Number)),
            ("bytes_total", self.bytes_total.map(Entry::Number)),
            ("midstream", yes(self.midstream)),
            ("interfaces", (!self.interfaces.is_empty()).then_some(Entry::Texts(&self.interfaces))),
            ("duplicate", yes(self.duplicate)),
            ("fragment", yes(self.fragment)),
            ("rtt", self.rtt_ns.map(Entry::Number)),
            ("vlan", self.vlan.map(Entry::Number)),
            ("inner_vlan", self.inner_vlan.map(Entry::Number)),
            ("tunnel", self.tunnel.map(|kind| Entry::Text(kind.name()))),
            ("drop_reason", self.drop_reason.as_deref().map(Entry::Foreign)),
            ("drop_location", self.drop_location.as_deref().map(Entry::Foreign)),
            ("drop_netns", self.drop_netns.map(Entry::Number)),
            ("drop_interface", self.drop_interface.as_deref().map(Entry::Foreign)),
        ];
        entries.into_iter().filter_map(|(key, entry)| Some((key, entry?)))
    }

    /// As it stands in JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let text = |text: &str| Json::Text(text.into());
        let json = |entry| match entry {
            Entry::Text(name) | Entry::Foreign(name) => text(name),
            Entry::Number(number) => Json::Unsigned(number),
            Entry::Time(ns) => text(&rfc3339(ns)),
            Entry::Yes => Json::Bool(true),
            Entry::Texts(names) => Json::List(names.iter().map(|name| text(name)).collect()),
        };
        Json::Map(self.entries().map(|(key, entry)| (key.into(), json(entry))).collect())
    }

    /// From JSON that says the same in the same words, so that nothing is lost on the way there and back; `None` for
    /// everything else.
    #[must_use]
    pub fn from_json(json: &'a Json) -> Option<Self> {
        let number = |key| match json.get(key) {
            Some(Json::Unsigned(number)) => Some(*number),
            _ => None,
        };
        let text = |key| match json.get(key) {
            Some(Json::Text(text)) => Some(&**text),
            _ => None,
        };
        let time = |key| {
            let at = text(key)?.parse::<jiff::Timestamp>().ok()?;
            i64::try_from(at.as_nanosecond()).ok()
        };
        let interfaces = match json.get("interfaces") {
            Some(Json::List(names)) => names.as_slice(),
            _ => &[],
        };
        let name = |name: &'a Json| match name {
            Json::Text(text) => Some(Cow::Borrowed(&**text)),
            _ => None,
        };
        let found = Self {
            event: text("event").and_then(Event::from_name),
            end_reason: text("end_reason").and_then(EndReason::from_name),
            connection: number("connection"),
            started_ns: time("started"),
            first_seen_ns: time("first_seen"),
            last_seen_ns: time("last_seen"),
            packets: number("packets"),
            bytes: number("bytes"),
            packets_total: number("packets_total"),
            bytes_total: number("bytes_total"),
            midstream: json.get("midstream").is_some(),
            interfaces: interfaces.iter().filter_map(name).collect(),
            duplicate: json.get("duplicate").is_some(),
            fragment: json.get("fragment").is_some(),
            rtt_ns: number("rtt"),
            vlan: number("vlan"),
            inner_vlan: number("inner_vlan"),
            tunnel: text("tunnel").and_then(TunnelKind::from_name),
            drop_reason: text("drop_reason").map(Cow::Borrowed),
            drop_location: text("drop_location").map(Cow::Borrowed),
            drop_netns: number("drop_netns"),
            drop_interface: text("drop_interface").map(Cow::Borrowed),
            overflow: json.get("overflow").is_some(),
            connections: number("connections"),
            duplicate_packets: number("duplicate_packets"),
            duplicate_bytes: number("duplicate_bytes"),
        };
        (found.to_json() == *json).then_some(found)
    }
}

/// The names of all interfaces crossed, when there was more than one; an unknown name is given as its index.
fn crossed<'a>(flow: &Flow, node: &'a Node) -> Names<'a> {
    let crossed = flow.interfaces.iter().filter(|index| **index != 0);
    if crossed.clone().count() < 2 {
        return Names::default();
    }
    let name = |index: &u32| match node.interfaces.get(index) {
        Some(interface) => Cow::Borrowed(interface.name.as_str()),
        None => Cow::Owned(index.to_string()),
    };
    crossed.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_in_order_however_many() {
        for count in 0..9 {
            let written: Vec<String> = (0..count).map(|name| format!("lxc{name}")).collect();
            let names: Names<'_> = written.iter().map(|name| Cow::Borrowed(name.as_str())).collect();
            assert_eq!(names.iter().collect::<Vec<_>>(), written.iter().collect::<Vec<_>>());
        }
    }
}
