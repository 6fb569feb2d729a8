use std::cmp::Ordering;
use std::sync::Arc;

use super::functions::Function;
use crate::filter::pattern::Pattern;
use crate::record::schema::{Arity, Descriptor, Kind, Spec};
use crate::record::{Json, Message, Value};

/// A checked expression.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Constant(Val<'static>),
    /// `_flow`.
    Flow,
    /// A variable of a comprehension, by its place from the outermost.
    Local(usize),
    /// A field of a message.
    Field(Box<Node>, &'static Spec),
    /// Whether it is set.
    HasField(Box<Node>, &'static Spec),
    /// A key of a map.
    Key(Box<Node>, Arc<str>),
    /// Whether it is there.
    HasKey(Box<Node>, Arc<str>),
    Call(Function, Vec<Node>),
    /// `matches` with a pattern known beforehand.
    Matches(Box<Node>, Pattern),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Conditional(Box<[Node; 3]>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Comprehension(Box<Comprehension>),
}

/// A loop over a list or the keys of a map. `item` and `result` are locals.
#[derive(Clone, Debug)]
pub(super) struct Comprehension {
    pub(super) range: Node,
    pub(super) start: Node,
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}

/// A value while an expression runs.
#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Borrowed(&'a str),
    Bytes(Arc<[u8]>),
    /// Nanoseconds since the Unix epoch.
    Timestamp(i128),
    /// Nanoseconds.
    Duration(i64),
    Message(&'a Message),
    /// A message that is not set: every field of it has its zero value.
    Unset(&'static Descriptor),
    List(Arc<[Val<'a>]>),
    Map(Arc<[(Val<'a>, Val<'a>)]>),
}

impl<'a> Val<'a> {
    /// A field of a message.
    pub(super) fn field(message: &'a Message, spec: &'static Spec) -> Self {
        match message.get(spec.name) {
            Some(value) => Self::of(value),
            None => Self::zero(spec),
        }
    }

    /// The value of a field that is not set.
    pub(super) fn zero(spec: &'static Spec) -> Self {
        if spec.arity == Arity::Many {
            return Self::List(Arc::new([]));
        }
        match spec.kind {
            Kind::Bool => Self::Bool(false),
            Kind::Int32 | Kind::Int64 | Kind::Enum(_) => Self::Int(0),
            Kind::Uint32 | Kind::Uint64 => Self::Uint(0),
            Kind::Text => Self::Borrowed(""),
            Kind::Message(of) => Self::Unset(of),
            Kind::Timestamp => Self::Timestamp(0),
            Kind::BoolValue | Kind::Int32Value | Kind::Uint32Value | Kind::Any => Self::Null,
        }
    }

    fn of(value: &'a Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Text(text) => Self::Borrowed(text),
            Value::Time(seconds, nanoseconds) => {
                Self::Timestamp(i128::from(*seconds) * 1_000_000_000 + i128::from(*nanoseconds))
            }
            Value::Message(message) | Value::Packed(message) => Self::Message(message),
            Value::Free(_, json) => Self::free(json),
            Value::List(values) => Self::List(values.iter().map(Self::of).collect()),
        }
    }

    /// Numbers of a struct are doubles, whatever they look like.
    #[expect(clippy::cast_precision_loss, reason = "that is what a google.protobuf.Struct holds")]
    fn free(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Unsigned(value) => Self::Double(*value as f64),
            Json::Signed(value) => Self::Double(*value as f64),
            Json::Float(value) => Self::Double(*value),
            Json::Text(text) => Self::Borrowed(text),
            Json::List(values) => Self::List(values.iter().map(Self::free).collect()),
            Json::Map(entries) => Self::Map(
                entries.iter().map(|(key, value)| (Self::Borrowed(key), Self::free(value))).collect(),
            ),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Borrowed(text) => Some(text),
            _ => None,
        }
    }

    /// Order of two values of one type, and of numbers of any.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => Some(one.cmp(other)),
            (Self::Timestamp(one), Self::Timestamp(other)) => Some(one.cmp(other)),
            (Self::Duration(one), Self::Duration(other)) => Some(one.cmp(other)),
            (Self::Bytes(one), Self::Bytes(other)) => Some(one.cmp(other)),
            (Self::Text(_) | Self::Borrowed(_), Self::Text(_) | Self::Borrowed(_)) => {
                Some(self.text()?.cmp(other.text()?))
            }
            _ => match (self.whole(), other.whole()) {
                (Some(one), Some(other)) => Some(one.cmp(&other)),
                _ => self.number()?.partial_cmp(&other.number()?),
            },
        }
    }

    fn whole(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some((*number).into()),
            Self::Uint(number) => Some((*number).into()),
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "CEL compares whole numbers and doubles as doubles")]
    fn number(&self) -> Option<f64> {
        match self {
            Self::Double(number) => Some(*number),
            other => other.whole().map(|number| number as f64),
        }
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Message(one), Self::Message(other)) => one == other,
            (Self::Unset(one), Self::Unset(other)) => one.name == other.name,
            (Self::Message(message), Self::Unset(of)) | (Self::Unset(of), Self::Message(message)) => {
                message.descriptor().name == of.name && message.fields().is_empty()
            }
            (Self::List(one), Self::List(other)) => {
                one.len() == other.len() && one.iter().zip(other.iter()).all(|(one, other)| one.equals(other))
            }
            (Self::Map(one), Self::Map(other)) => {
                let found = |key: &Self| other.iter().find(|(known, _)| known.equals(key));
                one.len() == other.len()
                    && one.iter().all(|(key, value)| found(key).is_some_and(|(_, found)| found.equals(value)))
            }
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }
}
