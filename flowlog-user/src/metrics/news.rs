use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Events that are kept until somebody asks; of more than that the log alone tells.
const EVENTS_MAX: usize = 1000;

/// What happened to one of a task's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// The name in `audit.log`.
    pub event: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why, in words; nothing where the event says it all.
    pub why: String,
}

/// What happened to a task's files since it was last asked for.
#[derive(Debug, Default)]
pub struct FileNews(Mutex<Vec<FileEvent>>);

impl FileNews {
    /// Notes an event.
    pub fn add(&self, event: FileEvent) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() < EVENTS_MAX {
            events.push(event);
        }
    }

    /// The events since the last call.
    pub fn take(&self) -> Vec<FileEvent> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
