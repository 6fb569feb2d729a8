use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::record::Json;

/// Parses one JSON value that keeps its keys' order; a key that stands twice is an error.
pub(super) fn parse(text: &[u8]) -> Result<Json, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let json = Any.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(json)
}

#[derive(Clone, Copy)]
struct Any;

impl<'de> DeserializeSeed<'de> for Any {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut map: Vec<(Box<str>, Json)> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.iter().any(|(known, _)| **known == *key) {
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice")));
            }
            map.push((key.into(), entries.next_value_seed(self)?));
        }
        Ok(Json::Map(map))
    }
}
