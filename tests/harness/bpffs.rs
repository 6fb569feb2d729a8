//! A BPF file system of the test's own.

use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::netns::run;

/// Mounted as long as it lives; all that is pinned in it goes with it.
#[derive(Debug)]
pub struct Bpffs {
    folder: TempDir,
}

impl Bpffs {
    /// Mounts one.
    ///
    /// # Errors
    /// When the kernel refuses (no root).
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().to_str().context("a plain path")?;
        run("mount", &["-t", "bpf", "bpf", path])?;
        Ok(Self { folder })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Bpffs {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", &self.folder.path().to_string_lossy()]);
    }
}
