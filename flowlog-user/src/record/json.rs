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
