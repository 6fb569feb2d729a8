//! Versions of the task file. Texts in every form and what becomes of them, written by hand.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::config::document::{self, Content, Holds};
use crate::config::versions::{DEFAULT_FOLDER, Form, Mark, convert, same};
use crate::task::Spec;
use crate::tree::Problems;

pub(super) fn content(text: &str) -> (Content, Problems) {
    let mut problems = Problems::default();
    let content = document::read("t.yaml", text, Holds::Anything, Path::new(DEFAULT_FOLDER), &mut problems);
    (content, problems)
}

pub(super) fn valid(text: &str) -> Content {
    let (content, problems) = content(text);
    assert_eq!(problems.to_string(), "", "{text}");
    content
}

pub(super) fn to(text: &str, form: Form) -> String {
    let mark = Mark { file: "t.yaml".into(), form: valid(text).form, hash: "ab".into() };
    let mark = (form == Form::V1).then_some(&mark);
    convert("t.yaml", text, form, Path::new(DEFAULT_FOLDER), mark, None)
        .unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

pub(super) fn equal(one: &[Arc<Spec>], other: &[Arc<Spec>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
}

const MARK: &str = r#"convertedFrom: {"file": "t.yaml", "form": "FORM", "hash": "ab"}"#;

/// Two lines of filters and an end, indented.
macro_rules! filters {
    ($pad:literal) => {
        concat!(
            $pad,
            "  # in and out\n",
            $pad,
            "  - destination_port: [\"443\"]\n",
            $pad,
            "  - source_port: [\"443\"]\n",
        )
    };
}

macro_rules! list {
    () => {
        concat!(
            "flowLogs:\n  - name: web # for incidents\n    filePath: /var/log/flowlog/web.log\n    includeFilters:\n",
            filters!("    "),
            "    end: 2030-01-02T03:04:05Z\n",
        )
    };
}

const HUBBLE: &str = concat!("# The web team's.\n", list!(), "# the end\n");

const V1ALPHA1: &str = concat!(
    "# The web team's.\napiVersion: flowlog.io/v1alpha1 # for now\nkind: FlowLogs\n",
    list!(),
    "# the end\n"
);

pub(super) const DRAFT: &str = concat!(
    "# The web team's.\napiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata:\n  name: web # for incidents\nspec:\n  \
     filters:\n",
    filters!("  "),
    "  expiration: 2030-01-02T03:04:05Z\n# the end\n"
);

const V1_OF_DRAFT: &str =
    concat!("# The web team's.\napiVersion: flowlog.io/v1\nkind: FlowLogs\nMARK\n", list!(), "  # the end\n");

#[test]
fn every_form_is_read_as_the_newest() {
    let reference = valid(&to(HUBBLE, Form::V1));
    assert_eq!((reference.form, reference.tasks.len()), (Form::V1, 1));
    assert_eq!(reference.tasks[0].filter.include.len(), 2);
    assert_eq!(reference.tasks[0].end.unwrap().to_string(), "2030-01-02T03:04:05Z");
    for (text, form) in [(HUBBLE, Form::Hubble), (V1ALPHA1, Form::V1alpha1), (DRAFT, Form::Draft)] {
        let read = valid(text);
        assert_eq!(read.form, form);
        assert!(equal(&read.tasks, &reference.tasks), "{text}");
        // An error stands where its author wrote it, in the words of that form.
        let wrong = text.replace("2030-01-02T03:04:05Z", "tomorrow");
        let said = content(&wrong).1.to_string();
        let (line, path) = match form {
            Form::Draft => (11, "spec.expiration"),
            Form::V1alpha1 => (11, "flowLogs[0].end"),
            _ => (9, "flowLogs[0].end"),
        };
        assert!(said.starts_with(&format!("t.yaml:{line}:")) && said.contains(path), "{said}");
    }
}

#[test]
fn comments_and_layout_survive_on_the_way_and_back() {
    let marked = |form: &str| MARK.replace("FORM", form);
    let header = format!("apiVersion: flowlog.io/v1\nkind: FlowLogs\n{}\nflowLogs:", marked("hubble"));
    let v1 = to(HUBBLE, Form::V1);
    assert_eq!(v1, HUBBLE.replace("flowLogs:", &header));
    assert_eq!(to(&v1, Form::Hubble), HUBBLE);
    let v1 = to(V1ALPHA1, Form::V1);
    let expected = V1ALPHA1.replace(
        "apiVersion: flowlog.io/v1alpha1",
        &format!("{}\napiVersion: flowlog.io/v1", marked("v1alpha1")),
    );
    assert_eq!(v1, expected);
    assert_eq!(to(&v1, Form::V1alpha1), V1ALPHA1);
    assert_eq!(to(&v1, Form::Hubble), HUBBLE.replace("flowLogs:", "# for now\nflowLogs:"));
    assert_eq!(to(DRAFT, Form::V1), V1_OF_DRAFT.replace("MARK", &marked("v1alpha1-flowlog")));
    let back = to(&to(DRAFT, Form::V1), Form::Draft);
    for comment in ["# The web team's.", "# for incidents", "# in and out", "# the end"] {
        assert!(back.contains(comment), "{back}");
    }
    assert!(equal(&valid(&back).tasks, &valid(DRAFT).tasks), "{back}");
    // JSON stays JSON.
    let json = r#"{"flowLogs": [{"name": "a", "filePath": "/l/a", "fileMaxSizeMb": 7}]}"#;
    let v1 = to(json, Form::V1);
    assert!(serde_json::from_str::<serde_json::Value>(&v1).unwrap()["convertedFrom"]["hash"] == "ab", "{v1}");
    assert!(serde_json::from_str::<serde_json::Value>(&to(&v1, Form::Hubble)).is_ok());
    let draft = r#"{"apiVersion": "flowlog.io/v1alpha1", "kind": "FlowLog", "metadata": {"name": "a"}, "spec": {"fieldMask": ["IP"]}}"#;
    assert!(serde_json::from_str::<serde_json::Value>(&to(draft, Form::V1)).is_ok());
}

#[test]
fn several_resources_of_the_draft_are_several_tasks() {
    let second = "\
---
apiVersion: flowlog.io/v1alpha1
kind: FlowLog
metadata: {name: dns, labels: {team: net}}
# of the resolver
spec:
     excludeFilters: [{source_port: [\"53\"]}]
     fieldMask:
     - IP
";
    let text = format!("{DRAFT}{second}");
    let v1 = to(&text, Form::V1);
    let read = valid(&v1);
    assert_eq!(read.tasks.iter().map(|task| &*task.name).collect::<Vec<_>>(), ["web", "dns"]);
    assert!(equal(&read.tasks, &valid(&text).tasks));
    assert!(
        v1.contains(
            "  # of the resolver\n  - name: dns\n    filePath: /var/log/flowlog/dns.log\n    excludeFilters:"
        ),
        "{v1}"
    );
    assert!(v1.contains("    fieldMask:\n    - IP\n"), "{v1}");
}

#[test]
fn what_is_no_known_version_is_refused_with_those_that_are() {
    let known = "this flowlog knows flowlog.io/v1, flowlog.io/v1alpha1, and Hubble's form, which has neither apiVersion nor kind";
    for (text, expected) in [
        ("apiVersion: flowlog.io/v2\nkind: FlowLogs\nflowLogs: []\n", format!("t.yaml:1:13: apiVersion: unknown version `flowlog.io/v2`; {known}")),
        ("apiVersion: v1\nkind: ConfigMap\ndata: {}\n", "t.yaml:1:1: a ConfigMap is no task file; take the text out of its `data` into a file of its own, without the spaces before each line".into()),
        ("apiVersion: flowlog.io/v1\nkind: FlowLog\nspec: {}\n", "t.yaml:2:7: kind: expected `FlowLogs` (or `AddressPool`), found `FlowLog`".into()),
        ("apiVersion: flowlog.io/v1alpha1\nkind: Flow\nspec: {}\n", "t.yaml:2:7: kind: expected `FlowLogs` or `FlowLog`, found `Flow`".into()),
        ("kind: FlowLogs\nflowLogs: []\n", "t.yaml:1:1: apiVersion is missing; add `apiVersion: flowlog.io/v1`".into()),
        (
            "apiVersion: flowlog.io/v1alpha1\nkind: FlowLogs\nflowLogs: [{name: a, filePath: /l/a, team: b}]\n",
            "t.yaml:3:38: flowLogs[0].team: is a key of flowlog.io/v1; write `apiVersion: flowlog.io/v1` above".into(),
        ),
        (
            "apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {name: a}\nspec: {filePath: /l/a}\n",
            "t.yaml:4:8: spec.filePath: unknown key `filePath`; expected one of filters, excludeFilters, fieldMask, expiration".into(),
        ),
        ("apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nspec: {}\n", "t.yaml:1:1: metadata.name is required; add one".into()),
        (
            "apiVersion: flowlog.io/v1\nkind: FlowLogs\nconvertedFrom: {file: a, form: v0, hash: b}\nflowLogs: []\n",
            "t.yaml:3:32: convertedFrom.form: unknown form `v0`; did you mean `v1`?".into(),
        ),
    ] {
        assert_eq!(content(text).1.to_string(), expected, "{text}");
    }
}

#[test]
fn what_a_form_has_no_place_for_is_not_converted() {
    let own = "flowLogs: [{name: a, filePath: /l/a, team: b, end: 2030-01-02T03:04:05Z}]\n";
    for (form, place) in [
        (Form::V1alpha1, "t.yaml:1:38: flowLogs[0].team"),
        (Form::Draft, "t.yaml:1:22: flowLogs[0].filePath"),
    ] {
        let problems = convert("t.yaml", own, form, Path::new(DEFAULT_FOLDER), None, None).unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            format!(
                "{place}: {form} has no place for this, so this file is not converted; convert a copy without it, or stay with the newer form"
            )
        );
    }
}

const FILTERS: [&str; 5] = [
    "{}",
    "{source_ip: [10.0.0.0/8, \"fd00::1\"], protocol: [tcp]}",
    "{destination_port: [\"443\", '80'], reply: [true]}",
    "{tcp_flags: [{SYN: true}], verdict: [FORWARDED]}",
    "{source_label: ['reserved:host'], event_type: [{type: 4, match_sub_type: true, sub_type: 0}]}",
];

/// A task's lines, key by key, of keys that the draft has too, of Hubble's others, or of ours.
fn keys(draft: bool, own: bool) -> impl Strategy<Value = Vec<String>> {
    let filters = |key: &'static str| {
        prop::collection::vec(prop::sample::select(&FILTERS[..]), 0..4).prop_map(move |filters| match filters
            .len()
        {
            0 => format!("{key}: []"),
            1 => format!("{key}: [{}]", filters[0]),
            _ => filters.iter().fold(format!("{key}:"), |text, filter| format!("{text}\n  - {filter}")),
        })
    };
    let (include, end) = if draft { ("filters", "expiration") } else { ("includeFilters", "end") };
    let any = prop_oneof![
        filters(include),
        filters("excludeFilters"),
        prop::sample::select(vec![
            "fieldMask: [IP, l4]",
            "fieldMask:\n  - IP\n  - \"l4.TCP\"",
            "fieldMask: []"
        ])
        .prop_map(String::from),
        Just(format!("{end}: 2031-05-06T07:08:09Z")),
        Just(format!("{end}: \"2031-05-06T07:08:09Z\"")),
    ];
    let hubble = prop::sample::select(vec![
        "fileMaxSizeMb: 7",
        "fileMaxBackups: 2",
        "fileCompress: false",
        "fieldAggregate: []",
    ]);
    let ours = prop::sample::select(vec![
        "team: 'it''s #1'",
        "description: |\n  more # than\n\n   one line\nevents: [start]",
        "fileMode: \"0600\"",
        "where: {packets: '>=3'}",
        "description: \"a # b\"",
        "rateLimit: 5",
    ]);
    let any =
        if draft { any.boxed() } else { prop_oneof![3 => any, 2 => hubble.prop_map(String::from)].boxed() };
    let any = if own { prop_oneof![2 => any, 1 => ours.prop_map(String::from)].boxed() } else { any };
    prop::collection::vec(any, 0..6).prop_map(|keys| {
        let mut seen = std::collections::BTreeSet::new();
        let fresh = |key: &String| {
            key.lines()
                .filter(|line| !line.starts_with(' '))
                .all(|line| line.split_once(':').is_none_or(|(name, _)| seen.insert(name.to_owned())))
        };
        keys.into_iter().filter(fresh).collect()
    })
}

fn indented(text: &str, by: usize) -> String {
    text.lines()
        .map(|line| if line.is_empty() { "\n".into() } else { format!("{}{line}\n", " ".repeat(by)) })
        .collect()
}

/// Adds comments and blank lines where they change nothing.
fn commented(text: &str, seeds: &[u8]) -> String {
    let mut out = String::new();
    let mut block = None;
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if block.is_some_and(|around| line.is_empty() || indent > around) {
            out += &format!("{line}\n");
            continue;
        }
        block = line.ends_with('|').then_some(indent);
        let seed = seeds.get(number % seeds.len().max(1)).copied().unwrap_or(0);
        let pad = " ".repeat(indent);
        out += &match seed % 8 {
            1 if block.is_none() => format!("{line} # c{number}.\n"),
            2 => format!("{pad}# c{number}.\n{line}\n"),
            3 => format!("\n{line}\n"),
            4 => format!("# c{number}.\n\n{line}\n"),
            _ => format!("{line}\n"),
        };
    }
    out
}

/// A file in a form.
fn file(form: Form) -> impl Strategy<Value = String> {
    let tasks = prop::collection::vec(keys(form == Form::Draft, form == Form::V1), 1..4);
    (tasks, prop::collection::vec(any::<u8>(), 1..40), 0_usize..3, any::<bool>()).prop_map(move |(tasks, seeds, indent, json)| {
        let text: String = match form {
            Form::Draft => tasks.iter().enumerate().map(|(at, keys)| {
                let spec: String = keys.iter().map(|key| indented(key, 1 + indent)).collect();
                let spec = if spec.is_empty() { "spec: {}\n".to_owned() } else { format!("spec:\n{spec}") };
                let parted = if at == 0 { "" } else { "---\n" };
                format!("{parted}apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata:\n  name: t{at}\n{spec}")
            }).collect(),
            _ => {
                let header = match form {
                    Form::Hubble => "",
                    Form::V1alpha1 => "apiVersion: flowlog.io/v1alpha1\nkind: FlowLogs\n",
                    _ => "kind: \"FlowLogs\"\napiVersion: 'flowlog.io/v1'\n",
                };
                let tasks = tasks.iter().enumerate().map(|(at, keys)| {
                    let rest: String = keys.iter().map(|key| indented(key, indent + 2)).collect();
                    format!("{0}- name: t{at}\n{0}  filePath: /l/{at}.log\n{rest}", " ".repeat(indent))
                });
                format!("{header}flowLogs:\n{}", tasks.collect::<String>())
            }
        };
        let text = commented(&text, &seeds);
        if json && form != Form::Draft { as_json(&text) } else { text }
    })
}

/// The same as JSON, made by the definitions of its tasks.
fn as_json(text: &str) -> String {
    let content = valid(text);
    let tasks: Vec<serde_json::Value> =
        content.tasks.iter().map(|task| serde_json::from_str(&task.file.definition.0).unwrap()).collect();
    let mut whole = serde_json::json!({ "flowLogs": tasks });
    if let Some(version) = match content.form {
        Form::V1 => Some("flowlog.io/v1"),
        Form::V1alpha1 => Some("flowlog.io/v1alpha1"),
        _ => None,
    } {
        whole["apiVersion"] = version.into();
        whole["kind"] = "FlowLogs".into();
    }
    serde_json::to_string_pretty(&whole).unwrap()
}

fn comments(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> =
        text.match_indices("# c").filter_map(|(at, _)| text[at..].split('.').next()).collect();
    found.sort_unstable();
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// There and back gives the same plan, and every comment is still there.
    #[test]
    fn nothing_is_lost_on_the_way_and_back(
        (text, way) in prop_oneof![
            (file(Form::Hubble), Just(Form::V1)),
            (file(Form::V1alpha1), Just(Form::V1)),
            (file(Form::Draft), Just(Form::V1)),
            (file(Form::V1), Just(Form::Hubble)),
            (file(Form::Hubble), Just(Form::V1alpha1)),
        ],
    ) {
        let before = valid(&text);
        let there = to(&text, way);
        let after = valid(&there);
        prop_assert_eq!(after.form, way);
        prop_assert!(equal(&before.tasks, &after.tasks), "{}\nbecame\n{}", text, there);
        prop_assert_eq!(comments(&text), comments(&there), "{}\nbecame\n{}", text, there);
        let back = to(&there, before.form);
        let again = valid(&back);
        prop_assert_eq!(again.form, before.form);
        prop_assert!(equal(&before.tasks, &again.tasks), "{}\nbecame\n{}\nbecame\n{}", text, there, back);
        prop_assert_eq!(comments(&text), comments(&back), "{}\nbecame\n{}\nbecame\n{}", text, there, back);
    }
}
