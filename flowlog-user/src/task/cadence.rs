use std::fmt;
use std::time::Duration;

use super::duration;
use crate::limits;
use crate::record::Event;
use crate::tree::{Fields, Problems, Tree, hint};

/// When records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cadence {
    /// At which events.
    pub events: Events,
    /// Time between two `update` records of a connection; `None` is the node's active timeout.
    pub update_interval: Option<Duration>,
}

/// A set of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Events(u8);

/// Events of connections.
const ALL: [Event; 3] = [Event::Start, Event::Update, Event::End];

impl Events {
    /// All of those of connections.
    pub const ALL: Self = Self(0b111);
    /// None of them.
    pub const NONE: Self = Self(0);

    /// This set with one more event.
    #[must_use]
    pub const fn with(self, event: Event) -> Self {
        Self(self.0 | (1 << event as u8))
    }

    /// Whether the event is in the set.
    #[must_use]
    pub const fn has(self, event: Event) -> bool {
        self.0 & (1 << event as u8) != 0
    }
}

impl fmt::Display for Cadence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            ALL.into_iter().filter(|event| self.events.has(*event)).map(Event::name).collect();
        write!(f, "[{}]", names.join(", "))?;
        match self.update_interval {
            Some(interval) => write!(f, " every {interval:?}"),
            None => Ok(()),
        }
    }
}

impl Cadence {
    /// Reads `events` and `updateInterval`; beside them whether drops are among the events. They have no cadence of their
    /// own: tasks that differ in them alone share one.
    pub(super) fn read(fields: &Fields<'_>, problems: &mut Problems) -> (Self, bool) {
        let (events, drops) =
            fields.get("events").map_or((Events::ALL, false), |tree| events(tree, problems));
        let min = Duration::from_millis(limits::UPDATE_INTERVAL_MS_MIN);
        let interval = fields.entry("updateInterval");
        let update_interval = interval.and_then(|entry| duration::read(&entry.value, min, problems));
        if let Some(entry) = interval
            && !events.has(Event::Update)
        {
            problems.warning(&entry.place, "has no effect: `events` has no `update`");
            return (Self { events, update_interval: None }, drops);
        }
        (Self { events, update_interval }, drops)
    }
}

fn events(tree: &Tree, problems: &mut Problems) -> (Events, bool) {
    let (mut events, mut drops) = (Events::NONE, false);
    let list = tree.list(problems);
    for item in list {
        let Some(word) = item.text(problems) else { continue };
        match Event::from_name(word) {
            Some(Event::Drop) => drops = true,
            Some(event) => events = events.with(event),
            None => {
                let hint = hint(word, &Event::ALL.map(Event::name));
                problems.error(&item.place, format!("unknown event `{word}`; {hint}"));
            }
        }
    }
    if list.is_empty() {
        problems.error(
            &tree.place,
            "expected one or more of start, update, end, drop; remove the key for the first three",
        );
    }
    (events, drops)
}
