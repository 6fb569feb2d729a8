//! Hubble's filters on flows that somebody else recorded. Expected values follow from the description of Cilium 1.19.4's
//! filters; what random cases of the real one do not reach stands here.

use super::plan;
use crate::filter::Filter;
use crate::read::event;
use crate::record::Foreign;

fn filter(one: &str) -> Filter {
    plan(&format!("flowLogs:\n- name: a\n  filePath: /l/a\n  includeFilters: [{one}]\n"))
        .tasks
        .remove(0)
        .filter
}

fn flow(fields: &str) -> Foreign {
    event(format!("{{\"flow\":{{{fields}}}}}").as_bytes()).unwrap()
}

fn check(flow: &Foreign, table: &[(&str, bool)]) {
    for (one, expected) in table {
        assert_eq!(filter(one).takes(flow), *expected, "{one}");
    }
}

#[test]
fn pods_and_services() {
    let pod = flow(r#""source":{"namespace":"shop","pod_name":"cart-0"},"source_service":{"name":"cart"}"#);
    check(
        &pod,
        &[
            ("{source_pod: [shop/cart]}", true),
            ("{source_pod: [shop/cart-0]}", true),
            ("{source_pod: [shop/art]}", false),
            ("{source_pod: [cart]}", false),
            ("{source_pod: [default/cart]}", false),
            ("{source_pod: [shop/]}", true),
            ("{source_pod: [/cart]}", true),
            ("{source_pod: [/]}", true),
            ("{source_pod: ['shop/*']}", false),
            ("{source_pod: [shop/cart/x]}", true),
            ("{destination_pod: [/]}", false),
            ("{source_service: [/cart]}", true),
            ("{source_service: [cart]}", false),
            ("{source_workload: [{}]}", false),
        ],
    );
    let default = flow(r#""source":{"namespace":"default","pod_name":"cart"}"#);
    check(&default, &[("{source_pod: [cart]}", true), ("{source_pod: [c]}", true)]);
}

#[test]
fn names_and_nodes() {
    let named = flow(
        r#""node_name":"node-17","destination_names":["www.example.com","a_b.example.com","API.example.com"]"#,
    );
    check(
        &named,
        &[
            ("{destination_fqdn: [www.example.com]}", true),
            ("{destination_fqdn: [' WWW.Example.com. ']}", true),
            ("{destination_fqdn: [example.com]}", false),
            ("{destination_fqdn: ['*.com']}", true),
            ("{destination_fqdn: ['*']}", true),
            ("{destination_fqdn: ['w*w.example.com']}", true),
            ("{destination_fqdn: ['a*b.example.com']}", false),
            ("{destination_fqdn: [a_b.example.com]}", true),
            ("{destination_fqdn: [api.example.com]}", false),
            ("{source_fqdn: ['*']}", false),
            ("{node_name: [node-17]}", true),
            ("{node_name: [NODE-17]}", true),
            ("{node_name: ['node-*']}", true),
            ("{node_name: [default/node-17]}", true),
            ("{node_name: [default/]}", true),
            ("{node_name: [east/]}", false),
            ("{node_name: [/node-17]}", true),
            ("{node_name: [/]}", true),
        ],
    );
    check(
        &flow(r#""node_name":"east/node-17""#),
        &[
            ("{node_name: [node-17]}", true),
            ("{node_name: [east/]}", true),
            ("{node_name: ['e*/node-17']}", true),
            ("{node_name: [default/node-17]}", false),
        ],
    );
    check(&flow(r#""node_name":"East/node""#), &[("{node_name: [East/node]}", false)]);
    check(&flow(r#""verdict":"FORWARDED""#), &[("{node_name: ['*']}", false)]);
}

#[test]
fn labels() {
    let labelled = flow(
        r#""source":{"labels":["k8s:app=cart","app=plain","reserved:world","k8s:version=3","k8s:a.b/c=d","cidr:10.1.2.0/24",
        "k8s:io.kubernetes.pod.namespace=shop"]},"node_labels":["pool=blue","topology.kubernetes.io/zone=z2"]"#,
    );
    check(
        &labelled,
        &[
            ("{source_label: [app=cart]}", true),
            ("{source_label: [app==cart]}", true),
            // The first label of that key counts, whatever its source.
            ("{source_label: [app=plain]}", false),
            ("{source_label: ['k8s:app=cart']}", true),
            ("{source_label: ['any:app=cart']}", true),
            ("{source_label: ['container:app=cart']}", false),
            ("{source_label: [app]}", true),
            ("{source_label: ['!app']}", false),
            ("{source_label: ['!other']}", true),
            ("{source_label: ['app!=cart']}", false),
            ("{source_label: ['other!=cart']}", true),
            ("{source_label: ['app in (a, cart)']}", true),
            ("{source_label: ['app notin (a,b)']}", true),
            ("{source_label: ['other in ()']}", false),
            ("{source_label: ['other notin (a)']}", true),
            ("{source_label: ['version>2']}", true),
            ("{source_label: ['version > 3']}", false),
            ("{source_label: ['version<4,app=cart']}", true),
            ("{source_label: ['version<4,app=other']}", false),
            ("{source_label: ['app<4']}", false),
            ("{source_label: ['reserved:world']}", true),
            ("{source_label: ['reserved:host']}", false),
            ("{source_label: ['a.b/c=d']}", true),
            ("{source_label: ['k8s:io.kubernetes.pod.namespace=shop']}", true),
            ("{source_label: ['cidr:10.0.0.0/8']}", true),
            ("{source_label: ['cidr:10.1.2.0/24']}", true),
            ("{source_label: ['cidr:10.1.2.0/25']}", false),
            ("{source_label: ['cidr:11.0.0.0/8']}", false),
            ("{source_label: [x, app=cart]}", true),
            ("{source_label: ['']}", true),
            ("{destination_label: ['!app']}", true),
            ("{destination_label: ['app!=x']}", true),
            ("{destination_label: [app]}", false),
            ("{node_labels: [pool=blue]}", true),
            ("{node_labels: ['topology.kubernetes.io/zone in (z1,z2)']}", true),
            ("{node_labels: ['k8s:pool=blue']}", false),
        ],
    );
}

#[test]
fn layer_seven() {
    let http = flow(
        r#""l7":{"type":"RESPONSE","http":{"code":404,"method":"Get","url":"http://h/a%20b?q=1","headers":[{"key":"Host","value":"h"}]}}"#,
    );
    check(
        &http,
        &[
            ("{http_status_code: ['404']}", true),
            ("{http_status_code: ['4+', '50+']}", true),
            ("{http_status_code: ['40+']}", true),
            ("{http_status_code: ['41+', '405']}", false),
            ("{http_method: [GET]}", true),
            ("{http_method: [POST]}", false),
            ("{http_path: ['^/a b$']}", true),
            ("{http_path: ['q=']}", false),
            ("{http_url: ['q=1$']}", true),
            ("{http_header: [{key: Host, value: h}]}", true),
            ("{http_header: [{key: host, value: h}]}", false),
            ("{http_header: [{key: Host}]}", false),
            ("{http_header: [{key: Host, value: h}], event_type: [{type: 129}, {type: 4}]}", false),
            ("{protocol: [HTTP]}", true),
            ("{dns_query: ['.*']}", false),
        ],
    );
    check(
        &flow(r#""l7":{"http":{"url":"x"}}"#),
        &[
            ("{http_status_code: ['1+', '2+', '3+', '4+', '5+']}", false),
            ("{http_method: ['']}", false),
            ("{http_path: ['']}", false),
            ("{http_url: ['']}", true),
        ],
    );
    check(
        &flow(r#""l7":{"dns":{"query":"Example.com."}}"#),
        &[
            ("{dns_query: [example]}", false),
            ("{dns_query: ['(?i)example']}", true),
            ("{dns_query: ['com$']}", false),
            ("{protocol: [dns]}", true),
            ("{http_url: ['']}", false),
        ],
    );
}

#[test]
fn what_is_absent() {
    let dropped = flow(r#""verdict":"DROPPED","drop_reason_desc":"POLICY_DENIED""#);
    let table = [
        ("{reply: [false]}", true),
        ("{reply: [true]}", false),
        ("{drop_reason_desc: [POLICY_DENIED]}", true),
        ("{drop_reason_desc: [133]}", true),
        ("{drop_reason_desc: [DROP_REASON_UNKNOWN]}", false),
        ("{encrypted: [false]}", true),
        ("{encrypted: [true]}", false),
        ("{ip_version: [IP_NOT_USED]}", true),
        ("{traffic_direction: [TRAFFIC_DIRECTION_UNKNOWN]}", true),
        ("{trace_id: ['']}", true),
        ("{trace_id: [x]}", false),
        ("{ip_trace_id: [0]}", true),
        ("{ip_trace_id: ['7']}", false),
        ("{uuid: ['']}", true),
        ("{source_ip: ['0.0.0.0/0', '::/0']}", false),
        ("{source_identity: [0]}", false),
        ("{source_port: ['0']}", false),
        ("{tcp_flags: [{}]}", false),
        ("{interface: [{}]}", false),
        ("{event_type: [{}]}", false),
        ("{protocol: [icmp, tcp, udp, vrrp, igmp]}", false),
    ];
    check(&dropped, &table);
    let forwarded = flow(r#""verdict":"FORWARDED","drop_reason_desc":"POLICY_DENIED""#);
    check(&forwarded, &[("{reply: [false]}", false), ("{drop_reason_desc: [POLICY_DENIED]}", false)]);
    check(
        &flow(r#""verdict":42,"l4":{"TCP":{"flags":{}}},"source":{},"interface":{}"#),
        &[
            ("{verdict: [42]}", true),
            ("{tcp_flags: [{}]}", true),
            ("{tcp_flags: [{SYN: true}]}", false),
            ("{source_port: ['0']}", true),
            ("{source_identity: [0]}", true),
            ("{interface: [{}]}", true),
            ("{interface: [{name: eth0}]}", false),
        ],
    );
    let vrrp = flow(r#""l4":{"VRRP":{}},"IP":{"source":"fe80::1%eth0","source_xlated":"::ffff:10.0.0.1"}"#);
    check(
        &vrrp,
        &[
            ("{protocol: [vrrp]}", true),
            ("{source_ip: ['fe80::1%eth0']}", true),
            ("{source_ip: ['fe80::/10']}", false),
            ("{source_ip_xlated: ['10.0.0.0/8']}", false),
            ("{source_ip_xlated: ['::ffff:10.0.0.0/104']}", true),
        ],
    );
}

#[test]
fn expressions_as_go_reads_them() {
    let url = |text: &str| flow(&format!(r#""l7":{{"http":{{"url":{}}}}}"#, serde_json::json!(text)));
    let table = [
        // Classes are ASCII.
        (r"^\d$", "7", true),
        (r"^\d$", "٧", false),
        (r"^\w$", "é", false),
        (r"^[\w]+$", "a_1", true),
        (r"^[^\w]$", "é", true),
        (r"^[^\W]$", "a", true),
        (r"^\s$", "\u{a0}", false),
        (r"é\b", "é", false),
        (r"a\b", "aé", true),
        // What is plain in Go.
        (r"^[[]$", "[", true),
        (r"^[a[b]$", "[", true),
        (r"^[a&&b]$", "&", true),
        (r"^[+--]$", ",", true),
        (r"^[\d-z]+$", "7-z", true),
        (r"^[a-]$", "-", true),
        (r"^[]a]$", "]", true),
        (r"^[^]a]$", "b", true),
        (r"^a{,2}$", "a{,2}", true),
        (r"^a{2}$", "aa", true),
        (r"^a{1,2}?$", "aa", true),
        (r"^x{$", "x{", true),
        (r"^\Qa.b\E+$", "a.bb", true),
        (r"^\Q[a", "[a", true),
        (r"^\x41\x{42}\103\-\_\.$", "ABC-_.", true),
        (r"^\pL\p{Greek}\p{^Greek}\PL$", "aαa1", true),
        (r"^[[:alpha:][:^digit:]]$", "-", true),
        (r"(?i)ABC", "xabcx", true),
        (r"(?s:^.$)", "\n", true),
        (r"^.$", "\n", false),
        (r"a$", "a\n", false),
        (r"(?m)a$", "a\n", true),
        (r"^(?P<x>a)(?<y>b)$", "ab", true),
        (r"\Aa\z", "a", true),
    ];
    for (pattern, text, expected) in table {
        let one = format!("{{http_url: [{}]}}", serde_json::json!(pattern));
        assert_eq!(filter(&one).takes(&url(text)), expected, "{pattern} {text:?}");
    }
}
