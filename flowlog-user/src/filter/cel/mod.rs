//! `experimental.cel_expression`: CEL over the variable `_flow`, a `flow.Flow`.
//!
//! The text is parsed by the `cel` crate, checked here against Hubble's messages (the crate has no checker), and turned
//! into a tree of our own, in which every field is known to exist. Evaluating it can still fail (a key that is missing, a
//! number too large): then the flow does not match. Not served: message literals, `type()`, and names of time zones.

mod check;
mod eval;
mod functions;
mod operators;
mod resolve;
mod typing;
mod value;

use std::hash::{Hash, Hasher};
use std::thread::Builder;

use cel::parser::Parser;

use self::check::Checker;
use self::eval::Evaluator;
use self::typing::Type;
use self::value::{Node, Val};
use super::json;
use crate::limits::{CEL_CHARACTERS_MAX, CEL_DEPTH_MAX};
use crate::record::Message;
use crate::tree::{Problems, Tree};

/// CEL expressions, one of which must be true of the flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expressions(Vec<Expression>);

/// Stack of the thread that parses an expression.
const PARSER_STACK_BYTES: usize = 16 << 20;

#[derive(Clone, Debug)]
struct Expression {
    source: String,
    node: Node,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

impl Expressions {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            compile(text)
                .map_err(|what| problems.error(&item.place, format!("`{text}` is no CEL filter: {what}")))
                .ok()
        })
        .map(Self)
    }

    /// An expression that fails ends the search: Hubble does not look at those after it.
    pub(super) fn matches(&self, flow: &Message) -> bool {
        for expression in &self.0 {
            match Evaluator::new(flow).run(&expression.node) {
                Ok(Val::Bool(true)) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        false
    }
}

fn compile(source: &str) -> Result<Expression, String> {
    if source.chars().count() > CEL_CHARACTERS_MAX {
        return Err(format!("it has more than {CEL_CHARACTERS_MAX} characters; make it shorter"));
    }
    if nesting(source) > CEL_DEPTH_MAX {
        return Err(format!("it is nested deeper than {CEL_DEPTH_MAX} brackets; make it flatter"));
    }
    // The parser goes deep on the stack; configuration is read on threads that may not have that much.
    let compile = || parse(source);
    let outcome = std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(PARSER_STACK_BYTES).spawn_scoped(scope, compile);
        thread.map_err(|error| format!("no thread to parse it: {error}"))?.join().map_err(|_| String::new())
    });
    outcome.unwrap_or_else(|what| Err(format!("it cannot be parsed {what}")))
}

/// Brackets that stand open at most. Those in strings count too, which only refuses what nobody writes.
fn nesting(source: &str) -> u16 {
    let (mut open, mut deepest) = (0_u16, 0_u16);
    for c in source.chars() {
        match c {
            '(' | '[' | '{' | '?' => open = open.saturating_add(1),
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

fn parse(source: &str) -> Result<Expression, String> {
    let parsed = Parser::new().max_recursion_depth(CEL_DEPTH_MAX).parse_with_source_info(source);
    let (expression, info) = parsed.map_err(|errors| match errors.errors.first() {
        Some(error) => format!("at column {}: {}", error.pos.1, error.msg),
        None => "it cannot be parsed".into(),
    })?;
    let (node, result) = Checker::new(&info).check(&expression)?;
    if !matches!(result, Type::Bool) {
        return Err(format!("its result is {result}, expected bool"));
    }
    Ok(Expression { source: source.to_owned(), node })
}

#[cfg(test)]
mod tests;
