use jiff::{SignedDuration, Timestamp};

use super::eval::{Failed, Outcome};
use super::operators;
use super::typing::Type;
use super::value::Val;
use crate::filter::pattern::Pattern;

/// A function or operator of CEL that takes its arguments evaluated; a member's target is its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Equals,
    NotEquals,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Negate,
    Not,
    NotStrictlyFalse,
    In,
    Index,
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    ToInt,
    ToUint,
    ToDouble,
    ToText,
    ToBytes,
    ToBool,
    ToDyn,
    ToTimestamp,
    ToDuration,
    Part(Part),
}

/// Parts of a timestamp (in UTC) or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfYear,
    DayOfWeek,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// The functions (not operators) by name.
const NAMES: &[(&str, Function)] = &[
    ("size", Function::Size),
    ("contains", Function::Contains),
    ("startsWith", Function::StartsWith),
    ("endsWith", Function::EndsWith),
    ("matches", Function::Matches),
    ("int", Function::ToInt),
    ("uint", Function::ToUint),
    ("double", Function::ToDouble),
    ("string", Function::ToText),
    ("bytes", Function::ToBytes),
    ("bool", Function::ToBool),
    ("dyn", Function::ToDyn),
    ("timestamp", Function::ToTimestamp),
    ("duration", Function::ToDuration),
    ("getFullYear", Function::Part(Part::FullYear)),
    ("getMonth", Function::Part(Part::Month)),
    ("getDate", Function::Part(Part::Date)),
    ("getDayOfMonth", Function::Part(Part::DayOfMonth)),
    ("getDayOfYear", Function::Part(Part::DayOfYear)),
    ("getDayOfWeek", Function::Part(Part::DayOfWeek)),
    ("getHours", Function::Part(Part::Hours)),
    ("getMinutes", Function::Part(Part::Minutes)),
    ("getSeconds", Function::Part(Part::Seconds)),
    ("getMilliseconds", Function::Part(Part::Milliseconds)),
];

/// The function of this name for arguments of these types, and the type of its result.
pub(super) fn find(name: &str, member: bool, types: &[Type]) -> Result<(Function, Type), String> {
    if let Some((symbol, function)) = operators::named(name) {
        return match operators::result(function, types) {
            Some(result) => Ok((function, result)),
            None => Err(format!("`{symbol}` does not take {}{}", list(types), remedy(types))),
        };
    }
    let Some((_, function)) = NAMES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        return Err(format!("the function `{name}` is not known; {}", crate::tree::hint(name, &known)));
    };
    match result(*function, member, types) {
        Some(result) => Ok((*function, result)),
        None => Err(format!("the function `{name}` does not take {}", list(types))),
    }
}

fn list(types: &[Type]) -> String {
    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
    if types.is_empty() { "nothing".into() } else { types.join(" and ") }
}

/// The mistake that is made most: ports and identities are unsigned.
fn remedy(types: &[Type]) -> &'static str {
    match types {
        [Type::Uint, Type::Int] | [Type::Int, Type::Uint] => "; write the number as 80u",
        _ => "",
    }
}

fn result(function: Function, member: bool, types: &[Type]) -> Option<Type> {
    let one = |of: &[Type]| matches!(types, [only] if of.iter().any(|of| only.fits(of)));
    let texts = matches!(types, [one, other] if one.fits(&Type::Text) && other.fits(&Type::Text));
    let (anything, maps) = (Type::Dyn, Type::Map(Box::new(Type::Dyn), Box::new(Type::Dyn)));
    let lists = Type::List(Box::new(Type::Dyn));
    let (fits, member_fits, result) = match function {
        Function::Size => (one(&[Type::Text, Type::Bytes, lists, maps]), true, Type::Int),
        Function::Contains | Function::StartsWith | Function::EndsWith => (texts, member, Type::Bool),
        Function::Matches => (texts, true, Type::Bool),
        Function::ToInt => {
            (one(&[Type::Int, Type::Uint, Type::Double, Type::Text, Type::Timestamp]), !member, Type::Int)
        }
        Function::ToUint => (one(&[Type::Int, Type::Uint, Type::Double, Type::Text]), !member, Type::Uint),
        Function::ToDouble => {
            (one(&[Type::Int, Type::Uint, Type::Double, Type::Text]), !member, Type::Double)
        }
        Function::ToText => {
            let texts = [
                Type::Text,
                Type::Int,
                Type::Uint,
                Type::Double,
                Type::Bool,
                Type::Bytes,
                Type::Timestamp,
                Type::Duration,
            ];
            (one(&texts), !member, Type::Text)
        }
        Function::ToBytes => (one(&[Type::Text, Type::Bytes]), !member, Type::Bytes),
        Function::ToBool => (one(&[Type::Text, Type::Bool]), !member, Type::Bool),
        Function::ToDyn => (one(&[anything]), !member, Type::Dyn),
        Function::ToTimestamp => (one(&[Type::Text, Type::Int, Type::Timestamp]), !member, Type::Timestamp),
        Function::ToDuration => (one(&[Type::Text, Type::Int, Type::Duration]), !member, Type::Duration),
        Function::Part(Part::Hours | Part::Minutes | Part::Seconds | Part::Milliseconds) => {
            (one(&[Type::Timestamp, Type::Duration]), member, Type::Int)
        }
        Function::Part(_) => (one(&[Type::Timestamp]), member, Type::Int),
        _ => return None,
    };
    (fits && member_fits).then_some(result)
}

impl Function {
    pub(super) fn call<'a>(self, arguments: &[Val<'a>]) -> Outcome<Val<'a>> {
        match arguments {
            [only] => self.one(only),
            [one, other] => self.two(one, other),
            _ => Err(Failed),
        }
    }

    fn two<'a>(self, one: &Val<'a>, other: &Val<'a>) -> Outcome<Val<'a>> {
        let text = |test: fn(&str, &str) -> bool| match (one.text(), other.text()) {
            (Some(one), Some(other)) => Ok(Val::Bool(test(one, other))),
            _ => Err(Failed),
        };
        match self {
            Self::Contains => text(|one, other| one.contains(other)),
            Self::StartsWith => text(|one, other| one.starts_with(other)),
            Self::EndsWith => text(|one, other| one.ends_with(other)),
            Self::Matches => {
                let pattern = Pattern::new(other.text().ok_or(Failed)?).map_err(|_| Failed)?;
                Ok(Val::Bool(pattern.is_in(one.text().ok_or(Failed)?.as_bytes())))
            }
            _ => operators::two(self, one, other),
        }
    }

    fn one<'a>(self, value: &Val<'a>) -> Outcome<Val<'a>> {
        match self {
            Self::Size => size(value),
            Self::ToInt => int(value).map(Val::Int),
            Self::ToUint => uint(value).map(Val::Uint),
            Self::ToDouble => double(value).map(Val::Double),
            Self::ToText => text(value),
            Self::ToBytes => match value {
                Val::Bytes(bytes) => Ok(Val::Bytes(bytes.clone())),
                other => Ok(Val::Bytes(other.text().ok_or(Failed)?.as_bytes().into())),
            },
            Self::ToBool => match value {
                Val::Bool(value) => Ok(Val::Bool(*value)),
                other => match other.text().ok_or(Failed)? {
                    "true" | "True" | "TRUE" | "t" | "1" => Ok(Val::Bool(true)),
                    "false" | "False" | "FALSE" | "f" | "0" => Ok(Val::Bool(false)),
                    _ => Err(Failed),
                },
            },
            Self::ToDyn => Ok(value.clone()),
            Self::ToTimestamp => match value {
                Val::Timestamp(at) => Ok(Val::Timestamp(*at)),
                Val::Int(seconds) => Ok(Val::Timestamp(i128::from(*seconds) * 1_000_000_000)),
                other => {
                    let at: Timestamp = other.text().ok_or(Failed)?.parse().map_err(|_| Failed)?;
                    Ok(Val::Timestamp(at.as_nanosecond()))
                }
            },
            Self::ToDuration => match value {
                Val::Duration(length) => Ok(Val::Duration(*length)),
                Val::Int(length) => Ok(Val::Duration(*length)),
                other => {
                    let length: SignedDuration = other.text().ok_or(Failed)?.parse().map_err(|_| Failed)?;
                    Ok(Val::Duration(i64::try_from(length.as_nanos()).map_err(|_| Failed)?))
                }
            },
            Self::Part(part) => part.of(value).map(Val::Int),
            _ => operators::one(self, value),
        }
    }
}

fn size<'a>(value: &Val<'a>) -> Outcome<Val<'a>> {
    let size = match value {
        Val::List(values) => values.len(),
        Val::Map(entries) => entries.len(),
        Val::Bytes(bytes) => bytes.len(),
        other => other.text().ok_or(Failed)?.chars().count(),
    };
    i64::try_from(size).map(Val::Int).map_err(|_| Failed)
}

#[expect(clippy::cast_possible_truncation, reason = "within bounds, as just tested")]
fn int(value: &Val<'_>) -> Outcome<i64> {
    match value {
        Val::Int(number) => Ok(*number),
        Val::Uint(number) => i64::try_from(*number).map_err(|_| Failed),
        Val::Double(number) if number.abs() < 9.2e18 => Ok(*number as i64),
        Val::Timestamp(at) => i64::try_from(at.div_euclid(1_000_000_000)).map_err(|_| Failed),
        other => other.text().ok_or(Failed)?.parse().map_err(|_| Failed),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds, as just tested")]
fn uint(value: &Val<'_>) -> Outcome<u64> {
    match value {
        Val::Uint(number) => Ok(*number),
        Val::Int(number) => u64::try_from(*number).map_err(|_| Failed),
        Val::Double(number) if (0.0..1.8e19).contains(number) => Ok(*number as u64),
        other => other.text().ok_or(Failed)?.parse().map_err(|_| Failed),
    }
}

#[expect(clippy::cast_precision_loss, reason = "that is what double() does")]
fn double(value: &Val<'_>) -> Outcome<f64> {
    match value {
        Val::Double(number) => Ok(*number),
        Val::Int(number) => Ok(*number as f64),
        Val::Uint(number) => Ok(*number as f64),
        other => other.text().ok_or(Failed)?.parse().map_err(|_| Failed),
    }
}

fn text<'a>(value: &Val<'a>) -> Outcome<Val<'a>> {
    let text = match value {
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        Val::Double(number) => number.to_string(),
        Val::Bool(value) => value.to_string(),
        Val::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|_| Failed)?.to_owned(),
        Val::Timestamp(at) => Timestamp::from_nanosecond(*at).map_err(|_| Failed)?.to_string(),
        Val::Duration(length) => seconds(*length),
        Val::Text(_) | Val::Borrowed(_) => return Ok(value.clone()),
        _ => return Err(Failed),
    };
    Ok(Val::Text(text.into()))
}

/// `90s`, `1.5s`.
fn seconds(length: i64) -> String {
    let sign = if length < 0 { "-" } else { "" };
    let (whole, rest) = (length.unsigned_abs() / 1_000_000_000, length.unsigned_abs() % 1_000_000_000);
    let fraction = format!("{rest:09}");
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{sign}{whole}s") } else { format!("{sign}{whole}.{fraction}s") }
}

impl Part {
    fn of(self, value: &Val<'_>) -> Outcome<i64> {
        let at = match value {
            Val::Timestamp(at) => *at,
            Val::Duration(length) => return self.of_duration(*length),
            _ => return Err(Failed),
        };
        let at = Timestamp::from_nanosecond(at).map_err(|_| Failed)?;
        let at = jiff::tz::Offset::UTC.to_datetime(at);
        Ok(match self {
            Self::FullYear => at.year().into(),
            Self::Month => i64::from(at.month()) - 1,
            Self::Date => at.day().into(),
            Self::DayOfMonth => i64::from(at.day()) - 1,
            Self::DayOfYear => i64::from(at.day_of_year()) - 1,
            Self::DayOfWeek => at.weekday().to_sunday_zero_offset().into(),
            Self::Hours => at.hour().into(),
            Self::Minutes => at.minute().into(),
            Self::Seconds => at.second().into(),
            Self::Milliseconds => at.millisecond().into(),
        })
    }

    fn of_duration(self, length: i64) -> Outcome<i64> {
        Ok(match self {
            Self::Hours => length / 3_600_000_000_000,
            Self::Minutes => length / 60_000_000_000,
            Self::Seconds => length / 1_000_000_000,
            Self::Milliseconds => length / 1_000_000,
            _ => return Err(Failed),
        })
    }
}
