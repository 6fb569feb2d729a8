//! Task files over time: each stands for its own tasks.
//!
//! A file that is bad changes nothing of its tasks; a file that is gone takes them along; a folder that is gone or cannot
//! be read changes nothing, since that is what a broken mount looks like. Content is compared by its hash, so that
//! notifications may come too often.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diff::{Decision, Tasks, decide};
use super::files::{self, NoText};
use super::memory::{Hash, Memory, Unwritten};
use super::{Error, document};
use crate::limits::CONFIG_GONE_MS;
use crate::task::{Claims, Spec};
use crate::tree::{Place, Problem, Problems};
use crate::write::StateDir;

/// Something about a file that was not so at the look before.
#[derive(Clone, Debug)]
pub enum News {
    /// Its text is new and valid.
    Accepted {
        /// The file.
        file: PathBuf,
        /// SHA-256 of its text.
        hash: Hash,
        /// What is allowed but probably not meant.
        warnings: Vec<Problem>,
    },
    /// It is not valid or cannot be read; its tasks stay as they were.
    Rejected {
        /// The file, or the folder.
        file: PathBuf,
        /// SHA-256 of its text, where that could be read.
        hash: Option<Hash>,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
    /// It is bad at the start; the text that was accepted last is used instead.
    Restored {
        /// The file.
        file: PathBuf,
        /// SHA-256 of the text that is used.
        hash: Hash,
    },
    /// It is not there any more.
    Gone {
        /// The file.
        file: PathBuf,
    },
}

/// What a look at the files has shown.
#[derive(Debug, Default)]
pub struct Look {
    /// What is new, in byte order of files.
    pub news: Vec<News>,
    /// The tasks from now on; `None` when no file has changed.
    pub decision: Option<Decision>,
    /// A file seems to be gone; look again after [`CONFIG_GONE_MS`].
    pub again: bool,
}

/// What is known of a file.
#[derive(Debug, Default)]
struct Known {
    /// What was accepted last.
    accepted: Option<(Hash, Vec<Arc<Spec>>)>,
    /// The text that was last looked at, accepted or not.
    seen: Option<Hash>,
    /// Why it was rejected, as long as it is.
    rejected: Option<Vec<Problem>>,
    missing_since_ns: Option<u64>,
}

/// The files of all `--tasks` and the tasks they stand for.
#[derive(Debug)]
pub struct Config {
    paths: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Known>,
    /// Why a path could not be listed, as long as it cannot.
    unreachable: BTreeMap<PathBuf, Problem>,
    memory: Memory,
    tasks: Tasks,
}

impl Config {
    /// Nothing is read yet. Accepted texts are kept in the state folder, where there is one.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>, state: Option<Arc<StateDir>>) -> Self {
        let memory = Memory::new(state);
        Self { paths, files: BTreeMap::new(), unreachable: BTreeMap::new(), memory, tasks: Tasks::new() }
    }

    /// The first look: what is bad is replaced by what was accepted last, where that is known.
    pub fn start(&mut self, now_ns: u64) -> Look {
        let mut look = self.look(now_ns, true);
        for (file, text) in self.memory.load(&mut look.news) {
            self.memory.kept(&file, &text);
            let reachable =
                self.paths.iter().any(|path| file.starts_with(path) && !self.unreachable.contains_key(path));
            let ours = self.paths.iter().any(|path| file.starts_with(path));
            let known = self.files.get(&file);
            let rejected = known.is_some_and(|known| known.accepted.is_none());
            if !ours || (reachable && !rejected) {
                if ours && known.is_none() {
                    self.memory.forget(&file);
                }
                continue;
            }
            if let Ok((specs, _)) = read(&file, &text) {
                let hash = Hash::of(&text);
                self.files.entry(file.clone()).or_default().accepted = Some((hash, specs));
                look.news.push(News::Restored { file, hash });
            }
        }
        let decision = decide(&self.specs(), &Tasks::new());
        self.tasks = decision.tasks.clone();
        look.decision = Some(decision);
        look
    }

    /// Reads every file and says what has changed. `force` decides again even when nothing has.
    pub fn look(&mut self, now_ns: u64, force: bool) -> Look {
        let mut look = Look::default();
        let mut listed: Vec<PathBuf> = Vec::new();
        let mut out_of_reach: Vec<PathBuf> = Vec::new();
        for path in self.paths.clone() {
            match self.list(&path) {
                Ok(files) => {
                    self.unreachable.remove(&path);
                    listed.extend(files);
                }
                Err(problem) => {
                    out_of_reach.push(path.clone());
                    if self.unreachable.get(&path) != Some(&problem) {
                        let problems = vec![problem.clone()];
                        look.news.push(News::Rejected { file: path.clone(), hash: None, problems });
                        self.unreachable.insert(path, problem);
                    }
                }
            }
        }
        listed.sort_unstable();
        listed.dedup();
        let mut changed = force;
        for file in &listed {
            changed |= self.take(file, &mut look.news);
        }
        let in_reach = |file: &Path| !out_of_reach.iter().any(|path| file.starts_with(path));
        let absent = self.files.keys().filter(|file| listed.binary_search(file).is_err() && in_reach(file));
        for file in absent.cloned().collect::<Vec<_>>() {
            if self.is_long_gone(&file, now_ns) {
                changed = true;
                self.files.remove(&file);
                self.memory.forget(&file);
                look.news.push(News::Gone { file });
            } else {
                look.again = true;
            }
        }
        if changed {
            let decision = decide(&self.specs(), &self.tasks);
            self.tasks = decision.tasks.clone();
            look.decision = Some(decision);
        }
        look
    }

    /// The files behind a path. One that was a file and is gone gives none; one that never was is an error.
    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, Problem> {
        let was_a_file = self.files.contains_key(path);
        if was_a_file {
            // A folder in its place, or an unreadable one, is found out by reading.
            return Ok(if files::is_gone(path) { Vec::new() } else { vec![path.to_owned()] });
        }
        files::find(path)
    }

    /// Looks at one file; true when its tasks may have changed.
    fn take(&mut self, file: &Path, news: &mut Vec<News>) -> bool {
        let known = self.files.entry(file.to_owned()).or_default();
        known.missing_since_ns = None;
        let text = match files::read(file) {
            Ok(text) => text,
            Err(NoText::Unreadable(problem) | NoText::Wrong(problem)) => {
                known.seen = None;
                known.reject(file, None, vec![problem], news);
                return false;
            }
        };
        let hash = Hash::of(&text);
        if known.seen == Some(hash) {
            return false;
        }
        known.seen = Some(hash);
        if known.accepted.as_ref().is_some_and(|(accepted, _)| *accepted == hash) {
            // It was bad for a while and is again what it was.
            known.rejected = None;
            news.push(News::Accepted { file: file.to_owned(), hash, warnings: Vec::new() });
            return false;
        }
        match read(file, &text) {
            Ok((specs, warnings)) => {
                known.accepted = Some((hash, specs));
                known.rejected = None;
                self.memory.keep(file, text);
                news.push(News::Accepted { file: file.to_owned(), hash, warnings });
                true
            }
            Err(problems) => {
                known.reject(file, Some(hash), problems, news);
                false
            }
        }
    }

    fn is_long_gone(&mut self, file: &Path, now_ns: u64) -> bool {
        let Some(known) = self.files.get_mut(file) else { return false };
        let since_ns = *known.missing_since_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(since_ns) >= CONFIG_GONE_MS * 1_000_000
    }

    fn specs(&self) -> BTreeMap<PathBuf, Vec<Arc<Spec>>> {
        let accepted = |(file, known): (&PathBuf, &Known)| {
            known.accepted.as_ref().map(|(_, specs)| (file.clone(), specs.clone()))
        };
        self.files.iter().filter_map(accepted).collect()
    }

    /// What was accepted since the last call and is to be written down.
    pub fn unwritten(&mut self) -> Unwritten {
        self.memory.take()
    }

    /// The tasks as last decided.
    #[must_use]
    pub const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// SHA-256 of the text of a file that is in force.
    #[must_use]
    pub fn hash(&self, file: &Path) -> Option<Hash> {
        self.files.get(file)?.accepted.as_ref().map(|(hash, _)| *hash)
    }

    /// Why a file's newest text is not in force.
    #[must_use]
    pub fn rejected(&self, file: &Path) -> Option<&[Problem]> {
        self.files.get(file)?.rejected.as_deref()
    }

    /// The folders in which changes show.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self.paths.iter().flat_map(|path| files::folders(path)).collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    /// Whether an event in one of [`Self::folders`] may be about the files.
    #[must_use]
    pub fn concerns(&self, folder: &Path, name: Option<&str>) -> bool {
        let inside = self.paths.iter().any(|path| folder.starts_with(path));
        let mut beside = self.paths.iter().filter(|path| files::parent(path) == folder).peekable();
        match name {
            Some(name) if inside => !name.starts_with('.') || name.starts_with(".."),
            // A folder above: somebody else's files change there too.
            Some(name) if beside.peek().is_some() => {
                name.starts_with("..") || beside.any(|path| path.file_name().is_some_and(|own| own == name))
            }
            _ => true,
        }
    }

    /// Everything that is wrong at the moment, as an error; `None` when nothing is.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        let mut problems = Problems::default();
        problems.errors.extend(self.unreachable.values().cloned());
        problems
            .errors
            .extend(self.files.values().filter_map(|known| known.rejected.as_ref()).flatten().cloned());
        match (problems.errors.is_empty(), self.unreachable.is_empty()) {
            (true, _) => None,
            (false, true) => Some(Error::Invalid(problems)),
            (false, false) => Some(Error::Unreadable(problems)),
        }
    }
}

impl Known {
    fn reject(&mut self, file: &Path, hash: Option<Hash>, problems: Vec<Problem>, news: &mut Vec<News>) {
        if self.rejected.as_ref() != Some(&problems) {
            self.rejected = Some(problems.clone());
            news.push(News::Rejected { file: file.to_owned(), hash, problems });
        }
    }
}

/// Tasks with the warnings about them.
type Read = (Vec<Arc<Spec>>, Vec<Problem>);

/// The tasks of a text, or everything that is wrong with it.
fn read(file: &Path, text: &str) -> Result<Read, Vec<Problem>> {
    let mut problems = Problems::default();
    let specs = document::read(&file.to_string_lossy(), text, &mut problems);
    let mut claims = Claims::default();
    for spec in &specs {
        problems.errors.append(&mut claims.take(spec));
    }
    problems.errors.sort_by(|one: &Problem, other| Place::cmp(&one.place, &other.place));
    if problems.errors.is_empty() {
        return Ok((specs.into_iter().map(Arc::new).collect(), problems.warnings));
    }
    Err(problems.errors)
}
