//! The keys of a task that concern its file.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::duration;
use crate::limits;
use crate::tree::{Fields, Problems, Tree, Value};
use crate::write::{Compression, Spec};

/// zstd levels above 19 need more memory than a daemon should take.
const ZSTD_LEVEL_MAX: u64 = 19;
/// Measured on JSON records: higher levels cost far more time than they save bytes.
const ZSTD_LEVEL_DEFAULT: i32 = 1;
/// Whatever the umask: the owner writes, the group (a log shipper's) reads, and nobody else learns who spoke to whom.
const MODE_DEFAULT: u32 = 0o640;
const SIZE_MB_DEFAULT: u64 = 10;
const SIZE_MB_MAX: u64 = 1 << 20;
const BACKUPS_DEFAULT: u64 = 5;
const BACKUPS_MAX: u64 = 1_000_000;

/// Reads everything but the name. `None` where there is no usable path.
pub(super) fn read(fields: &Fields<'_>, problems: &mut Problems) -> Option<Spec> {
    let path = fields.get("filePath").and_then(|tree| path(tree, problems));
    let compression = compression(fields, problems);
    let mut number = |key, default, max| {
        let given = fields.get(key).and_then(|tree| tree.integer(0, max, problems));
        given.filter(|number| *number > 0).unwrap_or(default)
    };
    let size_bytes_max = number("fileMaxSizeMb", SIZE_MB_DEFAULT, SIZE_MB_MAX) << 20;
    let backups = number("fileMaxBackups", BACKUPS_DEFAULT, BACKUPS_MAX);
    let min = Duration::from_millis(limits::ROTATION_INTERVAL_MS_MIN);
    let rotation_interval =
        fields.get("fileRotationInterval").and_then(|tree| duration::read(tree, min, problems));
    let mode = fields.get("fileMode").and_then(|tree| mode(tree, problems)).unwrap_or(MODE_DEFAULT);
    Some(Spec {
        task: String::new(),
        path: path?,
        compression,
        size_bytes_max,
        total_bytes_max: size_bytes_max.saturating_mul(backups + 1),
        rotation_interval,
        mode,
    })
}

fn path(tree: &Tree, problems: &mut Problems) -> Option<PathBuf> {
    let text = tree.text(problems)?;
    let path = Path::new(text);
    let wrong = if text.is_empty() {
        "filePath is required; expected an absolute path".into()
    } else if text == "stdout" {
        "writing to stdout is not served by this version yet; give the path of a file".into()
    } else if !path.is_absolute() {
        format!("expected an absolute path, found `{text}`")
    } else if text.ends_with('/') || path.file_name().is_none() {
        format!("`{text}` names a folder; add the name of the file")
    } else if path.components().any(|part| part == Component::ParentDir) {
        format!("`{text}` has a `..` in it; write the path without")
    } else if text.contains(['{', '}']) {
        "placeholders in braces are not served by this version yet; write the path out".into()
    } else if text.contains(char::is_control) {
        "the path has a control character in it; remove it".into()
    } else {
        return Some(path.into());
    };
    problems.error(&tree.place, wrong);
    None
}

fn compression(fields: &Fields<'_>, problems: &mut Problems) -> Compression {
    let hubble = fields.get("fileCompress").and_then(|tree| tree.boolean(problems));
    let ours = fields.get("compression").and_then(|tree| algorithm(tree, problems));
    let level = fields.get("compressionLevel").and_then(|tree| tree.integer(1, ZSTD_LEVEL_MAX, problems));
    if let (Some(hubble), Some(ours), Some(entry)) = (hubble, ours, fields.entry("fileCompress"))
        && ours != of_hubble(hubble)
    {
        let name = name(ours);
        problems.error(&entry.place, format!("contradicts `compression: {name}`; remove one of the two"));
    }
    let compression =
        ours.or(hubble.map(of_hubble)).unwrap_or(Compression::Zstd { level: ZSTD_LEVEL_DEFAULT });
    match (compression, level, fields.entry("compressionLevel")) {
        (Compression::Zstd { .. }, Some(level), _) => {
            Compression::Zstd { level: i32::try_from(level).unwrap_or(ZSTD_LEVEL_DEFAULT) }
        }
        (_, Some(_), Some(entry)) => {
            let name = name(compression);
            problems.error(&entry.place, format!("only zstd has levels, and the file is {name}; remove it"));
            compression
        }
        _ => compression,
    }
}

const ALGORITHMS: [Compression; 3] =
    [Compression::Zstd { level: ZSTD_LEVEL_DEFAULT }, Compression::Gzip, Compression::None];

fn algorithm(tree: &Tree, problems: &mut Problems) -> Option<Compression> {
    let word = tree.text(problems)?;
    let found = ALGORITHMS.into_iter().find(|algorithm| name(*algorithm) == word);
    if found.is_none() {
        problems.unknown(&tree.place, "compression", word, &ALGORITHMS.map(name));
    }
    found
}

const fn of_hubble(compress: bool) -> Compression {
    if compress { Compression::Gzip } else { Compression::None }
}

const fn name(compression: Compression) -> &'static str {
    match compression {
        Compression::Zstd { .. } => "zstd",
        Compression::Gzip => "gzip",
        Compression::None => "none",
    }
}

/// Permission bits in octal. Unquoted, YAML makes 640 or 0o640 of them, so quotes are asked for.
fn mode(tree: &Tree, problems: &mut Problems) -> Option<u32> {
    let message = match &tree.value {
        Value::Scalar { text, quoted: false } => format!("write it in quotes: \"{text}\""),
        Value::Scalar { text, .. } => {
            let digits = (3..=4).contains(&text.len()) && text.chars().all(|digit| digit.is_digit(8));
            match u32::from_str_radix(text, 8) {
                Ok(mode) if digits && mode <= 0o777 && mode & 0o200 != 0 => return Some(mode),
                Ok(mode) if digits && mode <= 0o777 => format!("\"{text}\" would not let the owner write"),
                _ => format!("expected permissions in octal such as \"0640\", found \"{text}\""),
            }
        }
        _ => format!("expected permissions in octal such as \"0640\", found {}", tree.kind()),
    };
    problems.error(&tree.place, message);
    None
}
