//! `flowlog migrate`, as the hints of other commands ask for it: what is printed is run as it stands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;

const OLD: &str = "flowLogs:\n- {name: NAME, filePath: /var/log/flowlog/NAME.log}\n";
const DRAFT: &str = "apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {name: NAME}\nspec: {filters: [{protocol: [udp]}]}\n";
const NEW: &str = "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {name: NAME, filePath: /var/log/flowlog/NAME.log}\n";

fn text(form: &str, names: &[&str]) -> String {
    if form == DRAFT {
        return names.iter().map(|name| form.replace("NAME", name)).collect::<Vec<_>>().join("---\n");
    }
    let (header, task) = form.split_at(form.rfind("- {").unwrap_or_default());
    header.to_owned() + &names.iter().map(|name| task.replace("NAME", name)).collect::<String>()
}

/// Runs it from somewhere else.
fn check(sources: &[PathBuf], more: &[&str]) -> Result<Output> {
    let mut command = Command::new(binary());
    Ok(command.arg("check").args(sources).args(more).current_dir("/").output()?)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The commands that a text names.
fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    found.retain(|command| command.starts_with("flowlog "));
    found.sort_unstable();
    found.dedup();
    found
}

/// Runs a command as a person would who has copied it.
fn shell(command: &str) -> Result<String> {
    let program = binary();
    let folder = fs::canonicalize(&program)?.parent().context("a folder")?.to_owned();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh").arg("-c").arg(command).env("PATH", path).current_dir("/").output()?;
    ensure!(output.status.success(), "{command}: {}", said(&output));
    Ok(said(&output))
}

/// Files, what is given to `check`, and what else.
type Case = (&'static str, Vec<(&'static str, String)>, Vec<&'static str>, Vec<&'static str>);

fn cases() -> Vec<Case> {
    vec![
        ("plain", vec![("t/web.yaml", text(OLD, &["a", "b"]))], vec!["t"], vec![]),
        (
            "in part",
            vec![("t/web.yaml", text(OLD, &["a", "b"])), ("t/web.v1.yaml", text(NEW, &["b"]))],
            vec!["t"],
            vec![],
        ),
        ("a name", vec![("t/z.v1.yaml", text(OLD, &["a"]))], vec!["t"], vec![]),
        ("blanks", vec![("my tasks/it's.yaml", text(OLD, &["a"]))], vec!["my tasks"], vec![]),
        (
            "below",
            vec![("t/sub/web.yaml", text(OLD, &["a", "b"])), ("t/b.yaml", text(NEW, &["b"]))],
            vec!["t"],
            vec![],
        ),
        (
            "two",
            vec![("t/web.yaml", text(OLD, &["a", "b"])), ("u/b.yaml", text(NEW, &["b"]))],
            vec!["t", "u"],
            vec![],
        ),
        ("a file", vec![("t/web.yaml", text(OLD, &["a"]))], vec!["t/web.yaml"], vec![]),
        ("no extension", vec![("t/web", text(OLD, &["a", "b"]))], vec!["t/web"], vec![]),
        (
            "draft",
            vec![("t/web.yaml", text(DRAFT, &["a", "b"]))],
            vec!["t"],
            vec!["--log-root", "/var/log/my flows"],
        ),
        (
            "older twice",
            vec![("t/web.yaml", text(OLD, &["a", "b"])), ("t/x.yaml", text(DRAFT, &["a", "c"]))],
            vec!["t"],
            vec![],
        ),
    ]
}

fn laid(work: &Path, files: &[(&str, String)], sources: &[&str]) -> Result<Vec<PathBuf>> {
    for (name, text) in files {
        let file = work.join(name);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::write(file, text)?;
    }
    Ok(sources.iter().map(|source| work.join(source)).collect())
}

#[test]
fn each_hint_is_a_command_that_works() -> Result<()> {
    for (name, files, sources, more) in cases() {
        for switch in [&["--no-convert"][..], &[]] {
            let work = tempfile::tempdir()?;
            let mut sources = laid(work.path(), &files, &sources)?;
            let before = check(&sources, &[&more[..], switch].concat())?;
            ensure!(before.status.success() == switch.is_empty(), "{name}: {}", said(&before));
            let found = commands(&said(&before));
            ensure!(!found.is_empty(), "{name}: {}", said(&before));
            for command in &found {
                shell(command)?;
            }
            if sources.iter().any(|path| path.is_file()) {
                // As it says: what is written is to be named, too.
                ensure!(said(&before).contains("and name the file that it writes with --tasks, too"));
                let end = if name == "no extension" { "" } else { ".yaml" };
                sources.push(work.path().join(format!("t/web.v1{end}")));
            }
            let after = check(&sources, &[&more[..], &["--no-convert", "--strict"]].concat())?;
            // The draft has a filter that the other does not, which is told as long as both are there.
            let strict = name == "older twice" || after.status.success();
            ensure!(strict && !said(&after).contains("error:"), "{name}: {}", said(&after));
            ensure!(commands(&said(&after)).is_empty(), "{name}: {}", said(&after));
            for (file, text) in &files {
                ensure!(fs::read_to_string(work.path().join(file))? == *text, "{name}: {file} was changed");
            }
        }
    }
    Ok(())
}

#[test]
fn what_is_printed_is_what_is_written() -> Result<()> {
    for (name, files, sources, _) in cases() {
        let work = tempfile::tempdir()?;
        let sources = laid(work.path(), &files, &sources)?;
        let run = |more: &[&str]| -> Result<serde_json::Value> {
            let output = Command::new(binary())
                .arg("migrate")
                .args(&sources)
                .args(more)
                .args(["-o", "json"])
                .output()?;
            ensure!(output.status.success(), "{name}: {}", said(&output));
            Ok(serde_json::from_slice(&output.stdout)?)
        };
        let printed = run(&[])?;
        let written = run(&["--write"])?;
        let all = |answer: &serde_json::Value| answer["files"].as_array().cloned().unwrap_or_default();
        for (printed, written) in all(&printed).into_iter().zip(all(&written)) {
            ensure!(
                printed["text"] == written["text"] && printed["target"] == written["target"],
                "{name}: {written}"
            );
            if let (Some(target), Some(text)) = (written["target"].as_str(), written["text"].as_str()) {
                ensure!(
                    written["written"] == true && fs::read_to_string(target)? == text,
                    "{name}: {written}"
                );
            }
        }
        let again = run(&["--write"])?;
        ensure!(all(&again).iter().all(|one| one["outcome"] != "convert"), "{name}: {again}");
    }
    Ok(())
}

/// What stands beside is known to `migrate` and not to `check`, which says so instead of naming a command that does nothing.
#[test]
fn a_newer_file_that_was_not_named_is_told_of() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (old, new) = (folder.path().join("web.yaml"), folder.path().join("web.v1.yaml"));
    fs::write(&old, text(OLD, &["a", "b"]))?;
    shell(&format!("flowlog migrate {} --write", old.display()))?;
    let kept = fs::read_to_string(&new)?.replace("- {name: b, filePath: /var/log/flowlog/b.log}\n", "");
    fs::write(&new, kept)?;
    let hint = format!(
        "{} is there beside it and not among the paths that were given, so it does not count: name it, too, or its folder",
        new.display()
    );
    for more in [&[][..], &["--no-convert"]] {
        let found = said(&check(std::slice::from_ref(&old), more)?);
        // For each of the two tasks, and no command.
        ensure!(found.matches(&hint).count() == 2 && commands(&found).is_empty(), "{found}");
        // Done as it says: both agree.
        for paths in [&[old.clone(), new.clone()][..], &[folder.path().to_owned()]] {
            let found = said(&check(paths, more)?);
            let removed =
                found.contains("`b` stands in ") && found.contains("it was removed there and does not run");
            ensure!(removed && !found.contains(&hint), "{found}");
        }
    }
    let found = shell(&format!("flowlog migrate {}", old.display()))?;
    ensure!(found.contains("was converted into") && found.contains("`b` stands in "), "{found}");
    Ok(())
}

/// Where a draft writes is the same folder from wherever the command that is printed is run.
#[test]
fn a_log_root_may_be_given_from_the_working_folder() -> Result<()> {
    let work = tempfile::tempdir()?;
    laid(work.path(), &[("t/web.yaml", text(DRAFT, &["a"]))], &[])?;
    let program = fs::canonicalize(binary())?;
    for root in ["logs", "./logs", "logs/"] {
        let output = Command::new(&program)
            .args(["check", "t", "--log-root", root])
            .current_dir(work.path())
            .output()?;
        let found = said(&output);
        let expected = work.path().join("logs/a.log");
        ensure!(
            output.status.success() && found.contains(&format!("task a: {}", expected.display())),
            "{root}: {found}"
        );
        let all = commands(&found);
        ensure!(all.len() == 1, "{found}");
        shell(&all[0])?;
        let new = work.path().join("t/web.v1.yaml");
        let written = fs::read_to_string(&new)?;
        ensure!(written.contains(&format!("filePath: \"{}\"", expected.display())), "{written}");
        fs::remove_file(new)?;
    }
    Ok(())
}
