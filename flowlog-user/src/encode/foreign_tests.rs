//! Recorded events: what is written is what was read, and a flow of ours is the same flow when it comes back.

use proptest::prelude::*;

use super::tests::{flow, some_mask, some_node};
use super::{foreign, json};
use crate::project;
use crate::read::event;
use crate::record::fields::{FIELDS, Mask};
use crate::record::flow_message;
use crate::record::schema::{Arity, Descriptor, FLOW, Kind};

fn written(line: &str, mask: &Mask) -> String {
    let mut out = Vec::new();
    foreign::encode(&event(line.as_bytes()).unwrap(), mask, &mut out);
    String::from_utf8(out).unwrap()
}

fn paths(of: &Descriptor, before: &str, out: &mut Vec<String>) {
    for spec in of.fields {
        let path = format!("{before}{}", spec.name);
        match spec.kind {
            Kind::Message(of) if spec.arity != Arity::Many => paths(of, &format!("{path}."), out),
            Kind::Any => {
                out.extend(
                    FIELDS
                        .iter()
                        .map(|(_, path)| (*path).to_owned())
                        .filter(|p| p.starts_with("extensions.")),
                );
            }
            _ => out.push(path),
        }
    }
}

#[test]
fn the_messages_and_the_field_table_agree() {
    let mut known = Vec::new();
    paths(&FLOW, "", &mut known);
    let table: Vec<&str> = FIELDS.iter().map(|(_, path)| *path).collect();
    assert_eq!(known, table);
}

/// Expected values: protobuf's JSON mapping and Go's escapes.
#[test]
fn every_kind_of_field_comes_out_as_go_writes_it() {
    let same = [
        r#"{"flow":{}}"#,
        r#"{"flow":{"auth_type":"SPIRE","ethernet":{},"l4":{"IGMP":{"type":22,"group_address":"224.0.0.1"}}}}"#,
        r#"{"flow":{"verdict":99,"tunnel":{"protocol":"GENEVE","IP":{"source":"1.1.1.1"},"l4":{"UDP":{}},"vni":7}}}"#,
        r#"{"flow":{"l7":{"kafka":{"error_code":-1,"topic":"\u003ca\u0026b\u003e\u2028é\"\\\t\u0001"}}}}"#,
        r#"{"flow":{"event_type":{"type":-1,"sub_type":2147483647},"policy_match_type":4294967295}}"#,
        r#"{"flow":{"is_reply":false,"socket_cookie":"18446744073709551615","Summary":"s"}}"#,
        r#"{"flow":{"egress_allowed_by":[{"name":"p","labels":["a"],"revision":"3","kind":"k"},{}],"policy_log":["x",""]}}"#,
        r#"{"flow":{"aggregate":{"ingress_flow_count":4}}}"#,
        r#"{"flow":{"time":"0001-01-01T00:00:00Z"},"time":"9999-12-30T21:59:59.999999999Z"}"#,
        r#"{"flow":{"extensions":{"@type":"type.googleapis.com/flow.IP","source":"::1"}}}"#,
        r#"{"flow":{"extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"z":1,"a":[null,true,-5,0.5,1e+21,1e-7,"<"],"m":{}}}}}"#,
        r#"{"flow":{"extensions":{"@type":"type.googleapis.com/google.protobuf.Value","value":"x"}}}"#,
        r#"{"agent_event":{"type":"IPCACHE_UPSERTED","ipcache_update":{"cidr":"::/0","old_identity":0}},"node_name":"n"}"#,
        r#"{"agent_event":{"type":"POLICY_UPDATED","policy_update":{"revision":"5","rule_count":"-2"}}}"#,
        r#"{"lost_events":{"num_events_lost":"3","cpu":0,"first":"2026-01-01T00:00:00.500Z"},"time":"1970-01-01T00:00:04Z"}"#,
    ];
    for line in same {
        let expected = line.replace('<', "\\u003c") + "\n";
        assert_eq!(written(line, &Mask::ALL), expected, "{line}");
    }
}

#[test]
fn what_may_be_spelt_in_two_ways_comes_out_in_one() {
    let table = [
        (
            r#" { "time" : "2026-01-01T01:00:00.10+01:00" , "flow" : { } } "#,
            r#"{"flow":{},"time":"2026-01-01T00:00:00.100Z"}"#,
        ),
        (
            r#"{"flow":{"isReply":true,"trafficDirection":1}}"#,
            r#"{"flow":{"traffic_direction":"INGRESS","is_reply":true}}"#,
        ),
        (
            r#"{"flow":{"cgroup_id":42,"drop_reason":"133","proxy_port":1e3}}"#,
            r#"{"flow":{"drop_reason":133,"proxy_port":1000,"cgroup_id":"42"}}"#,
        ),
        (r#"{"flow":{"uuid":"","verdict":0,"reply":false,"node_labels":[],"IP":null}}"#, r#"{"flow":{}}"#),
        (
            r#"{"flow":{"trace_observation_point":101}}"#,
            r#"{"flow":{"trace_observation_point":"TO_ENDPOINT"}}"#,
        ),
        (
            r#"{"verdict":"DROPPED","time":"2026-01-01T00:00:00Z"}"#,
            r#"{"flow":{"time":"2026-01-01T00:00:00Z","verdict":"DROPPED"},"time":"2026-01-01T00:00:00Z"}"#,
        ),
        (r#"{"flow":{"node_name":"n"}}"#, r#"{"flow":{"node_name":"n"},"node_name":"n"}"#),
    ];
    for (line, expected) in table {
        assert_eq!(written(line, &Mask::ALL), format!("{expected}\n"), "{line}");
    }
}

#[test]
fn what_is_no_event_is_refused_with_its_place() {
    let table = [
        ("", "EOF while parsing"),
        ("[]", "expected an object, found a list"),
        ("{} {}", "trailing characters"),
        (r#"{"flow":{"x":1}}"#, "flow.x: flow.Flow has no such field"),
        (r#"{"flow":{},"flw":1}"#, "flw: observer.ExportEvent has no such field; did you mean `flow`?"),
        (
            r#"{"flow":{"verdict":"dropped"}}"#,
            "flow.verdict: flow.Verdict has no value `dropped`; did you mean `DROPPED`?",
        ),
        (r#"{"flow":{"uuid":1}}"#, "flow.uuid: expected a string, found `1`"),
        (
            r#"{"flow":{"l4":{"TCP":{"source_port":-1}}}}"#,
            "flow.l4.TCP.source_port: expected a whole number from 0 to 4294967295, found `-1`",
        ),
        (
            r#"{"flow":{"l4":{"TCP":{"source_port":1.5}}}}"#,
            "flow.l4.TCP.source_port: expected a whole number",
        ),
        (
            r#"{"flow":{"l4":{"TCP":{},"UDP":{}}}}"#,
            "flow.l4.UDP: stands beside `TCP`, of which only one may be set",
        ),
        (r#"{"flow":{},"lost_events":{}}"#, "lost_events: stands beside `flow`"),
        (r#"{"flow":{"is_reply":true,"isReply":true}}"#, "flow.is_reply: stands beside `is_reply`"),
        (r#"{"flow":{"uuid":"a","uuid":"b"}}"#, "the key `uuid` stands twice"),
        (r#"{"flow":{"is_reply":"true"}}"#, "flow.is_reply: expected true or false"),
        (r#"{"flow":{"node_labels":"a"}}"#, "flow.node_labels: expected a list"),
        (r#"{"flow":{"node_labels":[null]}}"#, "flow.node_labels[0]: expected a string, found null"),
        (r#"{"flow":{"time":"2026-01-01"}}"#, "flow.time: expected a time like"),
        (r#"{"flow":{"time":"2026-01-01T00:00:00"}}"#, "flow.time: expected a time like"),
        (r#"{"flow":{"time":"2026-02-30T00:00:00Z"}}"#, "flow.time: expected a time like"),
        (r#"{"flow":{"time":"2026-01-01T00:00:00.1234567890Z"}}"#, "flow.time: expected a time like"),
        (r#"{"flow":{"time":1}}"#, "flow.time: expected a time in quotes"),
        (r#"{"flow":{"extensions":{}}}"#, "flow.extensions: expected `@type`"),
        (
            r#"{"flow":{"extensions":{"@type":"type.googleapis.com/x.Y"}}}"#,
            "the type `type.googleapis.com/x.Y` is not known here",
        ),
        (
            r#"{"flow":{"extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":1}}}"#,
            "expected `value` with an object",
        ),
        ("{\"flow\":{\"uuid\":\"\\ud800\"}}", "hex escape"),
    ];
    for (line, expected) in table {
        let said = event(line.as_bytes()).unwrap_err().to_string();
        assert!(said.contains(expected), "{line}: {said}");
    }
    assert!(event(b"{\"flow\":{\"uuid\":\"\xff\"}}").is_err());
    assert!(event("[".repeat(1000).as_bytes()).is_err());
}

/// A mask says nothing to events that are no flows, and keeps of a union the member that is set.
#[test]
fn masks() {
    let mask = |paths: &[&str]| project::compile(paths, true).unwrap();
    let table: &[(&[&str], &str, &str)] = &[
        (
            &["verdict"],
            r#"{"lost_events":{"cpu":1},"node_name":"n","time":"1970-01-01T00:00:04Z"}"#,
            r#"{"lost_events":{"cpu":1},"node_name":"n","time":"1970-01-01T00:00:04Z"}"#,
        ),
        (
            &["l4.TCP.destination_port"],
            r#"{"flow":{"l4":{"UDP":{"destination_port":1}}}}"#,
            r#"{"flow":{"l4":{}}}"#,
        ),
        (
            &["l4.TCP.destination_port", "l4.UDP.destination_port"],
            r#"{"flow":{"l4":{"UDP":{"source_port":2,"destination_port":1}}}}"#,
            r#"{"flow":{"l4":{"UDP":{"destination_port":1}}}}"#,
        ),
        (
            &["l4.TCP.flags.SYN"],
            r#"{"flow":{"l4":{"TCP":{"flags":{"SYN":true,"ACK":true}}}}}"#,
            r#"{"flow":{"l4":{"TCP":{"flags":{"SYN":true}}}}}"#,
        ),
        (
            &["l7.http.url"],
            r#"{"flow":{"l7":{"type":"REQUEST","http":{"url":"/","method":"GET"}}}}"#,
            r#"{"flow":{"l7":{"http":{"url":"/"}}}}"#,
        ),
        (
            &["l7.dns.query", "source.labels"],
            r#"{"flow":{"verdict":"DROPPED"}}"#,
            r#"{"flow":{"source":{},"l7":{}}}"#,
        ),
        (
            &["tunnel.l4.TCP.source_port", "trace_context.parent.trace_id"],
            r#"{"flow":{}}"#,
            r#"{"flow":{"tunnel":{"l4":{}},"trace_context":{"parent":{}}}}"#,
        ),
        (
            &["source.workloads", "policy_log"],
            r#"{"flow":{"source":{"ID":1,"workloads":[{"name":"a"}]},"policy_log":["x"]}}"#,
            r#"{"flow":{"source":{"workloads":[{"name":"a"}]},"policy_log":["x"]}}"#,
        ),
        (
            &["time"],
            r#"{"flow":{"time":"1970-01-01T00:00:04Z","node_name":"n"},"node_name":"n","time":"1970-01-01T00:00:04Z"}"#,
            r#"{"flow":{"time":"1970-01-01T00:00:04Z"},"time":"1970-01-01T00:00:04Z"}"#,
        ),
    ];
    for (paths, line, expected) in table {
        assert_eq!(written(line, &mask(paths)), format!("{expected}\n"), "{paths:?} {line}");
    }
}

proptest! {
    /// A line of ours, read back and masked, is the line that the mask would have given.
    #[test]
    fn flows_of_ours_come_back(flow in flow(), node in some_node(), mask in some_mask()) {
        let (mut line, mut expected) = (Vec::new(), Vec::new());
        json::encode(&flow, &node, &Mask::ALL, &mut line);
        json::encode(&flow, &node, &mask, &mut expected);
        let line = String::from_utf8(line).unwrap();
        prop_assert_eq!(written(&line, &mask), String::from_utf8(expected).unwrap());
        let event = event(line.as_bytes()).unwrap();
        prop_assert_eq!(&flow_message(&flow, &node), event.flow().unwrap());
    }

    #[test]
    fn no_line_panics(line in "(\\{|\\}|\\[|\\]|\"flow\":|\"time\":|\"l4\":|\"TCP\":|\"extensions\":|\"@type\":|\"type.googleapis.com/flow.IP\"|\"2026-01-01T00:00:00Z\"|[0-9.eE+-]{1,4}|true|null|,|\"[a-z]{0,3}\"| ){0,24}") {
        if let Ok(event) = event(line.as_bytes()) {
            foreign::encode(&event, &Mask::ALL, &mut Vec::new());
        }
    }
}
