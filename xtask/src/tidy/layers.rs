//! Who may import whom inside the daemon's crate.

use super::Violation;
use super::source::{Source, has_word};

/// Imports point down.
pub(super) const DIRECTION: &str = "import-direction";
/// A room never imports another room.
pub(super) const ROOM: &str = "room-import";

/// The daemon's sources.
pub(super) const DAEMON: &str = "flowlog-user/src/";
/// The data path's rooms.
pub(super) const ROOMS: [&str; 8] =
    ["capture", "decode", "enrich", "filter", "project", "encode", "write", "read"];
/// What everyone may speak of.
const GROUND: [&str; 5] = ["record", "tree", "metrics", "limits", "clock"];

/// Height in the house: an import may go to the same part or to a lower one.
fn height(part: &str) -> Option<u8> {
    match part {
        "main" => Some(5),
        "pipeline" | "server" => Some(4),
        "config" => Some(3),
        "task" => Some(2),
        _ if ROOMS.contains(&part) => Some(1),
        _ if GROUND.contains(&part) => Some(0),
        _ => None,
    }
}

/// The part a file belongs to: the first name below `src/`.
pub(super) fn part(path: &str) -> Option<&str> {
    let inside = path.strip_prefix(DAEMON)?;
    Some(resident(inside.split('/').next()?.trim_end_matches(".rs")))
}

/// The subcommands are main's other files: same height, same rights.
fn resident(name: &str) -> &str {
    if name == "cli" { "main" } else { name }
}

/// Checks every path that leads to another part.
pub(super) fn check(source: &Source<'_>, found: &mut Vec<Violation>) {
    let Some(from) = part(source.path).filter(|part| *part != "lib") else { return };
    let mut push = |line: usize, rule: &'static str, text: String| {
        found.push(Violation { path: source.path.to_owned(), line, rule, text });
    };
    let Some(from_height) = height(from) else {
        push(
            1,
            DIRECTION,
            format!(
                "`{from}` has no place in the house; move it into a room, or give it a height in xtask/src/tidy/layers.rs"
            ),
        );
        return;
    };
    for (line, to) in references(source) {
        let to = resident(&to);
        let Some(to_height) = height(to) else { continue };
        if to == from || to_height < from_height || (to_height == 0 && from_height == 0) {
            continue;
        }
        if from_height == 1 && to_height == 1 {
            push(
                line,
                ROOM,
                format!(
                    "room `{from}` imports room `{to}`; pass data through `record`, join rooms in `pipeline`"
                ),
            );
        } else if to_height != from_height || from_height != 4 {
            push(
                line,
                DIRECTION,
                format!("`{from}` imports `{to}`, which stands above it; imports point down"),
            );
        }
    }
}

/// Names that stand right below the crate's root, with their lines: after `crate::`, the crate's name, or enough
/// `super::`, also in a group that spans lines.
fn references(source: &Source<'_>) -> Vec<(usize, String)> {
    let inside = source.path.strip_prefix(DAEMON).unwrap_or_default().trim_end_matches(".rs");
    let depth = inside.split('/').filter(|name| !matches!(*name, "mod" | "main" | "lib")).count();
    let up = "super::".repeat(depth.max(1));
    let mut names = Vec::new();
    let mut group: Option<u32> = None;
    for (number, line) in source.lines() {
        let mut rest = line;
        if let Some(open) = group {
            let (inner, left) = group_names(line, open);
            names.extend(inner.into_iter().map(|name| (number, name)));
            group = left;
            if left.is_some() {
                continue;
            }
            rest = line.rsplit_once('}').map_or("", |(_, after)| after);
        }
        for prefix in ["crate::", "flowlog_user::", up.as_str()] {
            if !has_word(rest, prefix) {
                continue;
            }
            for (at, _) in rest.match_indices(prefix) {
                let before = rest.get(..at).unwrap_or_default();
                if before.ends_with("super::") || before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
                {
                    continue;
                }
                let after = rest.get(at + prefix.len()..).unwrap_or_default();
                if let Some(list) = after.strip_prefix('{') {
                    let (inner, left) = group_names(list, 1);
                    names.extend(inner.into_iter().map(|name| (number, name)));
                    group = left;
                } else {
                    names.push((number, first_name(after)));
                }
            }
        }
    }
    names
}

/// Names at depth 1 of a `{...}` group, and the depth at the line's end while it is still open.
fn group_names(text: &str, open: u32) -> (Vec<String>, Option<u32>) {
    let mut depth = open;
    let mut names = Vec::new();
    let mut name = String::new();
    let mut in_path = false;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 1 => in_path = false,
            ':' => in_path = true,
            c if depth == 1 && !in_path && (c.is_alphanumeric() || c == '_') => {
                name.push(c);
                continue;
            }
            _ => {}
        }
        if !name.is_empty() {
            names.push(std::mem::take(&mut name));
        }
        if depth == 0 {
            return (names, None);
        }
    }
    if !name.is_empty() {
        names.push(name);
    }
    (names, Some(depth))
}

fn first_name(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::found_by;

    fn rules(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        found_by(check, path, text)
    }

    #[test]
    fn imports_point_down() {
        let filter = "flowlog-user/src/filter/ip.rs";
        assert_eq!(rules(filter, "use crate::record::Flow;\nuse crate::filter::Spec;\n"), []);
        assert_eq!(
            rules(filter, "use crate::{record::Flow,\n    write::Writer,\n    task::Plan};\n"),
            [(2, ROOM), (3, DIRECTION)]
        );
        assert_eq!(rules(filter, "use super::super::encode::Line;\nuse super::port::Port;\n"), [(1, ROOM)]);
        assert_eq!(rules("flowlog-user/src/filter/mod.rs", "use super::encode::Line;\n"), [(1, ROOM)]);
        assert_eq!(rules("flowlog-user/src/config/mod.rs", "use crate::pipeline;\n"), [(1, DIRECTION)]);
        assert_eq!(
            rules("flowlog-user/src/record/mod.rs", "use crate::limits;\nfn f() { crate::decode::run(); }\n"),
            [(2, DIRECTION)]
        );
        assert_eq!(rules("flowlog-user/src/main.rs", "use flowlog_user::{pipeline, server};\n"), []);
    }

    #[test]
    fn subcommands_are_part_of_main() {
        assert_eq!(
            rules("flowlog-user/src/cli/run.rs", "use crate::cli::tasks;\nuse flowlog_user::pipeline;\n"),
            []
        );
        assert_eq!(rules("flowlog-user/src/server/mod.rs", "use crate::cli::run;\n"), [(1, DIRECTION)]);
    }

    #[test]
    fn tests_may_import_what_they_like() {
        assert_eq!(
            rules(
                "flowlog-user/src/filter/mod.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::write::W;\n}\n"
            ),
            []
        );
    }

    #[test]
    fn a_part_without_a_place_is_named() {
        assert_eq!(rules("flowlog-user/src/stuff.rs", "\n"), [(1, DIRECTION)]);
    }
}
