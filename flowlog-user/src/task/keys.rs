//! The keys of a task: what reading, the JSON schema and the table of all keys go by.

use super::file::{
    BACKUPS_MAX, ON_END_WORDS, ON_FULL_WORDS, SIZE_MB_MAX, SYNC_WORDS, TOTAL_MB_MAX, ZSTD_LEVEL_MAX,
};
use super::spec::RATE_MAX;
use crate::filter::shape::CONDITIONS;
use crate::tree::{Fields, Key as Found, Problems, Shape, Tree};

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Hubble's dynamic exporter has it too.
    pub hubbles: bool,
    /// What it may hold.
    pub shape: Shape,
    /// What holds where it is left out; empty where nothing does.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

const fn hubbles(name: &'static str, shape: Shape, default: &'static str, meaning: &'static str) -> Key {
    Key { name, hubbles: true, shape, default, meaning }
}

const fn ours(name: &'static str, shape: Shape, default: &'static str, meaning: &'static str) -> Key {
    Key { name, hubbles: false, shape, default, meaning }
}

const fn later(name: &'static str) -> Key {
    ours(name, Shape::NotServed, "", "reserved for a later version")
}

/// Whether this is a key of Hubble's, whatever the case of its letters.
#[must_use]
pub fn is_hubbles_key(key: &str) -> bool {
    KEYS.iter().any(|known| known.hubbles && known.name.eq_ignore_ascii_case(key))
}

/// Whether this is a key of ours.
#[must_use]
pub fn is_own_key(key: &str) -> bool {
    KEYS.iter().any(|known| !known.hubbles && known.name == key)
}

const PATHS: Shape = Shape::List(&Shape::Path);
const PATH: Shape = Shape::Pattern("^(stdout|/(.*[^/])?)$", "absolute path of a file, or `stdout`");
const MODE: Shape = Shape::Pattern("^0?[2367][0-7]{2}$", "permissions in octal, in quotes");

/// All of them; Hubble's first.
pub const KEYS: &[Key] = &[
    hubbles("name", Shape::Name, "required", "name of the task, unique over all task files"),
    hubbles(
        "filePath",
        PATH,
        "required",
        "where its records go, below `--log-root` (or `stdout`); may hold `{task}`, `{node}` and, in the file's name, `{date}`",
    ),
    hubbles(
        "fieldMask",
        PATHS,
        "all fields",
        "fields of a record that are written; `time` and `node_name` always are",
    ),
    hubbles(
        "fieldAggregate",
        PATHS,
        "none",
        "with `aggregationInterval`: one line for all records that agree in these",
    ),
    hubbles(
        "aggregationInterval",
        Shape::Duration,
        "0s",
        "how often the lines of `fieldAggregate` are written",
    ),
    hubbles(
        "includeFilters",
        Shape::Filters,
        "everything",
        "records of which one of these filters holds are taken",
    ),
    hubbles("excludeFilters", Shape::Filters, "nothing", "and of them none of which one of these holds"),
    hubbles(
        "fileMaxSizeMb",
        Shape::Integer(0, SIZE_MB_MAX),
        "10",
        "MiB on disk after which a file is finished; 0 is 10, as with Hubble",
    ),
    hubbles(
        "fileMaxBackups",
        Shape::Integer(0, BACKUPS_MAX),
        "5",
        "how many times `fileMaxSizeMb` finished files may take; 0 is 5, as with Hubble",
    ),
    hubbles(
        "fileCompress",
        Shape::Boolean,
        "",
        "`true`: plain lines, gzipped when finished; `false`: plain lines; left out: see `compression`",
    ),
    hubbles(
        "end",
        Shape::Moment,
        "never",
        "nothing is written from this moment on, and the file is finished",
    ),
    ours("format", Shape::Words(&["json", "flat", "protobuf"]), "json", "form of a record"),
    ours("compression", Shape::Words(&["zstd", "gzip", "none"]), "zstd", "how the file is compressed"),
    ours(
        "compressionLevel",
        Shape::Integer(1, ZSTD_LEVEL_MAX),
        "1; 6 for gzip",
        "level of zstd, or up to 9 of gzip",
    ),
    ours(
        "fileRotationInterval",
        Shape::Duration,
        "never",
        "time after which a file is finished, while a daemon writes it (`replay` goes by size alone)",
    ),
    ours(
        "fileRotationAligned",
        Shape::Boolean,
        "false",
        "end files at whole multiples of fileRotationInterval in UTC",
    ),
    ours("fileMaxAge", Shape::Duration, "none", "age at which finished files go"),
    ours("fileMaxTotalMb", Shape::Integer(0, TOTAL_MB_MAX), "", "MiB that all of the task's files may take"),
    ours("fileMinFreePercent", Shape::Integer(0, 99), "none", "part of the file system that stays free"),
    ours("fileMode", MODE, "0640", "permissions of the files"),
    ours("fileUser", Shape::Account, "the daemon's", "owner of the files"),
    ours("fileGroup", Shape::Account, "the daemon's", "group of the files"),
    ours("fileSync", Shape::Words(SYNC_WORDS), "none", "when a file is synced beside its end"),
    ours(
        "onEnd",
        Shape::Words(ON_END_WORDS),
        "keep",
        "what becomes of the files when the task ends or is removed",
    ),
    ours("onFull", Shape::Words(ON_FULL_WORDS), "drop", "what happens when the disk is full"),
    ours("start", Shape::Moment, "at once", "nothing is written before this moment"),
    ours(
        "events",
        Shape::List(&Shape::Words(&["start", "update", "end", "drop"])),
        "`start`, `update`, `end`",
        "at which events records are written; `drop`: also what the kernel drops",
    ),
    ours("updateInterval", Shape::Duration, "`--active-timeout`", "time between two updates of a connection"),
    ours("rateLimit", Shape::Integer(1, RATE_MAX), "none", "records a second that are written at most"),
    ours("where", CONDITIONS, "", "conditions that Hubble's filters do not know; all must hold too"),
    ours(
        "fieldMaskExact",
        Shape::Boolean,
        "false",
        "`time` and `node_name` only where they are named, as in Hubble",
    ),
    ours("description", Shape::Text, "", "what the task is for"),
    ours("team", Shape::Text, "", "who owns it"),
    later("anonymize"),
    later("sample"),
    later("hold"),
    later("priority"),
];

/// The keys of a task by their proper names. Hubble ignores the case of keys, so its own are accepted in any.
pub(super) fn read<'a>(tree: &'a Tree, problems: &mut Problems) -> Fields<'a> {
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    let find = |text: &str| {
        let exact = KEYS.iter().find(|key| key.name == text);
        let respelt = KEYS.iter().find(|key| key.hubbles && key.name.eq_ignore_ascii_case(text));
        match (exact, respelt) {
            (Some(key), _) => Found::Known(key.name),
            (None, Some(key)) => Found::Respelt(key.name),
            (None, None) => Found::Unknown,
        }
    };
    let fields = tree.fields("key", &known, find, problems);
    for key in KEYS {
        let Some(entry) = fields.entry(key.name) else { continue };
        if matches!(key.shape, Shape::NotServed) {
            problems.error(&entry.place, "not served by this version yet; remove it");
        }
    }
    fields
}
