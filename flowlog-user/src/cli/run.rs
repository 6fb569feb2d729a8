//! `flowlog run`: the daemon.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use flowlog_user::capture::live::{self, Live};
use flowlog_user::clock::wall_ns;
use flowlog_user::config::Sources;
use flowlog_user::enrich::Enricher;
use flowlog_user::pipeline::Pipeline;
use flowlog_user::record::rules::Rules;
use flowlog_user::server::board::{Board, Facts};
use flowlog_user::server::ledger::Books;
use flowlog_user::task::Overflow;
use flowlog_user::write::{Error, Lock, Roots, StateDir, namespace_lock};
use jiff::SignedDuration;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::attach::AttachArgs;
use super::data_plane::{Control, DataPlane, Done};
use super::live_line::LiveLine;
use super::privileged::Privileged;
use super::reload::Reload;
use super::serve::ServeArgs;
use super::session::block_on;
use super::triggers::Triggers;
use super::{Format, NodeArgs, absence, confine, logging, memory, summary, systemd, tasks};

/// How long a stop may take before another signal cuts it short.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the daemon may write unless told otherwise.
pub(crate) const LOG_ROOT: &str = "/var/log/flowlog";

/// Where it keeps what must outlive it, unless told otherwise.
const STATE_DIR: &str = "/var/lib/flowlog";

/// Arguments of `flowlog run`.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(super) node: NodeArgs,
    /// Interfaces to watch, instead of endpoints and uplinks by role; may be given several times.
    #[arg(long, value_name = "GLOB", env = "FLOWLOG_INTERFACE")]
    interface: Vec<String>,
    /// Interfaces to leave out; may be given several times.
    #[arg(long, value_name = "GLOB", env = "FLOWLOG_EXCLUDE_INTERFACE")]
    exclude_interface: Vec<String>,
    /// Folder below which tasks may write; may be given several times.
    #[arg(long, value_name = "DIR", value_parser = super::absolute(), default_value = LOG_ROOT, env = "FLOWLOG_LOG_ROOT")]
    log_root: Vec<PathBuf>,
    /// Folder for what must outlive the daemon: the last accepted tasks and audit.log [default: /var/lib/flowlog].
    #[arg(long, value_name = "DIR", env = "FLOWLOG_STATE_DIR")]
    state_dir: Option<PathBuf>,
    /// Stop by itself after this time, e.g. 30s or 2h.
    #[arg(long = "for", value_name = "DURATION", value_parser = super::duration)]
    time: Option<SignedDuration>,
    /// Show a line of what is seen, several times a second on a terminal.
    #[arg(long)]
    live: bool,
    /// What to print at the end.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
    /// Folder in a BPF file system (/sys/fs/bpf/flowlog) where tables and links stay when flowlog stops or is killed, so
    /// that the next start goes on without a gap; `rm -r` of it takes them down [default: nothing stays].
    #[arg(long, value_name = "DIR", env = "FLOWLOG_PIN")]
    pin: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    attach: AttachArgs,
}

/// Several errors of tasks as one.
pub(crate) fn all(errors: &[Error]) -> anyhow::Error {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    anyhow!("not every task could be started, so none was\n{}", lines.join("\n"))
}

/// Runs until a signal or `--for` says stop; then drains everything and closes every file.
///
/// # Errors
/// When tasks are not valid, privileges or kernel are missing, a file cannot be opened, or an interface not attached;
/// nothing stays attached or half written.
pub(crate) fn run(arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    confine::keep_what_is_needed()?;
    block_on(watch(arguments))
}

fn options(arguments: &RunArgs, rules: Rules, only: bool) -> live::Options {
    live::Options {
        only,
        pin: arguments.pin.clone(),
        interfaces: arguments.interface.clone(),
        exclude: arguments.exclude_interface.clone(),
        ..arguments.attach.options(&arguments.node.capture, rules)
    }
}

/// Held by everyone who watches a network namespace, and alone by one who may remove what killed ones have left: whether
/// this is one.
fn only_one() -> (Option<Lock>, bool) {
    let place = namespace_lock();
    let lock = place.and_then(|(folder, name)| match Lock::take(&folder, &name)? {
        Some(lock) => Ok((Some(lock), true)),
        None => Ok((Lock::take_shared(&folder, &name)?, false)),
    });
    match lock {
        Ok((lock, only)) => {
            if !only {
                tracing::info!("another flowlog watches this network namespace, leaving all filters alone");
            }
            (lock, only)
        }
        Err(error) => {
            tracing::warn!(%error, "cannot tell whether another flowlog runs, leaving all filters alone");
            (None, false)
        }
    }
}

/// The state folder. The default one may be missing or not be writable; one that was asked for may not.
fn state(arguments: &RunArgs) -> anyhow::Result<Option<Arc<StateDir>>> {
    let asked = arguments.state_dir.as_deref();
    match StateDir::open(asked.unwrap_or(Path::new(STATE_DIR))) {
        Ok(state) => Ok(Some(Arc::new(state))),
        Err(error) if asked.is_some() => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "accepted tasks are not kept, and there is no audit.log");
            Ok(None)
        }
    }
}

/// The folders this daemon writes below.
fn written<'a>(
    arguments: &'a RunArgs,
    with_state: bool,
    socket: Option<&'a Path>,
) -> impl Iterator<Item = &'a Path> {
    let state = arguments.state_dir.as_deref().unwrap_or(Path::new(STATE_DIR));
    arguments.log_root.iter().map(PathBuf::as_path).chain(with_state.then_some(state)).chain(socket)
}

fn facts(arguments: &RunArgs, node: &str) -> Facts {
    Facts {
        node: node.to_owned(),
        table_entries_max: arguments.attach.table_entries,
        ring_bytes: arguments.attach.ring_bytes,
        started_ns: wall_ns(),
    }
}

async fn watch(arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    // Before anything is attached or opened: from here on a signal means an orderly stop, or a reload.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let listeners = arguments.serve.listen().await?;
    let node = super::full_name(&arguments.node.names())?;
    let board = Arc::new(Board::new(facts(arguments, &node)));
    let control = Arc::new(Control::new(Arc::clone(&board)));
    let mut triggers = Triggers::new()?;

    let active_ns = arguments.node.capture.timeouts().active_ns;
    let privileged = Privileged::start()?;
    let roots = Arc::new(Roots::new(&arguments.log_root)?.with_node(&node));
    let state = state(arguments)?;
    let (lock, only) = only_one();
    confine::keep_files_only()?;
    confine::write_only_below(written(arguments, state.is_some(), listeners.socket_folder()))?;
    let enricher = Enricher::new(arguments.node.capture.cluster_cidr.clone());
    let mut pipeline = Pipeline::new(Arc::clone(&roots), enricher, Overflow::Drop);
    let (log_root, within) = (arguments.log_root.first().cloned(), Some(Arc::clone(&roots)));
    let sources = Sources { log_root, roots: within, ..arguments.node.sources() };
    let kept = state.clone().filter(|_| arguments.pin.is_none());
    let (mut reload, built) =
        Reload::start(sources, roots, state, active_ns, &mut pipeline, Arc::clone(&board))?;
    let options = options(arguments, reload.rules(), only);
    memory::say_kernels(&options);
    memory::say_daemons(&options, reload.specs());
    let live = match privileged.run(move || Live::start(&options)).wait()? {
        Ok(live) => live,
        Err(error) => {
            pipeline.finish();
            return Err(error.into());
        }
    };
    if let Some(lock) = &lock {
        lock.share();
    }
    let pins = arguments.pin.clone();
    privileged.run(move || confine::only_capture(pins.as_deref())).wait()??;
    let names = arguments.node.names();
    let (commands, obeyed) = channel();
    let waker = live.waker();
    reload.connect(commands, waker.clone(), Arc::clone(&control));
    announce(&live, built.counters.len());
    if let Some(earlier) = kept.as_deref().and_then(|kept| absence::since(kept, &live.interfaces())) {
        pipeline.note_lost(&earlier);
    }
    if arguments.live {
        say_where(&reload.files());
    }
    let cadences = tasks::cadences(&built.cadences, active_ns);
    let plane = DataPlane::start(&privileged, live, pipeline, cadences, names, Arc::clone(&control), obeyed)?;
    triggers.before(reload.config());
    triggers.after(true, reload.next_phase_ns());

    let _socket = listeners.serve(&board);
    systemd::ready();
    serve(arguments, &control, &mut triggers, &mut reload, [&mut interrupt, &mut terminate]).await;
    systemd::stopping();
    let stopped = absence::now();
    control.stop.store(true, Ordering::Relaxed);
    waker.wake();
    let outcome = stop(plane, reload, arguments.output).await;
    if let (Some(kept), Some(stopped)) = (&kept, &stopped) {
        absence::note(kept, stopped);
    }
    outcome
}

/// Takes changes of the tasks and shows what is seen, until somebody or something says stop.
async fn serve(
    arguments: &RunArgs,
    control: &Control,
    triggers: &mut Triggers,
    reload: &mut Reload,
    [interrupt, terminate]: [&mut Signal; 2],
) {
    let mut line = arguments.live.then(LiveLine::new);
    let mut tick = tokio::time::interval(Duration::from_millis(if line.is_some() { 250 } else { 1_000 }));
    let end = arguments.time.and_then(|time| Duration::try_from(time).ok()).unwrap_or(Duration::MAX);
    let ended = tokio::time::sleep(end);
    tokio::pin!(ended);
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            () = &mut ended => break,
            cause = triggers.next(reload.config()) => {
                triggers.before(reload.config());
                systemd::reloading(cause);
                let again = reload.look(cause).await;
                systemd::ready();
                triggers.after(again, reload.next_phase_ns());
            }
            _ = tick.tick() => {
                if control.failed.load(Ordering::Relaxed) {
                    break;
                }
                logging::tell_repeats();
                if let Some(line) = &mut line {
                    line.show(control.seen());
                }
            }
        }
    }
    if let Some(line) = &line {
        line.clear();
    }
}

/// Waits until everything is drained and closed, or until somebody asks again.
async fn stop(plane: DataPlane, reload: Reload, output: Format) -> anyhow::Result<ExitCode> {
    let joined = tokio::task::spawn_blocking(move || plane.join());
    tokio::select! {
        done = joined => {
            let mut done = done??;
            done.finished.extend(reload.finish());
            logging::tell_all_repeats();
            report(done, output)
        }
        urgent = asked_again() => {
            urgent?;
            bail!("asked twice to stop, so files that could not be closed yet keep their live names; the next start \
                   finishes them")
        }
    }
}

/// Returns when a signal comes after the stop has taken a while, e.g. because a disk hangs. Not at once: a terminal and
/// a supervisor may both send the first one.
pub(super) async fn asked_again() -> anyhow::Result<()> {
    tokio::time::sleep(PATIENCE).await;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tracing::warn!("still draining and closing files; another signal ends this at once");
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Where the records are, and how to see them and to stop, for the person at the terminal.
fn say_where(files: &[(String, PathBuf)]) {
    for (task, file) in files {
        tracing::info!(task, file = %file.display(), "writing");
    }
    let of_files = files.iter().filter(|(_, file)| file.is_absolute());
    let folders: BTreeSet<_> = of_files.filter_map(|(_, file)| file.parent()).collect();
    if folders.is_empty() {
        return tracing::info!("Ctrl-C ends it");
    }
    let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    tracing::info!(
        "Ctrl-C ends it; see what is there meanwhile with: {} cat {} -o table",
        super::called(),
        folders.join(" ")
    );
}

fn announce(live: &Live, tasks: usize) {
    let states = live.interfaces();
    let watched: Vec<_> =
        states.iter().filter(|state| state.hook.is_some()).map(|state| &*state.name).collect();
    if watched.is_empty() {
        tracing::warn!(
            "no interface is watched; see `{} interfaces` for why each is left out, or name one with --interface",
            super::called()
        );
    }
    tracing::info!(interfaces = watched.join(" "), tasks, "watching");
}

fn report(done: Done, output: Format) -> anyhow::Result<ExitCode> {
    let Done { capture, decode, finished, error } = done;
    let books = Books {
        capture,
        decode,
        recorded: None,
        tasks: finished.iter().map(|task| (Arc::clone(&task.name), Arc::clone(&task.counters))).collect(),
    };
    summary::print(&books, &finished, output)?;
    match error {
        Some(error) => Err(error.context("stopped early")),
        // Of what was dropped while it ran the log tells; a stop that could not write everything is a failure.
        None if finished.iter().any(|task| task.failed.is_some()) => Ok(ExitCode::FAILURE),
        None => Ok(ExitCode::SUCCESS),
    }
}
