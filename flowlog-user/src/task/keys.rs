use super::duration;
use crate::tree::{Fields, Key, Problems, Tree, Value};

/// Keys of Hubble's dynamic exporter.
const HUBBLE: &[&str] = &[
    "name",
    "filePath",
    "fieldMask",
    "fieldAggregate",
    "aggregationInterval",
    "includeFilters",
    "excludeFilters",
    "fileMaxSizeMb",
    "fileMaxBackups",
    "fileCompress",
    "end",
];

/// Our own keys.
const OURS: &[&str] = &[
    "format",
    "compression",
    "compressionLevel",
    "fileRotationInterval",
    "fileRotationAligned",
    "fileMaxAge",
    "fileMaxTotalMb",
    "fileMinFreePercent",
    "fileMode",
    "fileUser",
    "fileGroup",
    "fileSync",
    "onFull",
    "start",
    "events",
    "updateInterval",
    "rateLimit",
    "where",
    "fieldMaskExact",
    "description",
    "team",
    "anonymize",
    "sample",
    "hold",
    "priority",
];

/// Whether a value asks for nothing, so that it can be accepted today.
type AsksNothing = fn(&Tree) -> bool;

/// Keys that mean something later.
const NOT_SERVED: &[(&str, AsksNothing)] = &[
    ("fieldAggregate", |tree| matches!(&tree.value, Value::List(items) if items.is_empty())),
    ("aggregationInterval", |tree| duration::parse(tree).is_ok_and(|duration| duration.is_zero())),
    ("format", |tree| matches!(&tree.value, Value::Scalar { text, .. } if text == "json")),
    ("anonymize", never),
    ("sample", never),
    ("hold", never),
    ("priority", never),
];

const fn never(_: &Tree) -> bool {
    false
}

/// The keys of a task by their proper names. Hubble ignores the case of keys, so its own are accepted in any.
pub(super) fn read<'a>(tree: &'a Tree, problems: &mut Problems) -> Fields<'a> {
    let known: Vec<&str> = HUBBLE.iter().chain(OURS).copied().collect();
    let find = |key: &str| {
        let exact = HUBBLE.iter().chain(OURS).find(|name| **name == key);
        let respelt = HUBBLE.iter().find(|name| name.eq_ignore_ascii_case(key));
        match (exact, respelt) {
            (Some(name), _) => Key::Known(name),
            (None, Some(name)) => Key::Respelt(name),
            (None, None) => Key::Unknown,
        }
    };
    let fields = tree.fields("key", &known, find, problems);
    for (name, asks_nothing) in NOT_SERVED {
        if let Some(entry) = fields.entry(name)
            && !asks_nothing(&entry.value)
        {
            problems.error(&entry.place, "not served by this version yet; remove it");
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_not_served_is_a_known_one() {
        for (name, _) in NOT_SERVED {
            assert!(HUBBLE.contains(name) || OURS.contains(name), "{name}");
        }
    }
}
