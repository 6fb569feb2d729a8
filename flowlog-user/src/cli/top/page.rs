//! The rows that both views show, and the plain page.

use super::state::{Pair, Snapshot, State, Task};
use crate::cli::summary::{bytes, count};

/// Pairs of a plain page.
const PAIRS: usize = 10;

pub(super) const TASK_HEADS: [&str; 7] =
    ["TASK", "STATE", "RECORDS/S", "BYTES/S", "WRITTEN", "DROPPED", "DISK"];
pub(super) const PAIR_HEADS: [&str; 3] = ["BYTES/S", "PACKETS/S", "BUSIEST PAIRS"];

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate, of which a few digits are shown"
)]
fn rate(rate: f64) -> String {
    bytes(rate as u64)
}

pub(super) fn task_cells(task: &Task) -> [String; 7] {
    [
        task.name.clone(),
        task.state.clone(),
        format!("{:.1}", task.records_a_second),
        rate(task.bytes_a_second),
        count(task.written),
        count(task.dropped),
        task.disk_bytes.map_or_else(|| "-".into(), bytes),
    ]
}

pub(super) fn pair_cells(pair: &Pair) -> [String; 3] {
    [rate(pair.bytes_a_second), format!("{:.0}", pair.packets_a_second), pair.ends.clone()]
}

/// The daemon in two lines.
pub(super) fn heads(now: &Snapshot) -> [String; 2] {
    let health = if now.is_healthy { "healthy" } else { "NOT HEALTHY" };
    [
        format!("{}: {health}", now.title),
        format!(
            "{:.0} packets/s, {}/s, {} lost; the ledger {}; {} of {} connections open",
            now.packets_a_second,
            rate(now.bytes_a_second),
            count(now.lost_packets),
            if now.closes { "closes" } else { "DOES NOT CLOSE" },
            count(now.table.0),
            count(now.table.1),
        ),
    ]
}

/// A page of text.
pub(super) fn page(state: &State) -> String {
    let Some(now) = state.now() else { return String::new() };
    let mut lines: Vec<String> = heads(now).into();
    lines.extend(now.wrong.iter().map(|wrong| format!("  {wrong}")));
    lines.extend(table(TASK_HEADS, now.tasks.iter().map(task_cells)));
    lines.extend(table(PAIR_HEADS, now.pairs.iter().take(PAIRS).map(pair_cells)));
    if !now.about_pairs.is_empty() {
        lines.push(format!("({})", now.about_pairs));
    }
    lines.join("\n") + "\n\n"
}

fn table<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = [String; N]>) -> Vec<String> {
    let rows: Vec<[String; N]> = std::iter::once(heads.map(str::to_owned)).chain(rows).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; N]| {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
