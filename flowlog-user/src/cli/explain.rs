//! `flowlog explain`.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use flowlog_user::config::{self, Loaded, Sources};
use flowlog_user::enrich::label;
use flowlog_user::read::{BadLine, Counts, event, flows};
use flowlog_user::record::Foreign;
use flowlog_user::task::Plan;
use serde_json::{Value, json};

use super::{Format, tasks};

/// Arguments of `flowlog explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Task file, or folder of task files; may be given several times.
    #[arg(long = "tasks", value_name = "PATH", required = true, env = "FLOWLOG_TASKS")]
    tasks: Vec<PathBuf>,
    /// File or folder of address pools; may be given several times.
    #[arg(long = "pools", value_name = "PATH", env = "FLOWLOG_POOLS")]
    pools: Vec<PathBuf>,
    /// Refuse older forms, as for `flowlog run`.
    #[arg(long, env = "FLOWLOG_NO_CONVERT")]
    no_convert: bool,
    /// Folder below which the daemon may write, as for `flowlog run`: tasks write there whose form does not say where.
    #[arg(long, value_name = "DIR", value_parser = super::absolute(), default_value = super::run::LOG_ROOT, env = "FLOWLOG_LOG_ROOT")]
    log_root: Vec<PathBuf>,
    /// A flow as Hubble prints it (`hubble observe -o json`, a line of a log); `-` reads lines from stdin.
    #[arg(long, value_name = "JSON", required_unless_present_any = ["kernel", "normal"])]
    flow: Option<String>,
    /// Say instead which clauses of each task the kernel tests and which are left to userspace.
    #[arg(long, conflicts_with = "flow")]
    kernel: bool,
    /// Print instead each task's normal form, a task file that means the same: proper names, defaults written out.
    #[arg(long, conflicts_with_all = ["flow", "kernel"])]
    normal: bool,
    /// Output format; JSON is a line for each flow.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Says which tasks take a flow, and which clause decided.
///
/// # Errors
/// When tasks are not valid, a flow is none, or stdout cannot be written.
pub(crate) fn explain(arguments: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let (tasks, pools) = (arguments.tasks.clone(), arguments.pools.clone());
    let (refuse_older, log_root) = (arguments.no_convert, arguments.log_root.first().cloned());
    let Loaded { plan, pools, .. } =
        tasks::load_for_recorded(&Sources { tasks, pools, refuse_older, log_root, roots: None })?;
    let pools = &pools.pools;
    let mut out = stdout().lock();
    if arguments.normal {
        let forms: Vec<config::Normal> = plan.tasks.iter().map(|task| config::normal(&task.spec)).collect();
        match arguments.output {
            Format::Text => write!(out, "{}", config::yaml(&forms))?,
            Format::Json => {
                let forms = forms
                    .into_iter()
                    .map(|form| form.into_iter().map(|(key, value)| (key.to_owned(), value)));
                let forms: Vec<Value> = forms.map(|form| Value::Object(form.collect())).collect();
                writeln!(out, "{}", json!({ "flowLogs": forms }))?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(flow) = arguments.flow.as_deref() else {
        divide(&plan, arguments.output, &mut out)?;
        return Ok(ExitCode::SUCCESS);
    };
    if flow != "-" {
        let mut flow = event(flow.as_bytes()).context("--flow is no flow as Hubble prints it")?;
        label(&mut flow, pools);
        answer(&plan, &flow, arguments.output, &mut out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut counts = Counts::default();
    let mut written = Ok(());
    let sink = |mut flow: Foreign| {
        label(&mut flow, pools);
        if written.is_ok() {
            written = answer(&plan, &flow, arguments.output, &mut out);
        }
    };
    let mut bad = 0;
    flows(Path::new("-"), &mut counts, sink, |line: &BadLine| {
        bad += 1;
        tracing::error!("{line}");
    })?;
    written?;
    if bad > 0 {
        bail!("{bad} of {} lines were no flows", counts.lines);
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(plan: &Plan, flow: &Foreign, output: Format, out: &mut impl Write) -> std::io::Result<()> {
    let decisions = plan.tasks.iter().map(|task| (&task.spec.name, task.filter.decide(flow)));
    match output {
        Format::Text => {
            for (name, decision) in decisions {
                let verb = if decision.takes() { "takes" } else { "leaves" };
                writeln!(out, "task {name} {verb} it: {decision}")?;
            }
            Ok(())
        }
        Format::Json => {
            let decisions: Vec<_> = decisions.collect();
            let takes = decisions.iter().filter(|(_, decision)| decision.takes()).map(|(name, _)| name);
            let clauses: serde_json::Map<String, Value> = decisions
                .iter()
                .map(|(name, decision)| ((*name).clone(), decision.to_string().into()))
                .collect();
            writeln!(out, "{}", json!({ "tasks": takes.collect::<Vec<_>>(), "clauses": clauses }))
        }
    }
}

/// Which clauses the kernel tests.
fn divide(plan: &Plan, output: Format, out: &mut impl Write) -> std::io::Result<()> {
    let list = |clauses: &[String]| if clauses.is_empty() { "nothing".into() } else { clauses.join(", ") };
    for task in &plan.tasks {
        let (name, division) = (&task.spec.name, task.spec.filter.divide());
        match output {
            Format::Text => writeln!(
                out,
                "task {name}: the kernel tests {}; left to userspace: {}",
                list(&division.kernel),
                list(&division.userspace)
            )?,
            Format::Json => writeln!(
                out,
                "{}",
                json!({ "task": name, "kernel": division.kernel, "userspace": division.userspace })
            )?,
        }
    }
    Ok(())
}
