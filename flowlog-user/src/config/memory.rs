//! The last accepted text of each file, kept in the state folder.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::News;
use crate::limits::CONFIG_BYTES_MAX;
use crate::tree::{Place, Problem};
use crate::write::{Error, StateDir};

/// Subfolder of the state folder.
const FOLDER: &str = "tasks";

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
    /// What is not yet written: texts to keep, and files to forget.
    pending: BTreeMap<PathBuf, Option<String>>,
}

impl Memory {
    pub(super) const fn new(state: Option<Arc<StateDir>>) -> Self {
        Self { state, pending: BTreeMap::new() }
    }

    pub(super) fn keep(&mut self, file: &Path, text: String) {
        if self.state.is_some() {
            self.pending.insert(file.to_owned(), Some(text));
        }
    }

    pub(super) fn forget(&mut self, file: &Path) {
        if self.state.is_some() {
            self.pending.insert(file.to_owned(), None);
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
        if self.pending.get(file).is_some_and(|pending| pending.as_deref() == Some(text)) {
            self.pending.remove(file);
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
    texts: BTreeMap<PathBuf, Option<String>>,
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
        while let Some((file, text)) = self.texts.pop_first() {
            let name = format!("{}.json", Hash::of(&file.to_string_lossy()));
            let done = match &text {
                Some(text) => {
                    let kept = serde_json::json!({ "file": file.to_string_lossy(), "text": text });
                    state.put(FOLDER, &name, kept.to_string().as_bytes())
                }
                None => state.remove(FOLDER, &name),
            };
            if let Err(error) = done {
                self.texts.insert(file, text);
                return Err(error);
            }
        }
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Option<(PathBuf, String)> {
    let kept: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    Some((kept.get("file")?.as_str()?.into(), kept.get("text")?.as_str()?.to_owned()))
}
