//! Task files in JSON, as programs write it.

use std::path::Path;

use serde_json::{Value, json};

use super::versions::{content, valid};
use crate::config::versions::{DEFAULT_FOLDER, Form, convert};

fn converted(text: &str, to: Form) -> String {
    convert("t.json", text, to, Path::new(DEFAULT_FOLDER), None, None)
        .unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

#[test]
fn several_resources_are_a_list_which_is_json() {
    let task = |name: &str| json!({ "name": name, "filePath": format!("{DEFAULT_FOLDER}/{name}.log"), "fieldMask": ["IP"] });
    let text = json!({ "flowLogs": [task("a"), task("b")] }).to_string();
    let drafts = converted(&text, Form::Draft);
    let list: Value = serde_json::from_str(&drafts).unwrap_or_else(|error| panic!("{drafts}: {error}"));
    assert_eq!((&list["apiVersion"], &list["kind"]), (&json!("v1"), &json!("List")));
    let names: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(valid(&drafts).tasks.len(), 2);
    // And back.
    let back: Value = serde_json::from_str(&converted(&drafts, Form::Hubble)).unwrap();
    assert_eq!(back["flowLogs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn characters_beyond_the_first_plane_are_read_as_json_writes_them() {
    // As Python's json.dumps writes "😀 a 𝄞".
    let spelt = r#""\ud83d\ude00 a \uD834\uDD1E""#;
    let text = format!(
        "{{\"flowLogs\": [{{\"name\": \"a\", \"filePath\": \"/l/a\", \"description\": {spelt}, \"x\": 1}}]}}"
    );
    let (_, problems) = content(&text);
    let column = text.find("\"x\"").unwrap() + 1;
    assert!(
        problems.to_string().starts_with(&format!("t.yaml:1:{column}: flowLogs[0].x: unknown key `x`")),
        "{problems}"
    );
    let text = text.replace(", \"x\": 1", "");
    assert_eq!(valid(&text).tasks[0].description.as_deref(), Some("😀 a 𝄞"));
    let new: Value = serde_json::from_str(&converted(&text, Form::V1)).unwrap();
    assert_eq!(new["flowLogs"][0]["description"], "😀 a 𝄞");
    // A half of one is none; what only looks like one in YAML stays as it is.
    assert!(!content(&text.replace(r"\ude00", "")).1.errors.is_empty());
    let yaml = r"flowLogs: [{name: a, filePath: /l/a, description: '\ud83d\ude00'}]";
    assert_eq!(valid(yaml).tasks[0].description.as_deref(), Some(r"\ud83d\ude00"));
}

#[test]
fn keys_are_known_in_every_spelling_that_is_read() {
    let text = format!(
        "flowLogs:\n- Name: a\n  filepath: {DEFAULT_FOLDER}/a.log\n  IncludeFilters: [{{protocol: [tcp]}}]\n  FIELDMASK: [IP]\n"
    );
    let draft = convert("t.yaml", &text, Form::Draft, Path::new(DEFAULT_FOLDER), None, None);
    let draft = draft.unwrap_or_else(|problems| panic!("{problems:?}"));
    assert!(
        ["metadata:", "name: \"a\"", "filters:", "fieldMask:"].iter().all(|part| draft.contains(part)),
        "{draft}"
    );
    let error =
        convert("t.yaml", &format!("{text}  fileMaxSizeMB: 3\n"), Form::Draft, Path::new("/l"), None, None);
    let problems = error.unwrap_err();
    assert!(
        problems
            .iter()
            .any(|one| one.place.path.ends_with("fileMaxSizeMB") && one.message.contains("no place")),
        "{problems:?}"
    );
}

#[test]
fn a_text_that_begins_with_a_byte_order_mark_keeps_its_layout() {
    let text = "\u{feff}# first\nflowLogs:\n- { name: a,   filePath: /l/a }   # as it was\n";
    let new = converted(text, Form::V1);
    assert_eq!(
        new,
        text.replace("flowLogs", "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs"),
        "{new:?}"
    );
    let text = "\u{feff}flowLogs:\n- { name: a,   filePath: /l/a }\n";
    assert_eq!(
        converted(text, Form::V1),
        text.replace("flowLogs", "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs")
    );
}
