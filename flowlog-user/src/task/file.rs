//! The keys of a task that concern its file.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::duration;
use crate::limits;
use crate::record::Format;
use crate::tree::{Fields, Problems, Tree, Value};
use crate::write::{Compression, Definition, NoticeEncoder, OnEnd, OnFull, Owner, STDOUT, Spec, Sync};

/// zstd levels above 19 need more memory than a daemon should take.
pub(super) const ZSTD_LEVEL_MAX: u64 = 19;
/// Measured on JSON records: higher levels cost far more time than they save bytes.
const ZSTD_LEVEL_DEFAULT: i32 = 1;
const GZIP_LEVEL_MAX: u64 = 9;
/// gzip's own.
const GZIP_LEVEL_DEFAULT: u32 = 6;
const GZIP: Compression = Compression::Gzip { level: GZIP_LEVEL_DEFAULT };
/// Whatever the umask: the owner writes, the group (a log shipper's) reads, and nobody else learns who spoke to whom.
const MODE_DEFAULT: u32 = 0o640;
const SIZE_MB_DEFAULT: u64 = 10;
pub(super) const SIZE_MB_MAX: u64 = 1 << 20;
pub(super) const TOTAL_MB_MAX: u64 = 1 << 30;
const AGE_MIN: Duration = Duration::from_secs(1);
const BACKUPS_DEFAULT: u64 = 5;
pub(super) const BACKUPS_MAX: u64 = 1_000_000;

/// Reads everything but the name. `None` where there is no usable path.
pub(super) fn read(fields: &Fields<'_>, problems: &mut Problems) -> Option<Spec> {
    let path = fields.get("filePath").and_then(|tree| path(tree, problems));
    let is_stdout = path.as_deref() == Some(Path::new(STDOUT));
    let compression = if is_stdout { plain(fields, problems) } else { compression(fields, problems) };
    let mut number = |key, default, max| {
        let given = fields.get(key).and_then(|tree| tree.integer(0, max, problems));
        if let (Some(0), Some(entry)) = (given, fields.entry(key).filter(|_| default > 0)) {
            let message = format!(
                "0 is taken as {default}, as Hubble does; write the number that is meant, at least 1"
            );
            problems.warning(&entry.place, message);
        }
        given.filter(|number| *number > 0).unwrap_or(default)
    };
    let size_bytes_max = number("fileMaxSizeMb", SIZE_MB_DEFAULT, SIZE_MB_MAX) << 20;
    let backups = number("fileMaxBackups", BACKUPS_DEFAULT, BACKUPS_MAX);
    let total_mb = number("fileMaxTotalMb", 0, TOTAL_MB_MAX);
    let free = number("fileMinFreePercent", 0, 99);
    let free_percent_min = u8::try_from(free).ok().filter(|percent| *percent > 0);
    let age_max = fields.get("fileMaxAge").and_then(|tree| duration::read(tree, AGE_MIN, problems));
    let limited = age_max.is_some() || free_percent_min.is_some();
    let total_bytes_max = match total_mb {
        0 if limited && fields.get("fileMaxBackups").is_none() => u64::MAX,
        0 => size_bytes_max.saturating_mul(backups + 1),
        mb => mb << 20,
    };
    if let Some(entry) = fields.entry("fileMaxTotalMb")
        && total_bytes_max < size_bytes_max
    {
        let message = "is less than fileMaxSizeMb, so no finished file could be kept; make it larger";
        problems.error(&entry.place, message);
    }
    let min = Duration::from_millis(limits::ROTATION_INTERVAL_MS_MIN);
    let rotation_interval =
        fields.get("fileRotationInterval").and_then(|tree| duration::read(tree, min, problems));
    let (size_bytes_max, total_bytes_max) =
        if is_stdout { (u64::MAX, 0) } else { (size_bytes_max, total_bytes_max) };
    let rotation_aligned = aligned(fields, problems);
    let mode = fields.get("fileMode").and_then(|tree| mode(tree, problems)).unwrap_or(MODE_DEFAULT);
    Some(Spec {
        task: String::new(),
        path: path?,
        format: word("format", &Format::ALL.map(|format| (format.name(), format)), fields, problems)
            .unwrap_or_default(),
        notices: NoticeEncoder(crate::encode::notice),
        compression,
        size_bytes_max,
        total_bytes_max,
        age_max,
        free_percent_min,
        rotation_interval,
        rotation_aligned,
        mode,
        owner: Owner {
            user: account("fileUser", fields, problems),
            group: account("fileGroup", fields, problems),
        },
        sync: word("fileSync", &SYNCS, fields, problems).unwrap_or_default(),
        on_full: word("onFull", &ON_FULL, fields, problems).unwrap_or_default(),
        on_end: word("onEnd", &ON_END, fields, problems).unwrap_or_default(),
        definition: Definition::default(),
    })
}

/// What goes to stdout is plain, and there is no file of which a key could speak.
fn plain(fields: &Fields<'_>, problems: &mut Problems) -> Compression {
    for (name, entry) in fields.iter() {
        let value = &entry.value.value;
        let asks = |word: &str| !matches!(value, Value::Scalar { text, .. } if text == word);
        match name {
            "fileCompress" if asks("false") => {}
            "compression" if asks("none") => {}
            "compressionLevel" => {}
            "fileCompress" | "compression" | "filePath" => continue,
            name if name.starts_with("file") || name == "onFull" => {
                problems.warning(&entry.place, "says nothing about stdout; remove it");
                continue;
            }
            _ => continue,
        }
        problems.error(&entry.place, "stdout is written plain; remove it, or write to a file");
    }
    Compression::None
}

/// Whether files end with the clock.
fn aligned(fields: &Fields<'_>, problems: &mut Problems) -> bool {
    let given = fields.get("fileRotationAligned").and_then(|tree| tree.boolean(problems));
    if let (Some(true), None, Some(entry)) =
        (given, fields.get("fileRotationInterval"), fields.entry("fileRotationAligned"))
    {
        problems.warning(
            &entry.place,
            "does nothing without fileRotationInterval; add e.g. `fileRotationInterval: 1h`",
        );
    }
    given.unwrap_or(false)
}

/// The task as it was configured, as JSON: what a file's header says of it.
pub(super) fn definition(tree: &Tree) -> Definition {
    Definition(json(tree).to_string().into())
}

fn json(tree: &Tree) -> serde_json::Value {
    match &tree.value {
        Value::Null => serde_json::Value::Null,
        Value::Scalar { text, quoted } => match text.as_str() {
            "true" | "True" | "TRUE" if !quoted => true.into(),
            "false" | "False" | "FALSE" if !quoted => false.into(),
            number if !quoted && number.parse::<i64>().is_ok_and(|parsed| parsed.to_string() == number) => {
                number.parse::<i64>().unwrap_or_default().into()
            }
            text => text.into(),
        },
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => entries.iter().map(|entry| (entry.key.clone(), json(&entry.value))).collect(),
    }
}

/// A user or group, by name or number.
fn account(key: &str, fields: &Fields<'_>, problems: &mut Problems) -> Option<String> {
    let tree = fields.get(key)?;
    if let Value::Scalar { text, .. } = &tree.value
        && !text.is_empty()
        && !text.contains([':', '/'])
        && !text.contains(char::is_control)
    {
        return Some(text.clone());
    }
    problems.error(&tree.place, format!("expected a name or a number, found {}", tree.kind()));
    None
}

pub(super) const SYNC_WORDS: &[&str] = &["none", "frame", "interval"];
pub(super) const ON_FULL_WORDS: &[&str] = &["drop", "deleteOldest"];
pub(super) const ON_END_WORDS: &[&str] = &["keep", "delete"];
const ON_END: [(&str, OnEnd); 2] = [("keep", OnEnd::Keep), ("delete", OnEnd::Delete)];
const SYNCS: [(&str, Sync); 3] = [("none", Sync::None), ("frame", Sync::Frame), ("interval", Sync::Interval)];
const ON_FULL: [(&str, OnFull); 2] = [("drop", OnFull::Drop), ("deleteOldest", OnFull::DeleteOldest)];

/// One of a few words.
fn word<T: Copy>(key: &str, words: &[(&str, T)], fields: &Fields<'_>, problems: &mut Problems) -> Option<T> {
    let tree = fields.get(key)?;
    let text = tree.text(problems)?;
    let found = words.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        problems.unknown(&tree.place, key, text, &known);
    }
    found.map(|(_, value)| *value)
}

fn path(tree: &Tree, problems: &mut Problems) -> Option<PathBuf> {
    let text = tree.text(problems)?;
    let path = Path::new(text);
    let wrong = if text.is_empty() {
        "filePath is required; expected an absolute path".into()
    } else if text == STDOUT {
        return Some(path.into());
    } else if !path.is_absolute() {
        format!("expected an absolute path (or `{STDOUT}`), found `{text}`")
    } else if text.ends_with('/') || path.file_name().is_none() {
        format!("`{text}` names a folder; add the name of the file")
    } else if path.components().any(|part| part == Component::ParentDir) {
        format!("`{text}` has a `..` in it; write the path without")
    } else if without_placeholders(text).contains(['{', '}']) {
        "only {task}, {node} and {date} may stand in braces; write the rest out".into()
    } else if path.parent().is_some_and(|folder| folder.to_string_lossy().contains("{date}")) {
        "{date} can stand in the file's name only: all of a task's files are in one folder".into()
    } else if text.contains(char::is_control) {
        "the path has a control character in it; remove it".into()
    } else {
        return Some(path.into());
    };
    problems.error(&tree.place, wrong);
    None
}

fn without_placeholders(text: &str) -> String {
    text.replace("{task}", "").replace("{node}", "").replace("{date}", "")
}

fn compression(fields: &Fields<'_>, problems: &mut Problems) -> Compression {
    let hubble = fields.get("fileCompress").and_then(|tree| tree.boolean(problems));
    let ours = fields.get("compression").and_then(|tree| algorithm(tree, problems));
    let level = fields.get("compressionLevel").and_then(|tree| tree.integer(1, ZSTD_LEVEL_MAX, problems));
    if let (Some(hubble), Some(ours), Some(entry)) = (hubble, ours, fields.entry("fileCompress"))
        && ours != of_hubble(hubble)
    {
        let name = ours.name();
        problems.error(&entry.place, format!("contradicts `compression: {name}`; remove one of the two"));
    }
    let compression =
        ours.or(hubble.map(of_hubble)).unwrap_or(Compression::Zstd { level: ZSTD_LEVEL_DEFAULT });
    match (compression, level, fields.entry("compressionLevel")) {
        (Compression::Zstd { .. }, Some(level), _) => {
            Compression::Zstd { level: i32::try_from(level).unwrap_or(ZSTD_LEVEL_DEFAULT) }
        }
        (Compression::Gzip { .. }, Some(level), Some(entry)) if level > GZIP_LEVEL_MAX => {
            let message = format!("gzip's levels end at {GZIP_LEVEL_MAX}, found {level}; choose a lower one");
            problems.error(&entry.place, message);
            compression
        }
        (Compression::Gzip { .. }, Some(level), _) => {
            Compression::Gzip { level: u32::try_from(level).unwrap_or(GZIP_LEVEL_DEFAULT) }
        }
        (Compression::None, Some(_), Some(entry)) => {
            problems.error(&entry.place, "what is not compressed has no level; remove it");
            compression
        }
        _ => compression,
    }
}

const ALGORITHMS: [Compression; 3] =
    [Compression::Zstd { level: ZSTD_LEVEL_DEFAULT }, GZIP, Compression::None];

fn algorithm(tree: &Tree, problems: &mut Problems) -> Option<Compression> {
    let word = tree.text(problems)?;
    let found = ALGORITHMS.into_iter().find(|algorithm| algorithm.name() == word);
    if found.is_none() {
        problems.unknown(&tree.place, "compression", word, &ALGORITHMS.map(Compression::name));
    }
    found
}

const fn of_hubble(compress: bool) -> Compression {
    if compress { GZIP } else { Compression::None }
}

/// Permission bits in octal. Unquoted, YAML makes 640 or 0o640 of them, so quotes are asked for.
fn mode(tree: &Tree, problems: &mut Problems) -> Option<u32> {
    let message = match &tree.value {
        Value::Scalar { text, quoted: false } => format!("write it in quotes: \"{text}\""),
        Value::Scalar { text, .. } => {
            let digits = (3..=4).contains(&text.len()) && text.chars().all(|digit| digit.is_digit(8));
            match u32::from_str_radix(text, 8) {
                Ok(mode) if digits && mode <= 0o777 && mode & 0o200 != 0 => {
                    if mode & 0o002 != 0 {
                        let message = format!(
                            "\"{text}\" lets every user change and forge the log; take the last 2 away"
                        );
                        problems.warning(&tree.place, message);
                    }
                    return Some(mode);
                }
                Ok(mode) if digits && mode <= 0o777 => format!("\"{text}\" would not let the owner write"),
                _ => format!("expected permissions in octal such as \"0640\", found \"{text}\""),
            }
        }
        _ => format!("expected permissions in octal such as \"0640\", found {}", tree.kind()),
    };
    problems.error(&tree.place, message);
    None
}
