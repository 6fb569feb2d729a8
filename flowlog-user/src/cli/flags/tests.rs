//! The expected filters and refusals are those of Cilium's own tests of its command line.

use super::*;

#[derive(clap::Parser, Debug)]
struct Line {
    #[command(flatten)]
    filters: FilterArgs,
}

fn parse(arguments: &[&str]) -> Result<FilterArgs, String> {
    use clap::Parser;
    let line = std::iter::once("test").chain(arguments.iter().copied());
    Line::try_parse_from(line).map(|line| line.filters).map_err(|error| error.to_string())
}

fn lists(arguments: &[&str]) -> (Vec<String>, Vec<String>) {
    let filters = parse(arguments).unwrap();
    let text = |list: &[Json]| list.iter().map(ToString::to_string).collect();
    (text(&filters.allow), text(&filters.deny))
}

/// Arguments, filters to take, filters to leave out.
type Case = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);
const COMBINED: [Case; 11] = [
    (&[], &[], &[]),
    (
        &[
            "--from-ip",
            "1.2.3.4",
            "--from-ip",
            "5.6.7.8",
            "--not",
            "--to-ip",
            "5.5.5.5",
            "--verdict",
            "DROPPED",
            "-t",
            "l7",
        ],
        &[r#"{"source_ip":["1.2.3.4","5.6.7.8"],"verdict":["DROPPED"],"event_type":[{"type":129}]}"#],
        &[r#"{"destination_ip":["5.5.5.5"]}"#],
    ),
    (
        &[
            "--ip",
            "1.2.3.4",
            "--ip",
            "5.6.7.8",
            "--verdict",
            "DROPPED",
            "--not",
            "--pod",
            "deathstar",
            "--not",
            "--http-status",
            "200",
            "--http-method",
            "get",
            "--http-path",
            "/page/\\d+",
            "--node-name",
            "k8s*",
        ],
        &[
            r#"{"source_ip":["1.2.3.4","5.6.7.8"],"verdict":["DROPPED"],"http_method":["get"],"http_path":["/page/\\d+"],"node_name":["k8s*"]}"#,
            r#"{"destination_ip":["1.2.3.4","5.6.7.8"],"verdict":["DROPPED"],"http_method":["get"],"http_path":["/page/\\d+"],"node_name":["k8s*"]}"#,
        ],
        &[
            r#"{"source_pod":["deathstar"],"http_status_code":["200"]}"#,
            r#"{"destination_pod":["deathstar"],"http_status_code":["200"]}"#,
        ],
    ),
    (
        &[
            "-t",
            "254",
            "-t",
            "255:127",
            "-t",
            "trace:to-endpoint",
            "-t",
            "trace:from-endpoint",
            "-t",
            "4:2",
            "-t",
            "agent",
            "-t",
            "agent:3",
            "-t",
            "agent:policy-updated",
        ],
        &[
            r#"{"event_type":[{"type":254},{"type":255,"match_sub_type":true,"sub_type":127},{"type":4,"match_sub_type":true},{"type":4,"match_sub_type":true,"sub_type":5},{"type":4,"match_sub_type":true,"sub_type":2},{"type":130},{"type":130,"match_sub_type":true,"sub_type":3},{"type":130,"match_sub_type":true,"sub_type":3}]}"#,
        ],
        &[],
    ),
    (
        &["--label", "k1=v1,k2=v2", "-l", "k3", "--node-label", "io.cilium.egress-gateway"],
        &[
            r#"{"source_label":["k1=v1,k2=v2","k3"],"node_labels":["io.cilium.egress-gateway"]}"#,
            r#"{"destination_label":["k1=v1,k2=v2","k3"],"node_labels":["io.cilium.egress-gateway"]}"#,
        ],
        &[],
    ),
    (
        &["--from-pod", "cilium", "--to-workload", "app"],
        &[r#"{"source_pod":["cilium"],"destination_workload":[{"name":"app"}]}"#],
        &[],
    ),
    (
        &["--identity", "1", "--identity", "world", "--tcp-flags", "syn,ACK", "--ipv4", "-6"],
        &[
            r#"{"source_identity":[1,2],"tcp_flags":[{"SYN":true,"ACK":true}],"ip_version":["IPv4","IPv6"]}"#,
            r#"{"destination_identity":[1,2],"tcp_flags":[{"SYN":true,"ACK":true}],"ip_version":["IPv4","IPv6"]}"#,
        ],
        &[],
    ),
    (
        &["-n", "kube-system"],
        &[r#"{"source_pod":["kube-system/"]}"#, r#"{"destination_pod":["kube-system/"]}"#],
        &[],
    ),
    (
        &["--namespace", "foo", "--service", "bar", "--pod", "blib"],
        &[
            r#"{"source_pod":["foo/blib"],"source_service":["foo/bar"]}"#,
            r#"{"destination_pod":["foo/blib"],"destination_service":["foo/bar"]}"#,
        ],
        &[],
    ),
    (
        &["--to-namespace", "a", "--to-namespace", "b", "--from-all-namespaces", "--interface", "eth0"],
        &[r#"{"source_pod":["/"],"destination_pod":["a/","b/"],"interface":[{"name":"eth0"}]}"#],
        &[],
    ),
    (
        &[
            "--traffic-direction",
            "Egress",
            "--cel-expression",
            "_flow.verdict == 1",
            "--workload",
            "DaemonSet/",
            "--allowlist",
            r#"{"destinationPort":["53"],"source_ip":["::1"]} {"verdict":["AUDIT"]}"#,
            "--denylist",
            r#"{"protocol":["udp"]}"#,
        ],
        &[
            r#"{"source_workload":[{"kind":"DaemonSet"}],"traffic_direction":["EGRESS"],"experimental":{"cel_expression":["_flow.verdict == 1"]}}"#,
            r#"{"destination_workload":[{"kind":"DaemonSet"}],"traffic_direction":["EGRESS"],"experimental":{"cel_expression":["_flow.verdict == 1"]}}"#,
            r#"{"source_ip":["::1"],"destination_port":["53"]}"#,
            r#"{"verdict":["AUDIT"]}"#,
        ],
        &[r#"{"protocol":["udp"]}"#],
    ),
];

#[test]
fn flags_are_combined_as_hubble_does() {
    for (arguments, allow, deny) in COMBINED {
        let (got_allow, got_deny) = lists(arguments);
        assert_eq!(got_allow, allow, "{arguments:?}");
        assert_eq!(got_deny, deny, "{arguments:?}");
    }
}

const CONTRADICTIONS: [&str; 57] = [
    "port to-port",
    "port from-port",
    "identity to-identity",
    "identity from-identity",
    "workload to-workload",
    "workload from-workload",
    "fqdn from-fqdn",
    "fqdn to-fqdn",
    "ip from-ip",
    "ip to-ip",
    "label from-label",
    "label to-label",
    "service from-service",
    "service to-service",
    "pod from-pod",
    "pod to-pod",
    "namespace from-namespace",
    "namespace to-namespace",
    "ip fqdn",
    "ip from-fqdn",
    "ip to-fqdn",
    "from-ip from-fqdn",
    "from-ip fqdn",
    "to-ip fqdn",
    "to-ip to-fqdn",
    "ip pod",
    "ip from-pod",
    "ip to-pod",
    "from-ip from-pod",
    "from-ip pod",
    "to-ip pod",
    "to-ip to-pod",
    "ip namespace",
    "ip from-namespace",
    "ip to-namespace",
    "from-ip from-namespace",
    "from-ip namespace",
    "to-ip namespace",
    "to-ip to-namespace",
    "pod fqdn",
    "pod from-fqdn",
    "pod to-fqdn",
    "from-pod from-fqdn",
    "from-pod fqdn",
    "from-pod namespace",
    "to-pod fqdn",
    "to-pod to-fqdn",
    "to-pod namespace",
    "namespace fqdn",
    "namespace from-fqdn",
    "namespace to-fqdn",
    "namespace from-service",
    "namespace to-service",
    "from-namespace from-fqdn",
    "from-namespace fqdn",
    "to-namespace fqdn",
    "to-namespace to-fqdn",
];

const REFUSED: [(&[&str], &str); 20] = [
    (&["--from-ip", "1.2.3.4", "--not"], "no filter follows the last --not"),
    (&["--not", "--not", "--ip", "1.2.3.4"], "two --not follow each other"),
    (
        &["--from-ip", "1.2.3.4", "--from-fqdn", "doesnt.work"],
        "filters --from-fqdn and --from-ip cannot be combined",
    ),
    (&["-t", "some-invalid-type"], "no type of events"),
    (&["-t", "trace:some-invalid-sub-type"], "no subtype"),
    (&["-t", "agent:Policy updated"], "no subtype"),
    (&["--verdict", "FORWARD"], "did you mean `FORWARDED`?"),
    (&["--tcp-flags", "syn,foo"], "unknown TCP flag `FOO`"),
    (&["--traffic-direction", "up"], "expected ingress or egress"),
    (&["--identity", "nobody"], "kube-apiserver"),
    (&["--ip", "10.0.0"], "10.0.0"),
    (&["--port", "http"], "http"),
    (&["--http-header", "foo"], "NAME:VALUE"),
    (&["--ip-trace-id", "0"], "greater than 0"),
    (&["--namespace", "foo", "--pod", "bar/x"], "namespace conflict"),
    (&["--from-pod", "a/x", "--from-service", "b/y"], "conflicts with pod"),
    (&["--cel-expression", "_flow.nothing == 1"], "nothing"),
    (&["--allowlist", "{\"source_ip\":"], "cannot read"),
    (&["--allowlist", "[1]"], "no filter"),
    (&["--denylist", "{\"invalid\":[\"filters\"]}"], "unknown filter field `invalid`"),
];

#[test]
fn what_contradicts_itself_is_refused() {
    for flags in CONTRADICTIONS {
        let (one, other) = flags.split_once(' ').unwrap();
        // Values that each of them takes.
        let value = |flag: &str| match flag {
            flag if flag.ends_with("ip") => "10.0.0.1",
            flag if flag.ends_with("port") || flag.ends_with("identity") => "80",
            _ => "foo",
        };
        let (a, b) = (format!("--{one}"), format!("--{other}"));
        let error = parse(&[&a, value(one), &b, value(other)]).unwrap_err();
        assert!(error.contains("cannot be combined"), "{flags}: {error}");
        // In different lists they do not meet.
        assert!(parse(&[&a, value(one), "--not", &b, value(other)]).is_ok(), "{flags}");
    }
    for (arguments, what) in REFUSED {
        let error = parse(arguments).unwrap_err();
        assert!(error.contains(what), "{arguments:?}: {error}");
    }
}

#[test]
fn filters_are_printed_as_hubble_prints_them() {
    let filters = parse(&["--from-ip", "1.2.3.4/16", "--not", "--from-port", "80"]).unwrap();
    assert_eq!(
        filters.to_yaml(),
        "allowlist:\n    - '{\"source_ip\":[\"1.2.3.4/16\"]}'\ndenylist:\n    - '{\"source_port\":[\"80\"]}'\n"
    );
    let filters = parse(&["--http-path", "it's <a>"]).unwrap();
    assert_eq!(filters.to_yaml(), "allowlist:\n    - '{\"http_path\":[\"it''s \\u003ca\\u003e\"]}'\n");
    assert_eq!(parse(&[]).unwrap().to_yaml(), "{}\n");
}
