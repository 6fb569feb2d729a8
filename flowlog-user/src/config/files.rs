//! Finding and reading task files.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits::CONFIG_BYTES_MAX;
use crate::tree::{Place, Problem};

/// Why a file gives no text.
pub(super) enum NoText {
    /// It cannot be read.
    Unreadable(Problem),
    /// What was read is no text of a task file.
    Wrong(Problem),
}

/// The task files behind a path: itself, or those of a folder and its subfolders in byte order.
pub(super) fn find(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    let listed = fs::metadata(path).and_then(|meta| match meta.is_dir() {
        true => list(path),
        false => Ok(vec![path.to_owned()]),
    });
    listed.map_err(|error| problem(path, &error))
}

/// The folders in which a change of a path's files shows: its own, those of a folder's subfolders, and those that
/// links lead to.
pub(super) fn folders(path: &Path) -> Vec<PathBuf> {
    let mut folders = vec![parent(path).to_owned()];
    if path.is_dir() {
        folders.push(path.to_owned());
        folders.extend(visible(path).unwrap_or_default().into_iter().filter(|path| path.is_dir()));
    }
    for file in find(path).unwrap_or_default() {
        folders.extend(fs::canonicalize(file).ok().and_then(|real| real.parent().map(Path::to_path_buf)));
    }
    folders
}

/// The folder in which a path's last name stands.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// Whether a path leads nowhere although its folder is there, so that it was taken away.
pub(super) fn is_gone(path: &Path) -> bool {
    let missing = fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    missing && parent(path).is_dir()
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in visible(folder)? {
        // A folder with a file's name stands where a file was: reading it says so.
        if is_named_like_a_task_file(&path) {
            files.push(path);
        } else if path.is_dir() {
            // One level of subfolders.
            files.extend(visible(&path)?.into_iter().filter(|path| is_named_like_a_task_file(path)));
        }
    }
    files.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(files)
}

fn is_named_like_a_task_file(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml" || ext == "json")
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

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, NoText> {
    let mut bytes = Vec::new();
    let read = fs::metadata(path).and_then(|meta| {
        if !meta.is_file() {
            let what = if meta.is_dir() { "it is a folder" } else { "it is neither a file nor a folder" };
            return Err(io::Error::other(what));
        }
        fs::File::open(path)?.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes)
    });
    let place = Place::file(&path.to_string_lossy());
    if let Err(error) = read {
        return Err(NoText::Unreadable(problem(path, &error)));
    }
    if bytes.len() as u64 > CONFIG_BYTES_MAX {
        let max = CONFIG_BYTES_MAX >> 20;
        let message = format!("the file has more than {max} MiB; split it into several in one folder");
        return Err(NoText::Wrong(Problem { place, message }));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
        let message = format!("line {line} is not UTF-8; save the file as UTF-8");
        NoText::Wrong(Problem { place, message })
    })
}

fn problem(path: &Path, error: &io::Error) -> Problem {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check who may read it",
        _ => "check the path and the disk",
    };
    let message = format!("cannot be read: {}; {remedy}", error.to_string().to_lowercase());
    Problem { place: Place::file(&path.to_string_lossy()), message }
}
