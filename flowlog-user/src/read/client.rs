//! What Hubble's client prints of a flow (Cilium 1.19.4), whatever the layout.

use serde_json::Value;

use super::style::{Colour, Style};
use super::table::clean;
use crate::record::schema::DROP_REASON;
use crate::record::{RESERVED_IDENTITIES, TRACE_POINTS};

const EVENT_DROP: u64 = 1;
const EVENT_CAPTURE: u64 = 3;
const EVENT_TRACE: u64 = 4;
const EVENT_POLICY_VERDICT: u64 = 5;
const EVENT_TRACE_SOCK: u64 = 7;

/// Text of a value, without control characters.
pub(super) fn text(of: &Value, key: &str) -> String {
    clean(of.get(key).and_then(Value::as_str).unwrap_or_default())
}

fn number(of: &Value, key: &str) -> u64 {
    of.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Both ends' names with ports.
pub(super) fn hosts(flow: &Value, style: Style) -> (String, String) {
    let named = |side: &str| match flow.get("IP") {
        Some(ip) => host(flow, ip, side, style),
        None => text(flow.get("ethernet").unwrap_or(&Value::Null), side),
    };
    let [source, destination] = ["source", "destination"].map(|side| style.paint(Colour::Cyan, named(side)));
    (source, destination)
}

fn host(flow: &Value, ip: &Value, side: &str, style: Style) -> String {
    let none = Value::Null;
    let endpoint = flow.get(side).unwrap_or(&none);
    let service = flow.get(format!("{side}_service"));
    let namespace = text(service.unwrap_or(endpoint), "namespace");
    let inside = |name: String| if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    let dns = flow.get(format!("{side}_names")).and_then(Value::as_array).filter(|names| !names.is_empty());
    let (pod, service) =
        (text(endpoint, "pod_name"), service.map_or_else(String::new, |of| text(of, "name")));
    let host = match (style.translate, dns) {
        (true, _) if !pod.is_empty() => inside(pod),
        (true, _) if !service.is_empty() => inside(service),
        (true, Some(dns)) => clean(&dns.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")),
        _ => text(ip, side),
    };
    let l4 = flow.get("l4").and_then(Value::as_object).and_then(|l4| l4.values().next());
    match l4.map_or(0, |l4| number(l4, &format!("{side}_port"))) {
        0 => host,
        port if host.contains([':', '%']) => format!("[{host}]:{port}"),
        port => format!("{host}:{port}"),
    }
}

/// An end's identity in parentheses.
pub(super) fn identity(flow: &Value, side: &str, style: Style) -> String {
    let identity = flow.get(side).map_or(0, |end| number(end, "identity"));
    let named = match RESERVED_IDENTITIES.iter().find(|(number, _)| u64::from(*number) == identity) {
        Some((_, name)) => format!("({name})"),
        None => format!("(ID:{identity})"),
    };
    style.paint(Colour::Magenta, named)
}

/// What kind of event it is.
pub(super) fn kind(flow: &Value) -> String {
    if let Some(l7) = flow.get("l7") {
        let kind = l7.get("type").and_then(Value::as_str).unwrap_or("UNKNOWN_L7_TYPE").to_lowercase();
        let source = || text(l7.get("dns").unwrap_or(&Value::Null), "observation_source");
        return match ["http", "dns", "kafka"].into_iter().find(|name| l7.get(name).is_some()) {
            Some("dns") => format!("dns-{kind} {}", source()),
            Some(name) => format!("{name}-{kind}"),
            None => format!("l7-{kind}"),
        };
    }
    let event = flow.get("event_type").unwrap_or(&Value::Null);
    let sub = number(event, "sub_type");
    let named =
        |key: &str, zero: &str| flow.get(key).and_then(Value::as_str).map_or_else(|| zero.into(), clean);
    match number(event, "type") {
        EVENT_TRACE => TRACE_POINTS
            .iter()
            .find(|(point, _)| u64::from(*point) == sub)
            .map_or_else(|| sub.to_string(), |(_, name)| (*name).into()),
        EVENT_DROP => drop_reason(sub),
        EVENT_POLICY_VERDICT => {
            let matched = match number(flow, "policy_match_type") {
                0 => "none",
                1 => "L3-Only",
                2 => "L3-L4",
                3 => "L4-Only",
                4 => "all",
                5 => "L3-Proto",
                6 => "Proto-Only",
                _ => "unknown",
            };
            format!("policy-verdict:{matched} {}", named("traffic_direction", "TRAFFIC_DIRECTION_UNKNOWN"))
        }
        EVENT_CAPTURE => named("debug_capture_point", "DBG_CAPTURE_POINT_UNKNOWN"),
        EVENT_TRACE_SOCK => match named("sock_xlate_point", "SOCK_XLATE_POINT_UNKNOWN").as_str() {
            "SOCK_XLATE_POINT_POST_DIRECTION_FWD" => "post-xlate-fwd".into(),
            "SOCK_XLATE_POINT_POST_DIRECTION_REV" => "post-xlate-rev".into(),
            "SOCK_XLATE_POINT_PRE_DIRECTION_FWD" => "pre-xlate-fwd".into(),
            "SOCK_XLATE_POINT_PRE_DIRECTION_REV" => "pre-xlate-rev".into(),
            other => other.into(),
        },
        _ => "UNKNOWN".into(),
    }
}

/// `Policy denied` for POLICY_DENIED.
fn drop_reason(number: u64) -> String {
    let name = i32::try_from(number).ok().and_then(|number| DROP_REASON.name_of(number));
    let Some(name) = name else { return number.to_string() };
    let lower = name.to_lowercase().replace('_', " ");
    let mut letters = lower.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The verdict; a policy's in its own words.
pub(super) fn verdict(flow: &Value, style: Style) -> String {
    let is_policy = flow.get("event_type").is_some_and(|event| number(event, "type") == EVENT_POLICY_VERDICT);
    let verdict = text(flow, "verdict");
    let (colour, of_policy) = match verdict.as_str() {
        "" => return "VERDICT_UNKNOWN".into(),
        "FORWARDED" | "REDIRECTED" => (Colour::Green, "ALLOWED"),
        "DROPPED" | "ERROR" => (Colour::Red, "DENIED"),
        "AUDIT" => (Colour::Yellow, "AUDITED"),
        "TRACED" | "TRANSLATED" => (Colour::Yellow, verdict.as_str()),
        _ => return verdict,
    };
    style.paint(colour, if is_policy { of_policy } else { &verdict })
}

/// The summary, where our counters are.
pub(super) fn summary(flow: &Value, style: Style) -> String {
    let mut summary = text(flow, "Summary");
    let trace = flow.get("ip_trace_id").and_then(|trace| trace.get("trace_id"));
    if let Some(id) = trace.and_then(Value::as_str).filter(|id| *id != "0") {
        summary = format!("IP Trace ID: {}; {summary}", clean(id));
    }
    match text(flow, "auth_type").as_str() {
        "" | "DISABLED" => summary,
        "TEST_ALWAYS_FAIL" => format!("{summary}; {}", style.paint(Colour::Red, "TEST_ALWAYS_FAIL")),
        auth => format!("{summary}; {}", style.paint(Colour::Green, auth)),
    }
}

/// `CPU(0)` and the number of lost events.
pub(super) fn lost(lost: &Value) -> (String, u64, String) {
    let count = lost.get("num_events_lost");
    let count = count.and_then(Value::as_str).map_or_else(|| "0".into(), clean);
    (source(lost), number(lost, "cpu"), count)
}

fn source(lost: &Value) -> String {
    match text(lost, "source") {
        none if none.is_empty() => "UNKNOWN_LOST_EVENT_SOURCE".into(),
        source => source,
    }
}

/// What a node's state means. The client prints it beside the flows, and only what is bad.
pub(super) fn status(line: &Value, style: Style) -> String {
    let status = line.get("node_status").unwrap_or(&Value::Null);
    format!(
        "{} [{}]: {}: {}",
        style.time(line),
        text(line, "node_name"),
        text(status, "state_change"),
        text(status, "message")
    )
}
