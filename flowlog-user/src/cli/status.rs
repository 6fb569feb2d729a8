//! `flowlog status`: asks the running daemon.

use std::fmt::Write as _;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

use super::Format;
use super::summary::{bytes, count};

/// How long the daemon may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Arguments of `flowlog status`.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The daemon's socket.
    #[arg(long, value_name = "unix://PATH", default_value = "unix:///run/flowlog/flowlog.sock", env = "FLOWLOG_SERVER", value_parser = socket_path)]
    server: PathBuf,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// A unix socket as a path or with `unix://` before it.
pub(crate) fn socket_path(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    if path.contains("://") {
        return Err("only unix sockets are served; write unix:///run/flowlog/flowlog.sock".into());
    }
    if !path.starts_with('/') {
        return Err(format!("`{text}` is no absolute path; write e.g. unix:///run/flowlog/flowlog.sock"));
    }
    Ok(path.into())
}

/// Prints the daemon's status: exit code 0 when it is healthy, 1 when not, or when there is none.
///
/// # Errors
/// No daemon answers.
pub(crate) fn status(arguments: &StatusArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let text = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, ask(arguments)).await.context("the daemon does not answer")?
    })?;
    let status: Value = serde_json::from_str(&text).context("the daemon's answer is no JSON")?;
    let page = match arguments.output {
        Format::Json => text,
        Format::Text => page(&status),
    };
    writeln!(stdout().lock(), "{}", page.trim_end())?;
    Ok(if at(&status, "healthy") == true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(arguments: &StatusArgs) -> anyhow::Result<String> {
    let path = &arguments.server;
    let stream = UnixStream::connect(path).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => anyhow::anyhow!(
            "no flowlog answers on {}; start `flowlog run`, or name with --server the --socket that it was given",
            path.display()
        ),
        std::io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("{} may not be opened by this user; try with sudo", path.display())
        }
        _ => anyhow::Error::from(error).context(format!("cannot connect to {}", path.display())),
    })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get("/status").header("host", "flowlog").body(Empty::<Bytes>::new())?;
    let answer = sender.send_request(request).await?;
    let code = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(code.is_success(), "the daemon answered {code}: {}", String::from_utf8_lossy(&body).trim());
    match String::from_utf8(body.into()) {
        Ok(text) => Ok(text),
        Err(_) => bail!("the daemon's answer is no text"),
    }
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

/// A value by its path; null where there is none.
fn at<'a>(of: &'a Value, path: &str) -> &'a Value {
    of.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    at(of, key).as_str().unwrap_or("-")
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
fn state(task: &Value) -> &str {
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
    fn a_server_is_a_unix_socket() {
        assert_eq!(socket_path("unix:///run/a.sock"), Ok("/run/a.sock".into()));
        assert_eq!(socket_path("/run/a.sock"), Ok("/run/a.sock".into()));
        assert!(socket_path("tcp://127.0.0.1:1").is_err() && socket_path("a.sock").is_err());
    }

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
