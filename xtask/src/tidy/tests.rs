//! The fixture trees: one breaks every rule, one breaks none.

use super::*;

/// Line and rule of each violation that one check finds in a file with this text.
pub(super) fn found_by(
    check: fn(&source::Source, &mut Vec<Violation>),
    path: &str,
    text: &str,
) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    check(&source::Source::new(path, text, false), &mut found);
    found.into_iter().map(|violation| (violation.line, violation.rule)).collect()
}

/// Every breach that the untidy tree was written to have: rule, file.
const EXPECTED: &[(&str, &str)] = &[
    (layers::DIRECTION, "flowlog-user/src/config/mod.rs"),
    (layers::DIRECTION, "flowlog-user/src/stray.rs"),
    (layers::ROOM, "flowlog-user/src/decode/mod.rs"),
    (rights::AYA, "flowlog-user/src/filter/mod.rs"),
    (rights::ZSTD, "flowlog-user/src/filter/mod.rs"),
    (rights::WRITE, "flowlog-user/src/filter/mod.rs"),
    (rights::YAML, "flowlog-user/src/filter/mod.rs"),
    (rights::CLOCK, "flowlog-user/src/filter/mod.rs"),
    (rights::SIGNALS, "flowlog-user/src/filter/mod.rs"),
    (rights::ANYHOW, "flowlog-user/src/filter/mod.rs"),
    (safety::PLACE, "flowlog-user/src/filter/mod.rs"),
    (safety::COMMENT, "flowlog-user/src/capture/live/bpf.rs"),
    (shape::LENGTH, "flowlog-user/src/encode/long.rs"),
    (shape::MAIN, "flowlog-user/src/main.rs"),
    (shape::NAME, "flowlog-user/src/encode/utils.rs"),
    (shape::NAME, "flowlog-user/src/encode/line.rs"),
    (shape::ALLOW, "flowlog-user/src/encode/line.rs"),
    (shape::OPENING, "flowlog-user/src/encode/mod.rs"),
    (shape::OPENING, "flowlog-user/src/write/mod.rs"),
    (shape::MACHINE, "README.md"),
    (manifest::VERSION, "flowlog-user/Cargo.toml"),
    (manifest::LINTS, "flowlog-user/Cargo.toml"),
    (manifest::LICENCE, "LICENSE-APACHE"),
    (manifest::LICENCE, "LICENSE-MIT"),
];

fn fixture(name: &str) -> PathBuf {
    system::root().join("xtask/fixtures").join(name)
}

#[test]
fn the_untidy_tree_has_exactly_its_breaches() {
    let found = violations(&fixture("untidy")).unwrap();
    let pairs: BTreeSet<(&str, &str)> = found.iter().map(|v| (v.rule, v.path.as_str())).collect();
    let expected: BTreeSet<(&str, &str)> = EXPECTED.iter().copied().collect();
    assert_eq!(pairs, expected);
}

#[test]
fn the_untidy_tree_breaks_every_rule() {
    check_fixture().unwrap();
    assert!(check(&fixture("untidy")).is_err());
    let expected: BTreeSet<&str> = EXPECTED.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(expected.len(), RULES.len());
}

#[test]
fn the_tidy_tree_has_none() {
    assert_eq!(violations(&fixture("tidy")).unwrap(), []);
}

#[test]
fn a_violation_reads_as_path_line_rule() {
    let violation =
        Violation { path: "a/b.rs".into(), line: 7, rule: "file-length", text: "split it".into() };
    assert_eq!(violation.to_string(), "a/b.rs:7: file-length: split it");
}

#[test]
fn the_help_names_every_rule() {
    for rule in RULES {
        assert!(COMMAND.help.contains(rule), "{rule}");
    }
}
