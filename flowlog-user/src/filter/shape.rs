//! The forms of filters, for the JSON schema: what `spec` and `condition` read.

use super::spec::{EXPERIMENTAL, FIELDS};
use super::{event_type, interface, tcp_flags, workload};
use crate::record::schema;
use crate::tree::Shape;

const TEXTS: Shape = Shape::List(&Shape::Text);
const NAMES: Shape = Shape::List(&Shape::Name);
const BOOLEANS: Shape = Shape::List(&Shape::Boolean);
const PORTS: Shape = Shape::List(&Shape::Pattern(
    "^0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$",
    "port in quotes",
));
const ADDRESSES: Shape = Shape::List(&Shape::Pattern(ADDRESS, "address or prefix"));
const ADDRESS: &str = "^([0-9]+\\.[0-9.]+|[0-9a-fA-F.]*:[0-9a-fA-F:.]*(%[^/]*)?)(/[0-9]{1,3})?$";
const IDENTITIES: Shape = Shape::List(&Shape::Number(0, u32::MAX as u64));
const SIGNED: Shape = Shape::Number(i32::MIN as i64, i32::MAX as u64);

const FLAGS: Shape = Shape::List(&Shape::Map(tcp_flags::NAMES, &[Shape::Boolean; tcp_flags::NAMES.len()]));
const EVENT_TYPES: Shape = Shape::List(&Shape::Map(event_type::NAMES, &[SIGNED, Shape::Boolean, SIGNED]));
const INTERFACES: Shape =
    Shape::List(&Shape::Map(interface::NAMES, &[Shape::Number(0, u32::MAX as u64), Shape::Text]));
const WORKLOADS: Shape = Shape::List(&Shape::Map(workload::WORKLOAD, &[Shape::Text, Shape::Text]));
const HEADERS: Shape = Shape::List(&Shape::Map(workload::HEADER, &[Shape::Text, Shape::Text]));
static DIRECTIONS: Shape = Shape::Enum(schema::TRAFFIC_DIRECTION.values);
static VERDICTS: Shape = Shape::Enum(schema::VERDICT.values);
static DROP_REASONS: Shape = Shape::Enum(schema::DROP_REASON.values);
static IP_VERSIONS: Shape = Shape::Enum(schema::IP_VERSION.values);

/// The fields of a filter with both spellings and forms.
pub fn fields() -> impl Iterator<Item = (&'static str, &'static str, Shape)> {
    FIELDS.iter().map(|(name, camel)| (*name, *camel, field(name)))
}

fn field(name: &str) -> Shape {
    let rest = name.strip_prefix("source_").or_else(|| name.strip_prefix("destination_")).unwrap_or(name);
    match rest {
        "ip" | "ip_xlated" => ADDRESSES,
        "pod" | "service" | "cluster_name" => NAMES,
        "fqdn" | "node_name" => NAMES,
        "port" => PORTS,
        "identity" => IDENTITIES,
        "workload" => WORKLOADS,
        "traffic_direction" => Shape::List(&DIRECTIONS),
        "verdict" => Shape::List(&VERDICTS),
        "drop_reason_desc" => Shape::List(&DROP_REASONS),
        "ip_version" => Shape::List(&IP_VERSIONS),
        "interface" => INTERFACES,
        "event_type" => EVENT_TYPES,
        "http_status_code" => {
            Shape::List(&Shape::Pattern("^[1-5]([0-9]{2}|[0-9]?\\+)$", "status code in quotes"))
        }
        "reply" | "encrypted" => BOOLEANS,
        "http_header" => HEADERS,
        "tcp_flags" => FLAGS,
        "ip_trace_id" => Shape::List(&Shape::Number(0, u64::MAX)),
        "experimental" => Shape::Map(EXPERIMENTAL, &[TEXTS]),
        _ => TEXTS,
    }
}

/// `where`.
pub const CONDITIONS: Shape = Shape::Map(
    &[
        ("source_port", "source_port"),
        ("destination_port", "destination_port"),
        ("tcp_flags", "tcp_flags"),
        ("packets", "packets"),
        ("bytes", "bytes"),
        ("duration", "duration"),
        ("vlan", "vlan"),
        ("tunnel", "tunnel"),
        ("source_pool", "source_pool"),
        ("destination_pool", "destination_pool"),
    ],
    &[
        Shape::Filled(&RANGES),
        Shape::Filled(&RANGES),
        Shape::Filled(&FLAGS),
        Shape::Filled(&AMOUNT),
        Shape::Filled(&AMOUNT),
        Shape::Filled(&TIME),
        Shape::Filled(&RANGES),
        Shape::Filled(&TUNNELS),
        Shape::Filled(&POOLS),
        Shape::Filled(&POOLS),
    ],
);
const POOLS: Shape = Shape::List(&Shape::Pattern(
    "^!?[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?(=reserved)?$",
    "name of an address pool",
));
const RANGES: Shape = Shape::List(&Shape::Pattern("^!?[0-9]+(-[0-9]+)?$", "port or range"));
const AMOUNT: Shape = Shape::OneOrMany(&Shape::Pattern("^(>=?|<=?|=)\\s*[0-9]+$", "comparison"));
const TIME: Shape = Shape::OneOrMany(&Shape::Pattern("^(>=?|<=?|=)\\s*[0-9].*[a-zµμ].*$", "comparison"));
const TUNNELS: Shape =
    Shape::List(&Shape::Pattern("^!?(none|(vxlan|geneve|gre|ipip|ip6ip)(:[0-9]+(-[0-9]+)?)?)$", "tunnel"));
