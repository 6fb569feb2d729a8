//! `flowlog check`.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use flowlog_user::config::{Defined, Sources};

use super::Format;
use super::summary::bytes;
use super::tasks::{describe, describe_pool, disk_bytes_max, load, pool_to_json, problems, to_json};

/// Arguments of `flowlog check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Task files or folders.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// File or folder of address pools, as for `flowlog run`; may be given several times.
    #[arg(long = "pools", value_name = "PATH", env = "FLOWLOG_POOLS")]
    pools: Vec<PathBuf>,
    /// Folder below which the daemon may write, as for `flowlog run`; may be given several times.
    #[arg(long, value_name = "DIR", value_parser = super::absolute(), default_value = super::run::LOG_ROOT, env = "FLOWLOG_LOG_ROOT")]
    log_root: Vec<PathBuf>,
    /// Refuse older forms, as for `flowlog run`.
    #[arg(long, env = "FLOWLOG_NO_CONVERT")]
    no_convert: bool,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Says everything that is wrong with task files, and what the tasks would write.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn check(arguments: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (tasks, pools) = (arguments.paths.clone(), arguments.pools.clone());
    let (refuse_older, log_root) = (arguments.no_convert, arguments.log_root.first().cloned());
    let sources = Sources { tasks, pools, refuse_older, log_root, roots: None };
    let (loaded, mut found, readable) = load(&sources);
    let plan = loaded.as_ref().map(|loaded| &loaded.plan);
    let pools: Vec<&Defined> =
        loaded.iter().flat_map(|loaded| loaded.pools.defined.values()).map(|(_, defined)| defined).collect();
    for task in plan.iter().flat_map(|plan| &plan.tasks) {
        let (path, roots) = (&task.spec.file.path, &arguments.log_root);
        if !task.spec.file.is_stdout() && !roots.iter().any(|root| path.starts_with(root)) {
            let message = format!(
                "`flowlog run` writes only below {}; choose another filePath, or give --log-root there and here",
                roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ")
            );
            found.warning(&task.spec.path_place, message);
        }
    }
    let valid = found.errors.is_empty() && (!arguments.strict || found.warnings.is_empty());
    let mut out = stdout().lock();
    match arguments.output {
        Format::Json => {
            let list = |problems: &[flowlog_user::tree::Problem]| -> Vec<serde_json::Value> {
                problems
                    .iter()
                    .map(|problem| {
                        serde_json::json!({ "file": &*problem.place.file, "line": problem.place.line,
                            "column": problem.place.column, "key": problem.place.path, "message": problem.message })
                    })
                    .collect()
            };
            let origin = |name: &str| loaded.as_ref().and_then(|loaded| loaded.origins.get(name));
            let tasks = plan.iter().flat_map(|plan| &plan.tasks);
            let tasks: Vec<_> = tasks.map(|task| to_json(task, origin(&task.spec.name))).collect();
            let pools: Vec<_> = pools.iter().map(|pool| pool_to_json(pool)).collect();
            let answer = serde_json::json!({ "valid": valid, "tasks": tasks, "pools": pools,
                "total_bytes_max": plan.and_then(disk_bytes_max),
                "errors": list(&found.errors), "warnings": list(&found.warnings) });
            writeln!(out, "{answer}")?;
        }
        Format::Text => {
            for line in problems(&found) {
                writeln!(out, "{line}")?;
            }
            for task in plan.iter().flat_map(|plan| &plan.tasks) {
                writeln!(out, "{}", describe(task))?;
                let origin = loaded.as_ref().and_then(|loaded| loaded.origins.get(&task.spec.name));
                if let Some(origin) = origin.filter(|origin| !origin.message.is_empty()) {
                    writeln!(out, "  {}: {}", origin.form, origin.message)?;
                }
            }
            for pool in &pools {
                writeln!(out, "{}", describe_pool(pool))?;
            }
            if let Some(plan) = plan.filter(|plan| plan.tasks.len() > 1)
                && let Some(total) = disk_bytes_max(plan)
            {
                writeln!(out, "together: at most {} on disk", bytes(total))?;
            }
        }
    }
    Ok(match (readable, valid) {
        (false, _) => ExitCode::from(2),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::FAILURE,
    })
}
