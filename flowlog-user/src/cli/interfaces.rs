//! `flowlog interfaces`.

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::Args;
use flowlog_user::capture::live::{self, InterfaceState};
use flowlog_user::record::Role;

use super::Format;

/// Arguments of `flowlog interfaces`.
#[derive(Args, Debug)]
pub(crate) struct InterfacesArgs {
    /// As for `flowlog run`: interfaces to watch.
    #[arg(long, value_name = "GLOB")]
    interface: Vec<String>,
    /// As for `flowlog run`: interfaces to leave out.
    #[arg(long, value_name = "GLOB")]
    exclude_interface: Vec<String>,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Lists what would be watched, and what not and why.
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
    let mut out = stdout().lock();
    if arguments.output == Format::Json {
        let list: Vec<_> = states
            .iter()
            .map(|InterfaceState { ifindex, name, role, reason, .. }| {
                serde_json::json!({ "index": ifindex, "name": name, "role": role.map(Role::name), "left_out": reason })
            })
            .collect();
        writeln!(out, "{}", serde_json::Value::from(list))?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{:>5}  {:<16} WATCHED AS", "INDEX", "NAME")?;
    for InterfaceState { ifindex, name, role, reason, .. } in &states {
        let said = match (role, reason) {
            (_, Some(why)) => format!("not watched: {why}"),
            (Some(role), None) => role.name().to_owned(),
            (None, None) => "not watched".to_owned(),
        };
        writeln!(out, "{ifindex:>5}  {name:<16} {said}")?;
    }
    writeln!(
        out,
        "Not to be seen from here: loopback traffic inside other network namespaces, and SR-IOV, macvlan and ipvlan \
         traffic that bypasses these interfaces."
    )?;
    Ok(ExitCode::SUCCESS)
}
