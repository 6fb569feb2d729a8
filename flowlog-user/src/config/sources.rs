use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::document::Holds;
use super::files;
use super::versions::{DEFAULT_FOLDER, Form, migrated};
use crate::write::Roots;

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
    /// Below which folders tasks may write; without it that is not looked at.
    pub roots: Option<Arc<Roots>>,
}

impl Sources {
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> + Clone {
        self.tasks.iter().chain(&self.pools).map(PathBuf::as_path)
    }

    pub(super) fn folder(&self) -> &Path {
        self.log_root.as_deref().unwrap_or(Path::new(DEFAULT_FOLDER))
    }

    /// The command that makes a file of an older form into one of the newest, and what else is to be done.
    pub(super) fn how_to_migrate(&self, file: &Path, form: Form) -> String {
        let command = format!("`flowlog {}`", self.migration(file, form));
        match self.tasks.iter().any(|path| path == file) {
            true => format!("{command} (and name the file that it writes with --tasks, too)"),
            false => command,
        }
    }

    /// The file of the newest form beside one of an older form that is named alone, where it is there and not named.
    pub(super) fn unnamed(&self, file: &Path, form: Form) -> Option<PathBuf> {
        let newer = migrated(file, Form::V1);
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_named = || self.paths().any(|path| absolute(&newer).starts_with(absolute(path)));
        (form != Form::V1 && self.tasks.iter().any(|path| path == file) && newer.is_file() && !is_named())
            .then_some(newer)
    }

    /// The arguments of that command, as a shell takes them, wherever it is run. The file alone is named where its folder
    /// shows everything else that is there.
    pub(super) fn migration(&self, file: &Path, form: Form) -> String {
        let folder = files::parent(file);
        let alone = matches!(self.tasks.as_slice(), [only] if only == file || only == folder);
        let mut words = vec!["migrate".to_owned()];
        match alone {
            true => words.push(shell_word(file)),
            false => words.extend(self.tasks.iter().map(|path| shell_word(path))),
        }
        words.push("--write".into());
        // Only this form does not say where its tasks write.
        if form == Form::Draft && self.folder() != Path::new(DEFAULT_FOLDER) {
            words.extend(["--log-root".into(), shell_word(self.folder())]);
        }
        words.join(" ")
    }

    /// What a file may hold.
    pub(super) fn holds(&self, file: &Path) -> Holds {
        match self.tasks.iter().any(|path| file.starts_with(path)) {
            true => Holds::Anything,
            false => Holds::Pools,
        }
    }
}

/// A path as a word of a shell's command, for any working folder.
fn shell_word(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:=@%,".contains(c);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
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
