use std::sync::Arc;

use super::functions;
use super::value::{Comprehension, Node, Val};
use crate::limits::CEL_STEPS_MAX;
use crate::record::Message;

/// An expression could not be evaluated on this flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed;

pub(super) type Outcome<T> = Result<T, Failed>;

/// Runs an expression on one flow.
pub(super) struct Evaluator<'a> {
    flow: &'a Message,
    /// What failed is a value here: a later element may still decide.
    locals: Vec<Outcome<Val<'a>>>,
    steps_left: u32,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(flow: &'a Message) -> Self {
        Self { flow, locals: Vec::new(), steps_left: CEL_STEPS_MAX }
    }

    pub(super) fn run(&mut self, node: &'a Node) -> Outcome<Val<'a>> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(Failed)?;
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Flow => Ok(Val::Message(self.flow)),
            Node::Local(at) => self.locals.get(*at).cloned().ok_or(Failed)?,
            Node::Field(of, spec) => match self.run(of)? {
                Val::Message(message) => Ok(Val::field(message, spec)),
                Val::Unset(_) => Ok(Val::zero(spec)),
                _ => Err(Failed),
            },
            Node::HasField(of, spec) => match self.run(of)? {
                Val::Message(message) => Ok(Val::Bool(message.get(spec.name).is_some())),
                Val::Unset(_) => Ok(Val::Bool(false)),
                _ => Err(Failed),
            },
            Node::Key(of, key) => member(&self.run(of)?, key)?.ok_or(Failed),
            Node::HasKey(of, key) => Ok(Val::Bool(member(&self.run(of)?, key)?.is_some())),
            Node::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| self.run(argument));
                let values = values.collect::<Outcome<Vec<_>>>();
                // A loop goes on unless it is certain that it need not.
                if *function == functions::Function::NotStrictlyFalse {
                    return Ok(Val::Bool(!matches!(values.as_deref(), Ok([Val::Bool(false)]))));
                }
                function.call(&values?)
            }
            Node::Matches(text, pattern) => match self.run(text)?.text() {
                Some(text) => Ok(Val::Bool(pattern.is_in(text.as_bytes()))),
                None => Err(Failed),
            },
            Node::And(one, other) => self.either(one, other, false),
            Node::Or(one, other) => self.either(one, other, true),
            Node::Conditional(parts) => {
                let [condition, one, other] = &**parts;
                match self.run(condition)? {
                    Val::Bool(true) => self.run(one),
                    Val::Bool(false) => self.run(other),
                    _ => Err(Failed),
                }
            }
            Node::List(nodes) => {
                let values = nodes.iter().map(|node| self.run(node)).collect::<Outcome<Arc<[_]>>>();
                Ok(Val::List(values?))
            }
            Node::Map(entries) => {
                let values = entries.iter().map(|(key, value)| Ok((self.run(key)?, self.run(value)?)));
                Ok(Val::Map(values.collect::<Outcome<Arc<[_]>>>()?))
            }
            Node::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    /// `||` where `decisive` is true, `&&` where it is false: one decisive side decides, even beside one that fails.
    fn either(&mut self, one: &'a Node, other: &'a Node, decisive: bool) -> Outcome<Val<'a>> {
        let one = self.run(one);
        if matches!(one, Ok(Val::Bool(value)) if value == decisive) {
            return one;
        }
        let other = self.run(other);
        if matches!(other, Ok(Val::Bool(value)) if value == decisive) {
            return other;
        }
        match (one?, other?) {
            (Val::Bool(_), Val::Bool(_)) => Ok(Val::Bool(!decisive)),
            _ => Err(Failed),
        }
    }

    fn comprehension(&mut self, of: &'a Comprehension) -> Outcome<Val<'a>> {
        let items: Vec<Val<'a>> = match self.run(&of.range)? {
            Val::List(values) => values.to_vec(),
            Val::Map(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
            _ => return Err(Failed),
        };
        let depth = self.locals.len();
        let start = self.run(&of.start);
        self.locals.push(Ok(Val::Null));
        self.locals.push(start);
        for item in items {
            self.set(depth, Ok(item));
            if !matches!(self.run(&of.condition)?, Val::Bool(true)) {
                break;
            }
            let accumulated = self.run(&of.step);
            self.set(depth + 1, accumulated);
        }
        let outcome = self.run(&of.result);
        self.locals.truncate(depth);
        outcome
    }

    fn set(&mut self, at: usize, value: Outcome<Val<'a>>) {
        if let Some(place) = self.locals.get_mut(at) {
            *place = value;
        }
    }
}

/// A key's value; failing where the value has no keys.
fn member<'a>(of: &Val<'a>, key: &str) -> Outcome<Option<Val<'a>>> {
    match of {
        Val::Map(entries) => {
            let found = entries.iter().find(|(known, _)| known.text() == Some(key));
            Ok(found.map(|(_, value)| value.clone()))
        }
        Val::Message(message) => match message.descriptor().field(key) {
            Some(spec) => Ok(Some(Val::field(message, spec))),
            None => Err(Failed),
        },
        _ => Err(Failed),
    }
}
