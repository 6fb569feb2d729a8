//! Verdicts of the real Hubble (Cilium 1.19.4's own filter code), where its cases lie beside the workspace.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::read;
use crate::encode::foreign::encode;
use crate::filter::Filter;
use crate::project;
use crate::read::event;
use crate::record::Foreign;

/// A file of the cases; `None`, saying so, where there are none.
fn cases(file: &str) -> Option<String> {
    let folder = std::env::var_os("FLOWLOG_HUBBLE_CASES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/hubble-cases"),
        PathBuf::from,
    );
    let text = fs::read_to_string(folder.join(file)).ok();
    if text.is_none() {
        println!("skipped: no {file} in {}; FLOWLOG_HUBBLE_CASES names the folder", folder.display());
    }
    text
}

/// Filters that parse as JSON but that Hubble refuses: all must be refused, naming the place.
#[test]
fn what_hubble_refuses_is_refused() {
    let Some(cases) = cases("rejected-filters.jsonl") else { return };
    for case in cases.lines() {
        let text = format!("flowLogs:\n- {{name: a, filePath: /l/a, includeFilters: [{case}]}}\n");
        let errors = read(&text).1.errors;
        assert!(!errors.is_empty(), "{case}");
        assert!(
            errors.iter().all(|error| error.place.path.starts_with("flowLogs[0].includeFilters[0].")),
            "{case}"
        );
    }
}

/// Every task against every flow. (The binary's own test compares the files; this one names the pair.)
#[test]
fn verdicts_equal_hubbles() {
    let (Some(tasks), Some(flows), Some(expected)) =
        (cases("tasks.yaml"), cases("flows.jsonl"), cases("expected.jsonl"))
    else {
        return;
    };
    let (tasks, problems) = read(&tasks);
    assert_eq!(problems.to_string(), "");
    let filters: Vec<Filter> = tasks.iter().map(|task| Filter::new(&task.filter)).collect();
    let mut compared = 0;
    for (line, expected) in flows.lines().zip(expected.lines()) {
        let event = event(line.as_bytes()).unwrap();
        let expected: Vec<String> = serde_json::from_str(expected).unwrap();
        for (task, filter) in tasks.iter().zip(&filters) {
            assert_eq!(filter.takes(&event), expected.contains(&task.name), "{} {line}", task.name);
            compared += 1;
        }
    }
    assert!(compared >= 100_000, "{compared}");
}

/// Masks say which fields stay and which empty messages appear, to the byte.
#[test]
fn masks_equal_hubbles() {
    let (Some(masked), Some(flows)) = (cases("masked.jsonl"), cases("flows.jsonl")) else { return };
    let flows: Vec<Foreign> = flows.lines().map(|line| event(line.as_bytes()).unwrap()).collect();
    let mut compared = 0;
    for case in masked.lines() {
        let case: Value = serde_json::from_str(case).unwrap();
        let paths: Vec<&str> =
            case["fieldMask"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
        let mask = project::compile(&paths, true).unwrap();
        for (flow, line) in flows.iter().zip(case["lines"].as_array().unwrap()) {
            let mut out = Vec::new();
            encode(flow, &mask, &mut out);
            assert_eq!(String::from_utf8(out).unwrap().trim_end(), line.as_str().unwrap(), "{paths:?}");
            compared += 1;
        }
    }
    assert!(compared >= 1_000, "{compared}");
}
