//! What tasks' files take on disk, by their names: each folder is read once for all tasks that write there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::task::Spec;

/// Names in folders, sorted; nothing of a folder that cannot be read.
#[derive(Debug, Default)]
pub(super) struct Folders(HashMap<PathBuf, Option<Vec<String>>>);

impl Folders {
    /// Bytes of the task's files as their names tell; `None` where folders are named by date or cannot be read.
    pub(super) fn used_bytes(&mut self, spec: &Spec) -> Option<u64> {
        let (live, finished) = (spec.file.live_path(), spec.file.finished_paths());
        let (folder, live) = (live.parent()?, live.file_name()?.to_str()?);
        let pattern = finished.file_name()?.to_str()?;
        let names = self.names(folder)?;
        let size = |name: &str| folder.join(name).symlink_metadata().map_or(0, |meta| meta.len());
        // Of a thousand tasks' files only those are looked at that begin as the pattern does.
        let plain = pattern.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
        let is_own = spec.file.finished_names();
        let begin = names.partition_point(|name| name.as_str() < plain);
        let alike = names.iter().skip(begin).take_while(|name| name.starts_with(plain));
        Some(alike.filter(|name| is_own(name)).map(|name| size(name)).sum::<u64>() + size(live))
    }

    fn names(&mut self, folder: &Path) -> Option<&[String]> {
        let list = |folder: &Path| {
            let entries = std::fs::read_dir(folder).ok()?.flatten();
            let mut names: Vec<String> =
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort_unstable();
            Some(names)
        };
        self.0.entry(folder.to_owned()).or_insert_with(|| list(folder)).as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config;

    fn spec(folder: &Path, name: &str, more: &str) -> Spec {
        let file = folder.join("tasks.yaml");
        let text = format!("flowLogs: [{{name: t, filePath: '{}'{more}}}]\n", folder.join(name).display());
        fs::write(&file, text).unwrap();
        let plan = config::load(&[file]).unwrap().plan;
        plan.tasks.into_iter().next().unwrap().spec
    }

    #[test]
    fn a_task_s_files_are_added_up_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "a.log.zst",
            "a-20260101T000000.000Z.log.zst",
            "a-20260102T000000.000Z.log.zst",
            "a-b.log.zst",
            "ab-20260101T000000.000Z.log.zst",
            "a[1].log",
            "a[1]-20260101T000000.000Z.log",
        ];
        for (name, size) in names.iter().zip((0..).map(|n| 10_usize.pow(n))) {
            fs::write(folder.path().join(name), vec![0; size]).unwrap();
        }
        let used = |name, more| Folders::default().used_bytes(&spec(folder.path(), name, more));
        assert_eq!(used("a.log", ""), Some(111));
        assert_eq!(used("ab.log", ""), Some(10_000));
        assert_eq!(used("a[1].log", ", compression: none"), Some(1_100_000));
        assert_eq!(used("none/a.log", ""), None);
    }
}
