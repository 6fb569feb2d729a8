use super::json::{Message, message, span};
use super::text::{key, nonzero, number, plain, string, time};
use crate::record::fields::{Field, FieldSet, Mask};
use crate::record::{Dropped, Flow, Node};

/// Every field below `extensions`.
pub(super) const EXTENSIONS: FieldSet = span(Field::ExtensionsEvent, Field::ExtensionsDropInterface);

/// Writes `extensions`: what Hubble has no field for, as a `google.protobuf.Struct`, which its client accepts.
pub(super) fn extensions(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let whole = Message { key: "\"extensions\":", fields: EXTENSIONS, present: true };
    message(out, mask, &whole, |out| {
        plain(out, "\"@type\":", "type.googleapis.com/google.protobuf.Struct");
        message(out, mask, &Message { key: "\"value\":", ..whole }, |out| values(out, flow, node, mask));
    });
}

fn values(out: &mut Vec<u8>, flow: &Flow, node: &Node, mask: &Mask) {
    let keep = |field| mask.keep.has(field);
    if keep(Field::ExtensionsEvent) {
        plain(out, "\"event\":", flow.event.name());
    }
    if keep(Field::ExtensionsEndReason)
        && let Some(reason) = flow.end_reason
    {
        plain(out, "\"end_reason\":", reason.name());
    }
    if keep(Field::ExtensionsConnection) {
        key(out, "\"connection\":");
        number(out, flow.connection);
    }
    for (field, quoted, ns) in [
        (Field::ExtensionsStarted, "\"started\":", flow.started_ns),
        (Field::ExtensionsFirstSeen, "\"first_seen\":", flow.first_seen_ns),
        (Field::ExtensionsLastSeen, "\"last_seen\":", flow.last_seen_ns),
    ] {
        if keep(field) {
            key(out, quoted);
            time(out, ns);
        }
    }
    for (field, quoted, value) in [
        (Field::ExtensionsPackets, "\"packets\":", flow.packets),
        (Field::ExtensionsBytes, "\"bytes\":", flow.bytes),
        (Field::ExtensionsPacketsTotal, "\"packets_total\":", flow.packets_total),
        (Field::ExtensionsBytesTotal, "\"bytes_total\":", flow.bytes_total),
    ] {
        if keep(field) {
            key(out, quoted);
            number(out, value);
        }
    }
    if keep(Field::ExtensionsMidstream) && flow.midstream {
        key(out, "\"midstream\":true");
    }
    if keep(Field::ExtensionsInterfaces) {
        interfaces(out, flow, node);
    }
    if keep(Field::ExtensionsDuplicate) && flow.duplicate {
        key(out, "\"duplicate\":true");
    }
    if keep(Field::ExtensionsFragment) && flow.fragment {
        key(out, "\"fragment\":true");
    }
    if keep(Field::ExtensionsRtt) && flow.rtt_ns != 0 {
        key(out, "\"rtt\":");
        number(out, flow.rtt_ns);
    }
    let [vlan, inner_vlan] = flow.vlans;
    if keep(Field::ExtensionsVlan) {
        nonzero(out, "\"vlan\":", vlan.into());
    }
    if keep(Field::ExtensionsInnerVlan) {
        nonzero(out, "\"inner_vlan\":", inner_vlan.into());
    }
    if keep(Field::ExtensionsTunnel)
        && let Some(tunnel) = flow.tunnel
    {
        plain(out, "\"tunnel\":", tunnel.kind.name());
    }
    if let Some(dropped) = &flow.dropped {
        self::dropped(out, dropped, mask);
    }
}

/// What the kernel says of a drop.
fn dropped(out: &mut Vec<u8>, dropped: &Dropped, mask: &Mask) {
    for (field, quoted, text) in [
        (Field::ExtensionsDropReason, "\"drop_reason\":", dropped.kind.reason.as_str()),
        (Field::ExtensionsDropLocation, "\"drop_location\":", &dropped.kind.location),
    ] {
        if mask.keep.has(field) && !text.is_empty() {
            key(out, quoted);
            string(out, text);
        }
    }
    if mask.keep.has(Field::ExtensionsDropNetns) {
        nonzero(out, "\"drop_netns\":", dropped.netns);
    }
    let interface = dropped.interface.as_str();
    if mask.keep.has(Field::ExtensionsDropInterface) && !interface.is_empty() {
        key(out, "\"drop_interface\":");
        string(out, interface);
    }
}

/// The names of all interfaces crossed, when there was more than one; an unknown name is given as its index.
fn interfaces(out: &mut Vec<u8>, flow: &Flow, node: &Node) {
    let crossed = flow.interfaces.iter().filter(|index| **index != 0);
    if crossed.clone().count() < 2 {
        return;
    }
    key(out, "\"interfaces\":[");
    for (position, index) in crossed.enumerate() {
        if position > 0 {
            out.push(b',');
        }
        match node.interfaces.get(index) {
            Some(interface) => string(out, &interface.name),
            None => {
                out.push(b'"');
                number(out, *index);
                out.push(b'"');
            }
        }
    }
    out.push(b']');
}
