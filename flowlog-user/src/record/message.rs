use super::Json;
use super::schema::{Descriptor, FLOW, Spec};

/// A message of Hubble's that came from outside: the fields that are set, in declaration order. Zero values of fields
/// without presence are not set, as in proto3.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    of: &'static Descriptor,
    fields: Vec<(&'static Spec, Value)>,
}

/// A field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `bool` and its wrapper.
    Bool(bool),
    /// Signed numbers and enums.
    Int(i64),
    /// Unsigned numbers.
    Uint(u64),
    /// `string`.
    Text(Box<str>),
    /// A timestamp: seconds since the Unix epoch, and nanoseconds (below a second) after them.
    Time(i64, u32),
    /// A message.
    Message(Message),
    /// A `google.protobuf.Any` that holds a `google.protobuf.Struct` (or `Value`): its type's name and the JSON.
    Free(&'static str, Json),
    /// A `google.protobuf.Any` that holds another known message.
    Packed(Message),
    /// A repeated field.
    List(Vec<Value>),
}

impl Value {
    /// The JSON of a `google.protobuf.Struct` in an `Any`.
    #[must_use]
    pub fn free(&self) -> Option<&Json> {
        match self {
            Self::Free("google.protobuf.Struct", json) => Some(json),
            _ => None,
        }
    }
}

impl PartialEq for Descriptor {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A flow of which nothing is known: what a filter sees of an event that is no flow.
pub static NO_FLOW: Message = Message { of: &FLOW, fields: Vec::new() };

impl Message {
    /// A message of these fields, in any order.
    #[must_use]
    pub fn new(of: &'static Descriptor, mut fields: Vec<(&'static Spec, Value)>) -> Self {
        fields.sort_by_key(|(spec, _)| of.fields.iter().position(|field| field == *spec));
        Self { of, fields }
    }

    /// Its type.
    #[must_use]
    pub const fn descriptor(&self) -> &'static Descriptor {
        self.of
    }

    /// The fields that are set, in declaration order.
    #[must_use]
    pub fn fields(&self) -> &[(&'static Spec, Value)] {
        &self.fields
    }

    /// A field's value, where it is set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(spec, _)| spec.name == name).map(|(_, value)| value)
    }

    /// Sets a field. Nothing happens where the type has none of the name.
    pub fn set(&mut self, name: &str, value: Value) {
        if let Some((_, old)) = self.fields.iter_mut().find(|(spec, _)| spec.name == name) {
            *old = value;
            return;
        }
        let order = |spec: &Spec| self.of.fields.iter().position(|field| field == spec);
        let Some(spec) = self.of.fields.iter().find(|field| field.name == name) else { return };
        let at = self.fields.partition_point(|(other, _)| order(other) < order(spec));
        self.fields.insert(at, (spec, value));
    }

    /// A message in this one, for changing it; where it is not set, it is one without fields from now on. Nothing where
    /// the type has no such message.
    pub fn message_mut(&mut self, name: &str) -> Option<&mut Self> {
        let spec = self.of.fields.iter().find(|field| field.name == name)?;
        let super::schema::Kind::Message(of) = spec.kind else { return None };
        if self.message(name).is_none() {
            self.set(name, Value::Message(Self { of, fields: Vec::new() }));
        }
        match self.fields.iter_mut().find(|(spec, _)| spec.name == name) {
            Some((_, Value::Message(message))) => Some(message),
            _ => None,
        }
    }

    /// A message in this one, where it is set.
    #[must_use]
    pub fn message(&self, name: &str) -> Option<&Self> {
        match self.get(name) {
            Some(Value::Message(message)) => Some(message),
            _ => None,
        }
    }

    /// A string; empty where it is not set.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// An unsigned number; 0 where it is not set.
    #[must_use]
    pub fn unsigned(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Value::Uint(number)) => *number,
            _ => 0,
        }
    }

    /// A signed 32-bit number or an enum's; 0 where it is not set.
    #[must_use]
    pub fn signed(&self, name: &str) -> i32 {
        match self.get(name) {
            Some(Value::Int(number)) => i32::try_from(*number).unwrap_or(0),
            _ => 0,
        }
    }

    /// A boolean, where it is set.
    #[must_use]
    pub fn boolean(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// A list; empty where it is not set.
    #[must_use]
    pub fn list(&self, name: &str) -> &[Value] {
        match self.get(name) {
            Some(Value::List(values)) => values,
            _ => &[],
        }
    }

    /// A time in nanoseconds since the Unix epoch, as near as 64 bits come to it.
    #[must_use]
    pub fn time_ns(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(Value::Time(seconds, nanoseconds)) => {
                Some(seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(*nanoseconds)))
            }
            _ => None,
        }
    }
}
