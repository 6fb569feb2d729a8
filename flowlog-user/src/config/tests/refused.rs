//! Filters that Hubble refuses to build, each with what is said about it.

use super::read;
use crate::record::Pools;

#[test]
fn what_is_wrong_with_a_filter() {
    let table = [
        ("{source_pod: ['']}", "source_pod[0]: `` is no name"),
        ("{source_pod: a/}", "source_pod: expected a list"),
        ("{destination_service: ['']}", "destination_service[0]: `` is no name"),
        ("{source_cluster_name: ['']}", "source_cluster_name[0]: the name `` is empty"),
        ("{source_fqdn: ['']}", "source_fqdn[0]: the pattern `` is empty"),
        ("{source_fqdn: ['a..']}", "source_fqdn[0]: the pattern `a..` ends in more than one dot"),
        ("{source_fqdn: ['a b']}", "source_fqdn[0]: the pattern `a b` has ` ` in it"),
        ("{node_name: [a/b/c]}", "node_name[0]: the pattern `a/b/c` has more than one slash"),
        ("{node_name: ['']}", "node_name[0]: the pattern `` is empty"),
        ("{node_name: ['node-?']}", "node_name[0]: the pattern `node-?` has `?` in it"),
        ("{source_label: ['a=b=c']}", "source_label[0]: `a=b=c` is no label selector: found `=`"),
        ("{source_label: ['a in b']}", "source_label[0]: `a in b` is no label selector: expected values"),
        ("{source_label: ['a in (b']}", "is no label selector: a `(` without its `)`"),
        ("{source_label: ['a,']}", "is no label selector: something must follow the last comma"),
        ("{source_label: [',a']}", "is no label selector: `,` is no label key"),
        ("{source_label: ['a-']}", "is no label selector: `a-` is no label key"),
        ("{source_label: ['a=-b']}", "is no label selector: `-b` is no label value"),
        ("{source_label: ['a>b']}", "is no label selector: `b` after > is no whole number"),
        ("{source_label: ['!a=b']}", "is no label selector: found `=`"),
        ("{node_labels: ['a b']}", "node_labels[0]: `a b` is no label selector: found `b`"),
        ("{dns_query: ['(']}", "dns_query[0]: `(` is no regular expression: unclosed group"),
        ("{dns_query: ['a**']}", "is no regular expression: a repetition of a repetition"),
        ("{dns_query: ['a{2}{3}']}", "is no regular expression: a repetition of a repetition"),
        ("{dns_query: ['a{1001}']}", "bounds of a repetition"),
        ("{dns_query: ['(?x)a']}", "is no regular expression: `(?x` is not known"),
        ("{dns_query: ['\\C']}", "is no regular expression: `\\C` is not known"),
        ("{dns_query: ['\\1']}", "is no regular expression: `\\1` is not known"),
        ("{dns_query: ['\\Z']}", "is no regular expression: `\\Z` is not known"),
        ("{dns_query: ['(?=a)']}", "is no regular expression: `(?=` is not known"),
        ("{dns_query: ['[a--b]']}", "is no regular expression"),
        ("{dns_query: ['[a']}", "is no regular expression: a `[` without its `]`"),
        ("{dns_query: ['[[:foo:]]']}", "is no regular expression: the class `[:foo:]` is not known"),
        ("{dns_query: ['(a{1000}){1000}']}", "is no regular expression: it takes more than"),
        ("{http_path: ['[z-a]']}", "http_path[0]: `[z-a]` is no regular expression"),
        ("{http_status_code: ['600']}", "http_status_code[0]: `600` is no HTTP status code"),
        ("{http_status_code: ['404+']}", "http_status_code[0]: `404+` is no HTTP status code"),
        ("{http_status_code: ['+']}", "http_status_code[0]: `+` is no HTTP status code"),
        ("{http_status_code: [404]}", "write it in quotes"),
        (
            "{http_url: [x], event_type: [{type: 4}]}",
            "http_url: `http_url` (`x`) can hold only for events of type 129",
        ),
        ("{http_header: [{name: x}]}", "http_header[0].name: unknown header key `name`"),
        ("{source_workload: [x]}", "source_workload[0]: expected a map"),
        (
            "{drop_reason_desc: [POLICY_DENYED]}",
            "unknown value `POLICY_DENYED`; did you mean `POLICY_DENIED`?",
        ),
        ("{drop_reason_desc: [x]}", "unknown value `x`; expected a name of Hubble's flow.DropReason"),
        ("{ip_trace_id: [-1]}", "ip_trace_id[0]: expected a whole number from 0 to 18446744073709551615"),
        ("{encrypted: [\"true\"]}", "encrypted[0]: expected true or false"),
        ("{source_ip_xlated: [x]}", "source_ip_xlated[0]: `x` is not an IP address"),
        ("{experimental: {cel: [x]}}", "experimental.cel: unknown experimental key `cel`"),
        (
            "{experimental: {cel_expression: ['_flow.x']}}",
            "cel_expression[0]: `_flow.x` is no CEL filter: flow.Flow has no field `x`",
        ),
        ("{experimental: {celExpression: [1]}}", "celExpression[0]: expected a string"),
    ];
    for (filter, expected) in table {
        let text = format!("flowLogs:\n- name: a\n  filePath: /a\n  includeFilters: [{filter}]\n");
        let said = read(&text).1.to_string();
        assert!(said.contains(expected), "{filter}: {said}");
        assert_eq!(said.lines().count(), 1, "{filter}: {said}");
    }
}

/// What is valid, but asks for what no record of ours has, is never silent.
#[test]
fn what_sees_nothing_is_warned_of() {
    let table = [
        ("{source_pod: [a]}", true),
        ("{destination_label: [app]}", true),
        ("{destination_label: ['reserved:world']}", false),
        ("{destination_label: [world]}", false),
        ("{destination_label: ['any:unmanaged', 'any:app']}", true),
        ("{dns_query: [a]}", true),
        ("{verdict: [AUDIT]}", true),
        ("{verdict: [DROPPED], drop_reason_desc: [POLICY_DENIED]}", false),
        ("{event_type: [{type: 1}]}", false),
        ("{verdict: [DROPPED, FORWARDED]}", false),
        ("{event_type: [{type: 129}]}", true),
        ("{event_type: [{sub_type: 3}]}", false),
        ("{ip_version: [IP_NOT_USED]}", true),
        ("{traffic_direction: [INGRESS]}", false),
        ("{source_identity: [2, 30211]}", false),
        ("{source_identity: [30211]}", true),
        ("{trace_id: [a]}", true),
        ("{encrypted: [false]}", false),
        ("{node_name: [a], uuid: [b], reply: [true]}", false),
        ("{source_pod: []}", false),
    ];
    for (filter, expected) in table {
        let text = format!("flowLogs:\n- name: a\n  filePath: /a\n  excludeFilters: [{filter}]\n");
        let (specs, problems) = read(&text);
        let labels = specs.iter().flat_map(|spec| spec.filter.vain(&Pools::default()));
        let warnings = problems.warnings.iter().cloned().chain(labels);
        let warned = warnings.clone().any(|warning| warning.message.contains(crate::filter::NOT_RECORDED));
        assert!(problems.errors.is_empty() && warned == expected, "{filter}: {:?}", problems.warnings);
    }
}

proptest::proptest! {
    /// Whatever a pattern is, it compiles or is refused.
    #[test]
    fn no_pattern_panics(pattern in "([a-c0-9.*+?|(){}\\[\\]^$:,<>&~-]|\\\\[a-zA-Z0-9\\[{]|\\(\\?|\\[\\[:|:\\]|\\{2|é){0,16}") {
        for field in ["dns_query", "source_label", "source_fqdn", "node_name"] {
            let text = serde_json::json!({ "flowLogs": [{ "name": "a", "filePath": "/a",
                "includeFilters": [{ field: [pattern] }] }] });
            read(&text.to_string());
        }
    }
}
