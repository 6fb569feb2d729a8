//! Lengths, names, attributes, openings, and paths of somebody's machine.

use super::Violation;
use super::layers::{DAEMON, ROOMS};
use super::source::{Source, has_word};

/// Files stay below 500 lines.
pub(super) const LENGTH: &str = "file-length";
/// The daemon's main stays within 100 lines.
pub(super) const MAIN: &str = "main-length";
/// Names that say nothing.
pub(super) const NAME: &str = "vague-name";
/// Lints are not silenced.
pub(super) const ALLOW: &str = "allow-attribute";
/// A room says what it is.
pub(super) const OPENING: &str = "opening";
/// Paths of one machine.
pub(super) const MACHINE: &str = "machine-path";

const LINES_END: usize = 500;
const MAIN_LINES_MAX: usize = 100;
const VAGUE: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "manager", "managers", "types"];
const VAGUE_ENDINGS: [&str; 6] = ["Manager", "Helper", "Helpers", "Util", "Utils", "Common"];
/// Written apart, so that this file does not break its own rule.
const MACHINE_PATHS: [&str; 5] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
];
/// Other parts that open like rooms.
const OPENED: [&str; 4] = ["task", "config", "server", "record"];

/// Everything about one Rust file.
pub(super) fn check(source: &Source<'_>, found: &mut Vec<Violation>) {
    lengths(source, found);
    names(source, found);
    attributes(source, found);
    opening(source, found);
}

/// Paths that exist on somebody's machine only, in any text.
pub(super) fn machine_paths(path: &str, text: &str, found: &mut Vec<Violation>) {
    for (index, line) in text.lines().enumerate() {
        let hit = MACHINE_PATHS.iter().find(|prefix| {
            line.match_indices(**prefix).any(|(at, _)| {
                // `a/tmp/b` is a path inside something; only one that starts here is a machine's.
                !line
                    .get(..at)
                    .unwrap_or_default()
                    .ends_with(|c: char| c.is_alphanumeric() || "._-}/".contains(c))
            })
        });
        if let Some(prefix) = hit {
            let text = format!(
                "`{prefix}...` exists on one machine only; take a relative path, a variable or a temporary folder"
            );
            found.push(Violation { path: path.to_owned(), line: index + 1, rule: MACHINE, text });
        }
    }
}

fn push(found: &mut Vec<Violation>, source: &Source<'_>, line: usize, rule: &'static str, text: String) {
    found.push(Violation { path: source.path.to_owned(), line, rule, text });
}

fn lengths(source: &Source<'_>, found: &mut Vec<Violation>) {
    let lines = source.raw.len();
    if lines >= LINES_END {
        push(
            found,
            source,
            LINES_END,
            LENGTH,
            format!("{lines} lines; split it by kind, files stay below {LINES_END} (aim at 150)"),
        );
    }
    if source.path == format!("{DAEMON}main.rs") && lines > MAIN_LINES_MAX {
        push(
            found,
            source,
            MAIN_LINES_MAX + 1,
            MAIN,
            format!(
                "{lines} lines; main is arguments, wiring and exit code: move the rest to src/main/ or a room"
            ),
        );
    }
}

fn names(source: &Source<'_>, found: &mut Vec<Violation>) {
    let vague =
        source.path.split('/').map(|name| name.trim_end_matches(".rs")).find(|name| VAGUE.contains(name));
    if let Some(name) = vague {
        push(
            found,
            source,
            1,
            NAME,
            format!("`{name}` says nothing about what is inside; name it for what it does"),
        );
    }
    for (line, code) in source.all_lines() {
        let mut words =
            code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let named = match word {
                "mod" => words.next().filter(|name| VAGUE.contains(name)),
                "struct" | "enum" | "trait" | "type" => {
                    words.next().filter(|name| VAGUE_ENDINGS.iter().any(|ending| name.ends_with(ending)))
                }
                _ => None,
            };
            if let Some(name) = named {
                push(
                    found,
                    source,
                    line,
                    NAME,
                    format!("`{name}` says nothing about what it is; use the field's own term"),
                );
            }
        }
    }
}

fn attributes(source: &Source<'_>, found: &mut Vec<Violation>) {
    for (line, code) in source.all_lines() {
        let compact: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let plain = compact.contains("#[allow(") || compact.contains("#![allow(");
        if plain || (compact.contains("cfg_attr(") && has_word(&compact, "allow(")) {
            push(
                found,
                source,
                line,
                ALLOW,
                "remedy the cause, or write `#[expect(.., reason = \"..\")]`".to_owned(),
            );
        }
    }
}

fn opening(source: &Source<'_>, found: &mut Vec<Violation>) {
    let Some(inside) = source.path.strip_prefix(DAEMON) else { return };
    let Some((part, "mod.rs")) = inside.split_once('/') else { return };
    let room = ROOMS.contains(&part);
    if !room && !OPENED.contains(&part) {
        return;
    }
    let opening: Vec<&str> = source.raw.iter().map_while(|line| line.strip_prefix("//!")).collect();
    let text = opening.join(" ").to_lowercase();
    let wanted: &[&str] = if room { &["in", "out", "never", "add"] } else { &[] };
    let missing: Vec<&str> = wanted.iter().copied().filter(|word| !has_word(&text, word)).collect();
    if opening.is_empty() {
        push(
            found,
            source,
            1,
            OPENING,
            "begin with `//!`: what comes in, what goes out, what never happens here, how to add a kind"
                .to_owned(),
        );
    } else if !missing.is_empty() {
        push(
            found,
            source,
            1,
            OPENING,
            format!(
                "the opening lacks `{}`: what comes in, what goes out, what never happens here, how to add a kind",
                missing.join("`, `")
            ),
        );
    }
}
