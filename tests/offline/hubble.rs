//! `flowlog replay --flows` and `flowlog check` against the real Hubble's verdicts, masks and refusals (generated with
//! Cilium 1.19.4's own code), where its cases lie beside the workspace.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;
use flowlog_tests::records::files;
use serde_json::Value;

/// A file of the cases; `None`, saying so, where there are none.
pub(crate) fn cases(file: &str) -> Option<PathBuf> {
    let given = std::env::var_os("FLOWLOG_HUBBLE_CASES").map(PathBuf::from);
    let folder =
        given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/hubble-cases"));
    let path = folder.join(file);
    if path.is_file() {
        return Some(path);
    }
    println!("skipped: no {file} at {}: set FLOWLOG_HUBBLE_CASES to run this test", folder.display());
    None
}

fn replay(flows: &Path, tasks: &Path, out: &Path) -> Result<Output> {
    let mut command = Command::new(binary());
    command.args(["replay", "-o", "json", "--flows"]).arg(flows).arg("--tasks").arg(tasks);
    Ok(command.arg("--output-dir").arg(out).output()?)
}

fn succeeded(output: &Output) -> Result<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    let ledger: Value = serde_json::from_slice(&output.stdout).context("the ledger")?;
    ensure!(ledger["closes"] == true, "{}", ledger["sums"]);
    Ok(ledger)
}

/// The plain text of each task's files, by task: `zstd` decompresses, not flowlog.
fn written(folder: &Path) -> Result<HashMap<String, String>> {
    let mut texts: HashMap<String, String> = HashMap::new();
    for file in files(folder)? {
        let name = file.file_name().context("a name")?.to_string_lossy().into_owned();
        let task = name.split(['-', '.']).next().unwrap_or_default().to_owned();
        let text = if name.ends_with(".zst") {
            let output = Command::new("zstd").args(["-dcq"]).arg(&file).output()?;
            ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout)?
        } else {
            std::fs::read_to_string(&file)?
        };
        texts.entry(task).or_default().push_str(&text);
    }
    Ok(texts)
}

#[test]
fn every_verdict_is_hubbles() -> Result<()> {
    let (Some(flows), Some(tasks), Some(expected)) =
        (cases("flows.jsonl"), cases("tasks.yaml"), cases("expected.jsonl"))
    else {
        return Ok(());
    };
    let work = tempfile::tempdir()?;
    let out = work.path().join("out");
    succeeded(&replay(&flows, &tasks, &out)?)?;

    let flows = std::fs::read_to_string(flows)?;
    let mut numbers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, line) in flows.lines().enumerate() {
        numbers.entry(line).or_default().push(number);
    }
    let mut got: HashMap<usize, BTreeSet<String>> = HashMap::new();
    for (task, text) in written(&out)? {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for line in text.lines() {
            // Unmasked, a line comes out as it went in, and as often.
            let numbers =
                numbers.get(line).with_context(|| format!("{task} wrote what no flow is: {line}"))?;
            let again = seen.entry(line).or_default();
            let number = numbers.get(*again).with_context(|| format!("{task} wrote too often: {line}"))?;
            *again += 1;
            got.entry(*number).or_default().insert(task.clone());
        }
    }
    let text = std::fs::read_to_string(&tasks)?;
    let count = text.lines().filter(|line| line.starts_with("- name: ")).count();
    let mut verdicts = 0;
    for (number, line) in std::fs::read_to_string(expected)?.lines().enumerate() {
        let expected: BTreeSet<String> = serde_json::from_str(line)?;
        let got = got.remove(&number).unwrap_or_default();
        ensure!(
            got == expected,
            "flow {}: tasks {:?} differ: {}",
            number + 1,
            got.symmetric_difference(&expected).collect::<Vec<_>>(),
            flows.lines().nth(number).unwrap_or_default()
        );
        verdicts += count;
    }
    println!("{verdicts} verdicts compared");
    ensure!(verdicts >= 100_000, "only {verdicts} verdicts");
    Ok(())
}

#[test]
fn every_mask_is_hubbles_to_the_byte() -> Result<()> {
    let (Some(flows), Some(masked)) = (cases("flows.jsonl"), cases("masked.jsonl")) else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let cases: Vec<Value> = std::fs::read_to_string(masked)?
        .lines()
        .map(serde_json::from_str)
        .collect::<serde_json::Result<_>>()?;
    let mut tasks = String::from("flowLogs:\n");
    for (number, case) in cases.iter().enumerate() {
        writeln!(
            tasks,
            "- {{name: m{number}, filePath: /l/m{number}.log, fieldMask: {}, ",
            case["fieldMask"]
        )?;
        writeln!(tasks, "   fieldMaskExact: true}}")?;
    }
    let first = cases.first().context("no masks")?["lines"].as_array().context("lines")?.len();
    let some: String =
        std::fs::read_to_string(flows)?.lines().take(first).flat_map(|line| [line, "\n"]).collect();
    let (flows, path) = (work.path().join("flows.jsonl"), work.path().join("tasks.yaml"));
    std::fs::write(&flows, some)?;
    std::fs::write(&path, tasks)?;
    let out = work.path().join("out");
    succeeded(&replay(&flows, &path, &out)?)?;
    let written = written(&out)?;
    for (number, case) in cases.iter().enumerate() {
        let expected: String = case["lines"]
            .as_array()
            .context("lines")?
            .iter()
            .flat_map(|line| [line.as_str().unwrap_or_default(), "\n"])
            .collect();
        let got = written.get(&format!("m{number}")).map_or("", String::as_str);
        ensure!(got == expected, "{}:\n{got}\nexpected:\n{expected}", case["fieldMask"]);
    }
    Ok(())
}

#[test]
fn every_refused_filter_is_refused_with_field_and_value() -> Result<()> {
    let Some(refused) = cases("rejected-filters.jsonl") else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let path = work.path().join("tasks.yaml");
    for case in std::fs::read_to_string(refused)?.lines() {
        std::fs::write(
            &path,
            format!("flowLogs:\n- {{name: a, filePath: /var/log/flowlog/a, includeFilters: [{case}]}}\n"),
        )?;
        let output = Command::new(binary()).args(["check", "-o", "json"]).arg(&path).output()?;
        ensure!(output.status.code() == Some(1), "{case}");
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        let errors = answer["errors"].as_array().context("errors")?;
        let filter: Value = serde_json::from_str(case)?;
        let named = |error: &Value| {
            let (key, message) = (error["key"].as_str()?, error["message"].as_str()?);
            let field = key.strip_prefix("flowLogs[0].includeFilters[0].")?.split('[').next()?;
            let values = filter.get(field)?.as_array()?;
            let value = |value: &Value| match value {
                Value::String(text) => message.contains(&format!("`{text}`")),
                other => other.as_object().is_some_and(|map| map.keys().all(|key| message.contains(key))),
            };
            Some(values.iter().any(value))
        };
        ensure!(
            !errors.is_empty() && errors.iter().all(|error| named(error) == Some(true)),
            "{case}: {answer}"
        );
    }
    Ok(())
}

/// Lines that are no flows pass filters by their own rules, and no mask.
#[test]
fn other_events_pass_as_in_hubble() -> Result<()> {
    let lost = r#"{"lost_events":{"source":"PERF_EVENT_RING_BUFFER","num_events_lost":"12","cpu":0},"node_name":"n","time":"2026-03-14T09:26:54Z"}"#;
    let agent = r#"{"agent_event":{"type":"AGENT_STARTED","agent_start":{"time":"2026-03-14T09:26:54Z"}},"node_name":"n","time":"2026-03-14T09:26:54Z"}"#;
    let debug = r#"{"debug_event":{"type":"DBG_CT_VERDICT","source":{"ID":5},"hash":7,"message":"<m>","cpu":1},"node_name":"n","time":"2026-03-14T09:26:54Z"}"#
        .replace("<m>", r"\u003cm\u003e");
    let status = r#"{"node_status":{"state_change":"NODE_GONE","node_names":["n"]},"node_name":"n","time":"2026-03-14T09:26:54Z"}"#;
    let flow = r#"{"flow":{"time":"2026-03-14T09:26:54Z","verdict":"FORWARDED","event_type":{"type":4}},"time":"2026-03-14T09:26:54Z"}"#;
    let work = tempfile::tempdir()?;
    let (path, tasks, out) = (work.path().join("f"), work.path().join("t.yaml"), work.path().join("out"));
    std::fs::write(
        &path,
        [lost, agent, debug.as_str(), status, flow].map(|line| format!("{line}\n")).concat(),
    )?;
    let table: &[(&str, &[&str])] = &[
        ("includeFilters: []", &[lost, agent, debug.as_str(), status, flow]),
        ("includeFilters: [{}]", &[lost, agent, debug.as_str(), status, flow]),
        ("includeFilters: [{verdict: [FORWARDED]}]", &[flow]),
        ("includeFilters: [{event_type: [{type: 130}]}]", &[lost, agent]),
        ("includeFilters: [{event_type: [{type: 130, match_sub_type: true, sub_type: 3}]}]", &[lost]),
        (
            "includeFilters: [{event_type: [{type: 2, match_sub_type: true, sub_type: 15}]}]",
            &[lost, debug.as_str()],
        ),
        ("includeFilters: [{event_type: [{type: 4}]}]", &[lost, flow]),
        ("includeFilters: [{source_label: ['!app']}]", &[lost, agent, debug.as_str(), status, flow]),
        ("includeFilters: [{encrypted: [false]}]", &[flow]),
        ("excludeFilters: [{verdict: [FORWARDED]}]", &[lost, agent, debug.as_str(), status]),
        (
            "fieldMaskExact: true, fieldMask: [verdict], excludeFilters: [{verdict: [FORWARDED]}]",
            &[lost, agent, debug.as_str(), status],
        ),
    ];
    let text: String = table
        .iter()
        .enumerate()
        .map(|(number, (keys, _))| format!("- {{name: t{number}, filePath: /l/t{number}.log, {keys}}}\n"))
        .collect();
    std::fs::write(&tasks, format!("flowLogs:\n{text}"))?;
    succeeded(&replay(&path, &tasks, &out)?)?;
    let written = written(&out)?;
    for (number, (keys, expected)) in table.iter().enumerate() {
        let expected: String = expected.iter().map(|line| format!("{line}\n")).collect();
        let got = written.get(&format!("t{number}")).map_or("", String::as_str);
        ensure!(got == expected, "{keys}:\n{got}\nexpected:\n{expected}");
    }
    Ok(())
}

/// Logs of ours, compressed and from stdin, come out as they went in; a line that is no event is told with its place,
/// counted and passed over.
#[test]
fn compressed_logs_stdin_and_bad_lines() -> Result<()> {
    let good = r#"{"flow":{"time":"2026-03-14T09:26:54Z","extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"event":"end","bytes":12,"rtt":0.5}}},"time":"2026-03-14T09:26:54Z"}"#;
    let work = tempfile::tempdir()?;
    let (plain, tasks) = (work.path().join("f"), work.path().join("t.yaml"));
    std::fs::write(
        &tasks,
        "flowLogs:\n- {name: a, filePath: /l/a.log}\n- {name: b, filePath: /l/b.log, fieldMask: [extensions.bytes]}\n",
    )?;
    std::fs::write(&plain, format!("{good}\n"))?;
    ensure!(Command::new("zstd").arg("-q").arg(&plain).status()?.success());
    let packed = work.path().join("f.zst");
    let out = work.path().join("1");
    succeeded(&replay(&packed, &tasks, &out)?)?;
    let texts = written(&out)?;
    ensure!(texts["a"] == format!("{good}\n"), "{texts:?}");
    let masked = r#"{"flow":{"time":"2026-03-14T09:26:54Z","extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"bytes":12}}},"time":"2026-03-14T09:26:54Z"}"#;
    ensure!(texts["b"] == format!("{masked}\n"), "{texts:?}");

    std::fs::write(&plain, format!("{good}\n{{\"flow\":{{\"verdct\":1}}}}\n\nnothing\n{good}\n"))?;
    let out = work.path().join("2");
    let output = Command::new(binary())
        .args(["replay", "-o", "json", "--flows", "-", "--tasks"])
        .arg(&tasks)
        .arg("--output-dir")
        .arg(&out)
        .stdin(Stdio::from(std::fs::File::open(&plain)?))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1), "{said}");
    for expected in
        ["-:2: flow.verdct: flow.Flow has no such field; did you mean `verdict`?", "-:4: ", "2 of 4 lines"]
    {
        ensure!(said.contains(expected), "{expected}: {said}");
    }
    let ledger: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(ledger["closes"] == true && ledger["tasks"][0]["written"] == 2, "{ledger}");
    ensure!(ledger["recorded"] == serde_json::json!({ "lines": 4, "taken": 2, "malformed": 2 }), "{ledger}");
    ensure!(written(&out)?["a"] == format!("{good}\n{good}\n"));
    Ok(())
}
