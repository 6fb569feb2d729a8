//! Every format holds the same records: what is written fast for flows of ours is what is written for any event, and
//! what is read back from one format is what stands in another.

use proptest::prelude::*;

use super::tests::{flow, some_mask, some_node};
use super::{flat, foreign, json, protobuf};
use crate::read;
use crate::record::fields::Mask;
use crate::record::format::{Head, delimited_head, delimited_time_ns, is_record};
use crate::record::{Flow, Foreign, Format, Framing, Node, flow_message};

/// A delimited record without its length.
fn body(record: &[u8]) -> &[u8] {
    match delimited_head(record) {
        Head::Record(prefix, length) if prefix + length == record.len() => &record[prefix..],
        other => panic!("{other:?} of {} bytes", record.len()),
    }
}

fn line(flow: &Flow, node: &Node, mask: &Mask) -> String {
    let mut out = Vec::new();
    json::encode(flow, node, mask, &mut out);
    String::from_utf8(out).unwrap()
}

fn as_line(event: &Foreign) -> String {
    let mut out = Vec::new();
    foreign::encode(event, &Mask::ALL, &mut out);
    String::from_utf8(out).unwrap()
}

/// A line without messages in which nothing is, for which one level has no form.
fn without_empty(line: &str) -> String {
    let mut text = line.to_owned();
    loop {
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let pruned = prune(value, "").unwrap_or_default().to_string();
        if pruned == text {
            return text;
        }
        text = pruned;
    }
}

fn prune(value: serde_json::Value, at: &str) -> Option<serde_json::Value> {
    let serde_json::Value::Object(entries) = value else { return Some(value) };
    let ours = entries.len() == 1 && entries.contains_key("@type");
    let kept: serde_json::Map<_, _> =
        entries.into_iter().filter_map(|(key, value)| Some((key.clone(), prune(value, &key)?))).collect();
    let member = ["flow", "TCP", "UDP", "SCTP", "ICMPv4", "ICMPv6", "VRRP", "IGMP", "flags"].contains(&at);
    (member || !kept.is_empty() && !ours && kept.keys().any(|key| key != "@type")).then_some(kept.into())
}

proptest! {
    #[test]
    fn protobuf_of_flows_is_protobuf_of_events(flow in flow(), node in some_node(), mask in some_mask()) {
        let event = Foreign::new(flow_message(&flow, &node)).unwrap();
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        super::flow(Format::Protobuf, &flow, &node, &mask, &mut fast);
        protobuf::event(&event, &mask, &mut slow);
        // The tree has no place for extensions in which a mask leaves nothing but leads into.
        let back = read::protobuf_event(body(&fast)).unwrap();
        prop_assert_eq!(as_line(&back), line(&flow, &node, &mask));
        prop_assert_eq!(read::protobuf_event(body(&slow)).unwrap(), back);
        prop_assert!(is_record(body(&fast)));
        prop_assert_eq!(Framing::recognise(&fast, true), Some(Framing::Delimited));
        if mask == Mask::ALL {
            prop_assert_eq!(delimited_time_ns(body(&fast)), Some(flow.last_seen_ns));
        }
    }

    #[test]
    fn flat_lines_of_flows_are_flat_lines_of_events(flow in flow(), node in some_node(), mask in some_mask()) {
        let event = Foreign::new(flow_message(&flow, &node)).unwrap();
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        super::flow(Format::Flat, &flow, &node, &mask, &mut fast);
        flat::event(&event, &mask, &mut slow);
        prop_assert_eq!(String::from_utf8_lossy(&fast), String::from_utf8_lossy(&slow));
        let back = read::event(&fast).unwrap();
        prop_assert_eq!(without_empty(&as_line(&back)), without_empty(&line(&flow, &node, &mask)));
        let value: serde_json::Value = serde_json::from_slice(&fast).unwrap();
        let plain = |value: &serde_json::Value| !value.is_object()
            && value.as_array().is_none_or(|list| list.iter().all(serde_json::Value::is_string));
        prop_assert!(value.as_object().unwrap().values().all(plain), "more than one level");
        prop_assert_eq!(Framing::recognise(&fast, true), Some(Framing::Lines));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), byte: u8, flow in flow(), node in some_node()) {
        let _ = read::protobuf_event(&bytes);
        let _ = Framing::recognise(&bytes, true);
        let mut record = Vec::new();
        protobuf::encode(&flow, &node, &Mask::ALL, &mut record);
        let at = at.index(record.len());
        record[at] = byte;
        let _ = read::protobuf_event(&record);
    }
}

/// Events of every kind, as `foreign_tests` has them: they come back from each format as they were.
#[test]
fn events_of_every_kind_come_back() {
    let lines = [
        r#"{"lost_events":{"source":"OBSERVER_EVENTS_QUEUE","num_events_lost":"12","first":"2026-11-30T20:14:26Z","last":"2026-11-30T20:14:26.120Z"},"node_name":"east/n1","time":"2026-11-30T20:14:27.000000500Z"}"#,
        r#"{"lost_events":{"num_events_lost":"3","cpu":0},"time":"1970-01-01T00:00:04Z"}"#,
        r#"{"node_status":{"state_change":"NODE_ERROR","node_names":["east/n1"],"message":"task a\u003cb: lost"},"node_name":"east/n1","time":"2026-11-30T20:14:27Z"}"#,
        r#"{"agent_event":{"type":"POLICY_UPDATED","policy_update":{"labels":["a"],"revision":"5","rule_count":"-2"}},"node_name":"n"}"#,
        r#"{"debug_event":{"type":"DBG_CT_VERDICT","source":{"ID":5},"hash":0,"message":"\u003cm\u003e","cpu":1},"time":"2026-03-14T09:26:54Z"}"#,
        r#"{"flow":{"verdict":99,"tunnel":{"protocol":"GENEVE","IP":{"source":"1.1.1.1"},"l4":{"UDP":{"source_port":9}},"vni":7}}}"#,
        r#"{"flow":{"event_type":{"type":-1,"sub_type":2147483647},"policy_match_type":4294967295}}"#,
        r#"{"flow":{"is_reply":false,"socket_cookie":"18446744073709551615","Summary":"s"}}"#,
        r#"{"flow":{"l7":{"type":"REQUEST","latency_ns":"7","http":{"url":"/?a\u0026b","headers":[{"key":"k","value":"v"},{}]}}}}"#,
        r#"{"flow":{"egress_allowed_by":[{"name":"p","labels":["a"],"revision":"3","kind":"k"},{}],"policy_log":["x",""]}}"#,
        r#"{"flow":{"time":"0001-01-01T00:00:00Z"},"time":"0001-01-01T00:00:00Z"}"#,
        r#"{"flow":{"extensions":{"@type":"type.googleapis.com/flow.IP","source":"::1"}}}"#,
        r#"{"flow":{"extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"a":[null,true,-5,0.5,1e+21,1e-7,"x"],"m":{},"z":1}}}}"#,
        r#"{"flow":{"extensions":{"@type":"type.googleapis.com/google.protobuf.Value","value":"x"}}}"#,
        r#"{"flow":{"time":"2026-01-01T00:00:00Z","extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"event":"end","end_reason":"fin","first_seen":"2026-01-01T00:00:00.000000001Z","packets":0,"interfaces":["a","b"]}}},"time":"2026-01-01T00:00:00Z"}"#,
        r#"{"flow":{"time":"2026-01-01T00:00:00Z","extensions":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"event":"end","overflow":true,"connections":3,"first_seen":"2026-01-01T00:00:00Z","last_seen":"2026-01-01T00:00:09Z","packets":20,"bytes":2000,"duplicate_packets":1,"duplicate_bytes":60}},"aggregate":{"ingress_flow_count":4}},"time":"2026-01-01T00:00:00Z"}"#,
        r#"{"flow":{"l4":{"TCP":{"flags":{}}}}}"#,
        r#"{"flow":{"l4":{"IGMP":{"type":22,"group_address":"224.0.0.1"}}}}"#,
    ];
    for line in lines {
        let event = read::event(line.as_bytes()).unwrap();
        let mut record = Vec::new();
        protobuf::event(&event, &Mask::ALL, &mut record);
        assert_eq!(as_line(&read::protobuf_event(body(&record)).unwrap()).trim_end(), line);
        let mut flat_line = Vec::new();
        flat::event(&event, &Mask::ALL, &mut flat_line);
        let back = read::event(&flat_line)
            .unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(&flat_line)));
        assert_eq!(
            without_empty(&as_line(&back)),
            without_empty(line),
            "{}",
            String::from_utf8_lossy(&flat_line)
        );
    }
}
