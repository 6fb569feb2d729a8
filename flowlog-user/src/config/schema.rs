//! The JSON schema of task files for editors, and the table of all keys, both made of what reading goes by.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::versions::{Form, KIND, V1};
use crate::filter::shape;
use crate::record::fields::FIELDS;
use crate::task::{KEYS, Key};
use crate::tree::Shape;

/// Go's durations, written with or without spaces.
const DURATION: &str = "^(0|(\\s*[0-9]*[.,]?[0-9]+\\s*[a-zµμ]+,?)+)$";
/// RFC 3339 with an offset.
const MOMENT: &str = "^[0-9]{4}-?[0-9]{2}-?[0-9]{2}[Tt ][0-9:.,]+\\s*([Zz]|[+-][0-9:]+)";

/// The schema (draft 7, which editors know).
#[must_use]
pub fn schema() -> Value {
    let mut task = Map::new();
    for key in KEYS {
        let mut form = optional(form(&key.shape));
        if key.default == "required" {
            form = self::form(&key.shape);
        }
        describe(&mut form, &key.meaning.replace('`', ""), key.default);
        task.insert(key.name.into(), form);
    }
    let required: Vec<&str> =
        KEYS.iter().filter(|key| key.default == "required").map(|key| key.name).collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "flowlog's task files",
        "type": "object",
        "properties": {
            "apiVersion": { "const": V1 },
            "kind": { "const": KIND },
            "convertedFrom": { "type": "object", "required": ["file", "form", "hash"], "additionalProperties": false,
                "properties": { "file": { "type": "string" }, "hash": { "type": "string" },
                    "form": { "enum": Form::ALL.map(Form::name) } } },
            "flowLogs": { "type": "array", "items": {
                "type": "object", "properties": task, "required": required, "additionalProperties": false } },
        },
        "required": ["flowLogs"],
        "dependencies": { "apiVersion": ["kind"], "kind": ["apiVersion"] },
        "additionalProperties": false,
        "definitions": { "filter": filter(), "path": { "type": "string", "enum": paths() } },
    })
}

/// The table of all keys, as Markdown.
#[must_use]
pub fn table() -> String {
    let mut text = String::from(
        "# The keys of a task\n\nMade by `flowlog schema --keys`. The form of task files for editors is \
         `flowlog.schema.json` beside this page.\n",
    );
    for (title, hubbles) in [("Hubble's", true), ("flowlog's own", false)] {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n## {title}\n\n| key | value | without it | meaning |\n|---|---|---|---|\n");
        for Key { name, shape, default, meaning, .. } in KEYS.iter().filter(|key| key.hubbles == hubbles) {
            let _ = writeln!(text, "| `{name}` | {} | {default} | {meaning} |", shape.words());
        }
    }
    list(&mut text, "Fields of a filter", shape::fields().map(|(name, _, shape)| (name, shape)));
    if let Shape::Map(names, shapes) = shape::CONDITIONS {
        list(
            &mut text,
            "Conditions of `where`",
            names.iter().zip(shapes).map(|((name, _), shape)| (*name, *shape)),
        );
    }
    text.push_str(
        "\n## Paths of `fieldMask` and `fieldAggregate`\n\nEach of these, and each message above one.\n\n",
    );
    let paths: Vec<String> = FIELDS.iter().map(|(_, path)| format!("`{path}`")).collect();
    text.push_str(&paths.join(" "));
    text.push('\n');
    text
}

fn list(text: &mut String, title: &str, rows: impl Iterator<Item = (&'static str, Shape)>) {
    let _ = write!(text, "\n## {title}\n\n| key | value |\n|---|---|\n");
    for (name, shape) in rows {
        let _ = writeln!(text, "| `{name}` | {} |", shape.words());
    }
}

fn filter() -> Value {
    let mut fields = Map::new();
    for (name, camel, shape) in shape::fields() {
        for name in [name, camel] {
            fields.insert(name.into(), optional(form(&shape)));
        }
    }
    json!({ "type": ["object", "null"], "properties": fields, "additionalProperties": false })
}

/// Every path of a mask, messages included.
fn paths() -> Vec<&'static str> {
    let mut paths: Vec<&str> = Vec::new();
    for (_, leaf) in FIELDS {
        let ends = leaf.match_indices('.').map(|(end, _)| end).chain([leaf.len()]);
        for path in ends.filter_map(|end| leaf.get(..end)) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

fn form(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Name => json!({ "type": "string", "minLength": 1 }),
        Shape::Pattern(pattern, _) => json!({ "type": "string", "pattern": pattern }),
        Shape::Words(words) => json!({ "type": "string", "enum": words }),
        Shape::Integer(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Shape::Number(low, high) => {
            json!({ "type": ["integer", "string"], "minimum": low, "maximum": high, "pattern": "^-?[0-9]+$" })
        }
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Duration => {
            json!({ "type": ["string", "integer"], "minimum": 0, "maximum": 0, "pattern": DURATION })
        }
        Shape::Moment => json!({ "type": "string", "pattern": MOMENT }),
        Shape::Account => json!({ "type": ["string", "number"], "minLength": 1, "pattern": "^[^:/]*$" }),
        Shape::Enum(values) => {
            let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
            json!({ "anyOf": [{ "enum": names }, { "type": "integer" }] })
        }
        Shape::Path => json!({ "$ref": "#/definitions/path" }),
        Shape::List(of) => json!({ "type": "array", "items": form(of) }),
        Shape::OneOrMany(of) => json!({ "anyOf": [form(of), { "type": "array", "items": form(of) }] }),
        Shape::Filled(of) => filled(form(of)),
        Shape::Map(names, shapes) => {
            let mut fields = Map::new();
            for ((name, camel), shape) in names.iter().zip(*shapes) {
                let filled = matches!(shape, Shape::Filled(_));
                for name in [name, camel] {
                    let form = form(shape);
                    fields.insert((*name).into(), if filled { form } else { optional(form) });
                }
            }
            json!({ "type": "object", "properties": fields, "additionalProperties": false })
        }
        Shape::Filters => json!({ "type": "array", "items": { "$ref": "#/definitions/filter" } }),
        Shape::NotServed => json!({ "type": "null" }),
    }
}

/// A list is not empty.
fn filled(mut form: Value) -> Value {
    let lists = match form.get_mut("anyOf") {
        Some(Value::Array(forms)) => forms.iter_mut().collect(),
        _ => vec![&mut form],
    };
    for list in lists.into_iter().filter_map(Value::as_object_mut) {
        if list.get("type").is_some_and(|of| of == "array") {
            list.insert("minItems".into(), 1.into());
        }
    }
    form
}

/// Null equals absent.
fn optional(mut form: Value) -> Value {
    let Some(map) = form.as_object_mut() else { return form };
    match map.get_mut("type") {
        Some(Value::Array(types)) => types.push("null".into()),
        Some(Value::String(one)) if one != "null" => {
            let types = json!([one, "null"]);
            map.insert("type".into(), types);
        }
        Some(_) => {}
        None => {
            if let Some(Value::Array(forms)) = map.get_mut("anyOf") {
                forms.push(json!({ "type": "null" }));
            }
        }
    }
    if let Some(Value::Array(words)) = map.get_mut("enum") {
        words.push(Value::Null);
    }
    form
}

fn describe(form: &mut Value, meaning: &str, default: &str) {
    let Some(map) = form.as_object_mut() else { return };
    let text = match default {
        "" | "required" => meaning.to_owned(),
        default => format!("{meaning} (without it: {})", default.replace('`', "")),
    };
    map.insert("description".into(), text.into());
}
