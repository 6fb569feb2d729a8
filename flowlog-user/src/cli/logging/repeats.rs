//! What is said again and again is said a few times a minute, with a line for how often it was left out.

use std::collections::HashMap;
use std::fmt::{Debug, Write as _};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};
use tracing_subscriber::layer::{Context, Filter};

/// How often a message may come within an interval.
const FREE: u32 = 5;
const INTERVAL: Duration = Duration::from_secs(60);
/// Messages that are told apart; beyond that, what is new passes freely.
const KEPT_MAX: usize = 1024;
/// Where the lines about what was left out come from; they are not counted themselves.
const TARGET: &str = "flowlog::repeats";
/// Fields by which messages differ though only their digits do: another task is another message.
const NAMES: [&str; 6] = ["task", "file", "interface", "path", "folder", "side"];

static BOOK: LazyLock<Mutex<Book>> = LazyLock::new(Mutex::default);

/// Lets the first of equal messages through. What is for debugging always passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeats {
    pub(super) on: bool,
}

impl<S> Filter<S> for Repeats {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let about = event.metadata();
        if !self.on || *about.level() > Level::INFO || about.target() == TARGET {
            return true;
        }
        let audited = about.module_path() == Some(crate::cli::reload::MODULE);
        let mut said = Said { audited, ..Said::default() };
        event.record(&mut said);
        let (passes, over) = {
            let mut book = BOOK.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            (book.passes(said, *about.level(), now), book.over(now))
        };
        say(over);
        passes
    }
}

/// Says of messages whose interval is over how often they were left out; to be called now and then.
pub(crate) fn tell() {
    say(BOOK.lock().unwrap_or_else(PoisonError::into_inner).over(Instant::now()));
}

/// Says it of all messages; to be called at the end.
pub(crate) fn tell_all() {
    say(BOOK.lock().unwrap_or_else(PoisonError::into_inner).over(Instant::now() + INTERVAL));
}

fn say(over: Vec<Left>) {
    for Left { message, times, level, audited } in over {
        let what = what(times, audited);
        // As loud as what it is about.
        match level {
            Level::ERROR => tracing::error!(target: TARGET, times, message, "{what}"),
            Level::WARN => tracing::warn!(target: TARGET, times, message, "{what}"),
            _ => tracing::info!(target: TARGET, times, message, "{what}"),
        }
    }
}

fn what(times: u32, audited: bool) -> String {
    let see = if audited { "; audit.log in the state folder has each of them" } else { "" };
    format!("{times} more like this were left out of this log{see}")
}

/// What was left out of a message in an interval.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    message: String,
    times: u32,
    level: Level,
    audited: bool,
}

/// What a message says: to tell it apart, and to be named.
#[derive(Default)]
struct Said {
    key: String,
    message: String,
    /// It is in audit.log, too.
    audited: bool,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        let name = field.name();
        // Writing to a string cannot fail.
        let _ = write!(self.key, "{name}=");
        if NAMES.contains(&name) {
            self.key.push_str(&text);
        } else {
            self.key.extend(text.chars().filter(|c| !c.is_ascii_digit()));
        }
        self.key.push('\n');
        if name == "message" {
            self.message = text;
        }
    }
}

#[derive(Default)]
struct Book {
    /// When the interval of a message began, how often it came in it, and what it says; the number that it gives is to be set.
    messages: HashMap<String, (Instant, u32, Left)>,
}

impl Book {
    fn passes(&mut self, said: Said, level: Level, now: Instant) -> bool {
        if !self.messages.contains_key(&said.key) && self.messages.len() >= KEPT_MAX {
            self.messages
                .retain(|_, (began, count, ..)| *count > FREE || now.duration_since(*began) < INTERVAL);
            if self.messages.len() >= KEPT_MAX {
                return true;
            }
        }
        let Said { key, message, audited } = said;
        let left = Left { message, times: 0, level, audited };
        let (_, count, _) = self.messages.entry(key).or_insert((now, 0, left));
        *count = count.saturating_add(1);
        *count <= FREE
    }

    /// Takes out the messages whose interval is over; those of which something was left out, and how often.
    fn over(&mut self, now: Instant) -> Vec<Left> {
        let is_over =
            |_: &String, (began, ..): &mut (Instant, u32, Left)| now.duration_since(*began) >= INTERVAL;
        let over = self.messages.extract_if(is_over).map(|(_, told)| told);
        let left = over.filter(|(_, count, _)| *count > FREE);
        left.map(|(_, count, left)| Left { times: count - FREE, ..left }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(key: &str) -> Said {
        Said { key: key.into(), message: key.into(), audited: true }
    }

    #[test]
    fn repeats_are_left_out_and_their_number_is_told_once() {
        let (mut book, began) = (Book::default(), Instant::now());
        let passed = (0..100).filter(|_| book.passes(said("disk full"), Level::INFO, began)).count();
        assert_eq!(passed, 5);
        assert!(book.passes(said("other"), Level::INFO, began), "another message passes");
        assert_eq!(book.over(began + INTERVAL / 2), []);
        assert_eq!(
            book.over(began + INTERVAL),
            [Left { message: "disk full".into(), times: 95, level: Level::INFO, audited: true }]
        );
        assert_eq!(
            what(95, true),
            "95 more like this were left out of this log; audit.log in the state folder has each of them"
        );
        assert_eq!(what(95, false), "95 more like this were left out of this log");
        assert_eq!(book.over(began + INTERVAL), []);
        assert!(book.passes(said("disk full"), Level::WARN, began + INTERVAL));
    }

    #[test]
    fn a_flood_of_different_messages_takes_bounded_memory_and_passes() {
        let (mut book, now) = (Book::default(), Instant::now());
        for n in 0..10 * KEPT_MAX {
            assert!(book.passes(said(&format!("m{n}x")), Level::INFO, now));
        }
        assert!(book.messages.len() <= KEPT_MAX);
    }

    /// Through tracing itself: what differs by numbers only is the same message, and another task is not.
    #[test]
    fn messages_are_equal_but_for_their_numbers() {
        use std::sync::Arc;
        use tracing_subscriber::prelude::*;
        #[derive(Clone, Default)]
        struct Lines(Arc<Mutex<Vec<u8>>>);
        impl std::io::Write for Lines {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let lines = Lines::default();
        let to = lines.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || to.clone());
        let subscriber = tracing_subscriber::registry().with(layer.with_filter(Repeats { on: true }));
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..50 {
                tracing::warn!(task = "a1", lost = n, "the disk lost {n} records");
                tracing::warn!(task = "a2", lost = n, "the disk lost {n} records");
                tracing::debug!("step {n}");
            }
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert_eq!([count("task=\"a1\""), count("task=\"a2\""), count("step")], [5, 5, 50], "{text}");
    }
}
