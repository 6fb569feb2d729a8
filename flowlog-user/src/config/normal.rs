//! A task's normal form: every key by its proper name, what is left out written out, what says nothing left out.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::versions::{KIND, V1};
use crate::filter::shape;
use crate::record::Event;
use crate::task::{Events, Spec};
use crate::tree::Shape;
use crate::write::{Compression, OnEnd, OnFull, Sync};

const MIB: u64 = 1 << 20;

/// Keys and values of a task, in an order that reads well.
pub type Normal = Vec<(&'static str, Value)>;

/// The normal form of a task: read again, it is the same task.
#[must_use]
pub fn normal(spec: &Spec) -> Normal {
    let configured: Value = serde_json::from_str(&spec.file.definition.0).unwrap_or_default();
    let given = |name: &str| {
        let entries = configured.as_object().into_iter().flatten();
        entries
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .find(|value| !value.is_null())
    };
    let mut task = Normal::new();
    let mut put = |key: &'static str, value: Option<Value>| task.extend(value.map(|value| (key, value)));
    put("name", Some(spec.name.as_str().into()));
    put("filePath", Some(spec.file.path.to_string_lossy().into()));
    put("description", spec.description.clone().map(Value::from));
    put("team", spec.team.clone().map(Value::from));
    put("includeFilters", given("includeFilters").and_then(filters));
    put("excludeFilters", given("excludeFilters").and_then(filters));
    put("where", given("where").map(|value| form(&shape::CONDITIONS, value)).filter(says_something));
    put("fieldMask", given("fieldMask").and_then(paths));
    if spec.aggregation.is_some() {
        put("fieldAggregate", given("fieldAggregate").and_then(paths));
    }
    put("aggregationInterval", spec.aggregation.map(|aggregation| duration(aggregation.interval)));
    put("fieldMaskExact", given("fieldMaskExact").filter(|exact| exact.as_bool() == Some(true)).cloned());
    // Where the filters ask for drops, so does the task.
    let drops = spec.drops && !spec.filter.asks_for_drops();
    put("events", Some(events(spec.cadence.events, drops)));
    put("updateInterval", spec.cadence.update_interval.map(duration));
    put("rateLimit", spec.rate_limit.map(Value::from));
    file(spec, given("fileMaxTotalMb").and_then(Value::as_u64), &mut put);
    put("start", spec.start.map(|at| at.to_string().into()));
    put("end", spec.end.map(|at| at.to_string().into()));
    task
}

fn file(spec: &Spec, total_mb: Option<u64>, put: &mut impl FnMut(&'static str, Option<Value>)) {
    let file = &spec.file;
    put("format", Some(file.format.name().into()));
    if file.is_stdout() {
        return;
    }
    put("compression", Some(file.compression.name().into()));
    let level = match file.compression {
        Compression::Zstd { level } => Some(i64::from(level)),
        Compression::Gzip { level } => Some(level.into()),
        Compression::None => None,
    };
    put("compressionLevel", level.map(Into::into));
    put("fileMaxSizeMb", Some((file.size_bytes_max / MIB).into()));
    match total_mb.filter(|mb| *mb > 0) {
        Some(mb) => put("fileMaxTotalMb", Some(mb.into())),
        None if file.total_bytes_max < u64::MAX => {
            let backups = (file.total_bytes_max / file.size_bytes_max.max(1)).saturating_sub(1);
            put("fileMaxBackups", Some(backups.into()));
        }
        None => {}
    }
    put("fileRotationInterval", file.rotation_interval.map(duration));
    put("fileRotationAligned", file.rotation_aligned.then_some(Value::Bool(true)));
    put("fileMaxAge", file.age_max.map(duration));
    put("fileMinFreePercent", file.free_percent_min.map(Value::from));
    put("fileMode", Some(format!("{:04o}", file.mode).into()));
    put("fileUser", file.owner.user.clone().map(Value::from));
    put("fileGroup", file.owner.group.clone().map(Value::from));
    let sync = match file.sync {
        Sync::None => "none",
        Sync::Frame => "frame",
        Sync::Interval => "interval",
    };
    put("fileSync", Some(sync.into()));
    let on_full = match file.on_full {
        OnFull::Drop => "drop",
        OnFull::DeleteOldest => "deleteOldest",
    };
    put("onFull", Some(on_full.into()));
    put("onEnd", (file.on_end == OnEnd::Delete).then(|| "delete".into()));
}

/// In the syntax that Go and we read.
fn duration(duration: Duration) -> Value {
    let (seconds, ns) = (duration.as_secs(), duration.subsec_nanos());
    if ns == 0 { format!("{seconds}s").into() } else { format!("{seconds}s{ns}ns").into() }
}

fn events(events: Events, drops: bool) -> Value {
    let has = |event: &Event| events.has(*event) || drops && *event == Event::Drop;
    Event::ALL.into_iter().filter(has).map(Event::name).collect()
}

/// A list of filters, as snake_case and without what is empty.
fn filters(list: &Value) -> Option<Value> {
    let list = list.as_array()?;
    let filters: Vec<Value> = list.iter().map(filter).collect();
    (!filters.is_empty()).then(|| filters.into())
}

fn filter(filter: &Value) -> Value {
    let mut fields = Map::new();
    for (name, camel, shape) in shape::fields() {
        let given = filter.get(name).or_else(|| filter.get(camel)).filter(|value| !value.is_null());
        let Some(value) = given.map(|value| form(&shape, value)).filter(says_something) else { continue };
        fields.insert(name.into(), value);
    }
    fields.into()
}

/// An empty list equals an absent field.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        Value::Null => false,
        _ => true,
    }
}

/// A value with the proper names of its keys.
fn form(shape: &Shape, value: &Value) -> Value {
    match (shape, value) {
        (Shape::List(of), Value::Array(items)) => items.iter().map(|item| form(of, item)).collect(),
        (Shape::OneOrMany(of), Value::Array(items)) => items.iter().map(|item| form(of, item)).collect(),
        (Shape::Filled(of), value) => form(of, value),
        (Shape::Map(names, shapes), Value::Object(entries)) => {
            let mut fields = Map::new();
            for ((name, camel), shape) in names.iter().zip(*shapes) {
                let given = entries.get(*name).or_else(|| entries.get(*camel));
                let Some(value) = given.filter(|value| !value.is_null()) else { continue };
                let value = form(shape, value);
                // An empty list inside a message equals an absent one; a scalar stays even where it is zero.
                if says_something(&value) {
                    fields.insert((*name).into(), value);
                }
            }
            fields.into()
        }
        _ => value.clone(),
    }
}

/// Paths in order, each once, without those inside another.
fn paths(list: &Value) -> Option<Value> {
    let mut paths: Vec<&str> = list.as_array()?.iter().filter_map(Value::as_str).collect();
    paths.sort_unstable();
    paths.dedup();
    let whole = paths.clone();
    let inside =
        |path: &str, other: &&str| path.strip_prefix(*other).is_some_and(|rest| rest.starts_with('.'));
    paths.retain(|path| !whole.iter().any(|other| inside(path, other)));
    (!paths.is_empty()).then(|| json!(paths))
}

/// A task file of these tasks, as YAML.
#[must_use]
pub fn yaml(tasks: &[Normal]) -> String {
    let mut text = format!("apiVersion: {V1}\nkind: {KIND}\n");
    if tasks.is_empty() {
        return text + "flowLogs: []\n";
    }
    text.push_str("flowLogs:\n");
    for task in tasks {
        let mut lead = "- ";
        for (key, value) in task {
            // Writing to a string cannot fail.
            let _ = write!(text, "{lead}{key}:");
            lead = "  ";
            match value {
                Value::Array(items) if key.ends_with("Filters") => {
                    text.extend(items.iter().map(|item| format!("\n  - {}", flow(item))));
                }
                _ => text.extend([" ", &flow(value)]),
            }
            text.push('\n');
        }
    }
    text
}

/// A value in YAML's flow style, which JSON is, with nothing in it that YAML would not print.
fn flow(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}
