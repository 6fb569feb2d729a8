//! Hubble's messages as tables: numbers, names, JSON names and kinds in declaration order, which is also the output order.
//! Facts of Cilium 1.19.4's `flow.proto` and `observer.proto`; parsing, encoding, masks and CEL all go by them.

mod debug;
mod enums;
mod event;
mod flow;

pub use debug::DEBUG_EVENT_TYPE;
pub use enums::*;
pub use event::*;
pub use flow::*;

/// A message.
#[derive(Debug)]
pub struct Descriptor {
    /// Full name, e.g. `flow.Flow`.
    pub name: &'static str,
    /// Its fields in declaration order.
    pub fields: &'static [Spec],
}

/// A field of a message.
#[derive(Debug)]
pub struct Spec {
    /// Its number on protobuf's wire.
    pub number: u32,
    /// Name in the proto file, in masks and in output.
    pub name: &'static str,
    /// Its other name, accepted in input.
    pub json: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// How often.
    pub arity: Arity,
}

/// How often a field may stand in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// At most once.
    One,
    /// As a list.
    Many,
    /// At most once, and none of the message's other members beside it: the message has one union.
    Member,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named like protobuf's types")]
pub enum Kind {
    Bool,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Text,
    Enum(&'static Enumeration),
    Message(&'static Descriptor),
    Timestamp,
    /// A wrapper: false is not absent.
    BoolValue,
    /// A wrapper: 0 is not absent.
    Int32Value,
    /// A wrapper: 0 is not absent.
    Uint32Value,
    Any,
}

/// An enum.
#[derive(Debug)]
pub struct Enumeration {
    /// Full name, e.g. `flow.Verdict`.
    pub name: &'static str,
    /// Names and numbers.
    pub values: &'static [(&'static str, i32)],
}

impl Descriptor {
    /// The field of this proto name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Spec> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The message of this full name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        fn find(at: &'static Descriptor, name: &str) -> Option<&'static Descriptor> {
            if at.name == name {
                return Some(at);
            }
            at.fields.iter().find_map(|field| match field.kind {
                Kind::Message(of) => find(of, name),
                _ => None,
            })
        }
        find(&EXPORT_EVENT, name)
    }
}

impl Enumeration {
    /// The name of a number.
    #[must_use]
    pub fn name_of(&self, number: i32) -> Option<&'static str> {
        self.values.iter().find(|(_, value)| *value == number).map(|(name, _)| *name)
    }

    /// The number of a name; case counts.
    #[must_use]
    pub fn number_of(&self, name: &str) -> Option<i32> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }
}

const fn one(number: u32, name: &'static str, json: &'static str, kind: Kind) -> Spec {
    Spec { number, name, json, kind, arity: Arity::One }
}

const fn many(number: u32, name: &'static str, json: &'static str, kind: Kind) -> Spec {
    Spec { number, name, json, kind, arity: Arity::Many }
}

const fn member(number: u32, name: &'static str, json: &'static str, kind: Kind) -> Spec {
    Spec { number, name, json, kind, arity: Arity::Member }
}
