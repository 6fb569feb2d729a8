use std::collections::VecDeque;

use super::Error;
use super::folder::Folder;
use super::name::Names;

/// A task's finished files, oldest first, and how much they hold.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    files: VecDeque<(String, u64)>,
    bytes: u64,
}

impl Backlog {
    /// Looks at the folder anew.
    pub(super) fn scan(folder: &Folder, names: &Names) -> Result<Self, Error> {
        let mut found: Vec<(String, u32, String, u64)> = Vec::new();
        for name in folder.names()? {
            if let Some((stamp, n)) = names.parse(&name)
                && let Some(bytes) = folder.size(&name)
            {
                found.push((stamp.to_owned(), n, name, bytes));
            }
        }
        found.sort_unstable();
        let bytes = found.iter().map(|(.., bytes)| bytes).sum();
        Ok(Self { files: found.into_iter().map(|(_, _, name, bytes)| (name, bytes)).collect(), bytes })
    }

    /// Deletes the oldest files until `keep_bytes` more fit below `total_bytes_max`.
    pub(super) fn make_room(&mut self, folder: &Folder, keep_bytes: u64, total_bytes_max: u64) {
        while self.bytes.saturating_add(keep_bytes) > total_bytes_max
            && let Some((name, bytes)) = self.files.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(bytes);
            if let Err(error) = folder.unlink(&name) {
                // Met again at the next scan; writing goes on.
                tracing::warn!(%error, "an old file stays beyond the task's limit");
            }
        }
    }
}
