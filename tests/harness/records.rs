//! Records read back by `zstd` and `serde_json`, never by flowlog.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The files of a folder, sorted by name.
///
/// # Errors
/// When it cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = std::fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// What the `zstd` command makes of a file; `whole` asks that it is not cut off.
///
/// # Errors
/// When the file is not whole and should be, or a line is no JSON.
pub fn zstdcat(file: &Path, whole: bool) -> Result<Vec<Value>> {
    let output = Command::new("zstd").args(["-dcq"]).arg(file).output()?;
    if whole && !output.status.success() {
        bail!("zstd on {}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout)?;
    let complete =
        if whole { text.as_str() } else { text.rsplit_once('\n').map_or("", |(complete, _)| complete) };
    complete.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

/// Every record of every file whose name begins with `stem`; lines about the log itself are none.
///
/// # Errors
/// As [`zstdcat`].
pub fn all(folder: &Path, stem: &str) -> Result<Vec<Record>> {
    Ok(found(folder, stem, "")?.0)
}

/// The same, and how many records the files say were lost at a place (`kernel`, `queue`, ...).
///
/// # Errors
/// As [`zstdcat`].
pub fn found(folder: &Path, stem: &str, place: &str) -> Result<(Vec<Record>, u64)> {
    let (mut records, mut lost) = (Vec::new(), 0);
    for file in files(folder)? {
        if !file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(stem)) {
            continue;
        }
        let lines = zstdcat(&file, true)?;
        for (at, line) in lines.iter().enumerate() {
            let told = line.pointer("/lost_events/num_events_lost").and_then(Value::as_str);
            // What it is about stands in the line that follows.
            let about = lines.get(at + 1).and_then(|next| next.pointer("/node_status/message"));
            let about = about.and_then(Value::as_str).unwrap_or_default();
            if let Some(told) = told.filter(|_| about.contains(&format!("lost at the {place} "))) {
                lost += told.parse::<u64>()?;
            }
        }
        records.extend(lines.into_iter().filter(|line| line.get("flow").is_some()).map(Record));
    }
    Ok((records, lost))
}

/// One line of a log.
#[derive(Clone, Debug)]
pub struct Record(pub Value);

/// One direction of a connection: protocol, source, source port, destination, destination port.
pub type Tuple = (String, String, u64, String, u64);

impl Record {
    fn flow(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(&format!("/flow/{pointer}"))
    }

    /// A string below `flow`, or nothing.
    #[must_use]
    pub fn text(&self, pointer: &str) -> &str {
        self.flow(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number below `flow`, or 0 (proto3 leaves zeros out).
    #[must_use]
    pub fn number(&self, pointer: &str) -> u64 {
        self.flow(pointer).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A boolean below `flow`, or nothing.
    #[must_use]
    pub fn boolean(&self, pointer: &str) -> Option<bool> {
        self.flow(pointer).and_then(Value::as_bool)
    }

    /// A string of our extensions, or nothing.
    #[must_use]
    pub fn extension(&self, name: &str) -> &str {
        self.text(&format!("extensions/value/{name}"))
    }

    /// A number of our extensions, or 0.
    #[must_use]
    pub fn amount(&self, name: &str) -> u64 {
        self.number(&format!("extensions/value/{name}"))
    }

    /// `start`, `update` or `end`.
    #[must_use]
    pub fn event(&self) -> &str {
        self.extension("event")
    }

    /// Which direction of which connection.
    #[must_use]
    pub fn tuple(&self) -> Tuple {
        let protocol = self
            .flow("l4")
            .and_then(Value::as_object)
            .and_then(|l4| l4.keys().next().cloned())
            .unwrap_or_default();
        let port = |side: &str| self.number(&format!("l4/{protocol}/{side}"));
        (
            protocol.clone(),
            self.text("IP/source").into(),
            port("source_port"),
            self.text("IP/destination").into(),
            port("destination_port"),
        )
    }
}

/// What records say of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// `start` records.
    pub starts: u64,
    /// `update` records.
    pub updates: u64,
    /// `end` records.
    pub ends: u64,
    /// Packets over all of them.
    pub packets: u64,
    /// Layer-2 bytes over all of them.
    pub bytes: u64,
    /// The reason of the last end.
    pub reason: String,
    /// Whether it is the reply direction.
    pub reply: Option<bool>,
}

/// Adds records up by direction.
#[must_use]
pub fn sums(records: &[Record]) -> BTreeMap<Tuple, Sum> {
    let mut sums = BTreeMap::<Tuple, Sum>::new();
    for record in records {
        let sum = sums.entry(record.tuple()).or_default();
        match record.event() {
            "start" => sum.starts += 1,
            "update" => sum.updates += 1,
            _ => sum.ends += 1,
        }
        sum.packets += record.amount("packets");
        sum.bytes += record.amount("bytes");
        sum.reply = record.boolean("is_reply");
        if !record.extension("end_reason").is_empty() {
            sum.reason = record.extension("end_reason").into();
        }
    }
    sums
}
