use std::fmt;

use crate::record::schema::{Arity, Descriptor, Kind, Spec};

/// What an expression is, as far as it is known before it runs.
#[derive(Clone, Debug)]
pub(super) enum Type {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    /// A wrapper: the type, or null.
    Wrapper(Box<Type>),
    Message(&'static Descriptor),
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    /// Anything; found out when it runs.
    Dyn,
}

impl Type {
    /// What reading a field gives.
    pub(super) fn of(spec: &Spec) -> Self {
        let one = match spec.kind {
            Kind::Bool => Self::Bool,
            Kind::Int32 | Kind::Int64 | Kind::Enum(_) => Self::Int,
            Kind::Uint32 | Kind::Uint64 => Self::Uint,
            Kind::Text => Self::Text,
            Kind::Message(of) => Self::Message(of),
            Kind::Timestamp => Self::Timestamp,
            Kind::BoolValue => Self::Wrapper(Box::new(Self::Bool)),
            Kind::Int32Value => Self::Wrapper(Box::new(Self::Int)),
            Kind::Uint32Value => Self::Wrapper(Box::new(Self::Uint)),
            Kind::Any => Self::Dyn,
        };
        if spec.arity == Arity::Many { Self::List(Box::new(one)) } else { one }
    }

    /// Whether one may stand where the other is expected.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::Wrapper(one), Self::Wrapper(other)) => one.fits(other),
            (Self::Wrapper(inner), other) | (other, Self::Wrapper(inner)) => {
                matches!(other, Self::Null) || inner.fits(other)
            }
            (Self::Null, Self::Message(_) | Self::Timestamp | Self::Duration)
            | (Self::Message(_) | Self::Timestamp | Self::Duration, Self::Null) => true,
            (Self::Message(one), Self::Message(other)) => one.name == other.name,
            (Self::List(one), Self::List(other)) => one.fits(other),
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                key.fits(other_key) && value.fits(other_value)
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The type of which both are.
    pub(super) fn joined(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::List(one), Self::List(other)) if matches!(**one, Self::Dyn) => Self::List(other.clone()),
            (one, other) if one.fits(other) && !matches!(other, Self::Dyn) => one.clone(),
            _ => Self::Dyn,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::Wrapper(inner) => write!(f, "wrapper({inner})"),
            Self::Message(of) => f.write_str(of.name),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Dyn => f.write_str("dyn"),
        }
    }
}
