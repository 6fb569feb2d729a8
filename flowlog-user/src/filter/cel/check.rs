use std::sync::Arc;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo, operators,
};

use super::functions;
use super::resolve;
use super::typing::Type;
use super::value::{Comprehension, Node, Val};
use crate::filter::pattern::Pattern;
use crate::record::schema::FLOW;
use crate::tree::hint;

/// Levels of an expression: what is deeper is refused, since it is walked by recursion.
const LEVELS_MAX: usize = 200;

type Checked = Result<(Node, Type), String>;

/// Checks an expression: fields exist, operands agree, functions are known.
pub(super) struct Checker<'s> {
    info: &'s SourceInfo,
    locals: Vec<(String, Type)>,
    level: usize,
}

impl<'s> Checker<'s> {
    pub(super) fn new(info: &'s SourceInfo) -> Self {
        Self { info, locals: Vec::new(), level: 0 }
    }

    /// The tree to run, and what it results in.
    pub(super) fn check(&mut self, expression: &IdedExpr) -> Checked {
        if self.level == LEVELS_MAX {
            return Err(format!("it is nested deeper than {LEVELS_MAX} levels; make it flatter"));
        }
        self.level += 1;
        let checked = match &expression.expr {
            Expr::Literal(literal) => Ok(constant(literal)),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(&list.elements),
            Expr::Map(map) => {
                let entries = map.entries.iter().map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Ok((&entry.key, &entry.value)),
                    EntryExpr::StructField(_) => Err("a map needs keys".to_owned()),
                });
                let entries: Vec<_> = entries.collect::<Result<_, _>>()?;
                self.map(&entries)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(message) => {
                Err(format!("message literals ({}) are not served by this version", message.type_name))
            }
            Expr::Unspecified => Err("it is empty".into()),
        };
        self.level -= 1;
        // The innermost place is the one that helps.
        checked.map_err(|what| match self.text(expression) {
            Some(text) if !what.starts_with("in `") => format!("in `{text}`: {what}"),
            _ => what,
        })
    }

    fn text(&self, expression: &IdedExpr) -> Option<&str> {
        let (start, stop) = self.info.offset_for(expression.id)?;
        let text = self.info.source.get(usize::try_from(start).ok()?..=usize::try_from(stop).ok()?)?;
        Some(text).filter(|text| text.len() > 2)
    }

    fn name(&self, name: &str) -> Checked {
        if let Some(at) = self.locals.iter().rposition(|(local, _)| local == name) {
            let of = self.locals.get(at).map_or(Type::Dyn, |(_, of)| of.clone());
            return Ok((Node::Local(at), of));
        }
        if name == "_flow" {
            return Ok((Node::Flow, Type::Message(&FLOW)));
        }
        Err(format!("`{name}` is not known; the flow is `_flow`"))
    }

    fn select(&mut self, select: &SelectExpr) -> Checked {
        if !select.test
            && let Some(name) = self.qualified(select)
        {
            return match resolve::constant(&name) {
                Some(number) => Ok((Node::Constant(Val::Int(number)), Type::Int)),
                None => Err(format!(
                    "`{name}` is not known; the flow is `_flow`, and enums are like flow.Verdict.FORWARDED"
                )),
            };
        }
        let (of, kind) = self.check(&select.operand)?;
        let of = Box::new(of);
        match kind {
            Type::Message(message) => {
                let Some(spec) = message.field(&select.field) else {
                    let known: Vec<&str> = message.fields.iter().map(|field| field.name).collect();
                    let hint = hint(&select.field, &known);
                    return Err(format!("{} has no field `{}`; {hint}", message.name, select.field));
                };
                Ok(if select.test {
                    (Node::HasField(of, spec), Type::Bool)
                } else {
                    (Node::Field(of, spec), Type::of(spec))
                })
            }
            Type::Map(_, value) => Ok(key(of, select, *value)),
            Type::Dyn => Ok(key(of, select, Type::Dyn)),
            other => Err(format!("{other} has no fields")),
        }
    }

    /// The name that selects upon an unknown identifier spell.
    fn qualified(&self, select: &SelectExpr) -> Option<String> {
        let operand = match &select.operand.expr {
            Expr::Ident(name) if name != "_flow" && !self.locals.iter().any(|(local, _)| local == name) => {
                name.clone()
            }
            Expr::Select(inner) if !inner.test => self.qualified(inner)?,
            _ => return None,
        };
        Some(format!("{operand}.{}", select.field))
    }

    fn call(&mut self, call: &CallExpr) -> Checked {
        let mut nodes = Vec::new();
        let mut types = Vec::new();
        for argument in call.target.as_deref().into_iter().chain(&call.args) {
            let (node, of) = self.check(argument)?;
            nodes.push(node);
            types.push(of);
        }
        let booleans = |types: &[Type]| types.iter().all(|of| of.fits(&Type::Bool));
        match (call.func_name.as_str(), <[Node; 2]>::try_from(nodes)) {
            (operators::LOGICAL_AND, Ok([one, other])) if booleans(&types) => {
                Ok((Node::And(Box::new(one), Box::new(other)), Type::Bool))
            }
            (operators::LOGICAL_OR, Ok([one, other])) if booleans(&types) => {
                Ok((Node::Or(Box::new(one), Box::new(other)), Type::Bool))
            }
            ("matches", Ok([text, Node::Constant(pattern)]))
                if types.iter().all(|of| of.fits(&Type::Text)) && pattern.text().is_some() =>
            {
                let pattern = pattern.text().unwrap_or_default();
                let pattern =
                    Pattern::new(pattern).map_err(|what| format!("the pattern `{pattern}`: {what}"))?;
                Ok((Node::Matches(Box::new(text), pattern), Type::Bool))
            }
            (name, nodes) => {
                let nodes = match nodes {
                    Ok(nodes) => Vec::from(nodes),
                    Err(nodes) => nodes,
                };
                Self::function(name, call.target.is_some(), nodes, &types)
            }
        }
    }

    fn function(name: &str, member: bool, nodes: Vec<Node>, types: &[Type]) -> Checked {
        if name == operators::CONDITIONAL
            && let [condition, one, other] = types
            && condition.fits(&Type::Bool)
            && one.fits(other)
        {
            let joined = one.joined(other);
            return match <[Node; 3]>::try_from(nodes) {
                Ok(nodes) => Ok((Node::Conditional(Box::new(nodes)), joined)),
                Err(_) => Err("a condition needs two values".into()),
            };
        }
        let (function, result) = functions::find(name, member, types)?;
        Ok((Node::Call(function, nodes), result))
    }

    fn list(&mut self, elements: &[IdedExpr]) -> Checked {
        let mut nodes = Vec::new();
        let mut of: Option<Type> = None;
        for element in elements {
            let (node, kind) = self.check(element)?;
            nodes.push(node);
            of = Some(of.map_or_else(|| kind.clone(), |of| of.joined(&kind)));
        }
        Ok((Node::List(nodes), Type::List(Box::new(of.unwrap_or(Type::Dyn)))))
    }

    fn map(&mut self, entries: &[(&IdedExpr, &IdedExpr)]) -> Checked {
        let mut nodes = Vec::new();
        let mut of: Option<(Type, Type)> = None;
        for (key, value) in entries {
            let (key, key_type) = self.check(key)?;
            let (value, value_type) = self.check(value)?;
            nodes.push((key, value));
            of = Some(match of {
                Some((keys, values)) => (keys.joined(&key_type), values.joined(&value_type)),
                None => (key_type, value_type),
            });
        }
        let (keys, values) = of.unwrap_or((Type::Dyn, Type::Dyn));
        Ok((Node::Map(nodes), Type::Map(Box::new(keys), Box::new(values))))
    }

    /// What `all`, `exists`, `exists_one`, `filter` and `map` become.
    fn comprehension(&mut self, of: &ComprehensionExpr) -> Checked {
        let (range, range_type) = self.check(&of.iter_range)?;
        let item = match range_type {
            Type::List(item) => *item,
            Type::Map(key, _) => *key,
            Type::Dyn => Type::Dyn,
            other => return Err(format!("{other} is no list or map to go through")),
        };
        if of.iter_var2.is_some() {
            return Err("comprehensions have one variable".into());
        }
        let (start, start_type) = self.check(&of.accu_init)?;
        let depth = self.locals.len();
        self.locals.push((of.iter_var.clone(), item));
        self.locals.push((of.accu_var.clone(), start_type.clone()));
        let inner = self.inner(of, &start_type);
        self.locals.truncate(depth);
        let (condition, step, result, result_type) = inner?;
        let node = Comprehension { range, start, condition, step, result };
        Ok((Node::Comprehension(Box::new(node)), result_type))
    }

    fn inner(&mut self, of: &ComprehensionExpr, start: &Type) -> Result<(Node, Node, Node, Type), String> {
        let (condition, condition_type) = self.check(&of.loop_cond)?;
        let (step, step_type) = self.check(&of.loop_step)?;
        if !condition_type.fits(&Type::Bool) || !step_type.fits(start) {
            return Err(format!("each step gives {step_type}, expected {start}"));
        }
        if let Some((_, accumulated)) = self.locals.last_mut() {
            *accumulated = start.joined(&step_type);
        }
        let (result, result_type) = self.check(&of.result)?;
        Ok((condition, step, result, result_type))
    }
}

fn key(of: Box<Node>, select: &SelectExpr, value: Type) -> (Node, Type) {
    let name: Arc<str> = select.field.as_str().into();
    if select.test { (Node::HasKey(of, name), Type::Bool) } else { (Node::Key(of, name), value) }
}

fn constant(literal: &LiteralValue) -> (Node, Type) {
    let (value, of) = match literal {
        LiteralValue::Boolean(value) => (Val::Bool(*value.inner()), Type::Bool),
        LiteralValue::Bytes(value) => (Val::Bytes(value.inner().into()), Type::Bytes),
        LiteralValue::Double(value) => (Val::Double(*value.inner()), Type::Double),
        LiteralValue::Int(value) => (Val::Int(*value.inner()), Type::Int),
        LiteralValue::Null => (Val::Null, Type::Null),
        LiteralValue::String(value) => (Val::Text(value.inner().into()), Type::Text),
        LiteralValue::UInt(value) => (Val::Uint(*value.inner()), Type::Uint),
    };
    (Node::Constant(value), of)
}
