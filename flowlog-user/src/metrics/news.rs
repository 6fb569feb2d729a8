use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Events that are kept until somebody asks; of more than that their number.
const EVENTS_MAX: usize = 10_000;

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
pub struct FileNews(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    events: Vec<FileEvent>,
    /// Events beyond those.
    more: u64,
}

impl FileNews {
    /// Notes an event.
    pub fn add(&self, event: FileEvent) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.events.len() < EVENTS_MAX {
            waiting.events.push(event);
        } else {
            waiting.more += 1;
        }
    }

    /// The events since the last call. Where there were too many the last one, `file_events_left_out`, says how many more.
    pub fn take(&self) -> Vec<FileEvent> {
        let Waiting { mut events, more } =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if more > 0 {
            let why = format!(
                "{more} more events of this task's files since they were last looked for; they are not named anywhere"
            );
            events.push(FileEvent { event: "file_events_left_out", path: PathBuf::new(), why });
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_beyond_those_that_are_kept_are_counted_and_told_once() {
        let news = FileNews::default();
        for n in 0..EVENTS_MAX + 17 {
            let path = n.to_string().into();
            news.add(FileEvent { event: "file_deleted", path, why: String::new() });
        }
        let told = news.take();
        assert_eq!(told.len(), EVENTS_MAX + 1);
        let last = told.last().map(|last| (last.event, last.why.starts_with("17 more")));
        assert_eq!(last, Some(("file_events_left_out", true)), "{:?}", told.last());
        assert!(news.take().is_empty());
    }
}
