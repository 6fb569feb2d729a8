//! Where unsafe code may stand, and that it says why it is sound.

use super::Violation;
use super::source::{Source, has_word};

/// Only in the kernel's crate and two files of `capture`.
pub(super) const PLACE: &str = "unsafe-place";
/// A reason before each block.
pub(super) const COMMENT: &str = "safety-comment";

const ALLOWED: [&str; 3] =
    ["flowlog-ebpf/", "flowlog-user/src/capture/live/records.rs", "flowlog-user/src/capture/live/bpf.rs"];
/// The word whose use is judged.
const WORD: &str = "unsafe";
/// What the reason begins with.
const REASON: &str = "SAFETY:";

/// Checks all code, tests included.
pub(super) fn check(source: &Source<'_>, found: &mut Vec<Violation>) {
    for (line, code) in source.all_lines().filter(|(_, code)| has_word(code, WORD)) {
        let mut push = |rule, text: &str| {
            found.push(Violation { path: source.path.to_owned(), line, rule, text: text.to_owned() });
        };
        if !ALLOWED.iter().any(|place| source.path.starts_with(place)) {
            push(
                PLACE,
                "unsafe code stands only in flowlog-ebpf and capture/live/{records,bpf}.rs; use a safe crate, or move it there",
            );
        }
        if needs_reason(code) && !has_reason(source, line) {
            push(COMMENT, "say right before it why this is sound: `// SAFETY: ...`");
        }
    }
}

/// A block or an impl; not an attribute, a declaration (whose docs have `# Safety`) or a function type.
fn needs_reason(code: &str) -> bool {
    code.match_indices(WORD).any(|(at, _)| {
        let after = code.get(at + WORD.len()..).unwrap_or_default().trim_start();
        after.is_empty() || after.starts_with('{') || after.starts_with("impl")
    })
}

/// The reason stands on the line, or above it before the previous statement ends.
fn has_reason(source: &Source<'_>, line: usize) -> bool {
    let raw = |number: usize| source.raw.get(number.wrapping_sub(1)).copied().unwrap_or_default();
    let code = |number: usize| source.code.get(number.wrapping_sub(1)).map_or("", |code| code.trim());
    if raw(line).contains(REASON) {
        return true;
    }
    let mut in_comment = false;
    for number in (1..line).rev() {
        if raw(number).contains(REASON) {
            return true;
        }
        let is_comment = code(number).is_empty() && !raw(number).trim().is_empty();
        let ended = code(number).ends_with([';', '{', '}', ',']) || raw(number).trim().is_empty();
        if !is_comment && (ended || in_comment) {
            return false;
        }
        in_comment |= is_comment;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::found_by;

    fn rules(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        found_by(check, path, text)
    }

    #[test]
    fn a_reason_is_found_where_it_stands() {
        let path = "flowlog-ebpf/src/main.rs";
        assert_eq!(rules(path, "// SAFETY: it is ours\nlet a = unsafe { b() };\n"), []);
        assert_eq!(
            rules(path, "// SAFETY: it is ours,\n// and stays so\nlet a =\n    unsafe { b() };\n"),
            []
        );
        assert_eq!(
            rules(path, "// SAFETY: only the first\nlet a = unsafe { b() };\nlet c = unsafe { d() };\n"),
            [(3, COMMENT)]
        );
        assert_eq!(rules(path, "#[unsafe(no_mangle)]\nfn a() {}\n/// # Safety\nunsafe fn b() {}\n"), []);
        assert_eq!(rules(path, "unsafe impl Send for A {}\n"), [(1, COMMENT)]);
    }

    #[test]
    fn unsafe_has_its_places() {
        let text = "// SAFETY: none\nunsafe { a() }\n";
        assert_eq!(rules("flowlog-user/src/capture/live/bpf.rs", text), []);
        assert_eq!(rules("flowlog-user/src/capture/live/mod.rs", text), [(2, PLACE)]);
        assert_eq!(rules("tests/kernel/main.rs", text), [(2, PLACE)]);
    }
}
