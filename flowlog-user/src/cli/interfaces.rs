//! `flowlog interfaces`.

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::Args;
use flowlog_user::capture::live::{self, InterfaceState};
use flowlog_user::record::Role;
use serde_json::{Value, json};

use super::Format;
use super::client::{ServerArgs, at};
use super::session::block_on;
use super::summary::{bytes, count};

/// Arguments of `flowlog interfaces`.
#[derive(Args, Debug)]
pub(crate) struct InterfacesArgs {
    /// As for `flowlog run`: interfaces to watch.
    #[arg(long, value_name = "GLOB")]
    interface: Vec<String>,
    /// As for `flowlog run`: interfaces to leave out.
    #[arg(long, value_name = "GLOB")]
    exclude_interface: Vec<String>,
    #[command(flatten)]
    server: ServerArgs,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// What cannot be seen, wherever one looks.
const UNSEEN: &str = "Not to be seen from here: loopback traffic inside other network namespaces, and SR-IOV, macvlan and \
                      ipvlan traffic that bypasses these interfaces.";

/// Lists what would be watched, and what not and why; where a daemon runs, also how it is attached and what it has seen.
///
/// # Errors
/// When the kernel does not answer, a glob is no glob, or stdout cannot be written.
pub(crate) fn interfaces(arguments: &InterfacesArgs) -> anyhow::Result<ExitCode> {
    let options = live::Options {
        interfaces: arguments.interface.clone(),
        exclude: arguments.exclude_interface.clone(),
        ..live::Options::default()
    };
    let states = live::interfaces(&options)?;
    let daemon = daemon(arguments);
    let mut out = stdout().lock();
    if arguments.output == Format::Json {
        let list: Vec<Value> =
            states.iter().map(|state| to_json(state, seen(daemon.as_ref(), state))).collect();
        writeln!(out, "{}", Value::from(list))?;
        return Ok(ExitCode::SUCCESS);
    }
    let heads = ["INDEX", "NAME", "ROLE", "DAEMON", "PACKETS", "BYTES"];
    let [index, name, role, hook, packets, sum] = heads;
    writeln!(out, "{index:>5}  {name:<16} {role:<9} {hook:<7} {packets:>13} {sum:>10}")?;
    for state in &states {
        let InterfaceState { ifindex, name, role, reason, .. } = state;
        let at_daemon = seen(daemon.as_ref(), state);
        let hook = at(at_daemon, "hook").as_str().unwrap_or("-");
        let number = |key: &str, text: fn(u64) -> String| {
            at(at_daemon, key).as_u64().map_or_else(|| "-".to_owned(), text)
        };
        let (packets, sum) = (number("seen/packets", count), number("seen/bytes", bytes));
        let role = role.map_or("-", Role::name);
        let why = reason.as_ref().map(|why| format!("  not watched: {why}")).unwrap_or_default();
        let blind = at(at_daemon, "blind").as_str().map(|why| format!("  {why}")).unwrap_or_default();
        writeln!(out, "{ifindex:>5}  {name:<16} {role:<9} {hook:<7} {packets:>13} {sum:>10}{why}{blind}")?;
    }
    if daemon.is_none() {
        writeln!(out, "No daemon answers, so this is what one would watch.")?;
    }
    writeln!(out, "{UNSEEN}")?;
    Ok(ExitCode::SUCCESS)
}

/// What the running daemon says of its interfaces, where one answers.
fn daemon(arguments: &InterfacesArgs) -> Option<Value> {
    let text =
        block_on(arguments.server.ask("/status")).inspect_err(|error| tracing::debug!("{error:#}")).ok()?;
    let status: Value = serde_json::from_str(&text).ok()?;
    Some(at(&status, "interfaces").clone())
}

/// What it says of this one: another network namespace's has another name or index.
fn seen<'a>(daemon: Option<&'a Value>, state: &InterfaceState) -> &'a Value {
    let mut all = daemon.and_then(Value::as_array).into_iter().flatten();
    let same = |of: &&Value| at(of, "name") == state.name.as_str() && at(of, "index") == state.ifindex;
    all.find(same).unwrap_or(&Value::Null)
}

fn to_json(state: &InterfaceState, at_daemon: &Value) -> Value {
    json!({
        "index": state.ifindex,
        "name": state.name,
        "role": state.role.map(Role::name),
        "left_out": state.reason,
        "hook": at(at_daemon, "hook"),
        "blind": at(at_daemon, "blind"),
        "packets": at(at_daemon, "seen/packets"),
        "bytes": at(at_daemon, "seen/bytes"),
    })
}
