use std::fmt;

/// Free JSON, keys in the order in which they stood: what an `extensions` may hold.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "JSON's own kinds")]
pub enum Json {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Box<str>),
    List(Vec<Json>),
    Map(Vec<(Box<str>, Json)>),
}

impl Json {
    /// An entry of a map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|(known, _)| &**known == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// What it is, for messages.
    #[must_use]
    pub fn kind(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Bool(value) => format!("`{value}`"),
            Self::Unsigned(value) => format!("`{value}`"),
            Self::Signed(value) => format!("`{value}`"),
            Self::Float(value) => format!("`{value}`"),
            Self::Text(text) => format!("the string {text:?}"),
            Self::List(_) => "a list".into(),
            Self::Map(_) => "an object".into(),
        }
    }
}

/// RFC 3339 in UTC with 0, 3, 6 or 9 digits of a second, as protobuf's JSON has it.
#[must_use]
pub fn rfc3339(ns: i64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let digits = match ns {
        ns if ns % 1_000_000_000 == 0 => 0,
        ns if ns % 1_000_000 == 0 => 3,
        ns if ns % 1_000 == 0 => 6,
        _ => 9,
    };
    format!("{at:.digits$}")
}

/// Compact, strings as Go writes them.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Signed(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(&json_string(text)),
            Self::List(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{}:{value}", if at > 0 { "," } else { "" }, json_string(key))?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A JSON string as Go writes it.
#[must_use]
pub fn json_string(text: &str) -> String {
    let mut json = serde_json::Value::from(text).to_string();
    for (plain, escaped) in [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u{2028}", "\\u2028"),
        ("\u{2029}", "\\u2029"),
    ] {
        if json.contains(plain) {
            json = json.replace(plain, escaped);
        }
    }
    json
}
