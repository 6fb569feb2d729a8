//! The README says nothing that is not so: its commands run and print what it shows, its task files are valid, and
//! what it names exists.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_user::record::fields::FIELDS;

/// Where the README pretends to be.
const PRETENDED: &str = "/src/flowlog";
/// A block behind this comment is run.
const RUN: &str = "<!-- run -->";
/// Options of programs that are not ours.
const FOREIGN: [&str; 1] = ["--input-file"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the project is there")
}

/// The pages whose examples are run.
fn pages() -> [String; 2] {
    let recipes = root().join("config/recipes/README.md");
    [readme(), std::fs::read_to_string(recipes).expect("there are recipes")]
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("there is a README")
}

/// The fenced blocks of a language and whether they are marked to be run.
fn blocks(text: &str, language: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let (mut before, mut open) = ("", None::<(bool, bool, String)>);
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(opened)) => open = Some((opened == language, before == RUN, String::new())),
            (Some(_), Some("")) => {
                found.extend(open.take().and_then(|(ours, run, text)| ours.then_some((run, text))));
            }
            (Some((_, _, text)), _) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
        before = line;
    }
    found
}

/// The commands of a block, each with what is shown below it.
fn commands(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.into(), String::new())),
            (None, Some((_, shown))) => {
                shown.push_str(line);
                shown.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// Takes out how well something was compressed, which depends on this boot's uuids and on zstd's version.
fn comparable(text: &str) -> String {
    let line = |line: &str| match (line.split_once(" as "), line.split_once(" on disk), ")) {
        (Some((before, _)), Some((_, after))) => format!("{before} as ? on disk), {after}"),
        _ => line.trim_end().to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The back-quoted words of a table's row that begins with this cell.
fn row(text: &str, after: &str, cell: &str) -> Result<Vec<String>> {
    let (_, text) = text.split_once(after).with_context(|| format!("no {after}"))?;
    let start = format!("| {cell} |");
    let row = text.lines().find_map(|line| line.strip_prefix(&start)).with_context(|| start.clone())?;
    Ok(quoted(row))
}

fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn flowlog(arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let output = Command::new(binary()).args(arguments).output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8(said)?))
}

/// `flowlog check` of a text; everything it says.
fn check(text: &str) -> Result<(Option<i32>, String)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tasks.yaml");
    std::fs::write(&file, text)?;
    flowlog(&["check", file.to_str().context("a plain path")?])
}

#[test]
fn what_is_marked_to_be_run_prints_what_is_shown() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = folder.path().canonicalize()?;
    for name in ["config", "tests"] {
        symlink(root().join(name), here.join(name))?;
    }
    std::fs::create_dir(here.join("target"))?;
    let binary = binary();
    let bin = binary.parent().context("a folder")?.to_str().context("a plain path")?;
    let path = format!("{bin}:{}", std::env::var("PATH")?);
    let mut ran = 0;
    let pages = pages();
    let marked = pages.iter().flat_map(|page| blocks(page, "console")).filter(|(run, _)| *run);
    for (_, block) in marked {
        for (command, shown) in commands(&block) {
            let output = Command::new("sh")
                .args(["-c", &format!("{{ {command}\n}} 2>&1")])
                .current_dir(&here)
                .env("PATH", &path)
                .env_remove("SUDO_USER")
                .output()?;
            let said = String::from_utf8(output.stdout)?.replace(here.to_str().context("plain")?, PRETENDED);
            ensure!(
                comparable(&said) == comparable(&shown),
                "`{command}` says\n{said}\nbut the README shows\n{shown}"
            );
            let code = if command.contains("# exit code 1") { 1 } else { 0 };
            ensure!(output.status.code() == Some(code), "`{command}` ends with {}", output.status);
            ran += usize::from(command.starts_with("flowlog "));
        }
    }
    ensure!(ran >= 12, "only {ran} commands were run; does the mark {RUN} still stand before the blocks?");
    Ok(())
}

#[test]
fn every_task_file_shown_is_valid() -> Result<()> {
    let shown = blocks(&readme(), "yaml");
    ensure!(!shown.is_empty(), "no task file is shown");
    for (_, text) in shown {
        let (code, said) = check(&text)?;
        ensure!(code == Some(0) && !said.contains("warning"), "{said}\n{text}");
    }
    Ok(())
}

/// Each recipe is valid without a warning, tells what it is for, and is explained on the recipes' page.
#[test]
fn every_recipe_is_valid_and_told() -> Result<()> {
    let folder = root().join("config/recipes");
    let [_, page] = pages();
    let mut told = 0;
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_name().context("a name")?.to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        let (code, said) = flowlog(&["check", "--strict", path.to_str().context("a plain path")?])?;
        ensure!(code == Some(0) && !said.contains("warning"), "{said}");
        ensure!(page.contains(&format!("]({name})")), "{name} is not on the recipes' page");
        told += 1;
    }
    ensure!(told >= 10, "only {told} recipes");
    Ok(())
}

#[test]
fn the_record_shown_is_json_of_known_fields() -> Result<()> {
    let shown = blocks(&readme(), "json");
    let [(_, text)] = shown.as_slice() else { anyhow::bail!("one record is shown, not {}", shown.len()) };
    let record: serde_json::Value = serde_json::from_str(text)?;
    let known: BTreeSet<&str> = FIELDS.iter().map(|(_, path)| *path).collect();
    let mut unknown = Vec::new();
    let flow = record.get("flow").and_then(|flow| flow.as_object()).context("a flow")?;
    for (key, value) in flow {
        let keys: Vec<String> = match (key.as_str(), value) {
            ("extensions", value) => {
                let keys = value.get("value").and_then(|value| value.as_object()).context("a value")?;
                keys.keys().map(|below| format!("extensions.{below}")).collect()
            }
            ("l4", _) => Vec::new(),
            (_, serde_json::Value::Object(below)) => {
                below.keys().map(|below| format!("{key}.{below}")).collect()
            }
            _ => vec![key.clone()],
        };
        unknown.extend(keys.into_iter().filter(|path| !known.contains(path.as_str())));
    }
    ensure!(unknown.is_empty(), "the field table knows nothing of {unknown:?}");
    Ok(())
}

#[test]
fn every_key_of_the_extensions_is_explained() -> Result<()> {
    let text = readme();
    let (_, table) = text.split_once("| key of `extensions` |").context("the table")?;
    let table = table.split("\n\n").next().context("its end")?;
    let explained: BTreeSet<String> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(quoted)
        .collect();
    let known = FIELDS.iter().filter_map(|(_, path)| path.strip_prefix("extensions."));
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    ensure!(explained == known, "explained {explained:?}, there are {known:?}");
    Ok(())
}

#[test]
fn what_is_said_to_be_served_is_and_the_rest_is_not() -> Result<()> {
    let text = readme();
    let not = "\"not served by this version yet\"";
    let task = |more: &str| format!("flowLogs: [{{name: a, filePath: /var/log/flowlog/a.log, {more}}}]");
    for cell in ["served, Hubble's", "served, ours", not] {
        let keys = row(&text, "| keys of a task |", cell)?;
        ensure!(keys.len() >= 4, "{cell}: only {keys:?}");
        for key in keys.iter().filter(|key| !["name", "filePath"].contains(&key.as_str())) {
            let (_, said) = check(&task(&format!("{key}: [\"1\"]")))?;
            ensure!(!said.contains("unknown key"), "{said}");
            ensure!(said.contains("not served by this version yet") == (cell == not), "{key}: {said}");
        }
    }
    Ok(())
}

/// Words that begin with `--`.
fn options(text: &str) -> BTreeSet<&str> {
    let part = |c: char| c == '-' || c.is_ascii_lowercase();
    let words = text.split(|c| !part(c)).map(|word| word.trim_end_matches('-'));
    words.filter(|word| word.starts_with("--") && word.len() > 3).collect()
}

/// The words that follow `name` in code.
fn subcommands(text: &str, name: &str) -> BTreeSet<String> {
    let lines = ["sh", "console"].into_iter().flat_map(|language| blocks(text, language));
    let lines = lines.fold(String::new(), |all, (_, block)| all + "\n" + &block);
    let starts = [format!("`{name} "), format!("\n{name} "), format!("$ {name} "), format!("  {name} ")];
    let places = starts.iter().flat_map(|start| {
        let text = if start.starts_with('`') { text } else { &lines };
        text.split(start.as_str()).skip(1).collect::<Vec<_>>()
    });
    let word = |rest: &str| rest.split(|c: char| !c.is_ascii_lowercase()).next().map(str::to_owned);
    places.filter_map(word).filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_command_and_option_exists() -> Result<()> {
    let text = readme();
    let commands = subcommands(&text, "flowlog");
    ensure!(commands.len() >= 5, "only {commands:?} are named");
    let mut known = String::new();
    for command in commands {
        let (code, help) = flowlog(&[&command, "--help"])?;
        ensure!(code == Some(0), "`flowlog {command}` does not exist: {help}");
        known.push_str(&help);
    }
    // A command is a file, or a folder's mod.rs.
    let sources: Vec<String> = std::fs::read_dir(root().join("xtask/src"))?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            std::fs::read_to_string(if path.is_dir() { path.join("mod.rs") } else { path }).ok()
        })
        .collect();
    let sources = sources.concat();
    let commands = subcommands(&text, "cargo xtask");
    ensure!(commands.len() >= 3, "only {commands:?} are named");
    for command in commands {
        ensure!(sources.contains(&format!("name: \"{command}\"")), "`cargo xtask {command}` does not exist");
    }
    known.push_str(&sources);
    let known = options(&known);
    for option in options(&text) {
        ensure!(known.contains(option) || FOREIGN.contains(&option), "{option} does not exist");
    }
    Ok(())
}

#[test]
fn every_place_to_change_something_exists() -> Result<()> {
    let text = readme();
    let (_, table) = text.split_once("## Where do I change").context("the heading")?;
    let table = table.split("\n## ").next().context("its end")?;
    let paths: Vec<String> = quoted(table).into_iter().filter(|word| word.contains('/')).collect();
    ensure!(paths.len() > 20, "only {paths:?}");
    for path in paths {
        let place = root().join(&path);
        ensure!(if path.ends_with('/') { place.is_dir() } else { place.is_file() }, "{path} does not exist");
    }
    Ok(())
}

#[test]
fn every_link_leads_somewhere() -> Result<()> {
    let text = readme();
    let links: Vec<&str> = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|to| !to.contains("://"))
        .collect();
    ensure!(!links.is_empty(), "no link was found");
    for link in links {
        ensure!(root().join(link).is_file(), "{link} does not exist");
    }
    Ok(())
}
