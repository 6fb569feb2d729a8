use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Error;

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
}

/// The files behind the paths, grouped by task (folder and `filePath`), each group in time order.
pub(super) fn groups(paths: &[PathBuf]) -> Result<Vec<Vec<Source>>, Error> {
    let mut groups: BTreeMap<(PathBuf, String), Vec<Source>> = BTreeMap::new();
    let mut add = |path: PathBuf, listed: bool| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let (task, position) = place(&name);
        let group = groups.entry((folder, task)).or_default();
        if !group.iter().any(|source| source.path == path) {
            group.push(Source { position, path, listed });
        }
    };
    for path in paths {
        let failed = |source| Error::Open { path: path.clone(), source };
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            add(path.clone(), false);
            continue;
        }
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?.path();
            if is_log(&entry) {
                add(entry, true);
            }
        }
    }
    Ok(groups
        .into_values()
        .map(|mut group| {
            group.sort_unstable();
            group
        })
        .collect())
}

/// Whether a file in a folder is looked at: no hidden one, and none that is being made.
fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && !name.ends_with(".tmp") && fs::metadata(path).is_ok_and(|found| found.is_file())
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
