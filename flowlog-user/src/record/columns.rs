//! Records of one level: a column for each leaf of the field table, and a few that say what its tree says by its
//! shape. Flat lines, Parquet and CSV have these columns; `config/columns.md` lists them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::fields::{COLUMN_NAMES, FIELDS};
use super::measured::{Entry, column_of};
use super::schema::{Arity, Descriptor, EXPORT_EVENT, FLOW, Kind, Spec};
use super::{Foreign, Measured, Message, Value};

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Fields of the record that are in it; the members of a union share one. Empty where `about` says what it is.
    pub paths: Vec<&'static str>,
    /// What it is, where no field is.
    pub about: &'static str,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ColumnKind {
    Text,
    /// A name of an enum of Hubble's, or a number that has none.
    Name,
    /// Strings.
    Texts,
    Unsigned,
    Signed,
    Bool,
    /// UTC, to the nanosecond.
    Time,
    /// JSON as text: what has no one-level form.
    Json,
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "as the column's kind")]
pub enum Cell<'a> {
    Text(Cow<'a, str>),
    Texts(Vec<Cow<'a, str>>),
    Unsigned(u64),
    Signed(i64),
    Bool(bool),
    /// Seconds since the Unix epoch, and nanoseconds after them.
    Time(i64, u32),
    /// To be written as JSON.
    Json(&'static Spec, &'a Value),
}

/// What flowlog measures: keys below `extensions` that are not text.
const MEASURED: [(&str, ColumnKind); 16] = [
    ("connection", ColumnKind::Unsigned),
    ("started", ColumnKind::Time),
    ("first_seen", ColumnKind::Time),
    ("last_seen", ColumnKind::Time),
    ("packets", ColumnKind::Unsigned),
    ("bytes", ColumnKind::Unsigned),
    ("packets_total", ColumnKind::Unsigned),
    ("bytes_total", ColumnKind::Unsigned),
    ("midstream", ColumnKind::Bool),
    ("interfaces", ColumnKind::Texts),
    ("duplicate", ColumnKind::Bool),
    ("fragment", ColumnKind::Bool),
    ("rtt", ColumnKind::Unsigned),
    ("vlan", ColumnKind::Unsigned),
    ("inner_vlan", ColumnKind::Unsigned),
    ("drop_netns", ColumnKind::Unsigned),
];

/// Columns that stand for no leaf, each before the column that is named (or at the end).
const OTHERS: [(&str, ColumnKind, &str, &str); 18] = [
    (
        "kind",
        ColumnKind::Text,
        "time",
        "`flow`, `lost_events`, `node_status`, `agent_event` or `debug_event`",
    ),
    (
        "protocol",
        ColumnKind::Text,
        "source_port",
        "which member of `l4` the flow has: `TCP`, `UDP`, `SCTP`, `ICMPv4`, `ICMPv6`, `VRRP`, `IGMP`",
    ),
    (
        "overflow",
        ColumnKind::Bool,
        "connection",
        "of aggregated records: those for whose key there was no room",
    ),
    ("connections", ColumnKind::Unsigned, "connection", "of aggregated records: distinct connections"),
    ("duplicate_packets", ColumnKind::Unsigned, "packets_total", "of aggregated records: packets seen twice"),
    ("duplicate_bytes", ColumnKind::Unsigned, "packets_total", "of aggregated records: bytes seen twice"),
    ("tunnel_l4_protocol", ColumnKind::Text, "tunnel_source_port", "the same of the tunnel's `l4`"),
    ("extensions", ColumnKind::Json, "", "`extensions` that are not flowlog's, as JSON"),
    ("lost_source", ColumnKind::Text, "", "of `lost_events`: where records were lost"),
    ("lost_records", ColumnKind::Unsigned, "", "of `lost_events`: how many"),
    ("lost_cpu", ColumnKind::Signed, "", "of `lost_events`: on which CPU"),
    ("lost_first", ColumnKind::Time, "", "of `lost_events`: when the first was lost"),
    ("lost_last", ColumnKind::Time, "", "of `lost_events`: when the last was lost"),
    ("state_change", ColumnKind::Text, "", "of `node_status`"),
    ("node_names", ColumnKind::Texts, "", "of `node_status`"),
    ("message", ColumnKind::Text, "", "of `node_status`: what happened, in words"),
    ("agent_event", ColumnKind::Json, "", "Hubble's `agent_event`, as JSON"),
    ("debug_event", ColumnKind::Json, "", "Hubble's `debug_event`, as JSON"),
];

/// Fields of the events that are no flows, with their columns.
pub const NOTICE_COLUMNS: [(&str, &str, &str); 8] = [
    ("lost_events", "source", "lost_source"),
    ("lost_events", "num_events_lost", "lost_records"),
    ("lost_events", "cpu", "lost_cpu"),
    ("lost_events", "first", "lost_first"),
    ("lost_events", "last", "lost_last"),
    ("node_status", "state_change", "state_change"),
    ("node_status", "node_names", "node_names"),
    ("node_status", "message", "message"),
];

/// Every column, in the order in which a record has them.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(columns);

static BY_NAME: LazyLock<HashMap<&str, usize>> =
    LazyLock::new(|| COLUMNS.iter().enumerate().map(|(at, column)| (column.name, at)).collect());

static BY_PATH: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let paths =
        COLUMNS.iter().enumerate().flat_map(|(at, column)| column.paths.iter().map(move |path| (*path, at)));
    paths.collect()
});

fn columns() -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let other = |(name, kind, _, about): (&'static str, ColumnKind, &str, &'static str)| Column {
        name,
        kind,
        paths: Vec::new(),
        about,
    };
    for ((_, path), name) in FIELDS.iter().zip(COLUMN_NAMES) {
        if let Some(column) = columns.iter_mut().find(|column| column.name == *name) {
            column.paths.push(path);
            continue;
        }
        columns.extend(OTHERS.into_iter().filter(|(_, _, before, _)| before == name).map(other));
        columns.push(Column { name, kind: kind(path), paths: vec![path], about: "" });
    }
    columns.extend(OTHERS.into_iter().filter(|(_, _, before, _)| before.is_empty()).map(other));
    columns
}

/// What the column of a leaf holds.
fn kind(path: &str) -> ColumnKind {
    if let Some(key) = path.strip_prefix("extensions.") {
        let of = MEASURED.iter().find(|(known, _)| *known == key).map(|(_, kind)| *kind);
        return of.unwrap_or(ColumnKind::Text);
    }
    if path.contains(".flags.") {
        return ColumnKind::Text;
    }
    leaf(&FLOW, path).map_or(ColumnKind::Text, kind_of)
}

fn leaf(of: &'static Descriptor, path: &str) -> Option<&'static Spec> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let spec = of.field(first)?;
    match (rest, spec.kind) {
        (None, _) => Some(spec),
        (Some(rest), Kind::Message(of)) => leaf(of, rest),
        _ => None,
    }
}

const fn kind_of(spec: &Spec) -> ColumnKind {
    match (spec.kind, spec.arity) {
        (Kind::Text, Arity::Many) => ColumnKind::Texts,
        (_, Arity::Many) | (Kind::Message(_) | Kind::Any, _) => ColumnKind::Json,
        (Kind::Text, _) => ColumnKind::Text,
        (Kind::Enum(_), _) => ColumnKind::Name,
        (Kind::Bool | Kind::BoolValue, _) => ColumnKind::Bool,
        (Kind::Int32 | Kind::Int64 | Kind::Int32Value, _) => ColumnKind::Signed,
        (Kind::Uint32 | Kind::Uint64 | Kind::Uint32Value, _) => ColumnKind::Unsigned,
        (Kind::Timestamp, _) => ColumnKind::Time,
    }
}

/// The place of a column in [`COLUMNS`].
#[must_use]
pub fn place(name: &str) -> Option<usize> {
    BY_NAME.get(name).copied()
}

/// An event's cells, each with its column's place, in the order of the columns. What a mask took, and zero as in
/// Hubble's own JSON, has none; nor has a message in which nothing is.
#[must_use]
pub fn cells(event: &Foreign) -> Vec<(usize, Cell<'_>)> {
    let mut row = Row(Vec::with_capacity(48));
    for (spec, value) in event.event().fields() {
        match value {
            Value::Message(of) => {
                row.put("kind", Cell::Text(spec.name.into()));
                match spec.name {
                    "flow" => row.message(of, &mut String::with_capacity(64)),
                    "agent_event" | "debug_event" => row.put(spec.name, Cell::Json(spec, value)),
                    kind => row.notice(kind, of),
                }
            }
            value if event.flow().is_none_or(|flow| flow.get(spec.name).is_none()) => {
                row.scalar(place(spec.name), spec, value);
            }
            _ => {}
        }
    }
    let Row(mut cells) = row;
    cells.sort_by_key(|(at, _)| *at);
    cells
}

struct Row<'a>(Vec<(usize, Cell<'a>)>);

impl<'a> Row<'a> {
    fn put(&mut self, column: &str, cell: Cell<'a>) {
        self.0.extend(place(column).map(|at| (at, cell)));
    }

    fn message(&mut self, message: &'a Message, path: &mut String) {
        if let (Some((member, _)), "l4." | "tunnel.l4.") = (message.fields().first(), path.as_str()) {
            let column = if path == "l4." { "protocol" } else { "tunnel_l4_protocol" };
            self.put(column, Cell::Text(member.name.into()));
        }
        for (spec, value) in message.fields() {
            let length = path.len();
            path.push_str(spec.name);
            match value {
                Value::Message(of) if spec.name == "flags" => {
                    let set: Vec<&str> = of.fields().iter().map(|(spec, _)| spec.name).collect();
                    let column = if path == "l4.TCP.flags" { "tcp_flags" } else { "tunnel_tcp_flags" };
                    self.put(column, Cell::Text(set.join(",").into()));
                }
                Value::Message(of) => {
                    path.push('.');
                    self.message(of, path);
                }
                Value::Free(..) | Value::Packed(_) => self.extensions(spec, value),
                value => self.scalar(BY_PATH.get(path.as_str()).copied(), spec, value),
            }
            path.truncate(length);
        }
    }

    fn extensions(&mut self, spec: &'static Spec, value: &'a Value) {
        let Some(ours) = value.free().and_then(Measured::from_json) else {
            return self.put("extensions", Cell::Json(spec, value));
        };
        for (key, entry) in ours.entries() {
            let cell = match entry {
                Entry::Text(name) => Cell::Text(name.into()),
                Entry::Foreign(text) => Cell::Text(text.to_owned().into()),
                Entry::Number(number) => Cell::Unsigned(number),
                Entry::Time(ns) => Cell::Time(
                    ns.div_euclid(1_000_000_000),
                    u32::try_from(ns.rem_euclid(1_000_000_000)).unwrap_or(0),
                ),
                Entry::Yes => Cell::Bool(true),
                Entry::Texts(names) => {
                    Cell::Texts(names.iter().map(|name| name.to_string().into()).collect())
                }
            };
            self.put(column_of(key), cell);
        }
    }

    fn notice(&mut self, kind: &str, of: &'a Message) {
        for (spec, value) in of.fields() {
            let column =
                NOTICE_COLUMNS.iter().find(|(event, field, _)| *event == kind && *field == spec.name);
            self.scalar(column.and_then(|(_, _, column)| place(column)), spec, value);
        }
    }

    fn scalar(&mut self, at: Option<usize>, spec: &'static Spec, value: &'a Value) {
        let cell = match value {
            Value::Bool(value) => Cell::Bool(*value),
            Value::Uint(number) => Cell::Unsigned(*number),
            Value::Int(number) => match spec.kind {
                Kind::Enum(of) => {
                    Cell::Text(match i32::try_from(*number).ok().and_then(|at| of.name_of(at)) {
                        Some(name) => name.into(),
                        None => number.to_string().into(),
                    })
                }
                _ => Cell::Signed(*number),
            },
            Value::Text(text) => Cell::Text((&**text).into()),
            Value::Time(seconds, nanoseconds) => Cell::Time(*seconds, *nanoseconds),
            Value::List(values) if matches!(spec.kind, Kind::Text) => Cell::Texts(
                values
                    .iter()
                    .filter_map(
                        |value| if let Value::Text(text) = value { Some((&**text).into()) } else { None },
                    )
                    .collect(),
            ),
            Value::List(_) | Value::Message(_) | Value::Free(..) | Value::Packed(_) => {
                Cell::Json(spec, value)
            }
        };
        self.0.extend(at.map(|at| (at, cell)));
    }
}

/// The event that a kind names.
#[must_use]
pub fn event_of(kind: &str) -> Option<&'static Spec> {
    EXPORT_EVENT.field(kind).filter(|spec| spec.arity == Arity::Member)
}
