//! The metrics as data: every family with its name, help and samples. `config/metrics.md` lists the same.
//!
//! Cardinality is bounded: labels are the configured tasks (those removed leave after five minutes), fixed sets of
//! outcomes, places and reasons, and roles of interfaces; never an address, a port or an interface's name.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use flowlog_abi::{REASONS, Reason};

use super::board::{Board, View};
use super::ledger::{Amount, drops_by_outcome};
use super::process::Process;
use super::tasks::{TaskState, TaskStates};
use crate::capture::live::{DropHook, InterfaceState};
use crate::metrics::TaskCounters;
use crate::record::Role;

/// What a family's values do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; `_total` is added to the name when it is written.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// One series.
pub type Sample = (Vec<(&'static str, String)>, f64);

/// Metrics of one name.
#[derive(Clone, Debug)]
pub struct Family {
    /// Without `_total`.
    pub name: &'static str,
    /// What it says, and in which unit.
    pub help: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// Its series.
    pub samples: Vec<Sample>,
}

fn family(name: &'static str, kind: Kind, help: &'static str, samples: Vec<Sample>) -> Family {
    Family { name, help, kind, samples }
}

fn one(value: f64) -> Vec<Sample> {
    vec![(Vec::new(), value)]
}

#[expect(clippy::cast_precision_loss, reason = "what Prometheus keeps is a 64-bit float")]
fn float(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "seconds with a fraction, as Prometheus keeps them")]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Every family as of now.
#[must_use]
pub fn families(board: &Board) -> Vec<Family> {
    let mut all = tasks(board);
    if let Some(view) = board.view() {
        all.extend(kernel(board, &view));
    }
    all.extend(daemon(board));
    all
}

/// A task's series: name, kind, help and how its value is read.
type TaskFamily = (&'static str, Kind, &'static str, fn(&TaskCounters) -> u64);

const TASKS: &[TaskFamily] = &[
    ("flowlog_task_evaluated_records", Kind::Counter, "Records shown to the task's filters.", |task| {
        task.decoded.get()
    }),
    ("flowlog_task_matched_records", Kind::Counter, "Records the task's filters took.", |task| {
        task.matched.get()
    }),
    (
        "flowlog_task_written_records",
        Kind::Counter,
        "Records handed to the kernel by a successful write.",
        |task| task.written.get(),
    ),
    (
        "flowlog_task_gone_records",
        Kind::Counter,
        "Of the written records, those gone with a live file that somebody else deleted or cut short.",
        |task| task.gone.get(),
    ),
    (
        "flowlog_task_written_bytes",
        Kind::Counter,
        "Bytes of the written records before compression.",
        |task| task.written_bytes.get(),
    ),
    ("flowlog_task_disk_bytes", Kind::Counter, "Bytes written to disk, after compression.", |task| {
        task.disk_bytes.get()
    }),
    ("flowlog_task_rotations", Kind::Counter, "Files finished under their final name.", |task| {
        task.rotations.get()
    }),
    (
        "flowlog_task_notices",
        Kind::Counter,
        "Lines about the log itself (losses, the task's end) in its files.",
        |task| task.notices.get(),
    ),
    (
        "flowlog_task_aggregated_records",
        Kind::Counter,
        "Records that were added up into aggregated lines instead of being written.",
        |task| task.aggregated.get(),
    ),
    (
        "flowlog_task_aggregate_lines",
        Kind::Counter,
        "Aggregated lines made of them, which are written as records.",
        |task| task.aggregates.get(),
    ),
    (
        "flowlog_task_aggregate_overflow_records",
        Kind::Counter,
        "Of the records added up, those for whose key there was no room and that share the overflow line.",
        |task| task.aggregate_overflow.get(),
    ),
    (
        "flowlog_task_queued_bytes",
        Kind::Gauge,
        "Bytes of memory that records take while they wait for the task's writer.",
        |task| task.queued_bytes.get(),
    ),
];

fn written_last(states: &TaskStates) -> Vec<Sample> {
    let at = |state: &TaskState| state.counters.as_ref().map(|counters| counters.written_last_ns.get());
    states
        .iter()
        .filter_map(|(task, state)| Some((vec![("task", task.clone())], at(state).filter(|at| *at > 0)?)))
        .map(|(label, ns)| (label, Duration::from_nanos(ns).as_secs_f64()))
        .collect()
}

fn tasks(board: &Board) -> Vec<Family> {
    let states = board.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let label = |name: &str| vec![("task", name.to_owned())];
    let each = |value: &dyn Fn(&TaskState) -> f64| -> Vec<Sample> {
        states.iter().map(|(name, state)| (label(name), value(state))).collect()
    };
    let mut all = vec![
        family(
            "flowlog_task_active",
            Kind::Gauge,
            "1 while the task is shown records, 0 before its start, after its end and when it is removed.",
            each(&|state| f64::from(state.is_active())),
        ),
        family(
            "flowlog_task_trouble",
            Kind::Gauge,
            "1 while the task cannot write, though it should; `flowlog status` says why.",
            each(&|state| f64::from(state.trouble().is_some())),
        ),
        family(
            "flowlog_task_unrecorded_fields",
            Kind::Gauge,
            "Fields of the task's filters that ask for what no record has, such as names of pods.",
            each(&|state| u32::try_from(state.unrecorded).map_or(f64::MAX, f64::from)),
        ),
        family(
            "flowlog_task_last_record_timestamp_seconds",
            Kind::Gauge,
            "When the task's last record was written, Unix time; none before the first.",
            written_last(&states),
        ),
    ];
    for &(name, kind, help, value) in TASKS {
        let counted = states
            .iter()
            .filter_map(|(task, state)| Some((label(task), float(value(state.counters.as_ref()?)))));
        all.push(family(name, kind, help, counted.collect()));
    }
    let mut dropped = Vec::new();
    for (name, counters) in states.iter().filter_map(|(name, state)| Some((name, state.counters.as_ref()?))) {
        for (reason, value) in [
            ("queue_full", counters.dropped_queue_full.get()),
            ("write_error", counters.dropped_write_error.get()),
            ("rate_limited", counters.rate_limited.get()),
        ] {
            let mut labels = label(name);
            labels.push(("reason", reason.to_owned()));
            dropped.push((labels, float(value)));
        }
    }
    let help = "Records that were taken and not written, by reason.";
    all.push(family("flowlog_task_dropped_records", Kind::Counter, help, dropped));
    all
}

/// A family of the capture's side: name, kind, help and how its series are read.
type KernelFamily = (&'static str, Kind, &'static str, fn(&Board, &View) -> Vec<Sample>);

const KERNEL: &[KernelFamily] = &[
    (
        "flowlog_packets",
        Kind::Counter,
        "Packets seen at the hooks, each in one outcome: counted (in the flow table), elsewhere (counted at another \
         interface), rejected (no task wants the connection), unparsed, not_ip, alone (reported without the table), \
         lost (no room in table and ring).",
        |_, view| by_outcome(view, |amount| amount.packets),
    ),
    (
        "flowlog_bytes",
        Kind::Counter,
        "Layer-2 bytes without FCS of the packets seen at the hooks, by outcome.",
        |_, view| by_outcome(view, |amount| amount.bytes),
    ),
    (
        "flowlog_unparsed_packets",
        Kind::Counter,
        "Packets that are no IP or were not understood, by reason.",
        |_, view| by_reason(&view.books.capture.reasons),
    ),
    ("flowlog_connections", Kind::Counter, "Connections that entered the flow table.", |_, view| {
        one(float(view.books.capture.kernel.connections))
    }),
    ("flowlog_table_entries", Kind::Gauge, "Connections in the flow table now.", |_, view| {
        one(float(view.books.capture.table_entries))
    }),
    ("flowlog_table_entries_max", Kind::Gauge, "Connections the flow table holds at most.", |board, _| {
        one(f64::from(board.facts.table_entries_max))
    }),
    (
        "flowlog_table_full",
        Kind::Counter,
        "Packets that found the flow table full, and were reported alone or lost.",
        |_, view| one(float(view.books.capture.kernel.table_full)),
    ),
    ("flowlog_ring_records", Kind::Counter, "Reports sent through the ring buffer.", |_, view| {
        one(float(view.books.capture.kernel.ring_records))
    }),
    (
        "flowlog_ring_full",
        Kind::Counter,
        "Reports that found the ring buffer full; the counts stay in the table and are reported later.",
        |_, view| one(float(view.books.capture.kernel.ring_full)),
    ),
    ("flowlog_ring_bytes_max", Kind::Gauge, "Size of the ring buffer, bytes.", |board, _| {
        one(f64::from(board.facts.ring_bytes))
    }),
    (
        "flowlog_malformed_records",
        Kind::Counter,
        "Reports from the ring buffer that the daemon could not read.",
        |_, view| one(float(view.books.decode.malformed)),
    ),
    (
        "flowlog_drops",
        Kind::Counter,
        "Buffers that the kernel freed as dropped, by what became of them here; 0 while no task asks for them.",
        |_, view| {
            let outcomes = drops_by_outcome(&view.books.capture.drops);
            outcomes.map(|(name, n)| (vec![("outcome", name.to_owned())], float(n))).to_vec()
        },
    ),
    (
        "flowlog_dropped_packets",
        Kind::Counter,
        "Packets (segments on the wire) in what was added up of them.",
        |_, view| one(float(view.books.capture.drops.packets())),
    ),
    (
        "flowlog_drops_watched",
        Kind::Gauge,
        "1 while drops are watched, 0 while no task asks for them or they cannot be.",
        |_, view| one(f64::from(u8::from(matches!(view.books.capture.drops.hook, DropHook::Attached(_))))),
    ),
    ("flowlog_interfaces", Kind::Gauge, "Interfaces by role, and whether they are watched.", |_, view| {
        interfaces(&view.interfaces)
    }),
];

fn kernel(board: &Board, view: &View) -> Vec<Family> {
    KERNEL.iter().map(|&(name, kind, help, samples)| family(name, kind, help, samples(board, view))).collect()
}

fn by_outcome(view: &View, of: fn(&Amount) -> u64) -> Vec<Sample> {
    let packets = view.books.packets();
    [
        ("counted", packets.counted),
        ("elsewhere", packets.elsewhere),
        ("rejected", packets.rejected),
        ("unparsed", packets.unparsed),
        ("not_ip", packets.not_ip),
        ("alone", packets.alone),
        ("lost", packets.lost),
    ]
    .map(|(name, amount)| (vec![("outcome", name.to_owned())], float(of(&amount))))
    .to_vec()
}

/// All that an interface can show, also at 0: the first of a kind is an increase then.
fn by_reason(counted: &[(&str, u64)]) -> Vec<Sample> {
    let names = REASONS.iter().filter(|(reason, _)| *reason != Reason::LinkType).map(|(_, name)| *name);
    names
        .map(|name| {
            let n = counted.iter().find(|(counted, _)| *counted == name).map_or(0, |(_, n)| *n);
            (vec![("reason", name.to_owned())], float(n))
        })
        .collect()
}

fn interfaces(states: &[InterfaceState]) -> Vec<Sample> {
    let mut counted: BTreeMap<(&str, bool), f64> = BTreeMap::new();
    for state in states {
        *counted.entry((state.role.map_or("none", Role::name), state.hook.is_some())).or_default() += 1.0;
    }
    let labels =
        |role: &str, watched: bool| vec![("role", role.to_owned()), ("watched", watched.to_string())];
    counted.into_iter().map(|((role, watched), n)| (labels(role, watched), n)).collect()
}

fn daemon(board: &Board) -> Vec<Family> {
    let reloads = &board.reloads;
    let last = |ns: &Mutex<i64>| *ns.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let changes = [
        ("add", &reloads.added),
        ("update", &reloads.updated),
        ("remove", &reloads.removed),
        ("failure", &reloads.failed),
    ];
    let process = Process::read();
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    vec![
        family(
            "flowlog_task_changes",
            Kind::Counter,
            "Tasks that came, changed and went, and files or tasks that were refused (failure).",
            changes.map(|(op, n)| (vec![("op", op.to_owned())], float(n.get()))).to_vec(),
        ),
        family(
            "flowlog_config_last_applied_timestamp_seconds",
            Kind::Gauge,
            "When the task files were last read successfully, Unix time.",
            one(seconds(last(&reloads.last_applied_ns))),
        ),
        family(
            "flowlog_config_files",
            Kind::Gauge,
            "Task files in force, each with the first 16 digits of its SHA-256.",
            files(board),
        ),
        family(
            "flowlog_ledger_imbalance",
            Kind::Gauge,
            "Packets and records that stand in no counter or in two; always 0, anything else is a bug.",
            one(float(board.imbalance())),
        ),
        family("flowlog_build_info", Kind::Gauge, "1, with the version.", vec![(version, 1.0)]),
        family(
            "flowlog_start_time_seconds",
            Kind::Gauge,
            "When the daemon began, Unix time.",
            one(seconds(board.facts.started_ns)),
        ),
        family(
            "flowlog_process_cpu_seconds",
            Kind::Counter,
            "Processor time of the daemon.",
            one(process.cpu_seconds),
        ),
        family(
            "flowlog_process_resident_memory_bytes",
            Kind::Gauge,
            "Resident memory of the daemon; pages of the ring buffer count twice.",
            one(float(process.resident_bytes)),
        ),
        family(
            "flowlog_process_open_fds",
            Kind::Gauge,
            "Open file descriptors of the daemon.",
            one(float(process.open_fds)),
        ),
    ]
}

/// One series a file: how many nodes run which configuration is counted over its hash.
fn files(board: &Board) -> Vec<Sample> {
    let states = board.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut files = BTreeMap::new();
    for (_, state) in states.iter().filter(|(_, state)| state.removed_ns.is_none()) {
        let hash: String =
            state.hash.map(|hash| hash.to_string()).unwrap_or_default().chars().take(16).collect();
        files.insert(state.file.display().to_string(), hash);
    }
    files.into_iter().map(|(file, hash)| (vec![("file", file), ("hash", hash)], 1.0)).collect()
}

#[cfg(test)]
#[path = "families_tests.rs"]
mod tests;
