//! The normal form is the same task.

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use super::{plan, read};
use crate::config::{normal, yaml};
use crate::task::Spec;

fn normal_of(specs: &[Spec]) -> String {
    yaml(&specs.iter().map(normal).collect::<Vec<_>>())
}

/// The text's tasks, and those of their normal form, are the same; the normal form's is itself.
fn check(text: &str) -> String {
    let (specs, problems) = read(text);
    assert_eq!(problems.to_string(), "", "{text}");
    let once = normal_of(&specs);
    let (again, problems) = read(&once);
    assert_eq!(problems.to_string(), "", "{text}\n{once}");
    let respelt: Vec<_> =
        problems.warnings.iter().filter(|warning| warning.message.contains("read as")).collect();
    assert!(respelt.is_empty(), "{once}\n{respelt:?}");
    assert_eq!(specs.len(), again.len());
    for (spec, same) in specs.iter().zip(&again) {
        assert_eq!(spec.name, same.name);
        assert_eq!(spec.differences(same), Vec::<&str>::new(), "{text}\n{once}");
    }
    assert_eq!(normal_of(&again), once, "{text}");
    once
}

#[test]
fn what_is_left_out_is_written_out_and_names_are_proper() {
    let text = "flowLogs:\n- {Name: a, filepath: /l/a.log, includeFilters: [{sourcePort: ['80'], source_pod: []}, null],\n   \
                fieldMask: [source, source.pod_name, IP], fileCompress: true, end: 2036-12-31T23:59:59+01:00}\n";
    let expected = r#"apiVersion: flowlog.io/v1
kind: FlowLogs
flowLogs:
- name: "a"
  filePath: "/l/a.log"
  includeFilters:
  - {"source_port":["80"]}
  - {}
  fieldMask: ["IP","source"]
  events: ["start","update","end"]
  format: "json"
  compression: "gzip"
  compressionLevel: 6
  fileMaxSizeMb: 10
  fileMaxBackups: 5
  fileMode: "0640"
  fileSync: "none"
  onFull: "drop"
  end: "2036-12-31T22:59:59Z"
"#;
    assert_eq!(check(text), expected);
    assert_eq!(yaml(&[]), "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs: []\n");
}

#[test]
fn texts_that_yaml_would_not_print() {
    let text = serde_json::json!({ "flowLogs": [{ "name": "a \"b\" é 𝄞", "filePath": "/l/a: #b", "description":
        "\u{1}\n\t\u{7f}\u{85}\u{2028}\u{feff} 'x' - [", "team": "true" }] });
    check(&text.to_string());
    assert_eq!(plan(&text.to_string()).tasks[0].spec.team.as_deref(), Some("true"));
}

/// Keys with values, as lines of a task.
const KEYS: &[&str] = &[
    "fieldMask: [source, l4.TCP, source.labels, Type]",
    "fieldMaskExact: True",
    "includeFilters: [{sourceIp: [10.0.0.0/8, '::1'], reply: [TRUE]}, {verdict: [1, DROPPED], tcpFlags: [{SYN: true, ACK: false}]}]",
    "excludefilters: [{event_type: [{type: '4', matchSubType: true, subType: 5}], destinationIdentity: ['2', 3]}]",
    "excludeFilters: [{ip_trace_id: ['18446744073709551615', 7], http_header: [{key: a, value: 'b c'}]}, {uuid: []}]",
    "excludeFilters: [{experimental: {celExpression: ['_flow.verdict == 1']}, source_workload: [{name: x}, {}]}]",
    "where: {source_port: ['1-10', '!5'], tcp_flags: [{SYN: true, FIN: false}], bytes: '>=10', duration: ['<1h', '> 1s'], packets: []}",
    "fileMaxSizeMb: 3",
    "fileMaxBackups: 2",
    "FileCompress: false",
    "format: protobuf",
    "compression: gzip",
    "compressionLevel: 7",
    "fileRotationInterval: 1h30m",
    "fileMaxAge: 36h",
    "fileMaxTotalMb: 50",
    "fileMinFreePercent: 5",
    "fileMode: '0600'",
    "fileUser: 12",
    "fileGroup: adm",
    "fileSync: interval",
    "onFull: deleteOldest",
    "start: 2020-01-01T00:00:00.5Z",
    "end: 9999-12-31T23:59:59Z",
    "events: [end, start]",
    "events: [update]",
    "updateInterval: 1m250ms",
    "rateLimit: 100",
    "description: 'it''s: a #test'",
    "team: ~",
    "fieldAggregate: [IP.source, l4, extensions.event]",
    "aggregationInterval: 1.5s",
    "anonymize: null",
];

proptest! {
    #[test]
    fn a_normal_form_reads_as_the_same_task(
        keys in subsequence(KEYS, 0..10),
        shuffle in any::<Index>(),
        name in select(&["a", "b c", "täsk", "{x}", "- y", "~x"][..]),
    ) {
        let mut keys = keys;
        if !keys.is_empty() {
            let at = shuffle.index(keys.len());
            keys.rotate_left(at);
        }
        // A key stands once, and one that needs another is left out by itself.
        let mut seen = std::collections::HashSet::new();
        keys.retain(|key| seen.insert(key.split(':').next().unwrap_or_default().to_lowercase()));
        let text = format!("flowLogs:\n- name: {}\n  filePath: /l/x.log\n  {}\n", serde_json::json!(name), keys.join("\n  "));
        let (_, problems) = read(&text);
        // Keys that contradict each other.
        prop_assume!(problems.errors.is_empty());
        check(&text);
    }
}
