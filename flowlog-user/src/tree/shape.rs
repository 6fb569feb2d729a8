//! What a value must look like, as data: the JSON schema and the table of all keys are made of it.

/// The form of a value. What a form cannot say (a regular expression that does not compile, two tasks with one name) is
/// found by reading only.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A string.
    Text,
    /// A string that is not empty.
    Name,
    /// A string that fits a regular expression; how people are told.
    Pattern(&'static str, &'static str),
    /// One of a few words.
    Words(&'static [&'static str]),
    /// A whole number from one to another.
    Integer(u64, u64),
    /// A whole number from one to another, in quotes or not.
    Number(i64, u64),
    /// `true` or `false`.
    Boolean,
    /// A duration such as `1h30m`.
    Duration,
    /// A moment in RFC 3339.
    Moment,
    /// A user or group, by name or number.
    Account,
    /// One of the names of an enum, or its number.
    Enum(&'static [(&'static str, i32)]),
    /// A path of the field table.
    Path,
    /// A list.
    List(&'static Self),
    /// A list, or one value of it.
    OneOrMany(&'static Self),
    /// The same, and not nothing: neither null nor an empty list.
    Filled(&'static Self),
    /// A map of these keys, each with its other spelling, and their forms.
    Map(&'static [(&'static str, &'static str)], &'static [Self]),
    /// A list of Hubble's filters.
    Filters,
    /// Not served by this version.
    NotServed,
}

impl Shape {
    /// For a table of keys.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Text | Self::Name => "text".into(),
            Self::Pattern(_, words) => (*words).into(),
            Self::Words(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            Self::Integer(low, high) => format!("{low} to {high}"),
            Self::Number(..) => "number".into(),
            Self::Boolean => "`true`, `false`".into(),
            Self::Duration => "duration (`1h30m`)".into(),
            Self::Moment => "time (`2026-12-31T23:59:59Z`)".into(),
            Self::Account => "name or number".into(),
            Self::Enum(_) => "name or number".into(),
            Self::Path => "path".into(),
            Self::List(of) => format!("list: {}", of.words()),
            Self::OneOrMany(of) => format!("{}, or a list", of.words()),
            Self::Filled(of) => of.words(),
            Self::Map(..) => "map".into(),
            Self::Filters => "list of filters".into(),
            Self::NotServed => "not served yet".into(),
        }
    }
}
