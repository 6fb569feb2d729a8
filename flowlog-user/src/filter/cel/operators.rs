use std::cmp::Ordering;

use cel::common::ast::operators;

use super::eval::{Failed, Outcome};
use super::functions::Function;
use super::typing::Type;
use super::value::Val;

/// Operators by the parser's names, with their symbols.
const NAMES: &[(&str, &str, Function)] = &[
    (operators::EQUALS, "==", Function::Equals),
    (operators::NOT_EQUALS, "!=", Function::NotEquals),
    (operators::LESS, "<", Function::Less),
    (operators::LESS_EQUALS, "<=", Function::LessOrEqual),
    (operators::GREATER, ">", Function::Greater),
    (operators::GREATER_EQUALS, ">=", Function::GreaterOrEqual),
    (operators::ADD, "+", Function::Add),
    (operators::SUBSTRACT, "-", Function::Subtract),
    (operators::MULTIPLY, "*", Function::Multiply),
    (operators::DIVIDE, "/", Function::Divide),
    (operators::MODULO, "%", Function::Modulo),
    (operators::NEGATE, "-", Function::Negate),
    (operators::LOGICAL_NOT, "!", Function::Not),
    (operators::NOT_STRICTLY_FALSE, "@not_strictly_false", Function::NotStrictlyFalse),
    (operators::IN, "in", Function::In),
    (operators::INDEX, "[]", Function::Index),
    // Those that make no call: only their wrong operands come here.
    (operators::LOGICAL_AND, "&&", Function::Not),
    (operators::LOGICAL_OR, "||", Function::Not),
    (operators::CONDITIONAL, "?:", Function::Not),
];

/// The operator of the parser's name: its symbol, and what it does.
pub(super) fn named(name: &str) -> Option<(&'static str, Function)> {
    NAMES.iter().find(|(known, ..)| *known == name).map(|(_, symbol, function)| (*symbol, *function))
}

/// What an operator gives for operands of these types; `None` where it does not take them.
pub(super) fn result(function: Function, types: &[Type]) -> Option<Type> {
    match types {
        [only] => match function {
            Function::Not | Function::NotStrictlyFalse => only.fits(&Type::Bool).then_some(Type::Bool),
            Function::Negate => any_of(only, &[Type::Int, Type::Double]),
            _ => None,
        },
        [one, other] => result_of_two(function, one, other),
        _ => None,
    }
}

/// The first of the types that fits; dyn stays dyn.
fn any_of(one: &Type, of: &[Type]) -> Option<Type> {
    if matches!(one, Type::Dyn) {
        return Some(Type::Dyn);
    }
    of.iter().find(|of| one.fits(of)).cloned()
}

fn result_of_two(function: Function, one: &Type, other: &Type) -> Option<Type> {
    let numbers = [Type::Int, Type::Uint, Type::Double];
    // Both of one of these types.
    let both = |of: &[Type]| {
        let known = if matches!(one, Type::Dyn) { other } else { one };
        any_of(known, of).filter(|_| one.fits(other))
    };
    let is = |first: Type, second: Type| one.fits(&first) && other.fits(&second);
    match function {
        Function::Equals | Function::NotEquals => one.fits(other).then_some(Type::Bool),
        Function::Less | Function::LessOrEqual | Function::Greater | Function::GreaterOrEqual => {
            let ordered = [
                Type::Bool,
                Type::Int,
                Type::Uint,
                Type::Double,
                Type::Text,
                Type::Bytes,
                Type::Timestamp,
                Type::Duration,
            ];
            both(&ordered).map(|_| Type::Bool)
        }
        Function::Add if matches!((one, other), (Type::List(_), Type::List(_))) => {
            one.fits(other).then(|| one.joined(other))
        }
        Function::Add => {
            both(&[Type::Int, Type::Uint, Type::Double, Type::Text, Type::Bytes, Type::Duration])
                .or_else(|| is(Type::Timestamp, Type::Duration).then_some(Type::Timestamp))
                .or_else(|| is(Type::Duration, Type::Timestamp).then_some(Type::Timestamp))
        }
        Function::Subtract => both(&[Type::Int, Type::Uint, Type::Double, Type::Duration])
            .or_else(|| is(Type::Timestamp, Type::Timestamp).then_some(Type::Duration))
            .or_else(|| is(Type::Timestamp, Type::Duration).then_some(Type::Timestamp)),
        Function::Multiply | Function::Divide => both(&numbers),
        Function::Modulo => both(&[Type::Int, Type::Uint]),
        Function::In => match other {
            Type::List(of) => one.fits(of).then_some(Type::Bool),
            Type::Map(key, _) => one.fits(key).then_some(Type::Bool),
            Type::Dyn => Some(Type::Bool),
            _ => None,
        },
        Function::Index => match one {
            Type::List(of) => other.fits(&Type::Int).then(|| (**of).clone()),
            Type::Map(key, value) => other.fits(key).then(|| (**value).clone()),
            Type::Dyn => Some(Type::Dyn),
            _ => None,
        },
        _ => None,
    }
}

/// An operator of one operand.
pub(super) fn one<'a>(function: Function, value: &Val<'a>) -> Outcome<Val<'a>> {
    match (function, value) {
        (Function::Not, Val::Bool(value)) => Ok(Val::Bool(!value)),
        (Function::Negate, Val::Int(number)) => number.checked_neg().map(Val::Int).ok_or(Failed),
        (Function::Negate, Val::Double(number)) => Ok(Val::Double(-number)),
        _ => Err(Failed),
    }
}

/// An operator of two operands.
pub(super) fn two<'a>(function: Function, one: &Val<'a>, other: &Val<'a>) -> Outcome<Val<'a>> {
    let order = |fits: fn(Ordering) -> bool| one.order(other).map(fits).map(Val::Bool).ok_or(Failed);
    match function {
        Function::Equals => Ok(Val::Bool(one.equals(other))),
        Function::NotEquals => Ok(Val::Bool(!one.equals(other))),
        Function::Less => order(Ordering::is_lt),
        Function::LessOrEqual => order(Ordering::is_le),
        Function::Greater => order(Ordering::is_gt),
        Function::GreaterOrEqual => order(Ordering::is_ge),
        Function::In => match other {
            Val::List(values) => Ok(Val::Bool(values.iter().any(|value| value.equals(one)))),
            Val::Map(entries) => Ok(Val::Bool(entries.iter().any(|(key, _)| key.equals(one)))),
            _ => Err(Failed),
        },
        Function::Index => match (one, other) {
            (Val::List(values), Val::Int(at)) => {
                usize::try_from(*at).ok().and_then(|at| values.get(at)).cloned().ok_or(Failed)
            }
            (Val::Map(entries), key) => {
                let found = entries.iter().find(|(known, _)| known.equals(key));
                found.map(|(_, value)| value.clone()).ok_or(Failed)
            }
            _ => Err(Failed),
        },
        _ => arithmetic(function, one, other),
    }
}

/// Whole numbers of either kind; beyond their range, and by zero, there is no result.
macro_rules! whole {
    ($function:expr, $one:expr, $other:expr) => {
        match $function {
            Function::Add => $one.checked_add(*$other),
            Function::Subtract => $one.checked_sub(*$other),
            Function::Multiply => $one.checked_mul(*$other),
            Function::Divide => $one.checked_div(*$other),
            Function::Modulo => $one.checked_rem(*$other),
            _ => None,
        }
        .ok_or(Failed)?
    };
}

fn arithmetic<'a>(function: Function, one: &Val<'a>, other: &Val<'a>) -> Outcome<Val<'a>> {
    let value = match (one, other) {
        (Val::Int(one), Val::Int(other)) => Val::Int(whole!(function, one, other)),
        (Val::Uint(one), Val::Uint(other)) => Val::Uint(whole!(function, one, other)),
        (Val::Double(one), Val::Double(other)) => Val::Double(match function {
            Function::Add => one + other,
            Function::Subtract => one - other,
            Function::Multiply => one * other,
            Function::Divide => one / other,
            _ => return Err(Failed),
        }),
        (Val::Duration(one), Val::Duration(other)) => Val::Duration(
            match function {
                Function::Add => one.checked_add(*other),
                Function::Subtract => one.checked_sub(*other),
                _ => None,
            }
            .ok_or(Failed)?,
        ),
        (Val::Timestamp(at), Val::Duration(length)) => match function {
            Function::Add => Val::Timestamp(at + i128::from(*length)),
            Function::Subtract => Val::Timestamp(at - i128::from(*length)),
            _ => return Err(Failed),
        },
        (Val::Duration(length), Val::Timestamp(at)) if function == Function::Add => {
            Val::Timestamp(at + i128::from(*length))
        }
        (Val::Timestamp(one), Val::Timestamp(other)) if function == Function::Subtract => {
            Val::Duration(i64::try_from(one - other).map_err(|_| Failed)?)
        }
        (Val::List(one), Val::List(other)) if function == Function::Add => {
            Val::List(one.iter().chain(other.iter()).cloned().collect())
        }
        (Val::Bytes(one), Val::Bytes(other)) if function == Function::Add => {
            Val::Bytes(one.iter().chain(other.iter()).copied().collect())
        }
        _ if function == Function::Add => match (one.text(), other.text()) {
            (Some(one), Some(other)) => Val::Text(format!("{one}{other}").into()),
            _ => return Err(Failed),
        },
        _ => return Err(Failed),
    };
    Ok(value)
}
