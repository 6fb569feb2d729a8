use std::io::{self, Write};

use serde_json::Value;

use super::client;
use super::style::Style;
use super::table::clean;

const SEPARATOR: &str = "------------";

/// Prints a record as keys and values, as Hubble's client does, in UTC.
pub(super) fn record(line: &[u8], style: Style, first: bool, out: &mut dyn Write) -> io::Result<()> {
    if !first {
        writeln!(out, "{SEPARATOR}")?;
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return writeln!(out, "{}", clean(String::from_utf8_lossy(line).trim_end()));
    };
    if let Some(lost) = value.get("lost_events") {
        let (source, cpu, count) = client::lost(lost);
        writeln!(out, "  TIMESTAMP: ")?;
        if style.node {
            writeln!(out, "       NODE: ")?;
        }
        writeln!(out, "     SOURCE: {source}\n       TYPE: EVENTS LOST\n    VERDICT: ")?;
        return writeln!(out, "    SUMMARY: CPU({cpu}) - {count}");
    }
    let Some(flow) = value.get("flow") else {
        return writeln!(out, "{}", client::status(&value, style));
    };
    let (from, to) = client::hosts(flow, style);
    writeln!(out, "  TIMESTAMP: {}", style.time(&value))?;
    if style.node {
        writeln!(out, "       NODE: {}", client::text(flow, "node_name"))?;
    }
    writeln!(out, "     SOURCE: {from}\nDESTINATION: {to}\n       TYPE: {}", client::kind(flow))?;
    writeln!(
        out,
        "    VERDICT: {}\n    SUMMARY: {}",
        client::verdict(flow, style),
        client::summary(flow, style)
    )
}
