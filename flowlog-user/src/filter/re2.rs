//! RE2's syntax, as Go reads it, in that of the `regex` crate. Both are close, but the same text must never mean two
//! things: `\d`, `\w`, `\s` and `\b` are ASCII in Go, `[` and `&&` in a class are plain there, `\Q..\E` exists, and
//! what only `regex` knows is an error.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// Repetitions that Go allows at most.
const REPEAT_MAX: u32 = 1000;

type Text<'a> = Peekable<Chars<'a>>;

/// Translates an expression.
///
/// # Errors
/// What Go does not accept where `regex` would.
pub(super) fn translate(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len() + 8);
    let mut text = source.chars().peekable();
    // Whether a repetition stands directly before: Go refuses `a**`, but not `a*?`.
    let mut repeated = false;
    while let Some(c) = text.next() {
        let was_repeated = std::mem::take(&mut repeated);
        match c {
            '\\' => escape(&mut text, &mut out)?,
            '[' => class(&mut text, &mut out)?,
            '(' => group(&mut text, &mut out)?,
            '*' | '+' | '?' => {
                if was_repeated {
                    return Err(format!("a repetition of a repetition (`{c}`)"));
                }
                out.push(c);
                repeated = true;
            }
            '{' => match bounds(&text) {
                Some((_, low, high))
                    if low > REPEAT_MAX || high.is_some_and(|high| high > REPEAT_MAX || high < low) =>
                {
                    return Err(format!("bounds of a repetition must rise and be {REPEAT_MAX} at most"));
                }
                Some(_) if was_repeated => return Err("a repetition of a repetition (`{`)".into()),
                Some((length, ..)) => {
                    out.push('{');
                    out.extend(text.by_ref().take(length));
                    repeated = true;
                }
                // Not bounds, so it stands for itself.
                None => out.push_str("\\{"),
            },
            '}' => out.push_str("\\}"),
            _ => out.push(c),
        }
        if repeated && text.next_if_eq(&'?').is_some() {
            out.push('?');
        }
    }
    Ok(out)
}

/// Length and numbers of `2}`, `2,}` or `2,5}`.
fn bounds(text: &Text<'_>) -> Option<(usize, u32, Option<u32>)> {
    let inner: String = text.clone().take_while(|c| *c != '}').take(16).collect();
    if text.clone().nth(inner.chars().count()) != Some('}') {
        return None;
    }
    let number = |digits: &str| {
        let sound = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        sound.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (low, high) = match inner.split_once(',') {
        Some((low, "")) => (number(low)?, None),
        Some((low, high)) => (number(low)?, Some(number(high)?)),
        None => (number(&inner)?, None),
    };
    Some((inner.chars().count() + 1, low, high))
}

/// What follows `(`: of `(?flags)`, `(?flags:`, `(?P<name>` and `(?<name>` only what Go knows.
fn group(text: &mut Text<'_>, out: &mut String) -> Result<(), String> {
    out.push('(');
    if text.next_if_eq(&'?').is_none() {
        return Ok(());
    }
    out.push('?');
    if matches!(text.peek(), Some('P' | '<')) {
        return Ok(());
    }
    for c in text.by_ref() {
        out.push(c);
        match c {
            'i' | 'm' | 's' | 'U' | '-' => {}
            ':' | ')' => return Ok(()),
            _ => return Err(format!("`(?{c}` is not known")),
        }
    }
    Ok(())
}

/// What follows a backslash outside a class.
fn escape(text: &mut Text<'_>, out: &mut String) -> Result<(), String> {
    match text.peek() {
        Some('b' | 'B') => {
            let negated = text.next() == Some('B');
            out.push_str(if negated { "(?-u:\\B)" } else { "(?-u:\\b)" });
        }
        Some('A' | 'z') => {
            out.push('\\');
            out.extend(text.next());
        }
        Some('Q') => {
            text.next();
            let mut rest: String = text.collect();
            let (literal, after) = match rest.split_once("\\E") {
                Some((literal, after)) => (literal.to_owned(), after.to_owned()),
                None => (std::mem::take(&mut rest), String::new()),
            };
            out.push_str(&regex::escape(&literal));
            out.push_str(&translate(&after)?);
        }
        _ => class_escape(text, out, false)?,
    }
    Ok(())
}

/// What follows a backslash anywhere.
fn class_escape(text: &mut Text<'_>, out: &mut String, in_class: bool) -> Result<(), String> {
    let Some(c) = text.next() else { return Err("a backslash at the end".into()) };
    let class = |set: &str, negated: bool| match (in_class, negated) {
        (true, false) => set.to_owned(),
        (_, true) => format!("[^{set}]"),
        (false, false) => format!("[{set}]"),
    };
    match c {
        'd' | 'D' => out.push_str(&class("0-9", c == 'D')),
        's' | 'S' => out.push_str(&class("\\t\\n\\x0c\\r ", c == 'S')),
        'w' | 'W' => out.push_str(&class("0-9A-Za-z_", c == 'W')),
        'p' | 'P' => property(text, out, c == 'P')?,
        'a' | 'f' | 't' | 'n' | 'r' | 'v' => {
            out.push('\\');
            out.push(c);
        }
        'x' => hexadecimal(text, out)?,
        '0' => octal(0, text, out),
        '1'..='7' if text.peek().is_some_and(|c| ('0'..='7').contains(c)) => {
            octal(c.to_digit(8).unwrap_or(0), text, out);
        }
        c if c.is_ascii_punctuation() => code(u32::from(c), out),
        c => return Err(format!("`\\{c}` is not known")),
    }
    Ok(())
}

/// Up to two more octal digits.
fn octal(mut number: u32, text: &mut Text<'_>, out: &mut String) {
    for _ in 0..2 {
        let Some(digit) = text.peek().and_then(|c| c.to_digit(8)) else { break };
        text.next();
        number = number * 8 + digit;
    }
    code(number, out);
}

fn hexadecimal(text: &mut Text<'_>, out: &mut String) -> Result<(), String> {
    let digits: String = if text.next_if_eq(&'{').is_some() {
        let digits: String = text.by_ref().take_while(|c| *c != '}').collect();
        digits
    } else {
        text.by_ref().take(2).collect()
    };
    let number = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() >= 2 || digits.len() == 1);
    match number.and_then(char::from_u32) {
        Some(c) if !digits.starts_with('+') => {
            code(u32::from(c), out);
            Ok(())
        }
        _ => Err(format!("`\\x{digits}` is no character")),
    }
}

/// `\pL`, `\p{Greek}`, `\p{^Greek}`.
fn property(text: &mut Text<'_>, out: &mut String, mut negated: bool) -> Result<(), String> {
    let name: String = if text.next_if_eq(&'{').is_some() {
        if text.next_if_eq(&'^').is_some() {
            negated = !negated;
        }
        text.by_ref().take_while(|c| *c != '}').collect()
    } else {
        text.next().into_iter().collect()
    };
    // Scripts and general categories by their own names: `regex` knows much more than Go.
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphabetic() || c == '_') {
        return Err(format!("the class `\\p{{{name}}}` is not known"));
    }
    let _ = write!(out, "\\{}{{{name}}}", if negated { 'P' } else { 'p' });
    Ok(())
}

fn code(number: u32, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\x{{{number:x}}}");
}

/// What follows `[`, up to its `]`.
fn class(text: &mut Text<'_>, out: &mut String) -> Result<(), String> {
    out.push('[');
    if text.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    loop {
        let Some(c) = text.next() else { return Err("a `[` without its `]`".into()) };
        match c {
            ']' if !first => break,
            '[' if text.peek() == Some(&':') => posix(text, out)?,
            '\\' if text.peek().is_some_and(|c| "dDsSwWpP".contains(*c)) => class_escape(text, out, true)?,
            _ => {
                member(c, text, out)?;
                let after: Vec<char> = text.clone().take(2).collect();
                // A hyphen at the end stands for itself.
                if let ['-', end] = after[..]
                    && end != ']'
                {
                    text.next();
                    out.push('-');
                    text.next();
                    member(end, text, out)?;
                }
            }
        }
        first = false;
    }
    out.push(']');
    Ok(())
}

/// One character of a class, written so that it means nothing else.
fn member(c: char, text: &mut Text<'_>, out: &mut String) -> Result<(), String> {
    match c {
        '\\' => class_escape(text, out, true)?,
        c if c.is_ascii_alphanumeric() => out.push(c),
        c => code(u32::from(c), out),
    }
    Ok(())
}

/// `[:alpha:]` inside a class; the bracket is taken, the colon not yet.
fn posix(text: &mut Text<'_>, out: &mut String) -> Result<(), String> {
    const NAMES: [&str; 14] = [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
        "upper", "word", "xdigit",
    ];
    let rest: String = text.clone().skip(1).take(12).collect();
    let Some((name, _)) = rest.split_once(":]") else {
        code(u32::from('['), out);
        return Ok(());
    };
    if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(format!("the class `[:{name}:]` is not known"));
    }
    let _ = write!(out, "[:{name}:]");
    let length = name.chars().count() + 3;
    text.by_ref().take(length).for_each(drop);
    Ok(())
}
