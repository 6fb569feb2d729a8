use std::io::{self, Write};

use serde_json::Value;

use super::client;
use super::style::Style;
use super::table::clean;

/// Prints a record on a line as Hubble's client does, in UTC; the counters are in the summary.
pub(super) fn line(line: &[u8], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return writeln!(out, "{}", clean(String::from_utf8_lossy(line).trim_end()));
    };
    let Some(flow) = value.get("flow") else { return notice(&value, style, out) };
    let (mut from, mut to) = client::hosts(flow, style);
    let (mut from_identity, mut to_identity) =
        (client::identity(flow, "source", style), client::identity(flow, "destination", style));
    let arrow = match flow.get("is_reply").and_then(Value::as_bool) {
        Some(false) => "->",
        Some(true) => {
            std::mem::swap(&mut from, &mut to);
            std::mem::swap(&mut from_identity, &mut to_identity);
            "<-"
        }
        None => "<>",
    };
    let node = if style.node { format!(" [{}]", client::text(flow, "node_name")) } else { String::new() };
    writeln!(
        out,
        "{}{node}: {from} {from_identity} {arrow} {to} {to_identity} {} {} ({})",
        style.time(&value),
        client::kind(flow),
        client::verdict(flow, style),
        client::summary(flow, style)
    )
}

/// What a line about the log itself says. The client has no place for a node's message, so that it is in our words.
fn notice(value: &Value, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if let Some(lost) = value.get("lost_events") {
        let (source, cpu, count) = client::lost(lost);
        return writeln!(out, "EVENTS LOST: {source} CPU({cpu}) {count}");
    }
    if value.get("node_status").is_some() {
        return writeln!(out, "{}", client::status(value, style));
    }
    writeln!(out, "{}: {}", style.time(value), clean(&value.to_string()))
}
