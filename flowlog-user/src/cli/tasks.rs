//! Task files, as every command loads and describes them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use flowlog_user::config::{self, Defined, Loaded, Origin, Sources};
use flowlog_user::decode::{Cadence, Cadences};
use flowlog_user::filter::NOT_RECORDED;
use flowlog_user::record::Event;
use flowlog_user::task::{self, Plan, Planned};
use flowlog_user::tree::{Problem, Problems};
use jiff::SignedDuration;

use super::summary::bytes;

/// Loads files of tasks and pools; the result is there only when nothing is wrong. Last: whether every file could be read.
#[must_use]
pub(crate) fn load(sources: &Sources) -> (Option<Loaded>, Problems, bool) {
    match config::load(sources.clone()) {
        Ok(loaded) => {
            let mut found = Problems::default();
            found.warnings.clone_from(&loaded.warnings);
            (Some(loaded), found, true)
        }
        Err(error) => {
            let readable = matches!(error, config::Error::Invalid(_));
            (None, error.problems().clone(), readable)
        }
    }
}

/// Loads task files or says everything that is wrong with them; warnings go to the log.
///
/// # Errors
/// When anything is wrong, or nothing is there to run.
pub(crate) fn load_or_fail(sources: &Sources) -> anyhow::Result<Loaded> {
    load_with_warnings(sources, |_| true)
}

/// The same for flows recorded elsewhere, which may have what our records lack.
///
/// # Errors
/// As [`load_or_fail`].
pub(crate) fn load_for_recorded(sources: &Sources) -> anyhow::Result<Loaded> {
    load_with_warnings(sources, |warning| !warning.message.contains(NOT_RECORDED))
}

fn load_with_warnings(sources: &Sources, tell: impl Fn(&Problem) -> bool) -> anyhow::Result<Loaded> {
    let (loaded, found, _) = load(sources);
    for warning in found.warnings.iter().filter(|warning| tell(warning)) {
        tracing::warn!("{warning}");
    }
    match loaded {
        Some(loaded) if loaded.plan.tasks.is_empty() => {
            let paths = list(&sources.tasks);
            bail!("no tasks in {paths}; add an entry under `flowLogs`, or try config/quickstart.yaml")
        }
        Some(loaded) if found.errors.is_empty() => Ok(loaded),
        _ => {
            let lines: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
            bail!("tasks or pools are not valid; nothing was started\n{}", lines.join("\n"))
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Every error and warning as a line.
pub(crate) fn problems(found: &Problems) -> impl Iterator<Item = String> {
    let errors = found.errors.iter().map(|problem| format!("error: {problem}"));
    errors.chain(found.warnings.iter().map(|problem| format!("warning: {problem}")))
}

/// A task in a line: what it writes, where, and the most disk it can take.
#[must_use]
pub(crate) fn describe(task: &Planned) -> String {
    let write = &task.spec.file;
    if write.is_stdout() {
        return format!("task {}: stdout ({})", task.spec.name, write.format.name());
    }
    let total = match write.total_bytes_max {
        u64::MAX => "as much on disk as age and free space allow".into(),
        total => format!("at most {} on disk", bytes(total)),
    };
    format!(
        "task {}: {}, finished as {} ({}, {}), rotated at {}{}, {total}, mode {:04o}",
        task.spec.name,
        write.live_path().display(),
        write.finished_paths().file_name().unwrap_or_default().display(),
        write.format.name(),
        write.compression.name(),
        bytes(write.size_bytes_max),
        interval(write.rotation_interval, write.rotation_aligned),
        write.mode,
    )
}

/// When files are finished by time.
fn interval(interval: Option<Duration>, aligned: bool) -> String {
    let Some(interval) = interval.and_then(|interval| SignedDuration::try_from(interval).ok()) else {
        return String::new();
    };
    format!(" and every {interval:#}{}", if aligned { " by the clock" } else { "" })
}

/// The same for programs.
#[must_use]
pub(crate) fn to_json(task: &Planned, origin: Option<&Origin>) -> serde_json::Value {
    let (spec, write) = (&task.spec, &task.spec.file);
    serde_json::json!({
        "name": spec.name,
        "file": &*spec.place.file,
        "line": spec.place.line,
        "live": write.live_path(),
        "finished": write.finished_paths(),
        "form": origin.map(|origin| origin.form.name()),
        "form_message": origin.map(|origin| origin.message.as_str()),
        "format": write.format.name(),
        "compression": write.compression.name(),
        "mode": format!("{:04o}", write.mode),
        "rotate_bytes_max": write.size_bytes_max,
        "rotate_interval_ms": write.rotation_interval.map(|interval| u64::try_from(interval.as_millis()).unwrap_or(u64::MAX)),
        "rotate_aligned": write.rotation_aligned,
        "total_bytes_max": bounded(write.total_bytes_max),
        "start": spec.start.map(|at| at.to_string()),
        "end": spec.end.map(|at| at.to_string()),
    })
}

/// CIDRs and ranges of a pool that are shown.
const BLOCKS_SHOWN: usize = 4;

/// A pool in a line: its form, and what it is made of.
#[must_use]
pub(crate) fn describe_pool(defined: &Defined) -> String {
    let (blocks, all) = (defined.blocks_shown().take(BLOCKS_SHOWN), defined.pool.blocks.len());
    let more = all.checked_sub(BLOCKS_SHOWN).filter(|more| *more > 0);
    let more = more.map(|more| format!(", and {more} more")).unwrap_or_default();
    format!("pool {} ({}): {}{more}", defined.pool.name, defined.form, blocks.collect::<Vec<_>>().join(", "))
}

/// The same for programs.
#[must_use]
pub(crate) fn pool_to_json(defined: &Defined) -> serde_json::Value {
    serde_json::json!({
        "name": &*defined.pool.name,
        "file": &*defined.place.file,
        "line": defined.place.line,
        "form": defined.form.to_string(),
        "addresses": defined.blocks_shown().collect::<Vec<_>>(),
    })
}

/// The most disk all tasks together can take, in bytes; nothing when there is no such limit.
#[must_use]
pub(crate) fn disk_bytes_max(plan: &Plan) -> Option<u64> {
    bounded(plan.tasks.iter().fold(0, |sum, task| sum.saturating_add(task.spec.file.total_bytes_max)))
}

fn bounded(bytes_max: u64) -> Option<u64> {
    Some(bytes_max).filter(|bytes_max| *bytes_max < u64::MAX)
}

/// Whether a task writes to stdout, where an answer in JSON would be too.
///
/// # Errors
/// When both are asked for.
pub(crate) fn stdout_is_free(plan: &Plan, output: super::Format) -> anyhow::Result<()> {
    if output == super::Format::Json
        && let Some(task) = plan.tasks.iter().find(|task| task.spec.file.is_stdout())
    {
        bail!("task {} writes to stdout, and so would -o json; leave one of the two out", task.spec.name);
    }
    Ok(())
}

/// Where tasks are meant to write unless somebody says otherwise.
const LOG_ROOT: &str = "/var/log/flowlog";

/// Puts every task's file below `folder`, with the folders that it has below its log root or, outside of those, below what
/// such files have in common.
pub(crate) fn move_below(plan: &mut Plan, folder: &Path, roots: &[PathBuf]) -> anyhow::Result<()> {
    let below = |path: &Path| {
        let roots = roots.iter().map(PathBuf::as_path).chain([Path::new(LOG_ROOT)]);
        let rest = roots.filter_map(|root| path.strip_prefix(root).ok());
        rest.min_by_key(|rest| rest.components().count()).map(Path::to_path_buf)
    };
    let files = || plan.tasks.iter().map(|task| &task.spec.file).filter(|file| !file.is_stdout());
    let elsewhere = files().map(|file| &*file.path).filter(|path| below(path).is_none());
    let common = elsewhere.filter_map(literal_parent).reduce(|one, other| {
        let same = one.components().zip(other.components()).take_while(|(a, b)| a == b);
        same.map(|(part, _)| part).collect()
    });
    let mut taken = std::collections::BTreeMap::new();
    for task in plan.tasks.iter_mut().filter(|task| !task.spec.file.is_stdout()) {
        let path = &task.spec.file.path;
        let rest = below(path).or_else(|| Some(path.strip_prefix(common.as_deref()?).ok()?.to_path_buf()));
        let Some(rest) = rest else {
            bail!("task {}: filePath {} has no file name", task.spec.name, path.display())
        };
        task.spec.file.path = folder.join(rest);
        let moved = task.spec.file.live_path();
        if let Some(other) = taken.insert(moved.clone(), task.spec.name.clone()) {
            bail!("tasks {other} and {} both write {} below --output-dir", task.spec.name, moved.display());
        }
    }
    Ok(())
}

/// The folders above a file, as far as they are the same for every task and node.
fn literal_parent(path: &Path) -> Option<PathBuf> {
    let is_literal = |part: &std::path::Component<'_>| !part.as_os_str().to_string_lossy().contains('{');
    Some(path.parent()?.components().take_while(is_literal).collect())
}

/// The cadences as the decoder takes them.
#[must_use]
pub(crate) fn cadences(plan: &[Option<task::Cadence>], active_ns: u64) -> Cadences {
    let mut cadences = Cadences::default();
    for (slot, cadence) in cadences.iter_mut().zip(plan) {
        let Some(cadence) = cadence else { continue };
        let asked_ns = cadence.update_interval.and_then(|interval| u64::try_from(interval.as_nanos()).ok());
        *slot = Some(Cadence {
            start: cadence.events.has(Event::Start),
            update: cadence.events.has(Event::Update),
            end: cadence.events.has(Event::End),
            interval_ns: asked_ns.unwrap_or(active_ns).max(active_ns),
        });
    }
    cadences
}
