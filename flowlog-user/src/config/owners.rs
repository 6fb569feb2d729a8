//! Task files over time: each stands for its own tasks.
//!
//! A file that is bad changes nothing of its tasks; a file that is gone takes them along; a folder that is gone or cannot
//! be read changes nothing, since that is what a broken mount looks like. Content is compared by its hash, so that
//! notifications may come too often. What depends on several files (who has a name, which pools there are) is decided
//! from what each of them was accepted with.

mod following;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diff::{Owned, Tasks, decide};
use super::document::{self, Content};
use super::files::{self, NoText};
use super::forms::{Forms, Origin, origin, settle};
use super::incumbents::{Incumbents, in_force};
use super::memory::{Hash, Memory, Unwritten};
use super::news::{Look, News};
use super::pools::{Joined, join};
use super::versions::{Form, migrated, newest};
use super::{Error, Sources};
use crate::limits::CONFIG_GONE_MS;
use crate::task::{Claims, Spec};
use crate::tree::{Place, Problem, Problems};
use crate::write::StateDir;

/// What is known of a file.
#[derive(Debug, Default)]
struct Known {
    /// What was accepted last.
    accepted: Option<(Hash, Content)>,
    /// The text that was last looked at, accepted or not.
    seen: Option<Hash>,
    /// Why it was rejected, as long as it is.
    rejected: Option<Vec<Problem>>,
    missing_since_ns: Option<u64>,
}

/// The files of all `--tasks` and `--pools`, and what they stand for.
#[derive(Debug)]
pub struct Config {
    sources: Sources,
    files: BTreeMap<PathBuf, Known>,
    /// Why a path could not be listed, as long as it cannot.
    unreachable: BTreeMap<PathBuf, Problem>,
    memory: Memory,
    tasks: Tasks,
    joined: Joined,
    /// At a start: tasks that name pools, as they were in force before.
    held: HashMap<String, Owned>,
    /// At a start: who had what before.
    incumbents: Incumbents,
    /// The text of each file at the last decision.
    before: HashMap<PathBuf, Hash>,
    /// Of tasks that stand in several forms.
    forms: Forms,
    /// What was asked for at the last decision and not given, and what was told of pools.
    refused: Vec<(Owned, Vec<Problem>)>,
    noticed: BTreeMap<PathBuf, (Vec<Problem>, Vec<Problem>)>,
    /// Since when a decision waits for a file that seems to be gone, and what is to be told with it.
    postponed: Option<(u64, Vec<News>)>,
}

impl Config {
    /// Nothing is read yet. Accepted texts are kept in the state folder, where there is one.
    #[must_use]
    pub fn new(sources: impl Into<Sources>, state: Option<Arc<StateDir>>) -> Self {
        Self {
            sources: sources.into(),
            files: BTreeMap::new(),
            unreachable: BTreeMap::new(),
            memory: Memory::new(state),
            tasks: Tasks::new(),
            joined: Joined::default(),
            held: HashMap::new(),
            incumbents: Incumbents::default(),
            before: HashMap::new(),
            forms: Forms::default(),
            refused: Vec::new(),
            noticed: BTreeMap::new(),
            postponed: None,
        }
    }

    /// The first look: what is bad is replaced by what was accepted last, where that is known.
    pub fn start(&mut self, now_ns: u64) -> Look {
        self.memory.load_marks();
        let held = self.memory.load_held().into_iter();
        let held = held.map(|(file, spec)| (spec.name.clone(), Owned { spec, file: file.into() }));
        self.held = held.collect();
        self.incumbents = self.memory.load_incumbents();
        let mut look = Look::default();
        self.scan(now_ns, &mut look);
        let kept = self.memory.load(&mut look.news);
        self.recall(&kept);
        for (file, text) in kept {
            self.memory.kept(&file, &text);
            let mut paths = self.sources.paths();
            let reachable = paths.any(|path| file.starts_with(path) && !self.unreachable.contains_key(path));
            let ours = self.sources.paths().any(|path| file.starts_with(path));
            let known = self.files.get(&file);
            let rejected = known.is_some_and(|known| known.accepted.is_none());
            if !ours || (reachable && !rejected) {
                if ours && known.is_none() {
                    self.memory.forget(&file);
                }
                continue;
            }
            if let Ok((content, _)) = read(&file, &text, &self.sources) {
                let hash = Hash::of(&text);
                self.files.entry(file.clone()).or_default().accepted = Some((hash, content));
                look.news.push(News::Restored { file, hash });
            }
        }
        // Once, from what is remembered too: what is not in force in the end is not told of.
        self.decide(&mut look);
        self.held.clear();
        self.incumbents = Incumbents::default();
        look
    }

    /// Reads every file and says what has changed. `force` decides again even when nothing has.
    ///
    /// A change that comes while a file seems to be gone waits until that is sure, at most [`CONFIG_GONE_MS`]: a file that is
    /// renamed is there under its new name first, and would be refused what the old one has.
    pub fn look(&mut self, now_ns: u64, force: bool) -> Look {
        let (since_ns, news) = self.postponed.take().unzip();
        let mut look = Look { news: news.unwrap_or_default(), ..Look::default() };
        let changed = self.scan(now_ns, &mut look) || since_ns.is_some();
        let since_ns = since_ns.unwrap_or(now_ns);
        if changed && look.again && now_ns.saturating_sub(since_ns) < CONFIG_GONE_MS * 1_000_000 {
            self.postponed = Some((since_ns, std::mem::take(&mut look.news)));
        } else if changed || force {
            self.decide(&mut look);
        }
        look
    }

    /// Reads every file; true when there may be something to decide.
    fn scan(&mut self, now_ns: u64, look: &mut Look) -> bool {
        let mut listed: Vec<PathBuf> = Vec::new();
        let mut out_of_reach: Vec<PathBuf> = Vec::new();
        for path in self.sources.paths().map(Path::to_path_buf).collect::<Vec<_>>() {
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
        let mut changed = false;
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
        changed
    }

    /// Decides from what is accepted which pools and which tasks there are.
    fn decide(&mut self, look: &mut Look) {
        let pools = self.files.iter().filter_map(|(file, known)| {
            known.accepted.as_ref().map(|(_, content)| (file.as_path(), content.pools.as_slice()))
        });
        let texts = self.texts();
        let pools = join(pools, |name, all| Some(texts.pool_owner(self.pool_owner(name)?, all)));
        let before = std::mem::replace(&mut self.joined, pools);
        let (mut tasks, mut held) = (std::mem::take(&mut self.tasks), std::mem::take(&mut self.held));
        self.follow(tasks.values_mut().chain(held.values_mut()));
        (self.tasks, self.held) = (tasks, held);
        let files = self.files.iter().filter_map(|(file, known)| {
            known.accepted.as_ref().map(|(_, content)| (file.as_path(), content, true))
        });
        let in_force = |name: &str| {
            let runs = self.tasks.get(name).map(|owned| (owned, true));
            runs.or_else(|| self.held.get(name).map(|owned| (owned, false)))
        };
        let settled = settle(files, &self.sources, &self.joined.pools, in_force);
        for name in &settled.without_pools {
            // What was in force before the start stays so.
            if let Some(held) = self.held.get(name) {
                self.tasks.entry(name.clone()).or_insert_with(|| held.clone());
            }
        }
        self.notice(&settled.warnings, &mut look.news);
        let (specs, others) = (settled.specs.into_iter().collect(), &settled.forms.others);
        let mut decision = decide(&specs, others, &self.tasks);
        if !decision.refused.is_empty() && !self.incumbents.have_no_tasks() {
            // At a start who had something before keeps it, as while the daemon runs.
            let mut now = self.incumbents.of(&specs, &self.held, self.sources.roots.as_deref());
            self.follow(now.values_mut());
            now.extend(self.tasks.clone());
            decision = decide(&specs, others, &now);
        }
        decision.refused.extend(settled.refused);
        self.forms = settled.forms;
        self.tasks = decision.tasks.clone();
        self.refused.clone_from(&decision.refused);
        self.tell_gone(&before, &mut look.news);
        for news in &mut look.news {
            if let News::Converted { file, counts, .. } = news {
                *counts = self.tasks.values().any(|owned| *owned.file == **file);
            }
        }
        self.hold();
        let hashes = self.files.iter().filter_map(|(file, known)| Some((file.clone(), known.hash()?)));
        self.before = hashes.collect();
        look.decision = Some(decision);
    }

    /// Keeps what is in force: with addresses, of tasks that name pools.
    fn hold(&mut self) {
        let mut held: BTreeMap<PathBuf, Vec<Arc<Spec>>> = BTreeMap::new();
        for owned in self.tasks.values().filter(|owned| owned.spec.filter.names_pools()) {
            held.entry(owned.file.to_path_buf()).or_default().push(Arc::clone(&owned.spec));
        }
        self.memory.hold(held);
        let pools = self.joined.defined.iter();
        let pools = pools.map(|(name, (file, defined))| (&**name, file.as_path(), defined.form));
        self.memory.keep_in_force(in_force(&self.tasks, pools));
    }

    /// Says what several files say together, once.
    fn notice(&mut self, warnings: &[Problem], news: &mut Vec<News>) {
        let mut noticed: BTreeMap<PathBuf, (Vec<Problem>, Vec<Problem>)> = BTreeMap::new();
        let file = |problem: &Problem| PathBuf::from(&*problem.place.file);
        for warning in self.joined.warnings.iter().chain(warnings) {
            noticed.entry(file(warning)).or_default().0.push(warning.clone());
        }
        for refused in &self.joined.refused {
            noticed.entry(file(refused)).or_default().1.push(refused.clone());
        }
        for (file, (warnings, refused)) in &noticed {
            if self.noticed.get(file) != Some(&(warnings.clone(), refused.clone())) {
                let (warnings, refused) = (warnings.clone(), refused.clone());
                news.push(News::Noticed { file: file.clone(), warnings, refused });
            }
        }
        self.noticed = noticed;
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
        match read(file, &text, &self.sources) {
            Ok((content, warnings)) => {
                let (form, folder) = (content.form, self.sources.folder());
                let older = form != Form::V1 && !self.sources.refuse_older;
                if older && self.memory.converts(file, form, hash, || newest(file, &text, form, folder)) {
                    news.push(News::Converted { file: file.to_owned(), form, hash, counts: true });
                } else if !older {
                    self.memory.forget_mark(file);
                }
                known.accepted = Some((hash, content));
                known.rejected = None;
                self.memory.keep(file, &text);
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

    /// What was accepted since the last call and is to be written down.
    pub fn unwritten(&mut self) -> Unwritten {
        self.memory.take()
    }

    /// The tasks as last decided.
    #[must_use]
    pub const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The pools as last decided.
    #[must_use]
    pub const fn pools(&self) -> &Joined {
        &self.joined
    }

    /// From which form a task comes; `file` is where it stands.
    #[must_use]
    pub fn origin(&self, task: &str, file: &Path) -> Option<Origin> {
        let known = self.files.get(file)?;
        let (_, content) = known.accepted.as_ref()?;
        let beside = migrated(file, Form::V1);
        let bad =
            self.files.get(&beside).filter(|known| known.rejected.is_some() && known.accepted.is_none());
        let bad = bad.map(|_| beside.as_path());
        let unreachable = self.unreachable.keys().find(|path| file.starts_with(path));
        let trouble = match (unreachable, &known.rejected) {
            (Some(path), _) => Some(format!("{} can be read", path.display())),
            (None, Some(_)) => Some(format!("the errors of {} are corrected", file.display())),
            (None, None) => None,
        };
        Some(origin(file, content, trouble.as_deref(), self.forms.of(task, file), bad, &self.sources))
    }

    /// The arguments of the command that makes a file of an older form into one of the newest.
    #[must_use]
    pub fn migration(&self, file: &Path, form: Form) -> String {
        self.sources.migration(file, form)
    }

    /// Why a task's newest version is not in force although its file is good.
    #[must_use]
    pub fn refused(&self, task: &str, file: &Path) -> Option<&[Problem]> {
        let of = |(owned, _): &&(Owned, _)| {
            owned.spec.name == task && (*owned.file == *file || self.forms.are_one(task, &owned.file, file))
        };
        self.refused.iter().find(of).map(|(_, problems)| problems.as_slice())
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
        let mut folders: Vec<PathBuf> = self.sources.paths().flat_map(files::folders).collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    /// Whether an event in one of [`Self::folders`] may be about the files.
    #[must_use]
    pub fn concerns(&self, folder: &Path, name: Option<&str>) -> bool {
        let inside = self.sources.paths().any(|path| folder.starts_with(path));
        let mut beside = self.sources.paths().filter(|path| files::parent(path) == folder).peekable();
        match name {
            Some(name) if inside => !name.starts_with('.') || name.starts_with(".."),
            // A folder above: somebody else's files change there too.
            Some(name) if beside.peek().is_some() => {
                name.starts_with("..") || beside.any(|path| path.file_name().is_some_and(|own| own == name))
            }
            _ => true,
        }
    }

    /// Everything that is wrong at the moment, a line each: files, tasks and pools that are not in force as they stand.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        match self.error() {
            Some(Error::Invalid(problems) | Error::Unreadable(problems)) => {
                problems.errors.iter().map(ToString::to_string).collect()
            }
            _ => Vec::new(),
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
        problems.errors.extend(self.joined.refused.iter().cloned());
        problems.errors.extend(self.refused.iter().flat_map(|(_, problems)| problems).cloned());
        match (problems.errors.is_empty(), self.unreachable.is_empty()) {
            (true, _) => None,
            (false, true) => Some(Error::Invalid(problems)),
            (false, false) => Some(Error::Unreadable(problems)),
        }
    }
}

impl Known {
    /// Of the text that was accepted last.
    fn hash(&self) -> Option<Hash> {
        self.accepted.as_ref().map(|(hash, _)| *hash)
    }

    fn reject(&mut self, file: &Path, hash: Option<Hash>, problems: Vec<Problem>, news: &mut Vec<News>) {
        if self.rejected.as_ref() != Some(&problems) {
            self.rejected = Some(problems.clone());
            news.push(News::Rejected { file: file.to_owned(), hash, problems });
        }
    }
}

/// What a file says, with the warnings about it.
type Read = (Content, Vec<Problem>);

/// What a text says, or everything that is wrong with it.
fn read(file: &Path, text: &str, sources: &Sources) -> Result<Read, Vec<Problem>> {
    let (mut problems, name) = (Problems::default(), file.to_string_lossy());
    let content = document::read(&name, text, sources.holds(file), sources.folder(), &mut problems);
    let mut claims = Claims::default();
    for spec in &content.tasks {
        problems.errors.append(&mut claims.take(spec));
    }
    problems.errors.extend(join([(file, content.pools.as_slice())], |_, _| None).refused);
    problems.errors.sort_by(|one: &Problem, other| Place::cmp(&one.place, &other.place));
    if problems.errors.is_empty() {
        return Ok((content, problems.warnings));
    }
    Err(problems.errors)
}
