//! Who speaks most at the moment: counted from looks at the kernel's table, in bounded memory, only while somebody asks.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowlog_abi::{REPORT_ALONE, REPORT_APART, REPORT_END, Report};
use serde_json::{Value, json};
use zerocopy::FromBytes as _;

use crate::limits::TALKERS_CONNECTIONS_MAX;
use crate::metrics::{Sent, Talkers};

/// Between two looks at the table.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long after a question looks go on.
const ASKED: Duration = Duration::from_secs(10);
/// A look takes at most one part in so many of the time.
const SHARE: u32 = 10;
/// Pairs that are told.
const TOLD: usize = 100;

/// The board's part: who asks, and the newest answer.
#[derive(Debug, Default)]
pub struct Busiest {
    asked: Mutex<Option<Instant>>,
    window: Mutex<Option<Arc<Window>>>,
}

/// What was sent between two looks.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// How long that was.
    pub interval: Duration,
    /// The pairs.
    pub talkers: Talkers,
    /// Connections of which nothing is known, since there were too many.
    pub unknown: u64,
}

impl Busiest {
    /// Whether somebody wants to know at the moment.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|asked| asked.elapsed() < ASKED)
    }

    /// Takes a newer answer, or forgets the last one.
    pub fn tell(&self, window: Option<Window>) {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) = window.map(Arc::new);
    }

    /// Asks: the newest answer as JSON. The first question is answered with nothing yet.
    #[must_use]
    pub fn ask(&self) -> Value {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(window) = window else { return json!({ "seconds": Value::Null, "pairs": [] }) };
        let sent = |sent: Sent| json!({ "packets": sent.packets, "bytes": sent.bytes });
        let pairs: Vec<Value> = window
            .talkers
            .busiest(TOLD)
            .into_iter()
            .map(|((one, other), of)| json!({ "ends": [one, other], "packets": of.packets, "bytes": of.bytes }))
            .collect();
        json!({
            "seconds": window.interval.as_secs_f64(),
            "pairs": pairs,
            "all": sent(window.talkers.all()),
            "forgotten_bytes": window.talkers.forgotten_bytes(),
            "unknown_connections": window.unknown,
        })
    }
}

/// The capture's part: looks at the table.
#[derive(Debug)]
pub struct Watcher {
    /// What each connection had sent at the last look, both ways; nothing before the first.
    before: Option<HashMap<u64, [Sent; 2]>>,
    now: HashMap<u64, [Sent; 2]>,
    window: Window,
    /// When the last look began, on the kernel's clock and on ours; and the one that is under way.
    looked_ns: u64,
    looks_ns: u64,
    looked: Instant,
    due: Instant,
}

impl Default for Watcher {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            before: None,
            now: HashMap::new(),
            window: Window::default(),
            looked_ns: 0,
            looks_ns: 0,
            looked: now,
            due: now,
        }
    }
}

impl Watcher {
    /// Whether it is time to look.
    #[must_use]
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// A connection is over, or never was in the table: what it sent since the last look counts.
    pub fn report(&mut self, report: &Report) {
        let Some(before) = &mut self.before else { return };
        match report.what {
            REPORT_ALONE | REPORT_APART => add(&mut self.window, report, [Sent::default(); 2]),
            REPORT_END => {
                let since = before.remove(&report.connection);
                since_then(&mut self.window, report, since, self.looked_ns);
            }
            _ => {}
        }
    }

    /// The same as it stands in the ring.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if let Ok(report) = Report::read_from_bytes(bytes) {
            self.report(&report);
        }
    }

    /// The last word on a connection.
    pub fn end(&mut self, report: &Report) {
        self.report(&Report { what: REPORT_END, ..*report });
    }

    /// Begins a look at the kernel's time `now_ns`.
    pub fn begin(&mut self, now_ns: u64) {
        let began = Instant::now();
        self.window.interval = began.duration_since(self.looked);
        self.looked = began;
        (self.now, self.due) = (HashMap::new(), began);
        self.looks_ns = now_ns;
    }

    /// A connection as it stands.
    pub fn stands(&mut self, report: &Report) {
        if self.now.len() < TALKERS_CONNECTIONS_MAX {
            self.now.insert(report.connection, sums(report));
        }
        if let Some(before) = &mut self.before {
            let since = before.remove(&report.connection);
            since_then(&mut self.window, report, since, self.looked_ns);
        }
    }

    /// Ends a look: what was sent since the one before, if there was one.
    pub fn finish(&mut self) -> Option<Window> {
        let first = self.before.is_none();
        // What begins while the table is looked through, and was not met, is new at the next look.
        self.looked_ns = self.looks_ns;
        self.before = Some(std::mem::take(&mut self.now));
        let took = self.looked.elapsed();
        self.due = self.looked + INTERVAL.max(took * SHARE);
        let window = std::mem::take(&mut self.window);
        (!first).then_some(window)
    }
}

fn sums(report: &Report) -> [Sent; 2] {
    report.directions.map(|side| Sent { packets: side.packets, bytes: side.bytes })
}

/// Adds what a connection sent since it was last seen, which for one that is new is all of it.
fn since_then(window: &mut Window, report: &Report, before: Option<[Sent; 2]>, looked_ns: u64) {
    match before {
        Some(before) => add(window, report, before),
        None if report.started_ns >= looked_ns => add(window, report, [Sent::default(); 2]),
        None => window.unknown += 1,
    }
}

fn add(window: &mut Window, report: &Report, before: [Sent; 2]) {
    let [low, high] =
        [report.key.low, report.key.high].map(|bytes| IpAddr::from(Ipv6Addr::from(bytes)).to_canonical());
    for (now, before) in sums(report).into_iter().zip(before) {
        let packets = now.packets.saturating_sub(before.packets);
        let bytes = now.bytes.saturating_sub(before.bytes);
        window.talkers.add(low, high, Sent { packets, bytes });
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros as _;

    use super::*;

    fn report(connection: u64, started_ns: u64, packets: u64) -> Report {
        let mut report = Report::new_zeroed();
        let address = |n| std::net::Ipv4Addr::new(10, 0, 0, n).to_ipv6_mapped().octets();
        (report.key.low, report.key.high) = (address(1), address(2));
        (report.connection, report.started_ns) = (connection, started_ns);
        (report.directions[0].packets, report.directions[0].bytes) = (packets, packets * 100);
        report
    }

    fn look(watcher: &mut Watcher, now_ns: u64, all: &[Report]) -> Option<u64> {
        watcher.begin(now_ns);
        all.iter().for_each(|report| watcher.stands(report));
        watcher.finish().map(|window| window.talkers.all().packets)
    }

    #[test]
    fn between_two_looks_every_packet_counts_once() {
        let mut watcher = Watcher::default();
        // The first look knows no before.
        assert_eq!(look(&mut watcher, 100, &[report(1, 5, 1_000), report(2, 6, 10)]), None);
        // One goes on, one is over, one has come and gone, one is new.
        watcher.end(&report(2, 6, 13));
        watcher.end(&report(3, 120, 4));
        watcher.report(&Report { what: REPORT_ALONE, ..report(9, 130, 1) });
        let packets = look(&mut watcher, 200, &[report(1, 5, 1_007), report(4, 150, 2)]);
        assert_eq!(packets, Some(7 + 3 + 4 + 1 + 2));
        assert_eq!(look(&mut watcher, 300, &[report(1, 5, 1_007), report(4, 150, 2)]), Some(0));
        assert_eq!(look(&mut watcher, 400, &[report(1, 5, 1_010)]), Some(3));
    }

    #[test]
    fn a_connection_that_was_not_kept_is_unknown_and_not_all_new() {
        let mut watcher = Watcher::default();
        look(&mut watcher, 100, &[]);
        watcher.begin(200);
        watcher.stands(&report(1, 50, 1_000_000));
        let window = watcher.finish().unwrap();
        assert_eq!((window.talkers.all().packets, window.unknown), (0, 1));
    }

    #[test]
    fn nothing_is_counted_for_nobody() {
        let busiest = Busiest::default();
        assert!(!busiest.is_asked());
        assert_eq!(busiest.ask()["pairs"], json!([]));
        assert!(busiest.is_asked());
        let mut window = Window { interval: Duration::from_secs(2), ..Window::default() };
        add(&mut window, &report(1, 1, 3), [Sent::default(); 2]);
        busiest.tell(Some(window));
        let told = busiest.ask();
        assert_eq!(told["pairs"][0], json!({"ends": ["10.0.0.1", "10.0.0.2"], "packets": 3, "bytes": 300}));
        assert_eq!((&told["seconds"], &told["all"]["bytes"]), (&json!(2.0), &json!(300)));
    }
}
