//! What the daemon told, and what a person wants to see of it.
#![expect(clippy::cast_precision_loss, reason = "rates, of which a few digits are shown")]

use std::collections::HashMap;
use std::time::Instant;

use anyhow::Context;
use clap::ValueEnum;
use serde_json::Value;

use super::keys::Act;
use crate::cli::client::{at, text};
use crate::cli::status;

/// By what tasks are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Order {
    /// Records a second.
    Rate,
    /// Their names.
    Name,
    /// Records dropped.
    Dropped,
    /// Bytes on disk.
    Disk,
}

impl Order {
    /// As a person calls it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Name => "name",
            Self::Dropped => "dropped",
            Self::Disk => "disk",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Rate => Self::Name,
            Self::Name => Self::Dropped,
            Self::Dropped => Self::Disk,
            Self::Disk => Self::Rate,
        }
    }
}

/// A task at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) written: u64,
    pub(super) written_bytes: u64,
    pub(super) dropped: u64,
    pub(super) disk_bytes: Option<u64>,
    /// Over the time since the look before.
    pub(super) records_a_second: f64,
    pub(super) bytes_a_second: f64,
}

/// A pair of addresses, and what it sent a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pair {
    pub(super) ends: String,
    pub(super) packets_a_second: f64,
    pub(super) bytes_a_second: f64,
}

/// The daemon at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    taken: Instant,
    pub(super) title: String,
    pub(super) is_healthy: bool,
    pub(super) wrong: Vec<String>,
    pub(super) closes: bool,
    pub(super) seen_packets: u64,
    pub(super) seen_bytes: u64,
    pub(super) lost_packets: u64,
    /// Connections in the kernel's table, and how many it holds.
    pub(super) table: (u64, u64),
    pub(super) packets_a_second: f64,
    pub(super) bytes_a_second: f64,
    pub(super) tasks: Vec<Task>,
    pub(super) pairs: Vec<Pair>,
    /// What is to be said of the pairs.
    pub(super) about_pairs: &'static str,
}

fn number(of: &Value, path: &str) -> u64 {
    at(of, path).as_u64().unwrap_or_default()
}

/// Without control characters, which could reach into the terminal.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

impl Snapshot {
    /// Reads the daemon's answers.
    ///
    /// # Errors
    /// They are no JSON.
    pub(super) fn read(status: &str, talkers: &str, taken: Instant) -> anyhow::Result<Self> {
        let status: Value = serde_json::from_str(status).context("the daemon's status is no JSON")?;
        let talkers: Value = serde_json::from_str(talkers)
            .context("this daemon does not tell who speaks most; it is older than this program")?;
        let wrong = at(&status, "wrong").as_array().into_iter().flatten().filter_map(Value::as_str);
        let tasks = at(&status, "tasks").as_array().into_iter().flatten().map(task).collect();
        let (pairs, about_pairs) = pairs(&talkers);
        Ok(Self {
            taken,
            title: clean(&format!("flowlog {} on {}", text(&status, "version"), text(&status, "node"))),
            is_healthy: at(&status, "healthy") == true,
            wrong: wrong.map(clean).collect(),
            closes: at(&status, "ledger/closes") == true,
            seen_packets: number(&status, "ledger/packets/seen/packets"),
            seen_bytes: number(&status, "ledger/packets/seen/bytes"),
            lost_packets: number(&status, "ledger/packets/lost/packets"),
            table: (number(&status, "table/entries"), number(&status, "table/entries_max")),
            packets_a_second: 0.0,
            bytes_a_second: 0.0,
            tasks,
            pairs,
            about_pairs,
        })
    }

    /// Rates since the look before.
    fn compare(&mut self, before: &Self) {
        let seconds = self.taken.duration_since(before.taken).as_secs_f64().max(f64::EPSILON);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        self.packets_a_second = rate(self.seen_packets, before.seen_packets);
        self.bytes_a_second = rate(self.seen_bytes, before.seen_bytes);
        let known: HashMap<&str, &Task> =
            before.tasks.iter().map(|task| (task.name.as_str(), task)).collect();
        for task in &mut self.tasks {
            let Some(then) = known.get(task.name.as_str()) else { continue };
            task.records_a_second = rate(task.written, then.written);
            task.bytes_a_second = rate(task.written_bytes, then.written_bytes);
        }
    }
}

fn task(of: &Value) -> Task {
    let dropped = ["dropped/queue_full", "dropped/write_error", "rate_limited"];
    Task {
        name: clean(text(of, "task")),
        state: status::state(of).to_owned(),
        written: number(of, "records/written"),
        written_bytes: number(of, "records/written_bytes"),
        dropped: dropped.iter().map(|why| number(of, &format!("records/{why}"))).sum(),
        disk_bytes: at(of, "disk_used_bytes").as_u64(),
        ..Task::default()
    }
}

fn pairs(talkers: &Value) -> (Vec<Pair>, &'static str) {
    let Some(seconds) = at(talkers, "seconds").as_f64().filter(|seconds| *seconds > 0.0) else {
        return (Vec::new(), "counting");
    };
    let end = |pair: &Value, which: &str| clean(text(pair, which));
    let all = at(talkers, "pairs").as_array().into_iter().flatten();
    let pairs = all
        .map(|pair| Pair {
            ends: format!("{} <-> {}", end(pair, "ends/0"), end(pair, "ends/1")),
            packets_a_second: number(pair, "packets") as f64 / seconds,
            bytes_a_second: number(pair, "bytes") as f64 / seconds,
        })
        .collect();
    let exact = number(talkers, "forgotten_bytes") == 0 && number(talkers, "unknown_connections") == 0;
    (pairs, if exact { "" } else { "at least so much: there are too many to count each" })
}

/// What is shown, and how.
pub(super) struct State {
    now: Option<Snapshot>,
    error: Option<String>,
    order: Order,
    is_reversed: bool,
    is_paused: bool,
    pub(super) shows_help: bool,
    /// The first task that is shown.
    pub(super) first: usize,
}

impl State {
    pub(super) const fn new(order: Order) -> Self {
        Self {
            now: None,
            error: None,
            order,
            is_reversed: false,
            is_paused: false,
            shows_help: false,
            first: 0,
        }
    }

    /// Takes what was told, or why nothing was.
    pub(super) fn take(&mut self, told: anyhow::Result<Snapshot>) {
        match told {
            Ok(mut now) => {
                if let Some(before) = &self.now {
                    now.compare(before);
                }
                (self.now, self.error) = (Some(now), None);
                self.sort();
            }
            Err(error) => self.error = Some(clean(&format!("{error:#}"))),
        }
    }

    /// Does what a key asks for.
    pub(super) fn act(&mut self, act: Act) {
        let last = self.now.as_ref().map_or(0, |now| now.tasks.len().saturating_sub(1));
        match act {
            Act::Help => self.shows_help = !self.shows_help,
            Act::Sort => self.order = self.order.next(),
            Act::Reverse => self.is_reversed = !self.is_reversed,
            Act::Pause => self.is_paused = !self.is_paused,
            Act::Scroll(by) => {
                let by_rows = usize::try_from(by.unsigned_abs()).unwrap_or(0);
                self.first = if by < 0 { self.first.saturating_sub(by_rows) } else { self.first + by_rows };
            }
            Act::Home => self.first = 0,
            Act::End => self.first = last,
            Act::Quit | Act::Slower | Act::Faster => {}
        }
        self.first = self.first.min(last);
        self.sort();
    }

    fn sort(&mut self) {
        let Some(now) = &mut self.now else { return };
        let order = self.order;
        now.tasks.sort_by(|one, other| {
            let by = match order {
                Order::Rate => other.records_a_second.total_cmp(&one.records_a_second),
                Order::Name => std::cmp::Ordering::Equal,
                Order::Dropped => other.dropped.cmp(&one.dropped),
                Order::Disk => other.disk_bytes.cmp(&one.disk_bytes),
            };
            by.then_with(|| one.name.cmp(&other.name))
        });
        if self.is_reversed {
            now.tasks.reverse();
        }
    }

    /// The daemon as it was last seen.
    pub(super) const fn now(&self) -> Option<&Snapshot> {
        self.now.as_ref()
    }

    /// Why it was not seen the last time.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    pub(super) const fn order(&self) -> Order {
        self.order
    }

    pub(super) const fn is_paused(&self) -> bool {
        self.is_paused
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// What a daemon tells that has written so many records of two tasks.
    pub(in crate::cli::top) fn told(busy: u64, idle: u64, at: Instant) -> Snapshot {
        let task = |name: &str, written: u64, dropped: u64| {
            json!({ "task": name, "disk_used_bytes": written * 10, "conditions": [],
                "records": { "written": written, "written_bytes": written * 100, "rate_limited": 0,
                    "dropped": { "queue_full": dropped, "write_error": 0 } } })
        };
        let seen = json!({ "packets": busy, "bytes": busy * 1000 });
        let status = json!({ "version": "1", "node": "n1", "healthy": true, "wrong": [],
            "ledger": { "closes": true, "packets": { "seen": seen, "lost": { "packets": 3 } } },
            "table": { "entries": 5, "entries_max": 64 },
            "tasks": [task("idle", idle, 9), task("busy\u{1b}[2J", busy, 0)] });
        let talkers = json!({ "seconds": 2.0, "forgotten_bytes": 0, "unknown_connections": 0,
            "pairs": [{ "ends": ["10.0.0.1", "10.0.0.2"], "packets": 20, "bytes": 3_000_000 }] });
        Snapshot::read(&status.to_string(), &talkers.to_string(), at).unwrap()
    }

    #[test]
    fn rates_are_over_the_time_between_two_looks_and_tasks_sorted_as_asked() {
        let began = Instant::now();
        let mut state = State::new(Order::Rate);
        state.take(Ok(told(1_000, 500, began)));
        state.take(Ok(told(1_600, 502, began + Duration::from_secs(2))));
        let names = |state: &State| -> Vec<String> {
            state.now().unwrap().tasks.iter().map(|task| task.name.clone()).collect()
        };
        let now = state.now().unwrap();
        assert_eq!((now.packets_a_second, now.bytes_a_second), (300.0, 300_000.0));
        assert_eq!(now.tasks[0].records_a_second, 300.0);
        assert_eq!(now.pairs[0].bytes_a_second, 1_500_000.0);
        // Nothing of it reaches into the terminal.
        assert_eq!(names(&state), ["busy[2J", "idle"]);
        state.act(Act::Reverse);
        assert_eq!(names(&state), ["idle", "busy[2J"]);
        state.act(Act::Reverse);
        for order in [Order::Name, Order::Dropped, Order::Disk] {
            state.act(Act::Sort);
            assert_eq!(state.order(), order);
            let first = if order == Order::Dropped { "idle" } else { "busy[2J" };
            assert_eq!(names(&state)[0], first, "{order:?}");
        }
        state.act(Act::Scroll(5));
        assert_eq!(state.first, 1, "no further than to the last");
        state.take(Err(anyhow::anyhow!("gone")));
        assert_eq!((state.error(), state.now().is_some()), (Some("gone"), true));
    }
}
