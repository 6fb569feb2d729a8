//! Whether a line is an event at first sight: JSON from end to end, with an event in it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::record::columns::event_of;

/// Whether a line is UTF-8, JSON, and has one of Hubble's events. What the event's fields are, and what stands beside
/// it, is not looked at: that takes [`super::event`], several times as long. False is no verdict, but a reason to ask there.
pub(super) fn is_event(line: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return false };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Event.deserialize(&mut deserializer).is_ok_and(|found| found) && deserializer.end().is_ok()
}

/// An object; whether it has an event.
struct Event;

impl<'de> DeserializeSeed<'de> for Event {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Event {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
        let mut found = 0_usize;
        while let Some(is_event) = entries.next_key_seed(Key)? {
            if is_event {
                entries.next_value_seed(Object)?;
                found += 1;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found == 1)
    }
}

/// A key; whether it names an event.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        Ok(event_of(key).is_some())
    }
}

/// An object, whatever is in it.
struct Object;

impl<'de> DeserializeSeed<'de> for Object {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
