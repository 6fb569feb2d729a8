//! The status: is the daemon well, what does each task do, does the ledger close. As JSON; `flowlog status` makes a
//! page for people of it.

use std::sync::PoisonError;

use flowlog_abi::Counters;
use serde_json::{Value, json};

use super::board::{Board, STALE, View};
use super::disk::Folders;
use super::ledger::{Sum, drops_json};
use super::tasks::TaskState;
use crate::capture::live::{DropHook, HookKind};
use crate::clock::{rfc3339, wall_ns};
use crate::record::Role;
use crate::task::Spec;

/// Version of the status' own form; keys are only added within one.
const FORM: u32 = 1;
/// What is wrong in the files is named up to here.
const REFUSED_MAX: usize = 20;
const DAY_NS: i64 = 86_400_000_000_000;

/// Why the daemon is not alive: nothing, one hopes.
#[must_use]
pub fn unhealthy(board: &Board) -> Vec<String> {
    match board.view() {
        Some(view) if view.taken.elapsed() > STALE => {
            vec![format!("the capture has said nothing for {} s", view.taken.elapsed().as_secs())]
        }
        _ => Vec::new(),
    }
}

/// Why the daemon is not ready: it is attached and able to write, or this says what is missing. A task file that is
/// refused is no reason: what was accepted before goes on.
#[must_use]
pub fn unready(board: &Board) -> Vec<String> {
    let mut wrong = unhealthy(board);
    match board.view() {
        None => wrong.push("the capture has not begun".to_owned()),
        Some(view) if view.interfaces.iter().all(|state| state.hook.is_none()) => {
            wrong.push("no interface is watched".to_owned());
        }
        Some(_) => {}
    }
    let states = board.tasks.lock().unwrap_or_else(PoisonError::into_inner);
    let troubled = states
        .iter()
        .filter_map(|(name, state)| Some(format!("task {name} cannot write: {}", state.trouble()?)));
    wrong.extend(troubled);
    wrong
}

/// What keeps the exit code of `flowlog status` from 0: what makes the node unready, task files in a bad state, and a
/// ledger that does not close.
fn wrong(board: &Board) -> Vec<String> {
    let mut wrong = unready(board);
    if let Some(view) = board.view()
        && let DropHook::Failed(why) = &view.books.capture.drops.hook
    {
        wrong.push(format!("dropped packets are not seen: {why}"));
    }
    let imbalance = board.imbalance();
    if imbalance > 0 {
        wrong.push(format!(
            "the ledger does not close: {imbalance} packets or records are in no counter or in two"
        ));
    }
    let refused = board.refused.lock().unwrap_or_else(PoisonError::into_inner);
    wrong.extend(refused.iter().take(REFUSED_MAX).cloned());
    if refused.len() > REFUSED_MAX {
        wrong.push(format!("and {} more; `flowlog check` names all", refused.len() - REFUSED_MAX));
    }
    let states = board.tasks.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, state) in states.iter().filter(|(_, state)| state.removed_ns.is_none()) {
        wrong.extend(state.refusal().map(|why| format!("task {name}: {why}")));
    }
    wrong
}

/// Everything, as JSON.
#[must_use]
pub fn json(board: &Board) -> Value {
    let wrong = wrong(board);
    let now_ns = wall_ns();
    let facts = &board.facts;
    let view = board.view();
    let interfaces: Vec<Value> = view.iter().flat_map(|view| interfaces(view)).collect();
    let tasks: Vec<Value> = {
        let mut states = board.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        states.note_trouble(now_ns);
        let known = states.iter().filter(|(_, state)| state.removed_ns.is_none());
        let mut folders = Folders::default();
        known.map(|(name, state)| task(name, state, facts.started_ns, now_ns, &mut folders)).collect()
    };
    json!({
        "form": FORM,
        "version": env!("CARGO_PKG_VERSION"),
        "node": facts.node,
        "started": rfc3339(facts.started_ns),
        "healthy": wrong.is_empty(),
        "wrong": wrong,
        "ledger": ledger(board),
        "table": { "entries": view.as_ref().map(|view| view.books.capture.table_entries),
            "entries_max": facts.table_entries_max },
        "interfaces": interfaces,
        "tasks": tasks,
    })
}

/// Every interface; of those that are watched, what their hooks have seen.
fn interfaces(view: &View) -> impl Iterator<Item = Value> {
    view.interfaces.iter().map(|state| {
        let hooks = view.books.capture.hooks.iter().filter(|(name, ..)| *name == state.name);
        let seen = |of: fn(&Counters) -> u64| {
            let sum = hooks.clone().map(|(.., counters)| of(counters)).sum::<u64>();
            state.hook.map(|_| sum)
        };
        json!({ "name": state.name, "index": state.ifindex, "role": state.role.map(Role::name),
            "hook": state.hook.map(HookKind::name), "reason": state.reason, "blind": state.blind,
            "seen": { "packets": seen(|of| of.seen_packets), "bytes": seen(|of| of.seen_bytes) } })
    })
}

/// Packets as of the last view, and what is between the stages.
fn ledger(board: &Board) -> Value {
    let Some(view) = board.view() else { return Value::Null };
    let sums = view.books.sums();
    let in_flight: Vec<Value> = sums
        .iter()
        .filter(|sum| !sum.closes())
        .map(|Sum { name, left, right }| json!({ "sum": name, "whole": left, "parts": right }))
        .collect();
    json!({
        "closes": board.imbalance() == 0,
        "imbalance": board.imbalance(),
        "connections": view.books.capture.kernel.connections,
        "packets": view.books.packets(),
        "drops": drops_json(&view.books.capture.drops),
        "in_flight": in_flight,
    })
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a daily rate, to be read by people"
)]
fn task(name: &str, state: &TaskState, started_ns: i64, now_ns: i64, folders: &mut Folders) -> Value {
    let mut answer = state.to_json(name);
    let Some(map) = answer.as_object_mut() else { return answer };
    let spec = &state.spec;
    let running_ns = (now_ns - since_ns(spec, started_ns)).max(1);
    let mut more = json!({
        "active": state.is_active(),
        "description": spec.description,
        "team": spec.team,
        "start": spec.start.map(|at| at.to_string()),
        "end": spec.end.map(|at| at.to_string()),
        "disk_used_bytes": folders.used_bytes(spec),
        "disk_limit_bytes": Some(spec.file.total_bytes_max).filter(|max| *max != u64::MAX && !spec.file.is_stdout()),
    });
    if let (Some(more), Some(counters)) = (more.as_object_mut(), &state.counters) {
        let disk = counters.disk_bytes.get();
        more.insert(
            "disk_bytes_a_day".into(),
            ((disk as f64 * (DAY_NS as f64 / running_ns as f64)) as u64).into(),
        );
        more.insert("records".into(), super::ledger::task_json(name, counters));
    }
    if let Value::Object(more) = more {
        map.extend(more);
    }
    answer
}

/// Since when it has been counted: its start, or the daemon's.
fn since_ns(spec: &Spec, started_ns: i64) -> i64 {
    let start = spec.start.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
    start.map_or(started_ns, |start| start.max(started_ns))
}
