//! Faults of a file system for one process: a library that it is started with (`offline/files/shim.c`) and a file that says
//! what to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

/// Compiles the library into a folder; gives it and the file that controls it, in which "none" stands.
///
/// # Errors
/// When there is no C compiler, or it does not like the source.
pub fn compile(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let library = folder.join("shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("offline/files/shim.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status()?;
    ensure!(status.success(), "cc cannot compile the shim");
    let mode = folder.join("mode");
    fs::write(&mode, "none")?;
    Ok((library, mode))
}

/// Puts it into a mode, at once as a whole.
///
/// # Errors
/// When the file cannot be written.
pub fn set(mode: &Path, to: &str) -> Result<()> {
    let next = mode.with_extension("next");
    fs::write(&next, to)?;
    Ok(fs::rename(next, mode)?)
}
