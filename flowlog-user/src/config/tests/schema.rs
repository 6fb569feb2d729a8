//! The JSON schema by a validator of somebody else's: it takes what `check` takes, and refuses what a schema can see.

use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, Schemas};
use serde_json::{Map, Value as Json};

use super::read;
use crate::config::{raw, schema, table};
use crate::filter::shape;
use crate::task::{KEYS, Plan};
use crate::tree::{Shape, Tree, Value};

fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config")
}

/// The text as an editor's YAML reader has it.
fn json(tree: &Tree) -> Json {
    match &tree.value {
        Value::Null => Json::Null,
        Value::Scalar { text, quoted: true } => text.as_str().into(),
        Value::Scalar { text, .. } => match text.as_str() {
            "true" | "True" | "TRUE" => true.into(),
            "false" | "False" | "FALSE" => false.into(),
            _ => text
                .parse::<i64>()
                .map(Json::from)
                .or_else(|_| text.parse::<u64>().map(Json::from))
                .or_else(|_| text.parse::<f64>().map(Json::from))
                .unwrap_or_else(|_| text.as_str().into()),
        },
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => Json::Object(
            entries.iter().map(|entry| (entry.key.clone(), json(&entry.value))).collect::<Map<_, _>>(),
        ),
    }
}

/// Whether the schema takes a text.
fn takes(text: &str) -> bool {
    thread_local! {
        static SCHEMA: (Schemas, boon::SchemaIndex) = {
            let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
            compiler.add_resource("flowlog.json", schema()).unwrap();
            let index = compiler.compile("flowlog.json", &mut schemas).unwrap();
            (schemas, index)
        };
    }
    let tree = raw::parse("t.yaml", text).unwrap().remove(0).1.unwrap();
    SCHEMA.with(|(schemas, index)| schemas.validate(&json(&tree), *index).is_ok())
}

/// Whether `check` takes it without an error.
fn checks(text: &str) -> bool {
    let (specs, mut problems) = read(text);
    Plan::new(specs, &mut problems);
    problems.errors.is_empty()
}

fn task(keys: &str) -> String {
    format!("flowLogs:\n- name: a\n  filePath: /l/a.log\n  {keys}\n")
}

#[test]
fn what_stands_in_config_is_what_the_code_says() {
    let made = [
        ("flowlog.schema.json", format!("{:#}\n", schema()), "flowlog schema"),
        ("keys.md", table(), "flowlog schema --keys"),
    ];
    for (file, expected, command) in made {
        let found = fs::read_to_string(config().join(file)).unwrap_or_default();
        assert!(found == expected, "config/{file} is stale; write it anew: {command} > config/{file}");
    }
}

#[test]
fn the_samples_are_valid() {
    let mut seen = 0;
    for entry in fs::read_dir(config()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "yaml") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(takes(&text) && checks(&text), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 2);
}

#[test]
fn every_task_of_hubbles_cases_is_valid() {
    let folder = std::env::var_os("FLOWLOG_HUBBLE_CASES")
        .map_or_else(|| config().join("../../shared/hubble-cases"), PathBuf::from);
    let Ok(text) = fs::read_to_string(folder.join("tasks.yaml")) else { return };
    assert!(takes(&text));
}

/// A value of each form, for the tests below.
fn good(shape: &Shape) -> String {
    match shape {
        Shape::Text | Shape::Name | Shape::Account => "abc".into(),
        Shape::Pattern(pattern, _) => {
            let samples = [
                "/l/b.log",
                "\"0640\"",
                "\"443\"",
                "10.0.0.0/8",
                "\"404\"",
                "\">=10\"",
                "\">=1h\"",
                "\"10-20\"",
                "vxlan",
            ];
            let regex = regex::Regex::new(pattern).unwrap();
            let fits = |sample: &&&str| regex.is_match(sample.trim_matches('"'));
            (*samples.iter().find(fits).unwrap_or_else(|| panic!("no sample for {pattern}"))).to_owned()
        }
        Shape::Words(words) => words[0].into(),
        Shape::Integer(low, high) => format!("{}", (*low).max(50).min(*high)),
        Shape::Number(..) => "7".into(),
        Shape::Boolean => "true".into(),
        Shape::Duration => "1h30m".into(),
        Shape::Moment => "2036-12-31T23:59:59Z".into(),
        Shape::Enum(values) => values[1].0.into(),
        Shape::Path => "IP.source".into(),
        Shape::List(of) | Shape::OneOrMany(of) => format!("[{}]", good(of)),
        Shape::Filled(of) => good(of),
        Shape::Map(names, shapes) => {
            let served = names.iter().zip(*shapes).filter(|(_, shape)| !matches!(shape, Shape::NotServed));
            let pairs: Vec<_> = served.map(|((name, _), shape)| format!("{name}: {}", good(shape))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Shape::Filters => "[{}, null]".into(),
        Shape::NotServed => "null".into(),
    }
}

/// Values that are wrong for every form but a few.
const BAD: [&str; 6] = ["{x: 1}", "[{x: 1}]", "[[a]]", "-1.5", "[1.5]", "\"\\u0001\""];

#[test]
fn schema_and_check_agree_on_every_key_and_field() {
    for key in KEYS.iter().filter(|key| key.default != "required") {
        // The ones that contradict each other or need each other.
        let more = match key.name {
            "fileMaxTotalMb" => "fileMaxSizeMb: 1\n  ",
            _ => "",
        };
        let text = task(&format!("{more}{}: {}", key.name, good(&key.shape)));
        assert!(takes(&text) && checks(&text), "{text}: schema {}, check {}", takes(&text), checks(&text));
        let null = task(&format!("{}: null", key.name));
        assert!(takes(&null) && checks(&null), "{null}");
        if let Shape::Words(words) = key.shape {
            for word in words {
                let text = task(&format!("{}: {word}", key.name));
                assert!(takes(&text) && checks(&text), "{text}");
            }
        }
        for bad in BAD {
            let text = task(&format!("{}: {bad}", key.name));
            // The schema never takes what it can see to be wrong; what only reading finds is named here.
            let deeper = matches!(key.shape, Shape::Account | Shape::Text);
            assert!(!takes(&text) || checks(&text) || deeper, "the schema takes {text}");
            assert!(takes(&text) || !checks(&text), "the schema refuses {text}");
        }
    }
    for (name, camel, shape) in shape::fields() {
        for name in [name, camel] {
            let good = if name.starts_with("experimental") {
                "{cel_expression: [\"true\"]}".into()
            } else {
                good(&shape)
            };
            let text = task(&format!("includeFilters: [{{{name}: {good}}}]"));
            let wants_l7 = name.starts_with("protocol");
            assert!(takes(&text), "{text}");
            assert!(wants_l7 || checks(&text), "{text}");
            for bad in BAD {
                let text = task(&format!("includeFilters: [{{{name}: {bad}}}]"));
                assert!(!takes(&text) || matches!(shape, Shape::List(Shape::Text | Shape::Name)), "{text}");
                assert!(takes(&text) || !checks(&text), "the schema refuses {text}");
            }
        }
    }
}

#[test]
fn what_a_schema_can_see_is_refused_by_both() {
    let bad = [
        "flowLogs:\n",
        "[]\n",
        "{}\n",
        "flowLogs: 7\n",
        "flowLogs: [null]\n",
        "flowLogs: []\ntasks: []\n",
        "apiVersion: flowlog.io/v1\nflowLogs: []\n",
        "apiVersion: flowlog.io/v2\nkind: FlowLogs\nflowLogs: []\n",
        "flowLogs:\n- {filePath: /l/a}\n",
        "flowLogs:\n- {name: a}\n",
        "flowLogs:\n- {name: \"\", filePath: /l/a}\n",
        "flowLogs:\n- {name: 7, filePath: /l/a}\n",
        "flowLogs:\n- {name: a, filePath: l/a}\n",
        "flowLogs:\n- {name: a, filePath: /l/a/}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includefilter: []}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, sample: 10}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, fileMaxSizeMb: -1}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, fileMaxSizeMb: \"10\"}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, fileMode: 0640}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, fileMode: \"0440\"}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, compression: lz4}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, events: [begin]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, end: tomorrow}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, end: 2026-03-14}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, updateInterval: 30}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, where: {source_pool: []}}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, where: {destination_pool: null}}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, where: {source_port: []}}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, where: {duration: []}}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, fieldMask: [source.podname]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{source_port: [80]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{source_port: [\"65536\"]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{source_prot: [\"80\"]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{verdict: [forwarded]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{tcp_flags: [{syn: true}]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{tcp_flags: [null]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{reply: [\"true\"]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{http_status_code: [\"600\"]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, where: {bytes: \"1000\"}}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, where: {vlan: [1]}}\n",
    ];
    for text in bad {
        assert!(!takes(text) && !checks(text), "{text}: schema {}, check {}", takes(text), checks(text));
    }
    let good = [
        "flowLogs: []\n",
        "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs: []\n",
        "flowLogs:\n- {name: a, filePath: /l/a, end: 9999-12-31T23:59:59Z}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, aggregationInterval: 0, fieldAggregate: [l4.TCP.destination_port]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{sourceIdentity: [\"12\", 7], eventType: [{type: 4, matchSubType: true}]}]}\n",
        "flowLogs:\n- {name: a, filePath: /l/a, where: {bytes: ['>1', '<10'], duration: '<= 1h'}}\n",
    ];
    for text in good {
        assert!(takes(text) && checks(text), "{text}: schema {}, check {}", takes(text), checks(text));
    }
}
