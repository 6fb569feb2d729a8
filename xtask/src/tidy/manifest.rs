//! Cargo.toml of each crate, and the licence files.

use std::path::Path;

use super::Violation;

/// Versions are pinned once, in the workspace.
pub(super) const VERSION: &str = "version-place";
/// Every crate inherits the lints.
pub(super) const LINTS: &str = "crate-lints";
/// Both licences are there.
pub(super) const LICENCE: &str = "licence";

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Checks one manifest; the workspace's own is where versions belong.
pub(super) fn check(path: &str, text: &str, found: &mut Vec<Violation>) {
    let mut push =
        |line, rule, text: String| found.push(Violation { path: path.to_owned(), line, rule, text });
    if !text.lines().any(|line| line.trim() == "[package]") {
        return;
    }
    let mut section = "";
    let mut lints = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            continue;
        }
        let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        lints |= section == "lints" && compact == "workspace=true";
        let table = section.rsplit("target.").next().unwrap_or(section);
        let in_table = table.ends_with("dependencies") && compact.contains('=');
        let inherits = compact.contains(".workspace=true") || compact.contains("workspace=true");
        let in_one = table.contains("dependencies.")
            && (compact.starts_with("version=") || compact.starts_with("path="));
        if (in_table && !inherits) || in_one {
            let name = compact.split(['=', '.']).next().unwrap_or_default();
            push(
                index + 1,
                VERSION,
                format!(
                    "`{name}` is not inherited; pin it in the root's [workspace.dependencies] and write `workspace = true`"
                ),
            );
        }
    }
    if !lints {
        push(1, LINTS, "add `[lints]` with `workspace = true`".to_owned());
    }
}

/// The texts that the licence expression names.
pub(super) fn licences(root: &Path, found: &mut Vec<Violation>) {
    for name in LICENCES.iter().filter(|name| !root.join(name).is_file()) {
        let text = "is missing; the crates say `Apache-2.0 OR MIT`, so both texts ship".to_owned();
        found.push(Violation { path: (*name).to_string(), line: 1, rule: LICENCE, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<(usize, &'static str)> {
        let mut found = Vec::new();
        check("a/Cargo.toml", text, &mut found);
        found.into_iter().map(|violation| (violation.line, violation.rule)).collect()
    }

    #[test]
    fn versions_are_inherited() {
        let head = "[package]\nname = \"a\"\n[lints]\nworkspace = true\n";
        let good = "[dependencies]\nb.workspace = true\nc = { workspace = true, optional = true }\n";
        assert_eq!(rules(&format!("{head}{good}")), []);
        assert_eq!(rules(&format!("{head}[dependencies]\nb = \"1\"\n")), [(6, VERSION)]);
        assert_eq!(
            rules(&format!("{head}[target.'cfg(unix)'.dev-dependencies]\nb = {{ version = \"1\" }}\n")),
            [(6, VERSION)]
        );
        assert_eq!(rules(&format!("{head}[dependencies.b]\nversion = \"1\"\n")), [(6, VERSION)]);
    }

    #[test]
    fn lints_are_inherited() {
        assert_eq!(rules("[package]\nname = \"a\"\n"), [(1, LINTS)]);
        assert_eq!(rules("[workspace]\nmembers = []\n[workspace.dependencies]\nb = \"1\"\n"), []);
    }
}
