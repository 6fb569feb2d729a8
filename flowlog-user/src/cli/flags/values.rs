//! What stands behind a flag, as a value of a `FlowFilter`.

use flowlog_user::record::schema::{DROP_REASON, VERDICT};
use flowlog_user::record::{AGENT_EVENTS, EVENT_TYPES, Json, RESERVED_IDENTITIES, TRACE_POINTS};

const TCP_FLAGS: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "NS"];

fn map<const N: usize>(entries: [(&str, Json); N]) -> Json {
    Json::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

pub(super) fn text(value: &str) -> Json {
    Json::Text(value.into())
}

/// Of an entry nothing that is empty is kept, as protobuf has it.
fn texts(entries: [(&str, &str); 2]) -> Json {
    let set = entries.into_iter().filter(|(_, value)| !value.is_empty());
    Json::Map(set.map(|(key, value)| (key.into(), text(value))).collect())
}

pub(super) fn tcp_flags(value: &str) -> Result<Json, String> {
    let asked: Vec<String> = value.split(',').map(str::to_uppercase).collect();
    if let Some(unknown) = asked.iter().find(|flag| !TCP_FLAGS.contains(&flag.as_str())) {
        return Err(format!("unknown TCP flag `{unknown}`; expected some of {}", TCP_FLAGS.join(", ")));
    }
    let set = TCP_FLAGS.iter().filter(|flag| asked.iter().any(|asked| asked == *flag));
    Ok(Json::Map(set.map(|flag| ((*flag).into(), Json::Bool(true))).collect()))
}

pub(super) fn ip_version(value: &str) -> Json {
    text(match value.to_lowercase().as_str() {
        "4" | "v4" | "ipv4" | "ip4" => "IPv4",
        "6" | "v6" | "ipv6" | "ip6" => "IPv6",
        _ => "IP_NOT_USED",
    })
}

pub(super) fn verdict(value: &str) -> Result<Json, String> {
    known(value, VERDICT.values)
}

pub(super) fn drop_reason(value: &str) -> Result<Json, String> {
    known(value, DROP_REASON.values)
}

fn known(value: &str, values: &[(&str, i32)]) -> Result<Json, String> {
    if values.iter().any(|(name, _)| *name == value) {
        return Ok(text(value));
    }
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    Err(format!("unknown value `{value}`; {}", flowlog_user::tree::hint(value, &names)))
}

pub(super) fn direction(value: &str) -> Result<Json, String> {
    match value.to_lowercase().as_str() {
        "ingress" => Ok(text("INGRESS")),
        "egress" => Ok(text("EGRESS")),
        _ => Err(format!("`{value}` is no direction; expected ingress or egress")),
    }
}

pub(super) fn identity(value: &str) -> Result<Json, String> {
    let named =
        RESERVED_IDENTITIES.iter().skip(1).find(|(_, name)| *name == value).map(|(number, _)| *number);
    named.or_else(|| value.parse().ok()).map(|number| Json::Unsigned(number.into())).ok_or_else(|| {
        let names: Vec<&str> = RESERVED_IDENTITIES.iter().skip(1).map(|(_, name)| *name).collect();
        format!("`{value}` is no identity; expected a number, or one of {}", names.join(", "))
    })
}

/// `foo`, `Deployment/foo` or `Deployment/`.
pub(super) fn workload(value: &str) -> Json {
    let (kind, name) = value.split_once('/').unwrap_or(("", value));
    texts([("name", name), ("kind", kind)])
}

pub(super) fn interface(value: &str) -> Json {
    texts([("name", value), ("", "")])
}

pub(super) fn header(value: &str) -> Result<Json, String> {
    let (key, value) =
        value.split_once(':').ok_or_else(|| format!("`{value}` is no header; expected NAME:VALUE"))?;
    Ok(texts([("key", key), ("value", value)]))
}

pub(super) fn ip_trace_id(value: &str) -> Result<Json, String> {
    // A uint64 is a string in protobuf's JSON.
    match value.parse::<u64>() {
        Ok(id) if id > 0 => Ok(text(&id.to_string())),
        _ => Err(format!("`{value}` is no IP trace; expected a number greater than 0")),
    }
}

/// `TYPE[:SUBTYPE]`, each a name or a number.
pub(super) fn event_type(value: &str) -> Result<Json, String> {
    let (kind, sub) = value.split_once(':').map_or((value, None), |(kind, sub)| (kind, Some(sub)));
    let number = number(kind, &EVENT_TYPES).ok_or_else(|| {
        let names: Vec<&str> = EVENT_TYPES.iter().map(|(_, name)| *name).collect();
        format!("`{kind}` is no type of events; expected a number, or one of {}", names.join(", "))
    })?;
    let mut event_type = Vec::new();
    if number > 0 {
        event_type.push(("type".into(), Json::Unsigned(number.into())));
    }
    if let Some(sub) = sub {
        let names: &[(u32, &str)] = match number {
            4 => &TRACE_POINTS,
            130 => &AGENT_EVENTS,
            _ => &[],
        };
        let sub = self::number(sub, names).ok_or_else(|| {
            let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
            format!(
                "`{sub}` is no subtype of `{kind}`; expected a number{}{}",
                if names.is_empty() { "" } else { ", or one of " },
                names.join(", ")
            )
        })?;
        event_type.push(("match_sub_type".into(), Json::Bool(true)));
        if sub > 0 {
            event_type.push(("sub_type".into(), Json::Unsigned(sub.into())));
        }
    }
    Ok(Json::Map(event_type))
}

fn number(word: &str, names: &[(u32, &str)]) -> Option<u32> {
    names.iter().find(|(_, name)| *name == word).map(|(number, _)| *number).or_else(|| word.parse().ok())
}

/// The message around CEL expressions.
pub(super) fn cel(expressions: Vec<Json>) -> Json {
    map([("cel_expression", Json::List(expressions))])
}
