//! A folder with old and new forms of tasks, under a running daemon.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::{Daemon, binary};
use flowlog_tests::netns::FAR;
use flowlog_tests::records::all;
use flowlog_tests::traffic::udp;
use serde_json::Value;

use crate::site::Site;

const CHANGED: &str = "the tasks have changed";

impl Site {
    /// Hubble's form of a task that takes one port.
    fn hubble(&self, port: u16) -> String {
        let path = self.path("logs").join("web.log");
        format!(
            "# Kept by hand.\nflowLogs:\n  - name: web # the shop\n    filePath: {}\n    includeFilters:\n      - destination_port: \
             [\"{port}\"]\n",
            path.display()
        )
    }

    fn audit(&self, event: &str) -> Result<Vec<Value>> {
        let text = fs::read_to_string(self.path("state").join("audit.log"))?;
        let lines = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        Ok(lines.into_iter().filter(|line| line["event"] == event).collect())
    }

    /// What `flowlog status` says of the task's form: the form, and the condition's message.
    fn form(&self) -> Result<(String, String)> {
        let status: Value = serde_json::from_str(&self.status(&["-o", "json"])?)?;
        let task = status["tasks"].as_array().and_then(|tasks| tasks.first()).context("a task")?.clone();
        let conditions = task["conditions"].as_array().context("conditions")?;
        let current =
            conditions.iter().find(|one| one["type"] == "Current").context("the form's condition")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok((text(&task["form"]), text(&current["message"])))
    }

    fn ports(&self) -> Result<Vec<u64>> {
        let records = all(&self.path("logs"), "web-")?;
        let mut ports: Vec<u64> = records
            .iter()
            .filter_map(|record| record.0["flow"]["l4"]["UDP"]["destination_port"].as_u64())
            .collect();
        ports.retain(|port| (7_000..8_000).contains(port));
        ports.dedup();
        Ok(ports)
    }
}

fn flowlog(arguments: &[&str]) -> Result<String> {
    let output = Command::new(binary()).args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{arguments:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

fn plain(path: &Path) -> Result<&str> {
    path.to_str().context("a plain path")
}

#[test]
fn an_old_form_runs_is_migrated_conflicts_and_is_there_on_the_way_back() -> Result<()> {
    let bench = Site::new()?;
    let (old, new) = (bench.path("tasks").join("web.yaml"), bench.path("tasks").join("web.v1.yaml"));
    let text = bench.hubble(7_001);
    fs::write(&old, &text)?;
    let mut daemon = bench.start(&[])?;
    let send = |port: u16| udp(&bench.pair, format!("{FAR}:{port}").parse()?, 5, 100);

    // Converted when it was read, and told where to go from here.
    send(7_001)?;
    let (form, message) = bench.form()?;
    ensure!(form == "hubble" && message.contains("it may be deleted once"), "{form}: {message}");

    // Migrated: the new form counts, the task notices nothing, the old file is as it was.
    flowlog(&["migrate", plain(&bench.path("tasks"))?, "--write"])?;
    let written = fs::read_to_string(&new)?;
    ensure!(written.contains("# Kept by hand.") && written.contains("# the shop"), "{written}");
    ensure!(fs::read_to_string(&old)? == text);
    daemon.signal(rustix::process::Signal::HUP)?;
    send(7_001)?;
    while bench.form()?.0 != "v1" {
        std::thread::yield_now();
    }
    let (_, message) = bench.form()?;
    ensure!(message.contains("web.yaml says the same in Hubble's form"), "{message}");
    ensure!(bench.audit("changed")?.is_empty(), "{:?}", bench.audit("changed")?);
    // Done once: again there is nothing to do.
    flowlog(&["migrate", plain(&bench.path("tasks"))?, "--write"])?;
    ensure!(fs::read_to_string(&new)? == written);

    // The conflict: the two say different things, the new one counts, and the difference is told.
    fs::write(&new, written.replace("7001", "7002"))?;
    daemon.wait_for("says something else")?;
    daemon.wait_for(CHANGED)?;
    send(7_001)?;
    send(7_002)?;
    // audit.log is written beside what it tells of.
    crate::lifecycle::until("the difference in audit.log", || {
        let noticed = bench.audit("file_noticed")?;
        let shown = noticed.last().map(ToString::to_string).unwrap_or_default();
        Ok(shown.contains("7001") && shown.contains("7002"))
    })?;

    // The way back: without the new file the old one runs.
    fs::remove_file(&new)?;
    daemon.wait_for(CHANGED)?;
    send(7_001)?;
    send(7_002)?;
    let form = bench.form()?.0;
    ensure!(form == "hubble", "{form}");
    ensure!(fs::read_to_string(&old)? == text);
    daemon.stop()?.check()?;
    // 7001 in force; then 7002 alone; then 7001 again: never both at once.
    let ports = bench.ports()?;
    ensure!(ports.contains(&7_001) && ports.contains(&7_002), "{ports:?}");
    let converted = bench.audit("file_converted")?;
    ensure!(converted.len() == 1, "converted once: {converted:?}");

    // Another start knows the mark.
    bench.start(&[])?.stop()?.check()?;
    ensure!(bench.audit("file_converted")?.len() == 1);
    Ok(())
}

#[test]
fn with_the_switch_older_forms_are_refused_until_they_are_migrated() -> Result<()> {
    let bench = Site::new()?;
    let old = bench.path("tasks").join("web.yaml");
    fs::write(&old, bench.hubble(7_003))?;
    let refused =
        Daemon::spawn(&bench.pair.near, &bench.path("tasks"), &bench.path("logs"), &["--no-convert"])?
            .wait()?;
    let said = refused.log.join("\n");
    let command = format!("run `flowlog migrate {} --write`", old.display());
    ensure!(!refused.status.success() && said.contains(&command), "{said}");

    // Exactly what it said.
    flowlog(&["migrate", plain(&old)?, "--write"])?;
    let daemon = bench.start(&["--no-convert"])?;
    udp(&bench.pair, format!("{FAR}:7003").parse()?, 5, 100)?;
    ensure!(bench.form()?.0 == "v1");
    daemon.stop()?.check()?;
    ensure!(bench.ports()?.contains(&7_003), "{:?}", bench.ports()?);
    Ok(())
}

/// A draft does not say where it writes: made into v1 for another log root, that is outside of this one's.
#[test]
fn a_newer_form_that_is_refused_is_told_and_the_older_one_goes_on_also_over_a_restart() -> Result<()> {
    let bench = Site::new()?;
    let draft = "apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {name: web}\nspec:\n  filters:\n  - destination_port: \
                 [\"7004\"]\n";
    fs::write(bench.path("tasks").join("web.yaml"), draft)?;
    let check = || -> Result<()> {
        udp(&bench.pair, format!("{FAR}:7004").parse()?, 5, 100)?;
        let (form, message) = bench.form()?;
        ensure!(form == "v1alpha1-flowlog" && message.contains("and is refused"), "{form}: {message}");
        let status: Value = serde_json::from_str(&bench.status(&["-o", "json"])?)?;
        let task = &status["tasks"][0];
        let path = bench.path("logs").join("web.log.zst");
        ensure!(task["path"].as_str() == path.to_str(), "{task}");
        let accepted =
            task["conditions"].as_array().and_then(|all| all.iter().find(|one| one["type"] == "Accepted"));
        let said = accepted.context("the condition")?.to_string();
        ensure!(said.contains("/elsewhere/web.log") && said.contains("\"status\":false"), "{said}");
        Ok(())
    };
    let mut daemon = bench.start(&[])?;
    flowlog(&["migrate", plain(&bench.path("tasks"))?, "--write", "--log-root", "/elsewhere"])?;
    daemon.wait_for("refused, everything else goes on")?;
    check()?;
    daemon.stop()?.check()?;
    let daemon = bench.start(&[])?;
    check()?;
    daemon.stop()?.check()?;
    ensure!(bench.ports()?.contains(&7_004), "{:?}", bench.ports()?);
    Ok(())
}

/// Two tasks in one old file; of its newer form one is taken out, and somebody else asks for the name of the other.
#[test]
fn what_was_removed_stays_so_and_a_name_stays_with_its_owner_over_a_restart() -> Result<()> {
    let bench = Site::new()?;
    let logs = bench.path("logs");
    let task = |name: &str, file: &str, port: u16| {
        let path = logs.join(file);
        format!(
            "- name: {name}\n  filePath: {}\n  includeFilters: [{{destination_port: [\"{port}\"]}}]\n",
            path.display()
        )
    };
    let (old, new) = (bench.path("tasks").join("web.yaml"), bench.path("tasks").join("web.v1.yaml"));
    fs::write(
        &old,
        format!("flowLogs:\n{}{}", task("web", "web.log", 7_005), task("api", "api.log", 7_006)),
    )?;
    flowlog(&["migrate", plain(&old)?, "--write"])?;
    let mut daemon = bench.start(&[])?;
    let text = fs::read_to_string(&new)?;
    let (kept, _) = text.split_once("- name: api").context("the second task")?;
    fs::write(&new, kept)?;
    daemon.wait_for("`api` stands in ")?;
    daemon.wait_for(CHANGED)?;
    // First in byte order, which would have the name if nobody had it yet.
    fs::write(bench.path("tasks").join("a.yaml"), format!("flowLogs:\n{}", task("web", "other.log", 7_007)))?;
    daemon.wait_for("refused, everything else goes on")?;
    let check = |daemon: Daemon, file: &Path| -> Result<()> {
        for port in [7_005, 7_006, 7_007] {
            udp(&bench.pair, format!("{FAR}:{port}").parse()?, 5, 100)?;
        }
        let status: Value = serde_json::from_str(&bench.status(&["-o", "json"])?)?;
        let tasks = status["tasks"].as_array().context("tasks")?;
        let of_web = tasks.iter().filter(|task| task["task"] == "web").collect::<Vec<_>>();
        ensure!(of_web.len() == 1 && of_web[0]["file"].as_str() == file.to_str(), "{tasks:?}");
        daemon.stop()?.check()
    };
    check(daemon, &new)?;
    check(bench.start(&[])?, &new)?;
    // Renamed while nothing runs, and what it was made of deleted.
    let renamed = bench.path("tasks").join("z.yaml");
    fs::rename(&new, &renamed)?;
    fs::remove_file(&old)?;
    check(bench.start(&[])?, &renamed)?;
    let found = |stem: &str, port: u16| -> Result<usize> {
        let of_port = |record: &&flowlog_tests::records::Record| {
            record.0["flow"]["l4"]["UDP"]["destination_port"].as_u64() == Some(port.into())
        };
        Ok(all(&logs, stem)?.iter().filter(of_port).count())
    };
    // Sent in each run; nothing of what does not run.
    let counts = [found("web-", 7_005)?, found("api-", 7_006)?, found("other-", 7_007)?];
    ensure!(counts[0] >= 3 && counts[1..] == [0, 0], "{counts:?}");
    Ok(())
}
