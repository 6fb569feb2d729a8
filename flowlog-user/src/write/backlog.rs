use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use super::Error;
use super::folder::Folder;
use super::name::Names;
use super::proof::is_own;
use crate::clock::wall_ns;

/// Files that are remembered beyond those that are there before it is looked which have gone.
const OWN_SPARE: usize = 16;

/// A task's finished files, oldest first, and how much they hold.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    files: VecDeque<(String, u64)>,
    bytes: u64,
    /// Files that have the name of one of the task's, and are none or cannot be deleted.
    left: HashSet<String>,
    /// Files that this process has finished, by their inodes.
    own: HashMap<String, u64>,
    /// What was deleted and why, until somebody asks; no more than there were files.
    deleted: Vec<(PathBuf, String)>,
}

impl Backlog {
    /// Looks at the folder anew.
    pub(super) fn scan(&mut self, folder: &Folder, names: &Names) -> Result<(), Error> {
        self.find(folder, names, &folder.names()?);
        Ok(())
    }

    /// Takes the task's files of all those in the folder.
    pub(super) fn find(&mut self, folder: &Folder, names: &Names, all: &[String]) {
        let mut found: Vec<(String, u32, String, u64)> = Vec::new();
        for name in all {
            if let Some((stamp, n)) = names.parse(name)
                && !self.left.contains(name)
                && let Some(bytes) = folder.size(name)
            {
                found.push((stamp.to_owned(), n, name.clone(), bytes));
            }
        }
        found.sort_unstable();
        self.bytes = found.iter().map(|(.., bytes)| bytes).sum();
        self.files = found.into_iter().map(|(_, _, name, bytes)| (name, bytes)).collect();
    }

    /// Notes a file as finished by this process: no other proof is needed as long as it stays.
    pub(super) fn note_own(&mut self, folder: &Folder, name: &str) {
        self.own.extend(folder.inode(name).map(|inode| (name.to_owned(), inode)));
        if self.own.len() > self.files.len() + OWN_SPARE {
            self.own.retain(|name, inode| folder.inode(name) == Some(*inode));
        }
    }

    /// What was deleted since the last call, and why.
    pub(super) fn take_deleted(&mut self) -> Vec<(PathBuf, String)> {
        std::mem::take(&mut self.deleted)
    }

    /// Whether there is anything that could be deleted.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Deletes the oldest files until `keep_bytes` more fit below `total_bytes_max`.
    pub(super) fn make_room(&mut self, folder: &Folder, keep_bytes: u64, total_bytes_max: u64) {
        while self.bytes.saturating_add(keep_bytes) > total_bytes_max && !self.files.is_empty() {
            self.delete_oldest(folder, &format!("the task's files may have {total_bytes_max} bytes"));
        }
    }

    /// Deletes files whose last write is longer ago.
    pub(super) fn expire(&mut self, folder: &Folder, age_max: Duration) {
        let age_max_ns = i128::try_from(age_max.as_nanos()).unwrap_or(i128::MAX);
        while let Some((name, _)) = self.files.front()
            && folder.modified_ns(name).is_none_or(|at| i128::from(wall_ns()) - at > age_max_ns)
        {
            self.delete_oldest(folder, &format!("fileMaxAge is {} s", age_max.as_secs()));
        }
    }

    /// Deletes the oldest file if it is proved to be the task's. False when there is none or it stays.
    pub(super) fn delete_oldest(&mut self, folder: &Folder, why: &str) -> bool {
        let Some((name, bytes)) = self.files.pop_front() else { return false };
        self.bytes = self.bytes.saturating_sub(bytes);
        let path = folder.path.join(&name);
        let file = path.display();
        let Some(inode) = folder.inode(&name) else { return true }; // Someone else deleted it.
        if self.own.get(&name) != Some(&inode) && !is_own(folder, &name) {
            tracing::warn!(
                task = folder.task,
                %file,
                "has the name of an old file of the task but does not show that it is its own; it stays"
            );
        } else if let Err(error) = folder.unlink(&name) {
            tracing::warn!(%error, "an old file stays beyond the task's limit");
        } else {
            tracing::info!(task = folder.task, %file, bytes, why, "an old file is deleted");
            self.own.remove(&name);
            self.deleted.push((path, why.to_owned()));
            return true;
        }
        self.left.insert(name);
        false
    }
}
