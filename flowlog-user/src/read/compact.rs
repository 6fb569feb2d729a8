use std::io::{self, Write};

use serde_json::Value;

use super::client::{self, Names};
use super::table::clean;

/// Prints a record on a line as Hubble's client does, in UTC; the counters are in the summary.
pub(super) fn line(line: &[u8], names: Names, out: &mut dyn Write) -> io::Result<()> {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return writeln!(out, "{}", clean(String::from_utf8_lossy(line).trim_end()));
    };
    let Some(flow) = value.get("flow") else { return notice(&value, out) };
    let (mut from, mut to) = client::hosts(flow, names);
    let (mut from_identity, mut to_identity) =
        (client::identity(flow, "source"), client::identity(flow, "destination"));
    let arrow = match flow.get("is_reply").and_then(Value::as_bool) {
        Some(false) => "->",
        Some(true) => {
            std::mem::swap(&mut from, &mut to);
            std::mem::swap(&mut from_identity, &mut to_identity);
            "<-"
        }
        None => "<>",
    };
    let node = if names.node { format!(" [{}]", client::text(flow, "node_name")) } else { String::new() };
    writeln!(
        out,
        "{}{node}: {from} {from_identity} {arrow} {to} {to_identity} {} {} ({})",
        client::time(&value),
        client::kind(flow),
        client::verdict(flow),
        client::summary(flow)
    )
}

/// What a line about the log itself says. The client has no place for a node's message, so that it is in our words.
fn notice(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    if let Some(lost) = value.get("lost_events") {
        let (source, cpu, count) = client::lost(lost);
        return writeln!(out, "EVENTS LOST: {source} CPU({cpu}) {count}");
    }
    if value.get("node_status").is_some() {
        return writeln!(out, "{}", client::status(value));
    }
    writeln!(out, "{}: {}", client::time(value), clean(&value.to_string()))
}
