//! `cargo xtask tidy`: the rules of the house, as code.
//!
//! Each rule family is a file: [`layers`] (who may import whom), [`rights`] (who may use what), [`safety`] (unsafe),
//! [`shape`] (lengths, names, attributes, openings) and [`manifest`] (Cargo.toml, licences). [`source`] reads a file
//! so that comments, strings and test code are known. To add a rule: a function that pushes [`Violation`]s, and a
//! file in `fixtures/untidy` that breaks it.

mod layers;
mod manifest;
mod rights;
mod safety;
mod shape;
mod source;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{cli, say, system};
use source::Source;

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "tidy",
    about: "check the rules of the house",
    help: "cargo xtask tidy: check the rules of the house\n\n\
           usage: cargo xtask tidy [--root DIR]\n\n  \
           --root DIR   check another tree (xtask/fixtures/untidy must fail)\n\n\
           Each violation is a line `path:line: rule: what and remedy`. Rules: import-direction, room-import,\n\
           aya-only-in-capture, zstd-only-in-write, write-only-in-write, yaml-only-in-config, clock-only-in-clock,\n\
           signals-only-in-main, anyhow-only-in-main, unsafe-place, safety-comment, file-length, main-length,\n\
           vague-name, allow-attribute, opening, machine-path, version-place, crate-lints, licence.",
    run: main,
};

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Relative to the tree's root.
    pub(crate) path: String,
    /// From 1; 1 too when the whole file is meant.
    pub(crate) line: usize,
    /// The rule's name.
    pub(crate) rule: &'static str,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.text)
    }
}

/// Folders that hold nothing of ours, or that break the rules on purpose.
const SKIPPED: [&str; 3] = ["target", ".git", "xtask/fixtures"];
/// Files that are text of ours.
const TEXT: [&str; 8] = ["rs", "toml", "md", "yaml", "yml", "sh", "json", "run"];

fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut root = system::root();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("root") => root = PathBuf::from(args.value()?),
            other => return Err(cli::unexpected("tidy", &other)),
        }
    }
    check(&root)
}

/// Checks a tree, says what is wrong, and fails if anything is.
pub(crate) fn check(root: &Path) -> Result<()> {
    let found = violations(root)?;
    for violation in &found {
        say::out(&violation.to_string());
    }
    if !found.is_empty() {
        bail!("tidy: {} breach(es) of the house rules in {}", found.len(), root.display());
    }
    Ok(())
}

/// The fixture must break every rule: a rule that no longer sees anything would pass in silence.
pub(crate) fn check_fixture() -> Result<()> {
    let found = violations(&system::root().join("xtask/fixtures/untidy"))?;
    let rules: BTreeSet<&str> = found.iter().map(|violation| violation.rule).collect();
    let blind: Vec<&str> = RULES.iter().copied().filter(|rule| !rules.contains(rule)).collect();
    if !blind.is_empty() {
        bail!("tidy sees no breach of {} in xtask/fixtures/untidy", blind.join(", "));
    }
    Ok(())
}

/// Every rule's name.
const RULES: &[&str] = &[
    layers::DIRECTION,
    layers::ROOM,
    rights::AYA,
    rights::ZSTD,
    rights::WRITE,
    rights::YAML,
    rights::CLOCK,
    rights::SIGNALS,
    rights::ANYHOW,
    safety::PLACE,
    safety::COMMENT,
    shape::LENGTH,
    shape::MAIN,
    shape::NAME,
    shape::ALLOW,
    shape::OPENING,
    shape::MACHINE,
    manifest::VERSION,
    manifest::LINTS,
    manifest::LICENCE,
];

/// All breaches in a tree, sorted by place.
pub(crate) fn violations(root: &Path) -> Result<Vec<Violation>> {
    let mut paths = Vec::new();
    walk(root, Path::new(""), &mut paths)?;
    let mut files = Vec::new();
    for path in paths {
        let text =
            std::fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        files.push((path, text));
    }
    let tests = source::test_files(&files);
    let mut found = Vec::new();
    for (path, text) in &files {
        shape::machine_paths(path, text, &mut found);
        if path.ends_with("Cargo.toml") {
            manifest::check(path, text, &mut found);
        }
        if path.ends_with(".rs") {
            let source = Source::new(path, text, tests.contains(path));
            layers::check(&source, &mut found);
            rights::check(&source, &mut found);
            safety::check(&source, &mut found);
            shape::check(&source, &mut found);
        }
    }
    manifest::licences(root, &mut found);
    found.sort();
    Ok(found)
}

fn walk(root: &Path, under: &Path, paths: &mut Vec<String>) -> Result<()> {
    let folder = root.join(under);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let relative = under.join(entry.file_name());
        let name = relative.to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let kind = entry.file_type()?;
        let ending =
            relative.extension().or(relative.file_name()).unwrap_or_default().to_string_lossy().into_owned();
        if kind.is_dir() {
            walk(root, &relative, paths)?;
        } else if kind.is_file() && TEXT.contains(&ending.as_str()) {
            paths.push(name);
        }
    }
    paths.sort();
    Ok(())
}

#[cfg(test)]
mod tests;
