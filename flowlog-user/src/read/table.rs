use std::io::{self, Write};

use serde_json::Value;

use super::style::Style;

/// Rows that are held back to find out how wide the columns are.
const SAMPLE_ROWS: usize = 500;

/// Column heads, and whether the column holds numbers.
const COLUMNS: [(&str, bool); COUNT] = [
    ("TIME", false),
    ("SOURCE", false),
    ("DESTINATION", false),
    ("PROTOCOL", false),
    ("DIRECTION", false),
    ("EVENT", false),
    ("REASON", false),
    ("PACKETS", true),
    ("BYTES", true),
    ("INTERFACE", false),
    ("LOG", false),
];
const COUNT: usize = 11;

/// What most flows need: a time to the nanosecond, two IPv4 addresses with ports, the longest words of the others.
const USUAL: [usize; COUNT] = [30, 21, 21, 8, 9, 6, 10, 8, 10, 9, 3];

/// Flows as aligned columns; the last one, which log a record is in, only where there are several.
pub(super) struct Table {
    style: Style,
    logs: bool,
    widths: [usize; COUNT],
    /// Rows not printed yet: none once the widths are settled.
    held: Vec<Row>,
    settled: bool,
    /// The heads were printed.
    headed: bool,
}

enum Row {
    Cells(Box<[String; COUNT]>),
    /// Anything but a flow: its time and what it says.
    Text(String, String),
}

impl Table {
    pub(super) const fn new(style: Style) -> Self {
        Self { style, logs: false, widths: [0; COUNT], held: Vec::new(), settled: false, headed: false }
    }

    /// A table that holds no row back.
    pub(super) fn live(style: Style) -> Self {
        Self { widths: USUAL, settled: true, ..Self::new(style) }
    }

    /// Takes a record.
    pub(super) fn line(&mut self, line: &[u8], log: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
        self.logs |= log.is_some();
        let row = row(line, log.unwrap_or_default(), self.style);
        if let Row::Cells(cells) = &row {
            self.widen(cells);
        }
        if self.settled {
            self.head(out)?;
            return self.print(&row, out);
        }
        self.held.push(row);
        if self.held.len() >= SAMPLE_ROWS { self.finish(out) } else { Ok(()) }
    }

    /// Prints what is held back.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.settled || self.held.is_empty() {
            return Ok(());
        }
        self.settled = true;
        self.head(out)?;
        for row in std::mem::take(&mut self.held) {
            self.print(&row, out)?;
        }
        Ok(())
    }

    /// Prints the heads, once.
    fn head(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.headed, true) {
            return Ok(());
        }
        let heads = COLUMNS.map(|(head, _)| head.to_owned());
        self.widen(&heads);
        self.print(&Row::Cells(Box::new(heads)), out)
    }

    fn widen(&mut self, cells: &[String; COUNT]) {
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn print(&self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        let mut text = String::new();
        match row {
            Row::Cells(cells) => {
                for ((cell, width), (_, is_number)) in
                    cells.iter().zip(self.widths).zip(COLUMNS).take(COUNT - usize::from(!self.logs))
                {
                    text +=
                        &if is_number { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
                }
            }
            Row::Text(time, what) => {
                let [width, ..] = self.widths;
                text = format!("{time:<width$}  {what}");
            }
        }
        writeln!(out, "{}", text.trim_end())
    }
}

/// A record as a row.
fn row(line: &[u8], log: &str, style: Style) -> Row {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Row::Text("-".into(), clean(&String::from_utf8_lossy(line)));
    };
    let time = match style.time {
        Some(_) => style.time(&value),
        None => text(value.get("time").or_else(|| value.get("flow")?.get("time"))),
    };
    let Some(flow) = value.get("flow") else {
        return Row::Text(time, notice(&value, String::from_utf8_lossy(line).trim_end()));
    };
    let (protocol, l4) = match flow.get("l4").and_then(Value::as_object).and_then(|l4| l4.iter().next()) {
        Some((name, l4)) => (name.clone(), Some(l4)),
        None => (text(flow.get("Summary")).split("; ").next().unwrap_or("-").to_owned(), None),
    };
    let end = |address: &str, port: &str| {
        let address = text(flow.get("IP").and_then(|ip| ip.get(address)));
        match l4.and_then(|l4| l4.get(port)) {
            Some(port) if address.contains(':') => format!("[{address}]:{port}"),
            Some(port) => format!("{address}:{port}"),
            None => address,
        }
    };
    let ours = |key: &str| text(flow.get("extensions").and_then(|ours| ours.get("value")?.get(key)));
    Row::Cells(Box::new([
        time,
        end("source", "source_port"),
        end("destination", "destination_port"),
        protocol,
        text(flow.get("traffic_direction")),
        ours("event"),
        ours("end_reason"),
        ours("packets"),
        ours("bytes"),
        text(flow.get("interface").and_then(|interface| interface.get("name"))),
        clean(log),
    ]))
}

/// What a line about the log itself says.
fn notice(value: &Value, line: &str) -> String {
    if let Some(lost) = value.get("lost_events") {
        let (count, from) = (text(lost.get("num_events_lost")), text(lost.get("first")));
        return format!("{count} records lost from {from} to {}", text(lost.get("last")));
    }
    match value.get("node_status") {
        Some(status) => format!("{} {}", text(status.get("state_change")), text(status.get("message"))),
        None => clean(line),
    }
}

/// A value as a cell; `-` where there is none.
fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".into(),
        Some(Value::String(text)) => clean(text),
        Some(other) => other.to_string(),
    }
}

/// Without control characters, which could reach into the terminal.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
