//! `flowlog status`: asks the running daemon.

use std::fmt::Write as _;
use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::Value;

use super::Format;
use super::client::{ServerArgs, at, text};
use super::session::block_on;
use super::summary::{bytes, count};

/// Arguments of `flowlog status`.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Prints the daemon's status: exit code 0 when it is healthy, 1 when not, or when there is none.
///
/// # Errors
/// No daemon answers.
pub(crate) fn status(arguments: &StatusArgs) -> anyhow::Result<ExitCode> {
    let text = block_on(arguments.server.ask("/status"))?;
    let status: Value = serde_json::from_str(&text).context("the daemon's answer is no JSON")?;
    let page = match arguments.output {
        Format::Json => text,
        Format::Text => page(&status),
    };
    writeln!(stdout().lock(), "{}", page.trim_end())?;
    Ok(if at(&status, "healthy") == true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn page(status: &Value) -> String {
    let mut page = String::new();
    let said = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "flowlog {} on {}, since {}: {}",
        said(at(status, "version")),
        said(at(status, "node")),
        said(at(status, "started")),
        if at(status, "healthy") == true { "healthy" } else { "NOT HEALTHY" }
    );
    for wrong in at(status, "wrong").as_array().into_iter().flatten() {
        let _ = writeln!(page, "  {}", said(wrong));
    }
    ledger(&mut page, status);
    drops(&mut page, at(status, "ledger/drops"));
    interfaces(&mut page, at(status, "interfaces"));
    tasks(&mut page, at(status, "tasks"));
    page
}

fn ledger(page: &mut String, status: &Value) {
    let ledger = at(status, "ledger");
    if ledger.is_null() {
        let _ = writeln!(page, "ledger: nothing captured yet");
        return;
    }
    let packets =
        |outcome: &str| at(ledger, &format!("packets/{outcome}/packets")).as_u64().unwrap_or_default();
    let _ = writeln!(
        page,
        "ledger: {}; {} packets seen, {} lost, {} connections, {} of {} in the table",
        if at(ledger, "closes") == true { "closes" } else { "DOES NOT CLOSE" },
        count(packets("seen")),
        count(packets("lost")),
        count(at(ledger, "connections").as_u64().unwrap_or_default()),
        count(at(status, "table/entries").as_u64().unwrap_or_default()),
        count(at(status, "table/entries_max").as_u64().unwrap_or_default()),
    );
}

/// Whether dropped packets are seen, and what became of those that were.
fn drops(page: &mut String, drops: &Value) {
    let why = at(drops, "why").as_str().map_or_else(String::new, |why| format!(": {why}"));
    let number = |path: &str| at(drops, path).as_u64().unwrap_or_default();
    let lost = ["table_full", "refused", "nested", "unreadable"];
    let lost = lost.iter().map(|place| number(&format!("outcomes/lost_{place}"))).sum();
    let state = match at(drops, "hook").as_str() {
        Some("watched") => "watched",
        Some("failed") => "NOT SEEN",
        Some(_) => "no task asks for them",
        None => return,
    };
    let _ = writeln!(
        page,
        "drops: {state}{why}; {} seen, {} recorded ({} packets), {} of no task, {} no IP, {} not understood, {} \
         delivered after all, {} lost",
        count(number("seen")),
        count(number("outcomes/added")),
        count(number("packets")),
        count(number("outcomes/rejected")),
        count(number("outcomes/not_ip")),
        count(number("outcomes/unparsed")),
        count(number("outcomes/no_drop")),
        count(lost),
    );
}

fn interfaces(page: &mut String, all: &Value) {
    let all: Vec<&Value> = all.as_array().into_iter().flatten().collect();
    let watched: Vec<String> = all
        .iter()
        .filter(|state| at(state, "hook").is_string())
        .map(|state| format!("{} ({}, {})", text(state, "name"), text(state, "role"), text(state, "hook")))
        .collect();
    let _ = writeln!(
        page,
        "interfaces: {} watched, {} not: {}",
        watched.len(),
        all.len() - watched.len(),
        if watched.is_empty() { "see `flowlog interfaces`".to_owned() } else { watched.join(", ") }
    );
}

fn tasks(page: &mut String, all: &Value) {
    let header = ["TASK", "STATE", "WRITTEN", "DROPPED", "DISK", "LIMIT", "A DAY", "END", "FILE"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(all.as_array().into_iter().flatten().map(row));
    let mut widths = [0; 9];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(page, "{}", cells.join("  ").trim_end());
    }
    for task in all.as_array().into_iter().flatten() {
        for line in [forms(task), held(task)].into_iter().flatten() {
            let _ = writeln!(page, "{line}");
        }
    }
}

/// From which form a task comes and when an old file may go, where there is anything to say about it.
fn forms(task: &Value) -> Option<String> {
    let all = at(task, "conditions").as_array()?;
    let current = all.iter().find(|condition| at(condition, "type") == "Current")?;
    let message = at(current, "message").as_str().filter(|message| !message.is_empty())?;
    Some(format!("task {} ({}): {message}", text(task, "task"), text(task, "form")))
}

/// Why a task that runs does so as it was accepted last.
fn held(task: &Value) -> Option<String> {
    if state(task) != "OLD VERSION" {
        return None;
    }
    let all = at(task, "conditions").as_array()?;
    let accepted = all.iter().find(|condition| at(condition, "type") == "Accepted")?;
    let why = text(accepted, "message").lines().next().unwrap_or_default();
    Some(format!("task {} runs as it was accepted last: {why}", text(task, "task")))
}

fn row(task: &Value) -> [String; 9] {
    let records = at(task, "records");
    let dropped = ["queue_full", "write_error"]
        .iter()
        .filter_map(|why| at(records, &format!("dropped/{why}")).as_u64())
        .sum::<u64>();
    let limited = at(records, "rate_limited").as_u64().unwrap_or_default();
    let size = |value: &Value| value.as_u64().map_or_else(|| "-".to_owned(), bytes);
    [
        text(task, "task").to_owned(),
        state(task).to_owned(),
        count(at(records, "written").as_u64().unwrap_or_default()),
        count(dropped + limited),
        size(at(task, "disk_used_bytes")),
        size(at(task, "disk_limit_bytes")),
        size(at(task, "disk_bytes_a_day")),
        text(task, "end").to_owned(),
        text(task, "path").to_owned(),
    ]
}

/// The first condition that says something, as a word.
pub(super) fn state(task: &Value) -> &str {
    let condition =
        |kind: &str| at(task, "conditions").as_array().into_iter().flatten().find(|c| at(c, "type") == kind);
    let is = |kind: &str, wanted: bool| condition(kind).is_some_and(|c| at(c, "status") == wanted);
    if is("Ended", true) {
        "ended"
    } else if is("Programmed", false) {
        condition("Programmed").map_or("-", |condition| match text(condition, "reason") {
            "BeforeStart" => "waiting",
            _ => "NOT RUNNING",
        })
    } else if is("Writing", false) {
        "NOT WRITING"
    } else if is("Accepted", false) {
        "OLD VERSION"
    } else {
        "running"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_in_the_state_that_matters_most() {
        let task = |conditions: &[(&str, bool, &str)]| {
            let list: Vec<_> = conditions
                .iter()
                .map(|(kind, status, reason)| serde_json::json!({"type": kind, "status": status, "reason": reason}))
                .collect();
            state(&serde_json::json!({ "conditions": list })).to_owned()
        };
        let well =
            [("Accepted", true, ""), ("Programmed", true, ""), ("Writing", true, ""), ("Ended", false, "")];
        assert_eq!(task(&well), "running");
        assert_eq!(task(&[("Accepted", true, ""), ("Programmed", false, "BeforeStart")]), "waiting");
        assert_eq!(task(&[("Programmed", false, "AfterEnd"), ("Ended", true, "")]), "ended");
        assert_eq!(task(&[("Programmed", true, ""), ("Writing", false, "Trouble")]), "NOT WRITING");
        assert_eq!(task(&[("Accepted", false, "FileRejected"), ("Programmed", true, "")]), "OLD VERSION");
    }
}
