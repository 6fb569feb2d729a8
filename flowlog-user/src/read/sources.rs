use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::Glob;

use super::Error;
use crate::clock::wall_ns;

/// The shape of the time stamp in a finished file's name; `0` stands for a digit.
const STAMP: &[u8; 20] = b"00000000T000000.000Z";

/// Where a file stands among those of its task: finished ones by time and number, then the live one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Position {
    Finished(String, u32),
    Live(String),
}

/// One file of a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) position: Position,
    pub(super) path: PathBuf,
    /// Found in a folder rather than named: it may be gone by the time it is read.
    pub(super) listed: bool,
    /// What it is, whatever its name.
    pub(super) identity: Option<Identity>,
}

impl Source {
    pub(super) fn is_stdin(&self) -> bool {
        self.path == Path::new(STDIN)
    }
}

/// Frames end after 30 s; a busy disk may take a while longer.
const STILL_AFTER_S: i64 = 120;
/// Folders within folders that are looked into.
const FOLDERS_MAX: usize = 8;
/// Stands for standard input.
const STDIN: &str = "-";

/// A task: folder and `filePath`.
pub(super) type Key = (PathBuf, String);

/// Device, number and time of birth: the number of a file that is gone is soon another's.
pub(super) type Identity = (u64, u64, Option<SystemTime>);

/// What a file is, whatever its name.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|found| identity_of(&found))
}

/// The same of a file whose metadata are there.
pub(super) fn identity_of(found: &fs::Metadata) -> Identity {
    (found.dev(), found.ino(), found.created().ok())
}

/// The files behind the paths, grouped by task, each group in time order.
pub(super) fn groups(paths: &[PathBuf]) -> Result<Vec<Vec<Source>>, Error> {
    Ok(grouped(paths)?.into_values().collect())
}

/// The same with each task's key.
pub(super) fn grouped(paths: &[PathBuf]) -> Result<BTreeMap<Key, Vec<Source>>, Error> {
    let mut groups: BTreeMap<Key, Vec<Source>> = BTreeMap::new();
    let mut add = |path: PathBuf, listed: bool| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let (task, position) = place(&name);
        let group = groups.entry((folder, task)).or_default();
        if !group.iter().any(|source| source.path == path) {
            let identity = identity(&path);
            group.push(Source { position, path, listed, identity });
        }
    };
    for path in paths {
        if path == Path::new(STDIN) {
            add(path.clone(), false);
            continue;
        }
        let failed = |source| Error::Open { path: path.clone(), source: hinted(source, path) };
        let found = match fs::metadata(path) {
            Err(_) if is_pattern(path) => {
                for path in expand(path)? {
                    add(path, true);
                }
                continue;
            }
            found => found.map_err(failed)?,
        };
        if !found.is_dir() {
            add(path.clone(), false);
            continue;
        }
        let mut logs = Vec::new();
        walk(path, 0, &mut logs).map_err(failed)?;
        for log in logs {
            add(log, true);
        }
    }
    for group in groups.values_mut() {
        group.sort_unstable();
    }
    Ok(groups)
}

/// The same error; of a file that is there only compressed, with its name.
fn hinted(error: io::Error, path: &Path) -> io::Error {
    let compressed = |suffix: &&str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        Path::new(&name).exists()
    };
    match [".zst", ".gz"].iter().find(|suffix| error.kind() == io::ErrorKind::NotFound && compressed(suffix))
    {
        Some(suffix) => {
            let kind = error.kind();
            io::Error::new(kind, format!("{error}; there is `{}{suffix}`, if that is meant", path.display()))
        }
        None => error,
    }
}

/// The logs in a folder and in its subfolders; one below that is gone by now, or closed to the reader, is passed over when
/// it is gone and an error when it is closed.
fn walk(folder: &Path, depth: usize, logs: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Not through links: a folder's file may be a link, as somebody made it, and a folder in it may lead anywhere.
        if entry.file_type()?.is_dir() {
            if depth < FOLDERS_MAX && !entry.file_name().to_string_lossy().starts_with('.') {
                match walk(&path, depth + 1, logs) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    walked => walked?,
                }
            }
        } else if is_log(&path) {
            logs.push(path);
        }
    }
    Ok(())
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

/// The files that fit a pattern: `*`, `?` and `[..]` in any part of the path.
fn expand(pattern: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong = |what: String| Error::Pattern { pattern: pattern.display().to_string(), what };
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        if !is_pattern(Path::new(&*text)) {
            found = found.into_iter().map(|path| path.join(part)).collect();
            continue;
        }
        let fits = Glob::new(&text).map_err(|error| wrong(error.kind().to_string()))?.compile_matcher();
        let mut next = Vec::new();
        for folder in found {
            let at = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            for entry in fs::read_dir(at).into_iter().flatten().flatten() {
                let name = entry.file_name();
                // As in a shell, a hidden file has to be named.
                if fits.is_match(&name) && (!name.to_string_lossy().starts_with('.') || text.starts_with('.'))
                {
                    next.push(folder.join(name));
                }
            }
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    found.sort();
    if found.is_empty() { Err(wrong("nothing fits this pattern".into())) } else { Ok(found) }
}

/// Whether a file in a folder is looked at: no hidden one, and none that is being made.
fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && !name.ends_with(".tmp") && fs::metadata(path).is_ok_and(|found| found.is_file())
}

impl Source {
    /// Whether nothing has written to it for longer than any writer of flowlog's leaves a frame open.
    pub(super) fn is_still(&self) -> bool {
        let now_s = wall_ns() / 1_000_000_000;
        fs::metadata(&self.path).is_ok_and(|found| now_s - found.mtime() > STILL_AFTER_S)
    }

    /// Whether the file, and no other of its name, holds fewer bytes.
    pub(super) fn is_shorter_than(&self, bytes: u64) -> bool {
        identity(&self.path) == self.identity
            && fs::metadata(&self.path).is_ok_and(|found| found.is_file() && found.len() < bytes)
    }

    /// What the files of a task have in common: their name without time, extension and compression.
    pub(super) fn log(&self) -> String {
        let (task, _) = place(&self.path.file_name().unwrap_or_default().to_string_lossy());
        let stem = Path::new(&task).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

/// Whether a path has the name of a finished file.
pub(super) fn is_finished(path: &Path) -> bool {
    matches!(place(&path.file_name().unwrap_or_default().to_string_lossy()), (_, Position::Finished(..)))
}

/// The task's file name (stem and extension) and the file's place in time.
fn place(name: &str) -> (String, Position) {
    let plain = [".zst", ".gz"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    for (at, _) in plain.rmatch_indices('-') {
        let Some((stem, rest)) = plain.split_at_checked(at) else { continue };
        let Some((stamp, rest)) = rest.get(1..).and_then(|rest| rest.split_at_checked(STAMP.len())) else {
            continue;
        };
        let fits =
            |(byte, want): (u8, &u8)| if *want == b'0' { byte.is_ascii_digit() } else { byte == *want };
        if !stamp.bytes().zip(STAMP).all(fits) {
            continue;
        }
        let (number, ext) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
        let number =
            if number.is_empty() { Some(0) } else { number.strip_prefix('-').and_then(|n| n.parse().ok()) };
        if let Some(number) = number {
            return (format!("{stem}{ext}"), Position::Finished(stamp.into(), number));
        }
    }
    (plain.into(), Position::Live(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_task_are_recognised_by_name() {
        let finished = |n| Position::Finished("20261130T201426.123Z".into(), n);
        for (name, task, position) in [
            ("a.log.zst", "a.log", Position::Live("a.log.zst".into())),
            ("a.log", "a.log", Position::Live("a.log".into())),
            ("a-20261130T201426.123Z.log.zst", "a.log", finished(0)),
            ("a-20261130T201426.123Z-7.log.gz", "a.log", finished(7)),
            ("a-b-20261130T201426.123Z", "a-b", finished(0)),
            ("a-20261130T201426.123Z-x.log", "a-20261130T201426.123Z-x.log", {
                Position::Live("a-20261130T201426.123Z-x.log".into())
            }),
            ("é-2026", "é-2026", Position::Live("é-2026".into())),
        ] {
            assert_eq!(place(name), (task.into(), position), "{name}");
        }
    }
}
