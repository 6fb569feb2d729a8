//! Verdicts of the real Hubble (Cilium 1.19.4's own filter code), where its cases lie beside the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{filters, read};
use crate::filter::{Filter, Matcher};
use crate::project;
use crate::record::fields::{FIELDS, Mask};
use crate::record::{Flow, Hook, Identity, Interface, L4, Node, Role};
use crate::task::Spec;

/// A file of the cases; `None`, saying so, where there are none.
fn cases(file: &str) -> Option<String> {
    let folder = std::env::var_os("FLOWLOG_HUBBLE_CASES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/hubble-cases"),
        PathBuf::from,
    );
    let text = fs::read_to_string(folder.join(file)).ok();
    if text.is_none() {
        println!("skipped: no {file} in {}; FLOWLOG_HUBBLE_CASES names the folder", folder.display());
    }
    text
}

/// Filters that parse as JSON but that Hubble refuses: all must be refused, naming the place.
#[test]
fn what_hubble_refuses_is_refused() {
    let Some(cases) = cases("rejected-filters.jsonl") else { return };
    for case in cases.lines() {
        let text = format!("flowLogs:\n- {{name: a, filePath: /l/a, includeFilters: [{case}]}}\n");
        let errors = read(&text).1.errors;
        assert!(!errors.is_empty(), "{case}");
        assert!(
            errors.iter().all(|error| error.place.path.starts_with("flowLogs[0].includeFilters[0].")),
            "{case}"
        );
    }
}

/// Every task whose fields are all served, against every flow that a record of ours can express as far as the task looks.
#[test]
fn verdicts_equal_hubbles() {
    let (Some(tasks), Some(flows), Some(expected)) =
        (cases("tasks.yaml"), cases("flows.jsonl"), cases("expected.jsonl"))
    else {
        return;
    };
    let served = served(&tasks);
    let (mut taken, mut left) = (0, 0);
    for (line, expected) in flows.lines().zip(expected.lines()) {
        let event: Value = serde_json::from_str(line).unwrap();
        let expected: Vec<String> = serde_json::from_str(expected).unwrap();
        for spec in &served {
            let Some((flow, node)) = express(&event["flow"], spec) else { continue };
            let wanted = expected.contains(&spec.name);
            assert_eq!(
                Filter::new(&spec.filter).matches(&flow, &node),
                wanted,
                "{} {:?} {line}",
                spec.name,
                spec.filter
            );
            if wanted { taken += 1 } else { left += 1 }
        }
    }
    println!("{} tasks of Hubble's are served; compared: {taken} taken, {left} left", served.len());
    assert!(served.len() >= 10 && taken >= 1_000 && left >= 1_000);
}

fn served(tasks: &str) -> Vec<Spec> {
    let (specs, problems) = read(tasks);
    let wrong = |spec: &Spec| {
        let path = spec.place.path.trim_end_matches("name");
        problems.errors.iter().any(|error| error.place.path.starts_with(path))
    };
    specs.into_iter().filter(|spec| !wrong(spec)).collect()
}

/// What a task looks at, so that the rest of a flow need not be expressed.
fn looks(spec: &Spec, at: fn(&Matcher) -> bool) -> bool {
    spec.filter.include.iter().chain(&spec.filter.exclude).any(|filter| filter.0.iter().any(at))
}

/// The flow as a record of ours; `None` where the task looks at something that no record can say.
fn express(hubble: &Value, spec: &Spec) -> Option<(Flow, Node)> {
    let looks = |at| looks(spec, at);
    let mut flow = filters::flow();
    let verdict = hubble["verdict"].as_str();
    if (looks(|at| matches!(at, Matcher::Verdict(_))) && verdict != Some("FORWARDED"))
        || (looks(|at| matches!(at, Matcher::Reply(_))) && verdict == Some("DROPPED"))
        || (looks(|at| matches!(at, Matcher::Protocol(_))) && !hubble["l7"].is_null())
    {
        return None;
    }
    flow.is_reply = hubble["is_reply"].as_bool();
    flow.source = address(&hubble["IP"]["source"], looks(|at| matches!(at, Matcher::SourceIp(_))))?;
    flow.destination =
        address(&hubble["IP"]["destination"], looks(|at| matches!(at, Matcher::DestinationIp(_))))?;
    if looks(|at| matches!(at, Matcher::IpVersion(_)))
        && hubble["IP"]["ipVersion"] != flow.ip_version().name()
    {
        return None;
    }
    flow.l4 = l4(&hubble["l4"], looks(|at| matches!(at, Matcher::TcpFlags(_) | Matcher::Protocol(_))))?;
    flow.source_identity = identity(&hubble["source"], looks(|at| matches!(at, Matcher::SourceIdentity(_))))?;
    flow.destination_identity =
        identity(&hubble["destination"], looks(|at| matches!(at, Matcher::DestinationIdentity(_))))?;
    flow.hook = hook(
        hubble,
        looks(|at| matches!(at, Matcher::EventType(_))),
        looks(|at| matches!(at, Matcher::TrafficDirection(_))),
    )?;
    let (interfaces, node) =
        interface(&hubble["interface"], looks(|at| matches!(at, Matcher::Interface(_))))?;
    flow.interfaces = interfaces;
    Some((flow, node))
}

fn address(text: &Value, looked_at: bool) -> Option<std::net::IpAddr> {
    let address = text.as_str().and_then(|text| text.parse().ok());
    if looked_at { address } else { Some(address.unwrap_or_else(|| "0.0.0.0".parse().unwrap())) }
}

fn l4(l4: &Value, looked_at: bool) -> Option<L4> {
    let port = |member: &Value, name: &str| u16::try_from(member[name].as_u64().unwrap_or(0)).unwrap();
    let Some((name, member)) = l4.as_object().and_then(|l4| l4.iter().next()) else { return Some(L4::Other) };
    let (source_port, destination_port) = (port(member, "source_port"), port(member, "destination_port"));
    Some(match name.as_str() {
        "TCP" => {
            let set = member["flags"].as_object();
            if looked_at && set.is_none_or(|set| set.contains_key("NS")) {
                return None;
            }
            let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
            let bit =
                |(bit, name): (usize, &&str)| u8::from(set.is_some_and(|set| set.contains_key(*name))) << bit;
            let flags = names.iter().enumerate().map(bit).sum();
            L4::Tcp { source_port, destination_port, flags }
        }
        "UDP" => L4::Udp { source_port, destination_port },
        "SCTP" => L4::Sctp { source_port, destination_port },
        "ICMPv4" => L4::Icmpv4 { icmp_type: 0, code: 0 },
        "ICMPv6" => L4::Icmpv6 { icmp_type: 0, code: 0 },
        _ if looked_at => return None,
        _ => L4::Other,
    })
}

fn identity(endpoint: &Value, looked_at: bool) -> Option<Identity> {
    match endpoint["identity"].as_u64() {
        Some(1) => Some(Identity::Host),
        Some(2) => Some(Identity::World),
        Some(3) => Some(Identity::Unmanaged),
        _ => (!looked_at).then_some(Identity::World),
    }
}

fn hook(hubble: &Value, event_looked_at: bool, direction_looked_at: bool) -> Option<Hook> {
    let hooks = [Hook::EndpointIngress, Hook::EndpointEgress, Hook::UplinkIngress, Hook::UplinkEgress];
    let number = |name: &str| hubble["event_type"][name].as_i64().unwrap_or(0);
    hooks.into_iter().find(|hook| {
        let event = number("type") == 4 && number("sub_type") == i64::from(hook.event_sub_type());
        let direction = hubble["traffic_direction"] == hook.traffic_direction().name();
        (event || !event_looked_at) && (direction || !direction_looked_at)
    })
}

fn interface(interface: &Value, looked_at: bool) -> Option<([u32; 4], Node)> {
    let Some(fields) = interface.as_object() else { return Some(([0; 4], Node::default())) };
    let index = fields.get("index").and_then(Value::as_u64).and_then(|index| u32::try_from(index).ok());
    let Some(index) = index else { return (!looked_at).then(|| ([0; 4], Node::default())) };
    let name = fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let interfaces = BTreeMap::from([(index, Interface { name, role: Role::Uplink })]);
    Some(([index, 0, 0, 0], Node { interfaces, ..Node::default() }))
}

/// Masks say which fields stay and which empty messages appear, as Hubble's own output has them.
#[test]
fn masks_equal_hubbles() {
    let (Some(masked), Some(flows)) = (cases("masked.jsonl"), cases("flows.jsonl")) else { return };
    let flows: Vec<Value> = flows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut compared = 0;
    for case in masked.lines() {
        let case: Value = serde_json::from_str(case).unwrap();
        let paths: Vec<&str> =
            case["fieldMask"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
        let mask = project::compile(&paths, true).unwrap();
        for (flow, line) in flows.iter().zip(case["lines"].as_array().unwrap()) {
            let expected: Value = serde_json::from_str(line.as_str().unwrap()).unwrap();
            assert_eq!(apply(&flow["flow"], mask), expected["flow"], "{paths:?}");
            compared += 1;
        }
    }
    assert!(compared >= 1_000);
}

/// Obeys a mask the slow way.
fn apply(flow: &Value, mask: Mask) -> Value {
    let mut out = Value::Object(serde_json::Map::new());
    for (field, path) in FIELDS.iter().filter(|(field, _)| mask.keep.has(*field)) {
        let (mut from, mut to) = (flow, &mut out);
        let mut parts = path.split('.').peekable();
        while let Some(part) = parts.next() {
            from = &from[part];
            let parent = parts.peek().is_some();
            if from.is_null() && !(parent && mask.named.has(*field)) {
                break;
            }
            let empty = if parent { Value::Object(serde_json::Map::new()) } else { from.clone() };
            to = to.as_object_mut().unwrap().entry(part).or_insert(empty);
        }
    }
    out
}
