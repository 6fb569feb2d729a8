//! Flat lines into Hubble's form: each column to the place that it has there.

use super::event::Malformed;
use super::json;
use crate::record::Json;
use crate::record::columns::{COLUMNS, Column, ColumnKind, NOTICE_COLUMNS, event_of, place};
use crate::tree::hint;

type Entries = Vec<(Box<str>, Json)>;

/// Whether an object is a flat record.
pub(super) fn is_flat(entries: &[(Box<str>, Json)]) -> bool {
    entries.iter().any(|(key, _)| &**key == "kind")
}

/// The same record as Hubble's JSON has it.
///
/// # Errors
/// Columns that there are not, and a kind of event that is none.
pub(super) fn unfold(entries: &[(Box<str>, Json)]) -> Result<Entries, Malformed> {
    let text = |key: &str| match entries.iter().find(|(known, _)| &**known == key) {
        Some((_, Json::Text(text))) => Some(&**text),
        _ => None,
    };
    let kind = text("kind").unwrap_or_default();
    if event_of(kind).is_none() {
        return Err(wrong("kind", format!("expected `flow` or another kind of event, found `{kind}`")));
    }
    let mut columns = Vec::with_capacity(entries.len());
    for (key, value) in entries.iter().filter(|(_, value)| !matches!(value, Json::Null)) {
        let Some(at) = place(key) else {
            let known: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
            return Err(wrong(key, format!("there is no such column; {}", hint(key, &known))));
        };
        columns.push((at, value));
    }
    columns.sort_by_key(|(at, _)| *at);
    let mut record = vec![(kind.into(), Json::Map(Vec::new()))];
    let members = [("l4.", text("protocol")), ("tunnel.l4.", text("tunnel_l4_protocol"))];
    for (at, value) in columns {
        let Some(column) = COLUMNS.get(at) else { continue };
        match column.name {
            "kind" => {}
            "time" | "node_name" => {
                if kind == "flow" {
                    put(&mut record, &format!("flow.{}", column.name), value.clone());
                }
                put(&mut record, column.name, value.clone());
            }
            "protocol" | "tunnel_l4_protocol" => {
                let before = if column.name == "protocol" { "l4" } else { "tunnel.l4" };
                if let Json::Text(member) = value {
                    put(&mut record, &format!("flow.{before}.{member}"), Json::Map(Vec::new()));
                }
            }
            "tcp_flags" | "tunnel_tcp_flags" => flags(&mut record, column.name, value),
            "extensions" => put(&mut record, "flow.extensions", parsed(column, value)?),
            "agent_event" | "debug_event" => put(&mut record, kind, parsed(column, value)?),
            name => match NOTICE_COLUMNS.iter().find(|(_, _, column)| *column == name) {
                Some((event, field, _)) => put(&mut record, &format!("{event}.{field}"), value.clone()),
                None => field(&mut record, column, value, members)?,
            },
        }
    }
    // `time` and `node_name` stand behind the event.
    record.sort_by_key(|(key, _)| matches!(&**key, "time" | "node_name"));
    Ok(record)
}

/// A column that stands for a field, or for the same one of each member of a union.
fn field(
    record: &mut Entries,
    column: &Column,
    value: &Json,
    members: [(&str, Option<&str>); 2],
) -> Result<(), Malformed> {
    let path = match column.paths.as_slice() {
        [] => &format!("extensions.{}", column.name),
        [path] => *path,
        paths => {
            let of_member = |path: &&&str| {
                members.iter().any(|(union, member)| {
                    let rest = path.strip_prefix(union).and_then(|rest| rest.split_once('.'));
                    rest.is_some_and(|(name, _)| Some(name) == *member)
                })
            };
            let path = paths.iter().find(of_member);
            path.copied().ok_or_else(|| wrong(column.name, "there is no protocol that has it".into()))?
        }
    };
    if let Some(key) = path.strip_prefix("extensions.") {
        if find(record, "flow.extensions.@type").is_none() {
            let of = "type.googleapis.com/google.protobuf.Struct";
            put(record, "flow.extensions.@type", Json::Text(of.into()));
        }
        put(record, &format!("flow.extensions.value.{key}"), value.clone());
        return Ok(());
    }
    let value = match (column.kind, value) {
        (ColumnKind::Json, value) => parsed(column, value)?,
        (ColumnKind::Name, Json::Text(text)) if text.parse::<i64>().is_ok() => {
            text.parse().map_or(Json::Null, Json::Signed)
        }
        (_, value) => value.clone(),
    };
    put(record, &format!("flow.{path}"), value);
    Ok(())
}

/// `SYN,ACK` as Hubble's flags.
fn flags(record: &mut Entries, column: &str, value: &Json) {
    let Json::Text(names) = value else { return };
    let path = if column == "tcp_flags" { "flow.l4.TCP.flags" } else { "flow.tunnel.l4.TCP.flags" };
    let set = names.split(',').filter(|name| !name.is_empty()).map(|name| (name.into(), Json::Bool(true)));
    put(record, path, Json::Map(set.collect()));
}

/// JSON in a string.
fn parsed(column: &Column, value: &Json) -> Result<Json, Malformed> {
    let Json::Text(text) = value else {
        return Err(wrong(column.name, format!("expected a string of JSON, found {}", value.kind())));
    };
    json::parse(text.as_bytes()).map_err(|error| wrong(column.name, error.to_string()))
}

fn find<'a>(entries: &'a Entries, path: &str) -> Option<&'a Json> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let (_, value) = entries.iter().find(|(key, _)| &**key == first)?;
    match (rest, value) {
        (None, value) => Some(value),
        (Some(rest), Json::Map(below)) => find(below, rest),
        _ => None,
    }
}

/// Puts a value at a path, with the objects on the way there.
fn put(entries: &mut Entries, path: &str, value: Json) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let known = entries.iter().position(|(key, _)| &**key == first);
    let at = known.unwrap_or_else(|| {
        entries.push((first.into(), Json::Map(Vec::new())));
        entries.len() - 1
    });
    let Some((_, place)) = entries.get_mut(at) else { return };
    match (rest, place) {
        (None, place) => *place = value,
        (Some(rest), Json::Map(below)) => put(below, rest, value),
        (Some(_), _) => {}
    }
}

fn wrong(path: &str, what: String) -> Malformed {
    Malformed { path: path.into(), what }
}
