use std::path::{Path, PathBuf};

use super::document::Holds;
use super::versions::DEFAULT_FOLDER;

/// Where tasks and pools come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Files and folders of `--tasks`; pools may stand there too.
    pub tasks: Vec<PathBuf>,
    /// Files and folders of `--pools`.
    pub pools: Vec<PathBuf>,
    /// Older forms are not converted but refused.
    pub refuse_older: bool,
    /// Where tasks write whose form cannot say it [default: `/var/log/flowlog`].
    pub log_root: Option<PathBuf>,
}

impl Sources {
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> + Clone {
        self.tasks.iter().chain(&self.pools).map(PathBuf::as_path)
    }

    pub(super) fn folder(&self) -> &Path {
        self.log_root.as_deref().unwrap_or(Path::new(DEFAULT_FOLDER))
    }

    /// What a file may hold.
    pub(super) fn holds(&self, file: &Path) -> Holds {
        match self.tasks.iter().any(|path| file.starts_with(path)) {
            true => Holds::Anything,
            false => Holds::Pools,
        }
    }
}

impl From<Vec<PathBuf>> for Sources {
    fn from(tasks: Vec<PathBuf>) -> Self {
        Self { tasks, ..Self::default() }
    }
}

impl From<&[PathBuf]> for Sources {
    fn from(tasks: &[PathBuf]) -> Self {
        tasks.to_vec().into()
    }
}

impl<const N: usize> From<&[PathBuf; N]> for Sources {
    fn from(tasks: &[PathBuf; N]) -> Self {
        tasks.to_vec().into()
    }
}

impl From<&Vec<PathBuf>> for Sources {
    fn from(tasks: &Vec<PathBuf>) -> Self {
        tasks.clone().into()
    }
}
