//! `flowlog estimate`: runs tasks without writing, to say what they would cost.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use flowlog_user::capture::live;
use flowlog_user::enrich::Enricher;
use flowlog_user::metrics::{Counter, TaskCounters};
use flowlog_user::pipeline::Pipeline;
use flowlog_user::server::ledger::{Books, Sum};
use flowlog_user::task::{Overflow, Planned, Running, rules};
use flowlog_user::write::{Nothing, Roots, Sink};
use jiff::SignedDuration;
use rustix::time::{ClockId, clock_gettime};

use super::attach::AttachArgs;
use super::data_plane::Done;
use super::live_line::LiveLine;
use super::session::{Ends, Session, block_on};
use super::{Format, NodeArgs, full_name, tasks};

mod report;

use report::{Cost, Report};

/// Between two looks at what passes.
const LOOK: Duration = Duration::from_millis(250);

/// Arguments of `flowlog estimate`.
#[derive(Args, Debug)]
#[command(after_help = "\
The longer it runs, and the more usual the traffic, the better: --for 10m at a busy hour. Connections that are open when
it begins look as if they began then; what is still open at its end does not count. Each task is taken to run always,
whatever its `start` and `end`.")]
pub(crate) struct EstimateArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// Interfaces to watch, instead of endpoints and uplinks by role; may be given several times.
    #[arg(long, value_name = "GLOB", env = "FLOWLOG_INTERFACE")]
    interface: Vec<String>,
    /// Interfaces to leave out; may be given several times.
    #[arg(long, value_name = "GLOB", env = "FLOWLOG_EXCLUDE_INTERFACE")]
    exclude_interface: Vec<String>,
    /// How long to run.
    #[arg(long = "for", value_name = "DURATION", default_value = "60s", value_parser = super::duration)]
    time: SignedDuration,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    attach: AttachArgs,
}

/// What is known of a task while it runs.
struct Known {
    planned: Planned,
    counters: Arc<TaskCounters>,
    cpu_ns: Arc<Counter>,
}

/// Runs the tasks and prints what each of them would cost.
///
/// # Errors
/// When tasks are not valid, or they cannot be run here.
pub(crate) fn estimate(arguments: &EstimateArgs) -> anyhow::Result<ExitCode> {
    block_on(run(arguments))
}

async fn run(arguments: &EstimateArgs) -> anyhow::Result<ExitCode> {
    let mut ends = Ends::new()?;
    let (tasks, session) = start(arguments)?;
    // Without what loading takes, once.
    let before = process_cpu();
    tracing::info!(
        tasks = tasks.len(),
        seconds = arguments.time.as_secs(),
        "running without writing; Ctrl-C ends it early"
    );
    ends.after(Some(arguments.time));
    let mut line = LiveLine::new();
    while !ends.come_within(LOOK).await && !session.has_failed() {
        line.show(session.control.seen());
    }
    line.clear();
    // What comes after this is about connections that the end cuts off.
    let so_far: Vec<(u64, Duration)> = tasks
        .iter()
        .map(|task| (task.counters.written.get(), Duration::from_nanos(task.cpu_ns.get())))
        .collect();
    let (took, cpu) = (session.began.elapsed(), process_cpu().saturating_sub(before));
    let done = session.stop("the estimate").await?;
    let costs: Vec<Cost> = tasks
        .iter()
        .zip(so_far)
        .map(|(task, so_far)| Cost::of(&task.planned.spec, &task.counters, so_far, took))
        .collect();
    print(arguments.output, &tasks, costs, (took, cpu), done)
}

/// Runs the tasks, whatever their `start` and `end`, with their records going nowhere.
fn start(arguments: &EstimateArgs) -> anyhow::Result<(Vec<Known>, Session)> {
    let loaded = tasks::load_or_fail(&arguments.node.sources())?;
    let known = |mut planned: Planned| {
        (planned.spec.start, planned.spec.end) = (None, None);
        Known { planned, counters: Arc::default(), cpu_ns: Arc::default() }
    };
    let tasks: Vec<Known> = loaded.plan.tasks.into_iter().map(known).collect();
    let (names, capture) = (arguments.node.names(), &arguments.node.capture);
    let node = full_name(&names)?;
    let options = live::Options {
        interfaces: arguments.interface.clone(),
        exclude: arguments.exclude_interface.clone(),
        ..arguments.attach.options(capture, rules(tasks.iter().map(|task| &task.planned.spec)))
    };
    let cadences: Vec<_> = loaded.plan.cadences.iter().copied().map(Some).collect();
    let cadences = tasks::cadences(&cadences, capture.timeouts().active_ns);
    let session = Session::start(options, names, cadences, &loaded.pools.pools, || {
        let roots = Arc::new(Roots::new(&[])?.with_node(&node));
        let running = tasks.iter().map(|task| {
            let spec = &task.planned.spec.file;
            let sink = Sink::Nothing(Box::new(Nothing::new(spec, Arc::clone(&task.cpu_ns))));
            let running = Running::onto(sink, spec, &roots, Arc::clone(&task.counters));
            (task.planned.clone(), running)
        });
        let enricher = Enricher::new(capture.cluster_cidr.clone());
        Ok(Pipeline::of(running.collect(), &roots, enricher, Overflow::Drop))
    })?;
    Ok((tasks, session))
}

fn print(
    output: Format,
    tasks: &[Known],
    costs: Vec<Cost>,
    (took, cpu): (Duration, Duration),
    done: Done,
) -> anyhow::Result<ExitCode> {
    let Done { capture, decode, error, .. } = done;
    let counters =
        tasks.iter().map(|task| (task.planned.spec.name.as_str().into(), Arc::clone(&task.counters)));
    let books = Books { capture, decode, recorded: None, tasks: counters.collect() };
    let closes = books.sums().iter().all(Sum::closes);
    let report = Report { took, cpu, costs, lost: books.packets().lost.packets, closes };
    match output {
        Format::Json => writeln!(stdout(), "{}", report.to_json())?,
        Format::Text => write!(stdout(), "{}", report.to_text())?,
    }
    match error {
        Some(error) => Err(error.context("stopped early")),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// CPU time of this process, all threads.
fn process_cpu() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}
