//! A recorded event as a mask leaves it, whatever the format.

use crate::record::fields::{FIELDS, FieldSet, Mask};
use crate::record::schema::{Arity, Kind, Spec};
use crate::record::{Foreign, Json, Message, Value};

/// Fields below `extensions` that a mask can name.
const EXTENSIONS: &str = "extensions.";

/// The event's fields under a mask, which holds for flows only; the event's own time and node name stay where it keeps
/// the flow's, and are the flow's where the event has none.
pub(super) fn masked(event: &Foreign, mask: &Mask) -> Vec<(&'static Spec, Value)> {
    let mut fields = Vec::new();
    let is_flow = event.flow().is_some();
    for spec in event.event().descriptor().fields {
        let named = matches!(spec.name, "time" | "node_name");
        let kept = !named
            || !is_flow
            || FIELDS.iter().any(|(field, path)| *path == spec.name && mask.keep.has(*field));
        let of_flow = || event.flow()?.get(spec.name).filter(|_| named);
        match event.event().get(spec.name).or_else(of_flow).filter(|_| kept) {
            Some(Value::Message(flow)) if spec.name == "flow" => {
                fields.push((spec, Value::Message(message(flow, mask, 0))));
            }
            Some(value) => fields.push((spec, value.clone())),
            None => {}
        }
    }
    fields
}

/// The same as an event.
pub(super) fn event(event: &Foreign, mask: &Mask) -> Foreign {
    let fields = masked(event, mask);
    Foreign::new(Message::new(event.event().descriptor(), fields)).unwrap_or_else(|| event.clone())
}

/// A message's fields that the mask keeps; its first leaf has the given number in the field table.
fn message(message: &Message, mask: &Mask, first: usize) -> Message {
    if *mask == Mask::ALL {
        return message.clone();
    }
    let mut kept = Vec::new();
    let mut set = message.fields().iter().peekable();
    let mut at = first;
    for spec in message.descriptor().fields {
        let value = set.next_if(|(next, _)| next.name == spec.name).map(|(_, value)| value);
        let end = at + leaves(spec);
        if mask.keep.intersects(FieldSet::span(at, end)) {
            kept.extend(part(spec, value, mask, at).map(|value| (spec, value)));
        }
        at = end;
    }
    Message::new(message.descriptor(), kept)
}

/// A field of which the mask keeps something.
fn part(spec: &Spec, value: Option<&Value>, mask: &Mask, at: usize) -> Option<Value> {
    let span = FieldSet::span(at, at + leaves(spec));
    match (spec.kind, value) {
        (Kind::Any, Some(value)) => Some(extensions(value, mask)),
        (Kind::Message(_), Some(Value::Message(of))) => Some(Value::Message(message(of, mask, at))),
        // A path into a message leaves it there, whether the flow has it or not; of a union only the member that is set.
        (Kind::Message(of), None) if spec.arity == Arity::One && mask.named.intersects(span) => {
            Some(Value::Message(message(&Message::new(of, Vec::new()), mask, at)))
        }
        (_, value) => value.cloned(),
    }
}

/// Leaves of a field in the field table.
fn leaves(spec: &Spec) -> usize {
    match spec.kind {
        Kind::Message(of) if spec.arity != Arity::Many => of.fields.iter().map(leaves).sum(),
        Kind::Any => FIELDS.iter().filter(|(_, path)| path.starts_with(EXTENSIONS)).count(),
        _ => 1,
    }
}

/// Of a struct in `extensions` the keys that the mask keeps.
fn extensions(value: &Value, mask: &Mask) -> Value {
    let Value::Free(of, Json::Map(entries)) = value else { return value.clone() };
    let whole = FIELDS
        .iter()
        .filter(|(_, path)| path.starts_with(EXTENSIONS))
        .all(|(field, _)| mask.keep.has(*field));
    let kept = |entry: &str| {
        whole
            || FIELDS
                .iter()
                .any(|(field, path)| path.strip_prefix(EXTENSIONS) == Some(entry) && mask.keep.has(*field))
    };
    Value::Free(of, Json::Map(entries.iter().filter(|(entry, _)| kept(entry)).cloned().collect()))
}
