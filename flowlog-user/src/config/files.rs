//! Finding and reading task files.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits::CONFIG_BYTES_MAX;
use crate::tree::{Place, Problem, Problems};

/// The task files behind a path: itself, or those of a folder and its subfolders in byte order.
pub(super) fn find(path: &Path, problems: &mut Problems, unreadable: &mut Vec<Problem>) -> Vec<PathBuf> {
    let listed = fs::metadata(path).and_then(|meta| match meta.is_dir() {
        true => list(path),
        false => Ok(vec![path.to_owned()]),
    });
    match listed {
        Ok(files) => {
            if files.is_empty() {
                let message = "no *.yaml, *.yml or *.json in this folder, so it has no tasks";
                problems.warning(&Place::file(&path.to_string_lossy()), message);
            }
            files
        }
        Err(error) => {
            unreadable.push(problem(path, &error));
            Vec::new()
        }
    }
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in visible(folder)? {
        if !path.is_dir() {
            files.push(path);
            continue;
        }
        // One level of subfolders.
        files.extend(visible(&path)?.into_iter().filter(|path| !path.is_dir()));
    }
    files.retain(|path| path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml" || ext == "json"));
    files.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(files)
}

/// Everything in a folder but what begins with a dot (a mounted ConfigMap keeps its versions in such folders).
fn visible(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

/// The text of a file; `None` after noting why it cannot be had.
pub(super) fn read(path: &Path, problems: &mut Problems, unreadable: &mut Vec<Problem>) -> Option<String> {
    let mut bytes = Vec::new();
    let read = fs::metadata(path).and_then(|meta| {
        if !meta.is_file() {
            return Err(io::Error::other("it is neither a file nor a folder"));
        }
        fs::File::open(path)?.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes)
    });
    let place = Place::file(&path.to_string_lossy());
    if let Err(error) = read {
        unreadable.push(problem(path, &error));
        return None;
    }
    if bytes.len() as u64 > CONFIG_BYTES_MAX {
        let max = CONFIG_BYTES_MAX >> 20;
        problems
            .error(&place, format!("the file has more than {max} MiB; split it into several in one folder"));
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
            let message = format!("line {line} is not UTF-8; save the file as UTF-8");
            problems.error(&place, message);
            None
        }
    }
}

fn problem(path: &Path, error: &io::Error) -> Problem {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "check the path given with --tasks",
        io::ErrorKind::PermissionDenied => "check who may read it",
        _ => "check the path and the disk",
    };
    let message = format!("cannot be read: {}; {remedy}", error.to_string().to_lowercase());
    Problem { place: Place::file(&path.to_string_lossy()), message }
}
