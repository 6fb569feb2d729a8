//! Texts and exactly what is said about them. Written by hand: line and column are where an editor shows the word.

use super::{plan, read};
use crate::task::Plan;

/// Errors, then warnings marked with `warning: `.
fn said(text: &str) -> Vec<String> {
    let (specs, mut problems) = read(text);
    Plan::new(specs, &mut problems);
    let errors = problems.errors.iter().map(ToString::to_string);
    errors.chain(problems.warnings.iter().map(|warning| format!("warning: {warning}"))).collect()
}

fn check(table: &[(&str, &[&str])]) {
    for (text, expected) in table {
        assert_eq!(said(text), *expected, "\n{text}");
    }
}

#[test]
fn what_is_not_yaml_or_not_one_document() {
    check(&[
        ("", &["t.yaml: nothing stands in this file; write `flowLogs: []` for no tasks"]),
        ("# only a comment\n", &["t.yaml: nothing stands in this file; write `flowLogs: []` for no tasks"]),
        ("flowLogs: []\n", &[]),
        ("{\"flowLogs\": []}", &[]),
        ("\u{feff}flowLogs: []\n", &[]),
        ("flowLogs:\n", &["t.yaml:1:1: flowLogs is required; write `flowLogs: []` for no tasks"]),
        ("- a\n", &["t.yaml:1:1: expected a map, found a list"]),
        (
            "flowLogs: []\n---\nflowLogs: []\n",
            &["t.yaml:2:1: a second document begins here; put each into a file of its own"],
        ),
        (
            "flowLogs: []\nflowLogs: []\n",
            &["t.yaml:2:1: flowLogs: `flowLogs` stands here twice, first at t.yaml:1:1; keep one"],
        ),
        (
            "flowLogs:\n  - name: !!str a\n",
            &["t.yaml:2:11: flowLogs[0].name: YAML tags are not supported; write the value without its tag"],
        ),
        (
            "x: &x {a: 1}\nflowLogs:\n  - <<: *x\n",
            &["t.yaml:3:5: flowLogs[0].<<: merge keys are not supported; write the keys out"],
        ),
    ]);
    let said = said("flowLogs: [\n");
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("t.yaml:2:1: flowLogs[0]: this is not YAML: "), "{said:?}");
}

#[test]
fn depth_and_aliases_are_bounded() {
    let deep = format!("flowLogs: {}{}", "[".repeat(200), "]".repeat(200));
    assert!(said(&deep)[0].ends_with("lists and maps are nested deeper than 64; no task needs that"));
    // The parser itself must survive what is far deeper.
    assert_eq!(said(&"[".repeat(100_000)).len(), 1);
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let lower = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![lower; 10].join(", "));
    }
    assert!(said(&bomb)[0].ends_with("aliases repeat too much; write the values out or use fewer aliases"));
}

#[test]
fn values_and_errors_are_bounded() {
    let found = said(&format!("flowLogs:\n{}", "- x\n".repeat(600_000)));
    assert_eq!(
        found,
        [
            "t.yaml:499999:3: flowLogs[499997]: the file has more than 500000 values; split it into several in one folder"
        ]
    );
    let found = said(&format!("flowLogs:\n{}", "- x\n".repeat(5_000)));
    // Errors and, of each task, nothing else.
    assert_eq!(found.len(), 101);
    assert_eq!(found[99], "t.yaml:101:3: flowLogs[99]: expected a map, found `x`");
    assert_eq!(found[100], "t.yaml: 4900 more errors are not shown");
}

#[test]
fn an_alias_stands_for_its_value() {
    let plan = plan(
        "flowLogs:\n  - name: a\n    filePath: /l/a\n    includeFilters: &web [{source_port: [\"80\"]}]\n  - name: b\n    filePath: \
         /l/b\n    includeFilters: *web\n",
    );
    assert_eq!(plan.tasks[0].spec.filter, plan.tasks[1].spec.filter);
    assert_eq!(plan.tasks[1].spec.filter.include.len(), 1);
    let text = "flowLogs:\n  - {name: a, filePath: &p 7}\n  - {name: b, filePath: *p}\n";
    assert_eq!(
        said(text),
        [
            "t.yaml:2:25: flowLogs[0].filePath: expected a string, found `7`; write it in quotes: \"7\"",
            "t.yaml:2:25: flowLogs[1].filePath: expected a string, found `7`; write it in quotes: \"7\"",
        ]
    );
}

#[test]
fn the_form_of_the_file() {
    check(&[
        ("apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs: []\n", &[]),
        (
            "apiVersion: flowlog.io/v2\nflowLogs: []\n",
            &[
                "t.yaml:1:13: apiVersion: unknown version `flowlog.io/v2`; this flowlog knows flowlog.io/v1, flowlog.io/v1alpha1, \
                 and Hubble's form, which has neither apiVersion nor kind",
                "t.yaml:1:1: kind is missing; add `kind: FlowLogs`",
            ],
        ),
        ("flowlogs: []\n", &["warning: t.yaml:1:1: flowlogs: read as `flowLogs`; write it like that"]),
        ("flowLog: []\n", &["t.yaml:1:1: flowLog: unknown key `flowLog`; did you mean `flowLogs`?"]),
        (
            "flowLogs: []\ntasks: []\n",
            &["t.yaml:2:1: tasks: unknown key `tasks`; expected one of apiVersion, kind, flowLogs"],
        ),
    ]);
}

#[test]
fn everything_wrong_is_said_at_once() {
    let text = r#"flowLogs:
  - name: a
    filePath: relative.log
    includefilter: []
    fieldMask: [source.podname, IP]
    includeFilters:
      - source_port: [80]
        source_pod: ["shop/"]
        verdict: [forwarded]
      - destination_ip: ["10.0.0.0/33", "10.0.0"]
        protocol: [tpc]
    fileMaxSizeMb: -1
    compression: lz4
    events: [begin]
    fileMode: 0640
    end: tomorrow
    sample: 100
  -
  - filePath: /l/b
"#;
    assert_eq!(
        said(text),
        [
            "t.yaml:4:5: flowLogs[0].includefilter: unknown key `includefilter`; did you mean `includeFilters`?",
            "t.yaml:17:5: flowLogs[0].sample: not served by this version yet; remove it",
            "t.yaml:3:15: flowLogs[0].filePath: expected an absolute path (or `stdout`), found `relative.log`",
            "t.yaml:13:18: flowLogs[0].compression: unknown compression `lz4`; expected one of zstd, gzip, none",
            "t.yaml:12:20: flowLogs[0].fileMaxSizeMb: expected a whole number from 0 to 1048576, found `-1`",
            "t.yaml:15:15: flowLogs[0].fileMode: write it in quotes: \"0640\"",
            "t.yaml:7:23: flowLogs[0].includeFilters[0].source_port[0]: expected a string, found `80`; write it in \
             quotes: \"80\"",
            "t.yaml:9:19: flowLogs[0].includeFilters[0].verdict[0]: unknown value `forwarded`; did you mean `FORWARDED`?",
            "t.yaml:10:26: flowLogs[0].includeFilters[1].destination_ip[0]: `10.0.0.0/33` is not an IP prefix; expected \
             one like 10.0.0.0/8 or fd00::/8",
            "t.yaml:10:41: flowLogs[0].includeFilters[1].destination_ip[1]: `10.0.0` is not an IP address; expected one \
             like 10.0.0.1, ::1 or 10.0.0.0/8",
            "t.yaml:11:20: flowLogs[0].includeFilters[1].protocol[0]: unknown protocol `tpc`; did you mean `tcp`?",
            "t.yaml:5:17: flowLogs[0].fieldMask[0]: unknown field `source.podname`; did you mean `source.pod_name`?",
            "t.yaml:14:14: flowLogs[0].events[0]: unknown event `begin`; expected one of start, update, end, drop",
            "t.yaml:16:10: flowLogs[0].end: expected a time such as 2026-12-31T23:59:59Z, found `tomorrow`",
            "t.yaml:18:4: flowLogs[1]: expected a task, found nothing; remove the line or write a task",
            "t.yaml:19:5: flowLogs[2]: name is required; add one",
            "warning: t.yaml:8:9: flowLogs[0].includeFilters[0].source_pod: sees nothing: no record of this version has \
             what `source_pod` asks for",
        ]
    );
}

#[test]
fn filter_types_are_strict() {
    let table = [
        (
            "{source_prot: [\"80\"]}",
            "t.yaml:4:21: flowLogs[0].includeFilters[0].source_prot: unknown filter field `source_prot`; did you mean `source_port`?",
        ),
        (
            "{source_port: \"80\"}",
            "t.yaml:4:34: flowLogs[0].includeFilters[0].source_port: expected a list, found the string \"80\"; write it in brackets: [...]",
        ),
        (
            "{source_port: [\"+80\"]}",
            "t.yaml:4:35: flowLogs[0].includeFilters[0].source_port[0]: `+80` is not a port; expected a number from 0 to 65535 in quotes",
        ),
        (
            "{source_port: [\"65536\"]}",
            "t.yaml:4:35: flowLogs[0].includeFilters[0].source_port[0]: `65536` is not a port; expected a number from 0 to 65535 in quotes",
        ),
        (
            "{source_port: [\"1-2\"]}",
            "t.yaml:4:35: flowLogs[0].includeFilters[0].source_port[0]: `1-2` is not a port; expected a number from 0 to 65535 in quotes",
        ),
        (
            "{source_ip: [\"10.0.0.0/08\"]}",
            "t.yaml:4:33: flowLogs[0].includeFilters[0].source_ip[0]: `10.0.0.0/08` is not an IP prefix; expected one like 10.0.0.0/8 or fd00::/8",
        ),
        (
            "{reply: [\"true\"]}",
            "t.yaml:4:29: flowLogs[0].includeFilters[0].reply[0]: expected true or false, found the string \"true\"",
        ),
        (
            "{source_identity: [-1]}",
            "t.yaml:4:39: flowLogs[0].includeFilters[0].source_identity[0]: expected a whole number from 0 to 4294967295, found `-1`",
        ),
        (
            "{verdict: [\"1\"]}",
            "t.yaml:4:31: flowLogs[0].includeFilters[0].verdict[0]: unknown value `1`; expected one of VERDICT_UNKNOWN, FORWARDED, DROPPED, ERROR, AUDIT, REDIRECTED, TRACED, TRANSLATED",
        ),
        (
            "{tcp_flags: [{syn: true}]}",
            "t.yaml:4:34: flowLogs[0].includeFilters[0].tcp_flags[0].syn: unknown TCP flag `syn`; did you mean `SYN`?",
        ),
        (
            "{tcp_flags: [null]}",
            "t.yaml:4:33: flowLogs[0].includeFilters[0].tcp_flags[0]: expected a map, found nothing; write {} or remove it",
        ),
        (
            "{event_type: [4]}",
            "t.yaml:4:34: flowLogs[0].includeFilters[0].event_type[0]: expected a map, found `4`",
        ),
        (
            "{source_ip: [\"::1\"], sourceIp: []}",
            "t.yaml:4:41: flowLogs[0].includeFilters[0].sourceIp: `source_ip` stands here twice, first at t.yaml:4:21; keep one",
        ),
    ];
    for (filter, expected) in table {
        let text = format!("flowLogs:\n- name: a\n  filePath: /a\n  includeFilters: [{filter}]\n");
        assert_eq!(said(&text), [expected], "{filter}");
    }
}

#[test]
fn tasks_that_do_not_go_together() {
    check(&[
        (
            "flowLogs:\n- {name: a, filePath: /l/a}\n- {name: a, filePath: /l//a}\n",
            &[
                "t.yaml:3:10: flowLogs[1].name: task name `a` is taken at t.yaml:2:10; choose another",
                "t.yaml:3:23: flowLogs[1].filePath: `/l//a` is written by task `a` at t.yaml:2:23; choose another",
            ],
        ),
        (
            "flowLogs:\n- {name: a, filePath: /l/a}\n- {name: b, filePath: /l/a.zst, compression: none}\n",
            &[
                "t.yaml:3:23: flowLogs[1].filePath: `/l/a.zst` is written by task `a` at t.yaml:2:23; choose another",
            ],
        ),
        (
            "flowLogs:\n- {name: a, filePath: /l/a, compression: zstd, fileCompress: true, compressionLevel: 3}\n- {name: \
             b, filePath: /l/b, fileCompress: false, compressionLevel: 3}\n",
            &[
                "t.yaml:2:48: flowLogs[0].fileCompress: contradicts `compression: zstd`; remove one of the two",
                "t.yaml:3:50: flowLogs[1].compressionLevel: what is not compressed has no level; remove it",
            ],
        ),
        (
            "flowLogs:\n- {name: a, filePath: /l/a}\n- {name: b, filePath: /l/b, updateInterval: 10s}\n- {name: c, \
             filePath: /l/c, updateInterval: 20s}\n- {name: d, filePath: /l/d, events: [end]}\n- {name: e, filePath: /l/e, \
             events: [start, end]}\n",
            &[
                "t.yaml:6:10: flowLogs[4].name: `e` [start, end] is one pair of events and updateInterval more than the 4 \
               that can run at once; use that of `a` [start, update, end], or of `b` [start, update, end] every 10s, or of \
               `c` [start, update, end] every 20s, or of `d` [end]",
            ],
        ),
    ]);
}

#[test]
fn what_is_allowed_but_probably_not_meant() {
    check(&[
        (
            "flowLogs:\n- Name: a\n  filepath: /l/a\n",
            &[
                "warning: t.yaml:2:3: flowLogs[0].Name: read as `name`; write it like that",
                "warning: t.yaml:3:3: flowLogs[0].filepath: read as `filePath`; write it like that",
            ],
        ),
        (
            "flowLogs:\n- name: a\n  filePath: /l/a\n  Events: [end]\n",
            &["t.yaml:4:3: flowLogs[0].Events: unknown key `Events`; did you mean `events`?"],
        ),
        (
            "flowLogs:\n- {name: a, filePath: /l/a, events: [end], updateInterval: 10s}\n",
            &["warning: t.yaml:2:44: flowLogs[0].updateInterval: has no effect: `events` has no `update`"],
        ),
        (
            "flowLogs:\n- {name: a, filePath: /l/a, excludeFilters: [{}]}\n",
            &[
                "warning: t.yaml:2:45: flowLogs[0].excludeFilters: an empty filter here matches everything, so nothing is \
               ever written",
            ],
        ),
        (
            "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{source_ip: [\"::0001\"], protocol: [dns]}]}\n",
            &[
                "warning: t.yaml:2:59: flowLogs[0].includeFilters[0].source_ip[0]: matches nothing: records spell this \
                 address `::1`; write it like that",
                "warning: t.yaml:2:81: flowLogs[0].includeFilters[0].protocol[0]: matches nothing: no record of this \
                 version has `dns`",
            ],
        ),
    ]);
}

proptest::proptest! {
    /// Whatever stands in a file, reading it ends in tasks or in errors.
    #[test]
    fn no_text_panics(text in "([-a-z0-9:,{}\\[\\]&*!|>'\"#%@`~<?\\\\ \n\t./\u{0}\u{85}é]|flowLogs:|- name: a|filePath: /a|includeFilters: |source_ip: |\n  ){0,60}") {
        let (specs, mut problems) = read(&text);
        let plan = Plan::new(specs, &mut problems);
        proptest::prop_assert!(plan.tasks.is_empty() || text.contains("filePath"));
    }
}
