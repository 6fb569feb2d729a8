//! Pools of addresses where nothing is captured: recorded flows, and what is said of files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Result, ensure};
use flowlog_tests::daemon::binary;
use serde_json::{Value, json};

const POOL: &str = "apiVersion: cilium.io/v2\nkind: CiliumPodIPPool\nmetadata: {name: green}\nspec: {ipv4: {maskSize: 28, cidrs: \
                    [{cidr: 10.0.0.0/24, reservedRange: 10.0.0.0-10.0.0.9}]}}\n";

/// By address of the sender: reserved, open, elsewhere, and one that somebody else has given a label.
const FLOWS: [&str; 4] = [
    r#"{"flow":{"verdict":"FORWARDED","IP":{"source":"10.0.0.9","destination":"192.0.2.1"},"source":{"identity":2,"labels":["reserved:world"]}}}"#,
    r#"{"flow":{"verdict":"FORWARDED","IP":{"source":"10.0.0.10","destination":"192.0.2.1"}}}"#,
    r#"{"flow":{"verdict":"FORWARDED","IP":{"source":"10.0.1.0","destination":"192.0.2.1"}}}"#,
    r#"{"flow":{"verdict":"FORWARDED","IP":{"source":"10.0.0.11","destination":"192.0.2.1"},"source":{"labels":["pool:old"]}}}"#,
];

fn flowlog(arguments: &[&str]) -> Result<Output> {
    Ok(Command::new(binary()).args(arguments).output()?)
}

fn tasks(folder: &Path) -> String {
    let of = |name: &str, keys: &str| {
        format!("- {{name: {name}, filePath: {}/{name}.log, {keys}}}\n", folder.display())
    };
    [
        "flowLogs:\n".to_owned(),
        of("label", "fileCompress: false, includeFilters: [{source_label: ['pool:green']}]"),
        of("reserved", "fileCompress: false, includeFilters: [{source_label: ['pool:green=reserved']}]"),
        of("where", "fileCompress: false, where: {source_pool: [green, '!green=reserved']}"),
        of("all", "fileCompress: false"),
    ]
    .concat()
}

#[test]
fn recorded_flows_have_the_labels_of_their_pools() -> Result<()> {
    let work = tempfile::tempdir()?;
    let path = |name: &str| work.path().join(name).to_string_lossy().into_owned();
    let (task_file, pool_file, flows) = (path("t.yaml"), path("p.yaml"), path("flows.jsonl"));
    fs::write(&task_file, tasks(work.path()))?;
    fs::write(&pool_file, POOL)?;
    fs::write(&flows, FLOWS.map(|flow| format!("{flow}\n")).concat())?;
    let expected = [
        vec!["label", "reserved", "all"],
        vec!["label", "where", "all"],
        vec!["all"],
        // The addresses are what `where` asks for, whatever others have called them.
        vec!["where", "all"],
    ];
    for (flow, expected) in FLOWS.iter().zip(&expected) {
        let output = flowlog(&[
            "explain", "--tasks", &task_file, "--pools", &pool_file, "--flow", flow, "-o", "json",
        ])?;
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        ensure!(answer["tasks"] == json!(expected), "{flow}: {answer}");
    }
    let out = path("out");
    let output = flowlog(&[
        "replay",
        "--flows",
        &flows,
        "--tasks",
        &task_file,
        "--pools",
        &pool_file,
        "--output-dir",
        &out,
    ])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = |task: &str| flows_of(Path::new(&out), task);
    for task in ["label", "reserved", "where", "all"] {
        let wanted = expected.iter().filter(|tasks| tasks.contains(&task)).count();
        ensure!(lines(task)?.len() == wanted, "{task}: {:?}", lines(task)?);
    }
    let labels: Vec<Value> =
        lines("all")?.iter().map(|line| line["flow"]["source"]["labels"].clone()).collect();
    let right = [
        json!(["pool:green=reserved", "reserved:world"]),
        json!(["pool:green"]),
        Value::Null,
        json!(["pool:old"]),
    ];
    ensure!(labels == right, "{labels:?}");
    Ok(())
}

#[test]
fn without_pools_recorded_flows_go_on_as_they_came() -> Result<()> {
    let work = tempfile::tempdir()?;
    let path = |name: &str| work.path().join(name).to_string_lossy().into_owned();
    let (task_file, flows, out) = (path("t.yaml"), path("flows.jsonl"), path("out"));
    let task = format!("flowLogs:\n- {{name: all, filePath: {}, fileCompress: false}}\n", path("all.log"));
    fs::write(&task_file, task)?;
    fs::write(&flows, FLOWS.map(|flow| format!("{flow}\n")).concat())?;
    let output = flowlog(&["replay", "--flows", &flows, "--tasks", &task_file, "--output-dir", &out])?;
    ensure!(output.status.success());
    let came: Vec<Value> = FLOWS.iter().map(|flow| serde_json::from_str(flow)).collect::<Result<_, _>>()?;
    let went = flows_of(Path::new(&out), "all")?;
    let flow = |line: &Value| line["flow"].clone();
    ensure!(went.iter().map(flow).eq(came.iter().map(flow)), "{went:?}");
    Ok(())
}

/// The flows in a task's file.
fn flows_of(folder: &Path, task: &str) -> Result<Vec<Value>> {
    let mut flows = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&format!("{task}-")) {
            let text = fs::read_to_string(entry.path())?;
            let read = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
            flows.extend(read.into_iter().filter(|line| line["flow"].is_object()));
        }
    }
    Ok(flows)
}

#[test]
fn explain_takes_older_forms_as_the_daemon_does() -> Result<()> {
    let work = tempfile::tempdir()?;
    let file = work.path().join("t.yaml");
    fs::write(&file, "apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {name: web}\nspec: {}\n")?;
    let run = |more: &[&str]| -> Result<String> {
        let output = Command::new(binary()).arg("explain").arg("--tasks").arg(&file).args(more).output()?;
        Ok(String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?)
    };
    let said = run(&["--normal", "--log-root", "/srv/logs"])?;
    ensure!(said.contains("/srv/logs/web.log"), "{said}");
    let said = run(&["--kernel", "--no-convert"])?;
    ensure!(
        said.contains(
            "this is flowlog.io/v1alpha1 (FlowLog), and --no-convert was given; run `flowlog migrate "
        ),
        "{said}"
    );
    Ok(())
}

#[test]
fn files_of_pools_are_not_called_tasks() -> Result<()> {
    let work = tempfile::tempdir()?;
    let path = |name: &str| work.path().join(name).to_string_lossy().into_owned();
    fs::write(path("t.yaml"), "flowLogs: []\n")?;
    fs::create_dir(path("empty"))?;
    fs::write(path("nothing.yaml"), "# to come\n")?;
    for (pools, expected) in [
        ("empty", "in this folder, so it has no pools"),
        ("nothing.yaml", "nothing stands in this file; add a pool, or remove the file"),
        ("not there", "no such file or directory (os error 2); check the path"),
    ] {
        let output = flowlog(&["check", &path("t.yaml"), "--pools", &path(pools)])?;
        let said = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
        ensure!(said.contains(expected) && !said.contains("task"), "{said}");
    }
    Ok(())
}
