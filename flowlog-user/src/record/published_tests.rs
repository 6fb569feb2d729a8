//! What `config/` tells others about records is what the tables say. `FLOWLOG_BLESS=1` writes it anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::columns::{COLUMNS, ColumnKind};
use super::measured::number;
use super::schema::{Arity, Descriptor, EXPORT_EVENT, Enumeration, Kind};
use super::{EndReason, Event, TunnelKind};

fn published(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").join(file);
    if std::env::var_os("FLOWLOG_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "config/{file} is not what the tables say; FLOWLOG_BLESS=1 writes it anew");
}

#[test]
fn the_columns_are_published() {
    let mut text = String::from(
        "# Columns\n\n\
         What a record has in `format: flat`, and in `flowlog cat -o flat`, `-o csv` and `-o parquet`. The first column\n\
         says what kind of record it is: a flow, or one about the log itself. Fields are named as in a `fieldMask`, and a\n\
         mask leaves their columns empty. Empty is also what Hubble's JSON leaves out: zero (so an ICMP type or code of 0,\n\
         or an unknown number) and false; `packets` and `bytes` are always there. Times are UTC: RFC 3339 in flat lines and\n\
         CSV, TIMESTAMP of nanoseconds in Parquet. Bytes are of layer 2 without FCS. Lists are JSON arrays in flat lines,\n\
         lists in Parquet, and joined by `;` in CSV. New columns may come, none changes its meaning.\n\n\
         | column | type | of the record |\n|---|---|---|\n",
    );
    for column in COLUMNS.iter() {
        let kind = match column.kind {
            ColumnKind::Text | ColumnKind::Name => "string",
            ColumnKind::Texts => "list of strings",
            ColumnKind::Unsigned => "unsigned number",
            ColumnKind::Signed => "signed number",
            ColumnKind::Bool => "boolean",
            ColumnKind::Time => "time",
            ColumnKind::Json => "string of JSON",
        };
        let paths: Vec<String> = column.paths.iter().map(|path| format!("`{path}`")).collect();
        let of = if column.about.is_empty() { paths.join(", ") } else { column.about.to_owned() };
        writeln!(text, "| `{}` | {kind} | {of} |", column.name).unwrap();
    }
    published("columns.md", &text);
}

#[test]
fn names_of_columns_are_snake_case_and_unique() {
    let names: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names.len(), COLUMNS.len());
    for name in names {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
    }
}

/// `flow.Tunnel.Protocol` -> `Tunnel.Protocol`; the event is ours by name, since it has a field more.
fn name(of: &str) -> &str {
    let (_, name) = of.split_once('.').unwrap();
    if of == EXPORT_EVENT.name { "Record" } else { name }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int32 => "int32",
        Kind::Uint32 => "uint32",
        Kind::Int64 => "int64",
        Kind::Uint64 => "uint64",
        Kind::Text => "string",
        Kind::Enum(of) => name(of.name),
        Kind::Message(of) => name(of.name),
        Kind::Timestamp => "google.protobuf.Timestamp",
        Kind::BoolValue => "google.protobuf.BoolValue",
        Kind::Int32Value => "google.protobuf.Int32Value",
        Kind::Uint32Value => "google.protobuf.UInt32Value",
        Kind::Any => "google.protobuf.Any",
    }
}

#[derive(Default)]
struct Proto {
    messages: Vec<(&'static str, String)>,
    /// Enums inside a message, and those beside.
    inner: Vec<(&'static str, String)>,
    enums: Vec<(&'static str, String)>,
}

impl Proto {
    fn message(&mut self, of: &'static Descriptor) {
        if self.messages.iter().any(|(known, _)| *known == of.name) {
            return;
        }
        let at = self.messages.len();
        self.messages.push((of.name, String::new()));
        let mut text = String::new();
        let mut in_union = false;
        for spec in of.fields {
            match spec.kind {
                Kind::Message(of) => self.message(of),
                Kind::Enum(of) => self.enumeration(of),
                _ => {}
            }
            let is_member = spec.arity == Arity::Member;
            if is_member != in_union {
                text += if is_member { "  oneof one {\n" } else { "  }\n" };
                in_union = is_member;
            }
            let repeated = if spec.arity == Arity::Many { "repeated " } else { "" };
            let indent = if in_union { "    " } else { "  " };
            let type_name = kind(spec.kind);
            writeln!(text, "{indent}{repeated}{type_name} {} = {};", spec.name, spec.number).unwrap();
        }
        if in_union {
            text += "  }\n";
        }
        if of.name == EXPORT_EVENT.name {
            let about = "  // What flowlog measured of the flow; in JSON it stands in `flow.extensions`.\n";
            writeln!(text, "{about}  Measured measured = {};", number::MEASURED).unwrap();
        }
        self.messages[at].1 = text;
    }

    fn enumeration(&mut self, of: &'static Enumeration) {
        let inside = name(of.name).contains('.');
        let list = if inside { &mut self.inner } else { &mut self.enums };
        if list.iter().any(|(known, _)| *known == of.name) {
            return;
        }
        let mut text = String::new();
        for (name, number) in of.values {
            writeln!(text, "  {name} = {number};").unwrap();
        }
        list.push((of.name, text));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (of, fields) in &self.messages {
            write!(text, "\n// Hubble's `{of}`.\nmessage {} {{\n", name(of)).unwrap();
            for (inner, values) in &self.inner {
                if let Some(short) = name(inner).strip_prefix(&format!("{}.", name(of))) {
                    write!(text, "  enum {short} {{\n{}  }}\n", values.replace("  ", "    ")).unwrap();
                }
            }
            writeln!(text, "{fields}}}").unwrap();
        }
        for (of, values) in &self.enums {
            write!(text, "\n// Hubble's `{of}`.\nenum {} {{\n{values}}}\n", name(of)).unwrap();
        }
        text
    }
}

fn measured() -> String {
    let names = |values: &[(&str, u64)]| {
        values.iter().fold(String::new(), |text, (name, number)| {
            text + &format!("    {} = {number};\n", name.to_uppercase())
        })
    };
    let event = |event: Event| (event.name(), event.number());
    let events = names(&Event::ALL.map(event));
    let reasons = names(&EndReason::ALL.map(|reason| (reason.name(), reason.number())));
    let tunnels = names(&TunnelKind::ALL.map(|kind| (kind.name(), kind.number())));
    format!(
        "\n// What flowlog measured of one direction of a connection.\nmessage Measured {{\n  \
           enum Event {{\n    EVENT_UNKNOWN = 0;\n{events}  }}\n  \
           enum EndReason {{\n    END_REASON_UNKNOWN = 0;\n{reasons}  }}\n  \
           Event event = {};\n  EndReason end_reason = {};\n  \
           // The same in both directions and in all records of a connection.\n  \
           optional uint64 connection = {};\n  \
           // Nanoseconds before `flow.time`; where a mask took that, before the Unix epoch (and so negative).\n  \
           optional int64 started_before_ns = {};\n  optional int64 first_seen_before_ns = {};\n  \
           optional int64 last_seen_before_ns = {};\n  \
           // Of this record.\n  \
           optional uint64 packets = {};\n  optional uint64 bytes = {};\n  \
           // Since the connection was opened.\n  \
           optional uint64 packets_total = {};\n  optional uint64 bytes_total = {};\n  \
           bool midstream = {};\n  repeated string interfaces = {};\n  bool duplicate = {};\n  bool fragment = {};\n  \
           optional uint64 rtt_ns = {};\n  \
           optional uint32 vlan = {};\n  optional uint32 inner_vlan = {};\n  \
           enum Tunnel {{\n    TUNNEL_UNKNOWN = 0;\n{tunnels}  }}\n  Tunnel tunnel = {};\n  \
           // Of records that are the sum of others.\n  bool overflow = {};\n  optional uint64 connections = {};\n  \
           optional uint64 duplicate_packets = {};\n  optional uint64 duplicate_bytes = {};\n  \
           // Of dropped packets: the kernel's reason and function, the inode of the network namespace, and the interface\n  \
           // where `flow.interface` has no name for it.\n  \
           optional string drop_reason = {};\n  optional string drop_location = {};\n  \
           optional uint64 drop_netns = {};\n  optional string drop_interface = {};\n}}\n",
        number::EVENT,
        number::END_REASON,
        number::CONNECTION,
        number::STARTED,
        number::FIRST_SEEN,
        number::LAST_SEEN,
        number::PACKETS,
        number::BYTES,
        number::PACKETS_TOTAL,
        number::BYTES_TOTAL,
        number::MIDSTREAM,
        number::INTERFACES,
        number::DUPLICATE,
        number::FRAGMENT,
        number::RTT,
        number::VLAN,
        number::INNER_VLAN,
        number::TUNNEL,
        number::OVERFLOW,
        number::CONNECTIONS,
        number::DUPLICATE_PACKETS,
        number::DUPLICATE_BYTES,
        number::DROP_REASON,
        number::DROP_LOCATION,
        number::DROP_NETNS,
        number::DROP_INTERFACE,
    )
}

#[test]
fn the_schema_is_published() {
    let mut proto = Proto::default();
    proto.message(&EXPORT_EVENT);
    let head = "// Records of `format: protobuf`: each `Record` stands behind its length, a varint.\n//\n\
                // A `Record` is Hubble's `observer.ExportEvent` (Cilium 1.19.4) with one field more, `measured`; its messages have\n\
                // Hubble's numbers, so that what is made of Hubble's own schema reads these files too, and leaves `measured` out.\n\
                // Generated from flowlog's tables, which a test compares with this file.\n\
                syntax = \"proto3\";\n\npackage flowlog.v1;\n\n\
                import \"google/protobuf/any.proto\";\nimport \"google/protobuf/timestamp.proto\";\n\
                import \"google/protobuf/wrappers.proto\";\n";
    published("flowlog.proto", &(head.to_owned() + &measured() + &proto.text()));
}

#[test]
fn a_reason_that_is_written_can_be_read() {
    // As the kernel's side and the capture make them; a number once given stays.
    let numbers = [
        (EndReason::Fin, 1),
        (EndReason::Rst, 2),
        (EndReason::Idle, 3),
        (EndReason::TableFull, 4),
        (EndReason::Unwatched, 5),
        (EndReason::Shutdown, 6),
        (EndReason::Alone, 7),
    ];
    for (reason, number) in numbers {
        assert_eq!(reason.number(), number);
        assert_eq!(EndReason::from_number(number), Some(reason));
        assert_eq!(EndReason::from_name(reason.name()), Some(reason));
    }
    assert_eq!(EndReason::ALL, numbers.map(|(reason, _)| reason));
}
