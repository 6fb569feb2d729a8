//! Expected values: the CEL specification and the field types of Hubble's messages.

use super::{Evaluator, Expressions, compile};
use crate::filter::cel::value::Val;

const FLOW: &str = r#"{"flow":{"time":"2026-11-30T20:14:26.5Z","verdict":"DROPPED",
    "IP":{"source":"10.1.2.3","destination":"10.0.0.1","ipVersion":"IPv4"},
    "l4":{"TCP":{"source_port":48212,"destination_port":443,"flags":{"SYN":true}}},
    "source":{"identity":2,"namespace":"shop","labels":["k8s:app=cart","reserved:world"]},
    "node_name":"east/node-17","destination_names":["a.example.com","b.example.com"],
    "is_reply":false,"socket_cookie":"9007199254740993",
    "extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"bytes":1500,"event":"end"}}}}"#;

/// True, false, or nothing where it fails.
fn run(source: &str) -> Option<bool> {
    let expression = compile(source).unwrap_or_else(|what| panic!("{source}: {what}"));
    let event = crate::read::event(FLOW.as_bytes()).unwrap();
    match Evaluator::new(event.flow().unwrap()).run(&expression.node) {
        Ok(Val::Bool(value)) => Some(value),
        Ok(other) => panic!("{source}: {other:?}"),
        Err(_) => None,
    }
}

#[test]
fn what_hubbles_users_write() {
    let table = [
        ("_flow.IP.source.startsWith('10.')", Some(true)),
        ("_flow.verdict == 2", Some(true)),
        ("_flow.verdict == flow.Verdict.DROPPED", Some(true)),
        ("_flow.verdict == Verdict.FORWARDED", Some(false)),
        ("_flow.tunnel.protocol == flow.Tunnel.Protocol.UNKNOWN", Some(true)),
        ("has(_flow.l4) && _flow.l4.TCP.destination_port == uint(443)", Some(true)),
        ("_flow.l4.TCP.destination_port in [80u, 443u]", Some(true)),
        ("_flow.l4.UDP.destination_port != 80u", Some(true)),
        ("_flow.source.labels.exists(l, l == 'reserved:world')", Some(true)),
        ("_flow.source.labels.all(l, l.contains(':'))", Some(true)),
        ("_flow.source.labels.exists_one(l, l.startsWith('k8s:'))", Some(true)),
        ("_flow.destination_names.map(n, n.size()).exists(n, n == 13)", Some(true)),
        ("_flow.destination_names.filter(n, n.startsWith('b')) == ['b.example.com']", Some(true)),
        ("_flow.node_name.matches('node-[0-9]+')", Some(true)),
        ("_flow.node_name.matches('^node')", Some(false)),
        ("_flow.source.namespace == 'shop' || _flow.destination.namespace == 'pay'", Some(true)),
        ("_flow.time > timestamp('2026-01-01T00:00:00Z')", Some(true)),
        ("_flow.time.getFullYear() == 2026 && _flow.time.getMonth() == 10", Some(true)),
        ("_flow.time - timestamp('2026-11-30T20:14:26Z') == duration('500ms')", Some(true)),
        ("_flow.socket_cookie == 9007199254740993u", Some(true)),
        ("has(_flow.extensions) && _flow.extensions.bytes > 1000.0", Some(true)),
        ("has(_flow.extensions.packets) || _flow.extensions.event == 'end'", Some(true)),
        ("_flow.IP == _flow.IP", Some(true)),
        ("_flow.destination_names[1] == 'b.example.com'", Some(true)),
        ("(_flow.is_reply ? 1 : 2) == 2", Some(true)),
        ("'k' in {'k': 1} && {'k': 1}['k'] + 2 * 3 - 8 / 2 == 3", Some(true)),
        ("string(443u) + 'x' == '443x' && int('7') == 7 && double(2) < 2.5", Some(true)),
    ];
    for (source, expected) in table {
        assert_eq!(run(source), expected, "{source}");
    }
}

#[test]
fn presence_is_not_value() {
    let table = [
        ("has(_flow.l4)", Some(true)),
        ("has(_flow.l4.TCP)", Some(true)),
        ("has(_flow.l4.UDP)", Some(false)),
        ("has(_flow.l7.http)", Some(false)),
        ("has(_flow.l7.http.url)", Some(false)),
        ("has(_flow.is_reply)", Some(true)),
        ("_flow.is_reply == false", Some(true)),
        ("_flow.is_reply == null", Some(false)),
        ("has(_flow.uuid)", Some(false)),
        ("_flow.uuid == ''", Some(true)),
        ("has(_flow.destination)", Some(false)),
        ("has(_flow.destination.labels)", Some(false)),
        ("_flow.destination.labels.size() == 0", Some(true)),
        ("has(_flow.source.labels)", Some(true)),
    ];
    for (source, expected) in table {
        assert_eq!(run(source), expected, "{source}");
    }
}

#[test]
fn what_fails_is_no_match_unless_the_other_side_decides() {
    let table = [
        ("_flow.extensions.missing == 1.0", None),
        ("_flow.destination_names[2] == ''", None),
        ("1 / (2 - 2) == 1", None),
        ("9223372036854775807 + 1 > 0", None),
        ("1 / 0 == 1 || true", Some(true)),
        ("true || 1 / 0 == 1", Some(true)),
        ("1 / 0 == 1 && false", Some(false)),
        ("1 / 0 == 1 || false", None),
        ("['a', 'b'].exists(x, x == 'b' || 1 / 0 == 1)", Some(true)),
        ("['b', 'a'].exists(x, int(x) == 1)", None),
        ("['x', '1'].exists(x, int(x) == 1)", Some(true)),
        ("['x', '2'].exists(x, int(x) == 1)", None),
        ("['x', '2'].all(x, int(x) == 1)", Some(false)),
    ];
    for (source, expected) in table {
        assert_eq!(run(source), expected, "{source}");
    }
}

#[test]
fn what_is_wrong_is_found_before_it_runs() {
    let table = [
        ("_flow.verdct == 1", "did you mean `verdict`?"),
        ("_flow.verdict == 'DROPPED'", "`==` does not take int and string"),
        ("_flow.l4.TCP.destination_port == 443", "write the number as 80u"),
        ("_flow.l4.TCP.destination_port > 80", "`>` does not take uint and int"),
        ("_flow.IP.source", "its result is string, expected bool"),
        ("_flow", "its result is flow.Flow, expected bool"),
        ("flow.verdict == 1", "`flow.verdict` is not known"),
        ("_flow.verdict == Verdict.NONE", "`Verdict.NONE` is not known"),
        ("_flow.node_name.startWith('a')", "did you mean `startsWith`?"),
        ("_flow.node_name.startsWith(1)", "does not take string and int"),
        ("_flow.node_name.matches('(')", "the pattern `(`: unclosed group"),
        ("_flow.source.labels.exists(l, l)", "`||` does not take bool and string"),
        ("_flow.source.labels.exists(l, l == 1)", "`==` does not take string and int"),
        ("_flow.IP.source.x == 1", "string has no fields"),
        ("flow.IP{source: 'a'} == _flow.IP", "message literals"),
        ("1 +", "at column"),
        ("", "at column"),
        ("true ? 1 : 'a'", "does not take bool and int and string"),
        ("!1", "`!` does not take int"),
    ];
    for (source, expected) in table {
        let what = compile(source).map(|_| ()).unwrap_err();
        assert!(what.contains(expected), "{source}: {what}");
    }
    let long = format!("'{}' == ''", "x".repeat(5000));
    assert!(compile(&long).unwrap_err().contains("more than 4096 characters"));
    let deep = format!("{}true{}", "(".repeat(500), ")".repeat(500));
    assert!(compile(&deep).is_err());
    for flat in [
        format!("{}true", "!".repeat(3000)),
        format!("_flow{}", ".l4".repeat(1300)),
        format!("{}true", "true ? true : ".repeat(290)),
        format!("{}true{}", "[".repeat(2000), "]".repeat(2000)),
        format!("{}true", "(".repeat(4000)),
        format!("{}true", "-".repeat(4000)),
        format!("true{}", " && true".repeat(500)),
        format!("true{}", "[0]".repeat(1300)),
    ] {
        let _ = compile(&flat);
    }
    let chain = format!("0{} == 0", "+1".repeat(1000));
    assert!(compile(&chain).unwrap_err().contains("deeper than"));
}

#[test]
fn a_failure_ends_the_search() {
    let event = crate::read::event(FLOW.as_bytes()).unwrap();
    let all = |sources: &[&str]| {
        let expressions = Expressions(sources.iter().map(|source| compile(source).unwrap()).collect());
        expressions.matches(event.flow().unwrap())
    };
    assert!(all(&["false", "true"]));
    assert!(!all(&["1 / 0 == 1", "true"]));
    assert!(all(&["true", "1 / 0 == 1"]));
    // A loop within a loop within a loop comes to its end at the latest when its steps are used up.
    let list = format!("[{}]", ["1"; 60].join(","));
    assert!(!all(&[&format!("{list}.all(a, {list}.all(b, {list}.all(c, a + b + c > 0)))")]));
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(_flow|\\.[a-zA-Z_4]{1,5}|\\.l4|\\.TCP|\\.labels|has\\(|exists\\(x, |==|&&|[-+*/!?:<>(){}\\[\\],.'\"0-9a-z ]){0,20}") {
        if let Ok(expression) = compile(&text) {
            let event = crate::read::event(FLOW.as_bytes()).unwrap();
            let _ = Evaluator::new(event.flow().unwrap()).run(&expression.node);
        }
    }
}
