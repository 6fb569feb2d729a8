//! The last accepted text of each file, kept in the state folder.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::held;
use super::incumbents::{InForce, Incumbents};
use super::news::News;
use super::versions::Form;
use crate::limits::CONFIG_BYTES_MAX;
use crate::task::Spec;
use crate::tree::{Place, Problem};
use crate::write::{Error, StateDir};

/// Subfolder of the state folder with accepted texts.
const FOLDER: &str = "tasks";
/// The one with tasks that name pools, and the addresses that these had.
const HELD: &str = "pools";
/// The one with what is in force of each file.
const IN_FORCE: &str = "in-force";
/// The one with what older forms were converted to, and of what.
const CONVERTED: &str = "converted";

/// The largest text of that; each task of a file may name all pools there are.
const HELD_BYTES_MAX: u64 = 256 << 20;

/// SHA-256 of a text, shown as `sha256sum` does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Its first 64 bits, for where a number is wanted.
    #[must_use]
    pub fn first_bits(self) -> u64 {
        self.0.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Texts to be written down, and the folder where they are; without a folder nothing is kept.
#[derive(Debug)]
pub(super) struct Memory {
    state: Option<Arc<StateDir>>,
    /// What is not yet written, by folder and file: texts to keep, and files to forget.
    pending: Pending,
    /// Tasks that name pools, as they are kept.
    held: BTreeMap<PathBuf, Vec<Arc<Spec>>>,
    /// What is in force, and the hash of the text in which that is kept.
    in_force: BTreeMap<Arc<Path>, (InForce, Hash)>,
    /// Which form and text of a file was converted last.
    marks: BTreeMap<PathBuf, (String, String)>,
}

impl Memory {
    pub(super) const fn new(state: Option<Arc<StateDir>>) -> Self {
        Self {
            state,
            pending: BTreeMap::new(),
            held: BTreeMap::new(),
            in_force: BTreeMap::new(),
            marks: BTreeMap::new(),
        }
    }

    /// Tasks that name pools as they were in force last, with their files.
    pub(super) fn load_held(&mut self) -> Vec<(PathBuf, Arc<Spec>)> {
        let Some(state) = &self.state else { return Vec::new() };
        for name in state.names(HELD).unwrap_or_default() {
            let bytes = state.get(HELD, &name, HELD_BYTES_MAX).ok().flatten();
            self.held.extend(bytes.and_then(|bytes| held::parse(&bytes)));
        }
        let of = |(file, specs): (&PathBuf, &Vec<Arc<Spec>>)| -> Vec<_> {
            specs.iter().map(|spec| (file.clone(), Arc::clone(spec))).collect()
        };
        self.held.iter().flat_map(of).collect()
    }

    /// Keeps the tasks that name pools, by file, as they are in force.
    pub(super) fn hold(&mut self, now: BTreeMap<PathBuf, Vec<Arc<Spec>>>) {
        if self.state.is_none() {
            return;
        }
        for file in self.held.keys().filter(|file| !now.contains_key(*file)) {
            self.pending.insert((HELD, file.clone()), None);
        }
        for (file, specs) in &now {
            let same = |old: &Vec<Arc<Spec>>| {
                old.len() == specs.len()
                    && old
                        .iter()
                        .zip(specs)
                        .all(|(old, new)| old.name == new.name && old.differences(new).is_empty())
            };
            if !self.held.get(file).is_some_and(same) {
                self.pending.insert((HELD, file.clone()), Some(Kept::Tasks(specs.clone())));
            }
        }
        self.held = now;
    }

    /// Who had what when the daemon ran last.
    pub(super) fn load_incumbents(&mut self) -> Incumbents {
        let mut incumbents = Incumbents::default();
        let Some(state) = &self.state else { return incumbents };
        for name in state.names(IN_FORCE).unwrap_or_default() {
            let Ok(Some(bytes)) = state.get(IN_FORCE, &name, CONFIG_BYTES_MAX * 8) else { continue };
            if let Some(file) = incumbents.add(&bytes) {
                let hash = Hash(Sha256::digest(&bytes).into());
                self.in_force.insert(file.into(), (InForce::default(), hash));
            }
        }
        incumbents
    }

    /// Keeps what is in force of each file.
    pub(super) fn keep_in_force(&mut self, now: BTreeMap<Arc<Path>, InForce>) {
        if self.state.is_none() {
            return;
        }
        for file in self.in_force.keys().filter(|file| !now.contains_key(*file)) {
            self.pending.insert((IN_FORCE, file.to_path_buf()), None);
        }
        let mut kept = BTreeMap::new();
        for (file, now) in now {
            let before = self.in_force.get(&file);
            let hash = match before.filter(|(old, _)| old.is_plainly(&now)) {
                Some((_, hash)) => *hash,
                None => {
                    let text = now.text(&file);
                    let hash = Hash::of(&text);
                    if before.is_none_or(|(_, old)| *old != hash) {
                        self.pending.insert((IN_FORCE, file.to_path_buf()), Some(Kept::Text(text)));
                    }
                    hash
                }
            };
            kept.insert(file, (now, hash));
        }
        self.in_force = kept;
    }

    pub(super) fn keep(&mut self, file: &Path, text: &str) {
        if self.state.is_some() {
            self.pending.insert((FOLDER, file.to_owned()), Some(Kept::Text(kept(file, text))));
        }
    }

    pub(super) fn forget(&mut self, file: &Path) {
        if self.state.is_some() {
            self.pending.insert((FOLDER, file.to_owned()), None);
        }
        self.forget_mark(file);
    }

    /// What is known of earlier conversions. What cannot be read is converted, and told of, once more.
    pub(super) fn load_marks(&mut self) {
        let Some(state) = &self.state else { return };
        for name in state.names(CONVERTED).unwrap_or_default() {
            let bytes = state.get(CONVERTED, &name, CONFIG_BYTES_MAX * 8).ok().flatten();
            self.marks.extend(bytes.and_then(|bytes| parse_mark(&bytes)));
        }
    }

    /// Notes that a text of an older form is converted; false when that was noted before. `newest` gives the result.
    pub(super) fn converts(
        &mut self,
        file: &Path,
        form: Form,
        hash: Hash,
        newest: impl FnOnce() -> Option<String>,
    ) -> bool {
        let mark = (form.name().to_owned(), hash.to_string());
        if self.marks.get(file) == Some(&mark) {
            return false;
        }
        if self.state.is_some() {
            let text = serde_json::json!({ "file": file.to_string_lossy(), "form": mark.0, "hash": mark.1,
                "to": Form::V1.to_string(), "text": newest() });
            self.pending.insert((CONVERTED, file.to_owned()), Some(Kept::Text(text.to_string())));
        }
        self.marks.insert(file.to_owned(), mark);
        true
    }

    /// The file is gone, or has no older form any more.
    pub(super) fn forget_mark(&mut self, file: &Path) {
        if self.marks.remove(file).is_some() && self.state.is_some() {
            self.pending.insert((CONVERTED, file.to_owned()), None);
        }
    }

    /// Everything that was kept: file and text. What cannot be read is said.
    pub(super) fn load(&self, news: &mut Vec<News>) -> Vec<(PathBuf, String)> {
        let Some(state) = &self.state else { return Vec::new() };
        let mut kept = Vec::new();
        // The text is escaped inside, which at worst makes six characters of one.
        let bytes_max = CONFIG_BYTES_MAX * 6;
        for name in state.names(FOLDER).unwrap_or_default() {
            match state.get(FOLDER, &name, bytes_max) {
                Ok(Some(bytes)) => kept.extend(parse(&bytes)),
                Ok(None) => {}
                Err(error) => {
                    let place = Place::file(&state.path().join(FOLDER).join(&name).to_string_lossy());
                    let problems = vec![Problem { place: place.clone(), message: error.to_string() }];
                    news.push(News::Rejected { file: PathBuf::from(&*place.file), hash: None, problems });
                }
            }
        }
        kept
    }

    /// What was read is what is kept already.
    pub(super) fn kept(&mut self, file: &Path, text: &str) {
        let key = (FOLDER, file.to_owned());
        if matches!(self.pending.get(&key), Some(Some(Kept::Text(pending))) if *pending == kept(file, text)) {
            self.pending.remove(&key);
        }
    }

    /// What is to be written down since the last call.
    pub(super) fn take(&mut self) -> Unwritten {
        Unwritten { state: self.state.clone(), texts: std::mem::take(&mut self.pending) }
    }
}

/// Accepted texts on their way to the state folder. Writing them takes as long as the disk does.
#[derive(Debug, Default)]
pub struct Unwritten {
    state: Option<Arc<StateDir>>,
    texts: Pending,
}

/// By subfolder and file: what to keep, and files to forget.
type Pending = BTreeMap<(&'static str, PathBuf), Option<Kept>>;

/// What is kept of a file.
#[derive(Debug)]
enum Kept {
    Text(String),
    /// Made into a text when it is written: that takes as long as pools are large.
    Tasks(Vec<Arc<Spec>>),
}

impl Unwritten {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Adds later ones.
    pub fn add(&mut self, later: Self) {
        self.state = later.state.or(self.state.take());
        self.texts.extend(later.texts);
    }

    /// Writes them down.
    ///
    /// # Errors
    /// The first that could not be written; it and those after it are still here.
    pub fn write(&mut self) -> Result<(), Error> {
        let Some(state) = &self.state else { return Ok(()) };
        while let Some(((folder, file), text)) = self.texts.pop_first() {
            let name = format!("{}.json", Hash::of(&file.to_string_lossy()));
            let done = match &text {
                Some(Kept::Text(text)) => state.put(folder, &name, text.as_bytes()),
                Some(Kept::Tasks(specs)) => state.put(folder, &name, held::text(&file, specs).as_bytes()),
                None => state.remove(folder, &name),
            };
            if let Err(error) = done {
                self.texts.insert((folder, file), text);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// A text as it is kept.
fn kept(file: &Path, text: &str) -> String {
    serde_json::json!({ "file": file.to_string_lossy(), "text": text }).to_string()
}

fn parse_mark(bytes: &[u8]) -> Option<(PathBuf, (String, String))> {
    let mark: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let text = |key: &str| Some(mark.get(key)?.as_str()?.to_owned());
    Some((text("file")?.into(), (text("form")?, text("hash")?)))
}

fn parse(bytes: &[u8]) -> Option<(PathBuf, String)> {
    let kept: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    Some((kept.get("file")?.as_str()?.into(), kept.get("text")?.as_str()?.to_owned()))
}
