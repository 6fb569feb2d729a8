use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::Value;

use super::table::clean;

/// Prints a record on a line as Hubble's client does, in UTC; the counters are in the summary.
pub(super) fn line(line: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return writeln!(out, "{}", clean(String::from_utf8_lossy(line).trim_end()));
    };
    let time = time(value.get("time").or_else(|| value.get("flow")?.get("time")));
    let Some(flow) = value.get("flow") else {
        return writeln!(out, "{}", notice(&value, &time));
    };
    let (mut from, mut to) = (end(flow, "source"), end(flow, "destination"));
    let arrow = match flow.get("is_reply").and_then(Value::as_bool) {
        Some(false) => "->",
        Some(true) => {
            std::mem::swap(&mut from, &mut to);
            "<-"
        }
        None => "<>",
    };
    let text = |key| clean(flow.get(key).and_then(Value::as_str).unwrap_or_default());
    let verdict = match text("verdict") {
        none if none.is_empty() => "VERDICT_UNKNOWN".into(),
        verdict => verdict,
    };
    writeln!(out, "{time}: {from} {arrow} {to} {} {verdict} ({})", kind(flow), text("Summary"))
}

/// What a line about the log itself says.
pub(super) fn notice(value: &Value, time: &str) -> String {
    let node = clean(value.get("node_name").and_then(Value::as_str).unwrap_or_default());
    if let Some(lost) = value.get("lost_events") {
        let text = |key| clean(lost.get(key).and_then(Value::as_str).unwrap_or("0"));
        return format!("{time} [{node}]: EVENTS LOST: {} {}", text("source"), text("num_events_lost"));
    }
    if let Some(status) = value.get("node_status") {
        let text = |key| clean(status.get(key).and_then(Value::as_str).unwrap_or_default());
        return format!("{time} [{node}]: {}: {}", text("state_change"), text("message"));
    }
    format!("{time}: {}", clean(&value.to_string()))
}

/// `Nov 30 20:14:26.123`.
fn time(value: Option<&Value>) -> String {
    let at = value.and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    at.map_or_else(|| "N/A".into(), |at| at.strftime("%b %e %H:%M:%S.%3f").to_string())
}

/// Address, port and identity of a side.
fn end(flow: &Value, side: &str) -> String {
    let address = flow.get("IP").and_then(|ip| ip.get(side)?.as_str()).unwrap_or_default();
    let l4 = flow.get("l4").and_then(Value::as_object).and_then(|l4| l4.values().next());
    let port = l4.and_then(|l4| l4.get(format!("{side}_port"))?.as_u64()).filter(|port| *port > 0);
    let address = clean(address);
    let host = match port {
        Some(port) if address.contains(':') => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
        None => address,
    };
    let identity = flow.get(side).and_then(|end| end.get("identity")?.as_u64()).unwrap_or(0);
    match RESERVED.iter().find(|(number, _)| *number == identity) {
        Some((_, name)) => format!("{host} ({name})"),
        None => format!("{host} (ID:{identity})"),
    }
}

/// Names of Cilium's reserved identities.
const RESERVED: [(u64, &str); 10] = [
    (0, "unknown"),
    (1, "host"),
    (2, "world"),
    (3, "unmanaged"),
    (4, "health"),
    (5, "init"),
    (6, "remote-node"),
    (7, "kube-apiserver"),
    (8, "ingress"),
    (9, "world-ipv4"),
];

/// The observation point, as the client spells it.
fn kind(flow: &Value) -> String {
    let event = flow.get("event_type");
    let number = |key| event.and_then(|event| event.get(key)?.as_u64()).unwrap_or(0);
    if number("type") != 4 {
        return "UNKNOWN".into();
    }
    POINTS
        .iter()
        .find(|(point, _)| *point == number("sub_type"))
        .map_or_else(|| number("sub_type").to_string(), |(_, name)| (*name).into())
}

const POINTS: [(u64, &str); 12] = [
    (0, "to-endpoint"),
    (1, "to-proxy"),
    (2, "to-host"),
    (3, "to-stack"),
    (4, "to-overlay"),
    (5, "from-endpoint"),
    (6, "from-proxy"),
    (7, "from-host"),
    (8, "from-stack"),
    (9, "from-overlay"),
    (10, "from-network"),
    (11, "to-network"),
];
