//! `flowlog explain`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use serde_json::{Value, json};

const TASKS: &str = r#"flowLogs:
- {name: all, filePath: /l/all.log}
- {name: web, filePath: /l/web.log, includeFilters: [{source_pod: [x/]}, {destination_port: ["443"], verdict: [DROPPED]}]}
- {name: not, filePath: /l/not.log, excludeFilters: [{verdict: [AUDIT]}, {source_ip: [10.0.0.0/8]}]}
"#;

const FLOW: &str =
    r#"{"flow":{"verdict":"DROPPED","IP":{"source":"10.1.2.3"},"l4":{"TCP":{"destination_port":443}}}}"#;
const BARE: &str =
    r#"{"verdict":"FORWARDED","IP":{"source":"192.0.2.1"},"l4":{"TCP":{"destination_port":443}}}"#;

fn explain(tasks: &Path, arguments: &[&str], stdin: &str) -> Result<Output> {
    let mut command = Command::new(binary());
    command.arg("explain").arg("--tasks").arg(tasks).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().context("stdin")?.write_all(stdin.as_bytes())?;
    Ok(child.wait_with_output()?)
}

#[test]
fn which_tasks_take_a_flow_and_by_which_clause() -> Result<()> {
    let work = tempfile::tempdir()?;
    let tasks = work.path().join("t.yaml");
    std::fs::write(&tasks, TASKS)?;

    let output = explain(&tasks, &["--flow", FLOW], "")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "task all takes it: there are no includeFilters, so everything is included\n\
         task web takes it: includeFilters[1] holds\n\
         task not leaves it: excludeFilters[1] holds\n";
    ensure!(output.stdout == expected.as_bytes(), "{}", String::from_utf8_lossy(&output.stdout));

    let output = explain(&tasks, &["--flow", "-", "-o", "json"], &format!("{FLOW}\n{BARE}\n"))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Value> = String::from_utf8(output.stdout)?
        .lines()
        .map(serde_json::from_str)
        .collect::<serde_json::Result<_>>()?;
    let tasks_of = |at: usize| answers.get(at).map(|answer| answer["tasks"].clone());
    ensure!(
        tasks_of(0) == Some(json!(["all", "web"])) && tasks_of(1) == Some(json!(["all", "not"])),
        "{answers:?}"
    );
    let clause = "includeFilters[0].source_pod does not hold, includeFilters[1].verdict does not hold";
    ensure!(answers.len() == 2 && answers[1]["clauses"]["web"] == clause, "{answers:?}");

    let output = explain(&tasks, &["--flow", "-", "-o", "json"], &format!("{FLOW}\nno\n{FLOW}\n"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(1) && said.contains("-:2: ") && said.contains("1 of 3 lines"),
        "{said}"
    );
    ensure!(String::from_utf8(output.stdout)?.lines().count() == 2);

    let output = explain(&tasks, &["--flow", "{\"flow\":{\"verdict\":\"DROPED\"}}"], "")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && said.contains("did you mean `DROPPED`?"), "{said}");
    Ok(())
}

#[test]
fn what_the_kernel_tests() -> Result<()> {
    let work = tempfile::tempdir()?;
    let tasks = work.path().join("t.yaml");
    std::fs::write(
        &tasks,
        TASKS.replace("verdict: [DROPPED]}]", "verdict: [DROPPED]}], where: {bytes: '>1'}"),
    )?;
    let output = explain(&tasks, &["--kernel"], "")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "task all: the kernel tests nothing; left to userspace: nothing\n\
         task web: the kernel tests includeFilters[1].destination_port; left to userspace: includeFilters[0].source_pod, \
         includeFilters[1].verdict, where.bytes\n\
         task not: the kernel tests nothing; left to userspace: excludeFilters[0], excludeFilters[1]\n";
    ensure!(output.stdout == expected.as_bytes(), "{}", String::from_utf8_lossy(&output.stdout));
    let output = explain(&tasks, &["--kernel", "-o", "json"], "")?;
    let lines = String::from_utf8(output.stdout)?;
    let second: Value = serde_json::from_str(lines.lines().nth(1).context("a second line")?)?;
    ensure!(
        second["task"] == "web" && second["kernel"] == json!(["includeFilters[1].destination_port"]),
        "{second}"
    );
    Ok(())
}
