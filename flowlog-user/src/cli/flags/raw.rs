//! Filters as JSON: read from `--allowlist` and `--denylist`, printed by `--print-raw-filters`, compiled.

use flowlog_user::filter::{FIELDS, Spec};
use flowlog_user::record::Json;
use flowlog_user::tree::{Entry, Place, Problems, Tree, Value};

/// Where a field of a `FlowFilter` stands among the others.
pub(super) fn order(field: &str) -> usize {
    let field = if field == "cel_expression" { super::tracker::EXPERIMENTAL } else { field };
    FIELDS.iter().position(|(name, _)| *name == field).unwrap_or(FIELDS.len())
}

/// Reads filters, one behind the other.
pub(super) fn read(flag: &str, text: &str) -> Result<Vec<Json>, String> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    let mut filters = Vec::new();
    for value in values {
        let value = value.map_err(|error| format!("--{flag}: cannot read `{text}` as JSON: {error}"))?;
        let serde_json::Value::Object(fields) = value else {
            return Err(format!(
                "--{flag}: `{value}` is no filter; expected an object such as {{\"source_ip\":[\"10.0.0.1\"]}}"
            ));
        };
        let mut named: Vec<(Box<str>, Json)> = Vec::new();
        for (key, value) in fields {
            let name = FIELDS.iter().find(|(name, json)| key == *name || key == *json).map(|(name, _)| *name);
            named.push((name.unwrap_or(&key).into(), json(value)));
        }
        named.sort_by_key(|(name, _)| order(name));
        filters.push(Json::Map(named));
    }
    Ok(filters)
}

fn json(value: serde_json::Value) -> Json {
    use serde_json::Value as From;
    match value {
        From::Null => Json::Null,
        From::Bool(value) => Json::Bool(value),
        From::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Json::Unsigned(number),
            (None, Some(number)) => Json::Signed(number),
            _ => Json::Float(number.as_f64().unwrap_or(0.0)),
        },
        From::String(text) => Json::Text(text.into()),
        From::Array(items) => Json::List(items.into_iter().map(json).collect()),
        From::Object(entries) => {
            Json::Map(entries.into_iter().map(|(key, value)| (key.into(), json(value))).collect())
        }
    }
}

/// The lists as YAML, in the form that Hubble's `--print-raw-filters` has.
pub(super) fn yaml(allow: &[Json], deny: &[Json]) -> String {
    let mut text = String::new();
    for (name, filters) in [("allowlist", allow), ("denylist", deny)] {
        if filters.is_empty() {
            continue;
        }
        text += &format!("{name}:\n");
        for filter in filters {
            text += &format!("    - '{}'\n", filter.to_string().replace('\'', "''"));
        }
    }
    if text.is_empty() { "{}\n".into() } else { text }
}

/// Compiles both lists.
pub(super) fn compile(allow: &[Json], deny: &[Json]) -> Result<Spec, String> {
    let list = |name: &str, filters: &[Json]| tree(&Json::List(filters.to_vec()), name);
    let mut problems = Problems::default();
    let spec =
        Spec::read(Some(&list("allowlist", allow)), Some(&list("denylist", deny)), None, &mut problems);
    if problems.errors.is_empty() { Ok(spec) } else { Err(problems.to_string()) }
}

fn tree(json: &Json, path: &str) -> Tree {
    let place = Place { file: "filters".into(), line: 0, column: 0, path: path.into() };
    let plain = |text: String| Value::Scalar { text, quoted: false };
    let value = match json {
        Json::Null => Value::Null,
        Json::Text(text) => Value::Scalar { text: text.to_string(), quoted: true },
        Json::List(items) => Value::List(
            items.iter().enumerate().map(|(at, item)| tree(item, &format!("{path}[{at}]"))).collect(),
        ),
        Json::Map(entries) => Value::Map(
            entries
                .iter()
                .map(|(key, value)| {
                    let path = format!("{path}.{key}");
                    let place = Place { path: path.clone(), ..place.clone() };
                    Entry { key: key.to_string(), place, value: tree(value, &path) }
                })
                .collect(),
        ),
        number => plain(number.to_string()),
    };
    Tree { place, value }
}
