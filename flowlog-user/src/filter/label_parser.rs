//! Kubernetes' label selectors: `app=cart,tier in (web, api),!canary,version>2`.

use super::label::{Requirement, Test, key};

/// Characters of a part of a key, and of a value, that Kubernetes allows.
const PART_LENGTH_MAX: usize = 63;

/// Characters of a key's prefix.
const PREFIX_LENGTH_MAX: usize = 253;

type Parsed<T> = Result<T, String>;

/// Parses a selector; an empty one selects everything.
pub(super) fn parse(selector: &str) -> Parsed<Vec<Requirement>> {
    let tokens = tokens(selector);
    let mut rest = tokens.as_slice();
    let mut requirements = Vec::new();
    while !rest.is_empty() {
        requirements.push(requirement(&mut rest)?);
        match rest {
            [] => {}
            [","] => return Err("something must follow the last comma".into()),
            [",", after @ ..] => rest = after,
            [other, ..] => return Err(format!("found `{other}`, expected a comma or the end")),
        }
    }
    Ok(requirements)
}

/// Words and operators.
fn tokens(mut text: &str) -> Vec<&str> {
    const OPERATORS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", ">", "<"];
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start();
        let operator = OPERATORS.into_iter().find(|operator| text.starts_with(operator));
        let length = match operator {
            Some(operator) => operator.len(),
            None => text.find(|c: char| c.is_whitespace() || "=!,()><".contains(c)).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(length);
        if token.is_empty() {
            return tokens;
        }
        tokens.push(token);
        text = rest;
    }
}

fn requirement(rest: &mut &[&str]) -> Parsed<Requirement> {
    let missing = matches!(**rest, ["!", ..]);
    if missing {
        *rest = rest.get(1..).unwrap_or_default();
    }
    let Some((key, after)) = rest.split_first() else { return Err("expected a key, found the end".into()) };
    let key = label_key(key)?;
    *rest = after;
    if missing {
        return Ok(Requirement { key, test: Test::Missing });
    }
    let test = match **rest {
        [] | [",", ..] => return Ok(Requirement { key, test: Test::Exists }),
        [operator @ ("=" | "==" | "!=" | ">" | "<"), ..] => {
            *rest = rest.get(1..).unwrap_or_default();
            let value = match **rest {
                [] | [",", ..] => "",
                [value, ..] => {
                    *rest = rest.get(1..).unwrap_or_default();
                    value
                }
            };
            compare(operator, value)?
        }
        [operator @ ("in" | "notin"), ..] => {
            *rest = rest.get(1..).unwrap_or_default();
            let values = values(rest)?;
            if operator == "in" { Test::In(values) } else { Test::NotIn(values) }
        }
        [other, ..] => {
            return Err(format!("found `{other}`, expected one of =, ==, !=, in, notin, >, < after the key"));
        }
    };
    Ok(Requirement { key, test })
}

fn compare(operator: &str, value: &str) -> Parsed<Test> {
    let value = label_value(value)?;
    let number =
        || value.parse::<i64>().map_err(|_| format!("`{value}` after {operator} is no whole number"));
    Ok(match operator {
        "!=" => Test::NotIn(vec![value]),
        ">" => Test::Above(number()?),
        "<" => Test::Below(number()?),
        _ => Test::In(vec![value]),
    })
}

/// `(a, b)`; an empty place is the empty value.
fn values(rest: &mut &[&str]) -> Parsed<Vec<String>> {
    let Some(("(", mut inside)) = rest.split_first().map(|(first, rest)| (*first, rest)) else {
        return Err("expected values in parentheses".into());
    };
    let mut values = Vec::new();
    loop {
        let value = match *inside {
            [value, ..] if !matches!(value, "," | ")") => {
                inside = inside.get(1..).unwrap_or_default();
                value
            }
            _ => "",
        };
        values.push(label_value(value)?);
        match *inside {
            [")", ..] => {
                *rest = inside.get(1..).unwrap_or_default();
                return Ok(values);
            }
            [",", ..] => inside = inside.get(1..).unwrap_or_default(),
            [other, ..] => return Err(format!("found `{other}`, expected a comma or `)`")),
            [] => return Err("a `(` without its `)`".into()),
        }
    }
}

/// `source:prefix/name`: the first colon ends the source.
fn label_key(text: &str) -> Parsed<super::label::Key> {
    let (source, name) = match text.split_once(':') {
        Some((source, name)) => (Some(source), name),
        None => (None, text),
    };
    // To Kubernetes' rules, source and key are one name with a dot between them.
    let whole = source.map_or_else(|| format!("any.{name}"), |source| format!("{source}.{name}"));
    let (prefix, last) = match whole.split_once('/') {
        Some((prefix, last)) => (Some(prefix), last),
        None => (None, whole.as_str()),
    };
    let prefix_fits = prefix.is_none_or(|prefix| {
        prefix.len() <= PREFIX_LENGTH_MAX
            && prefix
                .split('.')
                .all(|part| bounded(part, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), |c| c == '-'))
    });
    if !prefix_fits || !qualified(last) {
        return Err(format!(
            "`{text}` is no label key; expected one like app, k8s:app or k8s:io.kubernetes/app"
        ));
    }
    Ok(key(source, name))
}

fn label_value(text: &str) -> Parsed<String> {
    if text.is_empty() || qualified(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` is no label value; expected up to {PART_LENGTH_MAX} letters, digits, `-`, `_` and `.` that begin and end \
         with a letter or digit"
    ))
}

fn qualified(text: &str) -> bool {
    text.len() <= PART_LENGTH_MAX && bounded(text, |c| c.is_ascii_alphanumeric(), |c| "-_.".contains(c))
}

/// Whether a text is not empty, of these characters, and begins and ends with one of the first kind.
fn bounded(text: &str, ends: impl Fn(char) -> bool, between: impl Fn(char) -> bool) -> bool {
    text.starts_with(&ends) && text.ends_with(&ends) && text.chars().all(|c| ends(c) || between(c))
}
