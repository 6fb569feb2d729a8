//! The control plane of the tasks: looks at files and clock, builds what is new, and hands it to the data plane.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError};

use anyhow::bail;
use flowlog_user::capture::live::Waker;
use flowlog_user::clock::{monotonic_ns, wall_ns};
use flowlog_user::config::{Config, Decision, Form, Look, News, Owned, Sources, Tasks};
use flowlog_user::metrics::{FileEvent, TaskCounters};
use flowlog_user::pipeline::{Applied, Built, Pipeline, Stage};
use flowlog_user::record::rules::Rules;
use flowlog_user::server::audit::{Audit, Cause, list};
use flowlog_user::server::board::Board;
use flowlog_user::task::{Finished, Phase, Spec, rules};
use flowlog_user::write::{Roots, StateDir};
use tokio::sync::oneshot;

use super::data_plane::{Command, Control};
use super::notes::Notes;
use super::tasks::cadences;

/// Whose messages are in audit.log, too.
pub(crate) const MODULE: &str = module_path!();

/// Tasks by name, those that are between their start and their end.
type Wanted = BTreeMap<String, Arc<Spec>>;

/// What is configured, what runs, and how the one becomes the other.
pub(crate) struct Reload {
    config: Config,
    stage: Stage,
    board: Arc<Board>,
    audit: Audit,
    notes: Notes,
    active_ns: u64,
    /// Tasks as last told of.
    known: Tasks,
    /// Tasks whose files are listened to, until their last file is closed.
    listened: BTreeMap<String, (Owned, Arc<TaskCounters>)>,
    /// Tasks that were refused, and tasks whose file could not be opened, with what was said of it.
    refused: BTreeMap<(String, PathBuf), String>,
    failed: BTreeMap<String, String>,
    commands: Option<(Sender<Command>, Waker)>,
    control: Option<Arc<Control>>,
}

impl Reload {
    /// Reads the tasks for the first time and opens their files into `pipeline`.
    ///
    /// # Errors
    /// Nothing that was found is valid, or no task's file could be opened.
    pub(crate) fn start(
        sources: Sources,
        roots: Arc<Roots>,
        state: Option<Arc<StateDir>>,
        active_ns: u64,
        pipeline: &mut Pipeline,
        board: Arc<Board>,
    ) -> anyhow::Result<(Self, Built)> {
        let mut reload = Self {
            config: Config::new(sources, state.clone()),
            stage: Stage::new(roots),
            board,
            audit: Audit::default(),
            notes: Notes::start(state)?,
            active_ns,
            known: Tasks::new(),
            listened: BTreeMap::new(),
            refused: BTreeMap::new(),
            failed: BTreeMap::new(),
            commands: None,
            control: None,
        };
        let look = reload.config.start(monotonic_ns());
        let error = reload.config.error();
        if let (true, Some(error)) = (reload.config.tasks().is_empty(), &error) {
            bail!("tasks or pools are not valid; nothing was started\n{error}");
        }
        reload.tell(&look, Cause::Start);
        if reload.config.tasks().is_empty() {
            tracing::warn!("there are no tasks yet; they begin when a file asks for them");
        }
        let wanted = reload.wanted();
        let mut built = reload.stage.build(&wanted);
        if built.swap.seats.is_empty() && !built.failed.is_empty() {
            let errors = built.failed.into_iter().map(|(_, error)| error).collect::<Vec<_>>();
            return Err(super::run::all(&errors));
        }
        pipeline.apply(std::mem::take(&mut built.swap), None);
        reload.tell_of_files(Cause::Start);
        let failed = failures(&built.failed, &[]);
        reload.settled(&Wanted::new(), failed, Cause::Start);
        Ok((reload, built))
    }

    /// From now on changes go through the data plane.
    pub(crate) fn connect(&mut self, commands: Sender<Command>, waker: Waker, control: Arc<Control>) {
        self.commands = Some((commands, waker));
        control.set_pools(&self.config.pools().pools);
        self.control = Some(control);
    }

    /// What the tasks that run want of the kernel.
    pub(crate) fn rules(&self) -> Rules {
        rules(self.stage.running().values().map(AsRef::as_ref))
    }

    /// The tasks that run.
    pub(crate) fn specs(&self) -> impl ExactSizeIterator<Item = &Spec> {
        self.stage.running().values().map(AsRef::as_ref)
    }

    /// Each running task with the file that grows.
    pub(crate) fn files(&self) -> Vec<(String, PathBuf)> {
        self.stage.running().values().map(|spec| (spec.name.clone(), spec.file.live_path())).collect()
    }

    /// What is configured.
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// When the next task starts or ends, nanoseconds since the Unix epoch.
    pub(crate) fn next_phase_ns(&self) -> Option<i64> {
        let now_ns = wall_ns();
        self.config.tasks().values().filter_map(|task| task.spec.next_phase_ns(now_ns)).min()
    }

    /// Looks at files and clock and makes the tasks what they are to be. True when it should look again soon.
    pub(crate) async fn look(&mut self, cause: Cause) -> bool {
        let look = match cause {
            Cause::Clock | Cause::Start | Cause::Stop => Look::default(),
            Cause::Signal => self.config.look(monotonic_ns(), true),
            Cause::Watch | Cause::Poll => self.config.look(monotonic_ns(), false),
        };
        self.tell(&look, cause);
        // Before the tasks: whatever a task is shown because of a pool has its label.
        if let Some(control) = &self.control {
            control.set_pools(&self.config.pools().pools);
        }
        let wanted = self.wanted();
        let before = self.stage.running().clone();
        let mut built = self.stage.build(&wanted);
        let mut applied = Applied::default();
        if built.changes
            && let Some((commands, waker)) = &self.commands
        {
            let (done, doing) = oneshot::channel();
            // Wide enough for both while the one becomes the other: nothing a task wants is ever rejected.
            let command = Command {
                widened: rules(before.values().chain(wanted.values()).map(AsRef::as_ref)),
                narrowed: self.rules(),
                swap: std::mem::take(&mut built.swap),
                cadences: cadences(&built.cadences, self.active_ns),
                change: built.change,
                begins: built.begins,
                done,
            };
            // Both fail only when the data plane has stopped, which ends the daemon.
            if commands.send(command).is_ok() {
                waker.wake();
                applied = doing.await.unwrap_or_default();
            }
            let running = self.stage.running().len();
            tracing::info!(cause = cause.name(), running, "the tasks have changed");
        }
        let failed = failures(&built.failed, &applied.failed);
        self.stage.applied(applied.closing, &applied.failed, &before);
        self.tell_of_files(cause);
        self.settled(&before, failed, cause);
        look.again
    }

    /// Writes down what happened to the tasks' files, also while a task that has ended or was removed still closes.
    fn tell_of_files(&mut self, cause: Cause) {
        for (name, task) in &self.known {
            if let Some(counters) = self.stage.counters_of(name) {
                self.listened.insert(name.clone(), (task.clone(), counters));
            }
        }
        let Self { listened, stage, audit, config, .. } = self;
        listened.retain(|name, (task, counters)| {
            for FileEvent { event, path, why } in counters.news.take() {
                let more = [("path", path.to_string_lossy().into()), ("why", why.into())];
                audit.task(event, cause, task, config, &more);
            }
            // Once it has closed there is no more to come.
            stage.counters_of(name).is_some()
        });
    }

    /// Tasks that stopped while the daemon ran.
    pub(crate) fn finish(mut self) -> Vec<Finished> {
        let finished = self.stage.finish();
        self.tell_of_files(Cause::Stop);
        self.notes.send(self.config.unwritten(), self.audit.take());
        self.notes.finish();
        finished
    }

    fn wanted(&self) -> Wanted {
        let now_ns = wall_ns();
        let running =
            self.config.tasks().iter().filter(|(_, task)| task.spec.phase(now_ns) == Phase::Running);
        running.map(|(name, task)| (name.clone(), Arc::clone(&task.spec))).collect()
    }

    /// Says what is new in the files.
    fn tell(&mut self, look: &Look, cause: Cause) {
        for news in &look.news {
            self.audit.news(news, cause);
            self.say(news);
        }
        let Some(decision) = &look.decision else { return };
        self.refuse(decision, cause);
        let known = std::mem::replace(&mut self.known, decision.tasks.clone());
        for (name, task) in &decision.tasks {
            match known.get(name).map(|old| old.spec.differences(&task.spec)) {
                None => {
                    self.board.reloads.added.add(1);
                    self.audit.task("accepted", cause, task, &self.config, &[]);
                }
                Some(what) if !what.is_empty() => {
                    self.board.reloads.updated.add(1);
                    self.audit.task("changed", cause, task, &self.config, &[("what", what.into())]);
                }
                Some(_) => {}
            }
        }
        for task in known.iter().filter(|(name, _)| !decision.tasks.contains_key(*name)).map(|(_, task)| task)
        {
            self.board.reloads.removed.add(1);
            self.audit.task("removed", cause, task, &self.config, &[]);
        }
    }

    /// Says what is new in a file.
    fn say(&self, news: &News) {
        match news {
            News::Accepted { file, warnings, .. } => {
                tracing::debug!(file = %file.display(), "accepted");
                warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            }
            News::Rejected { file, problems, .. } => {
                self.board.reloads.failed.add(1);
                for problem in problems {
                    tracing::error!(file = %file.display(), "not accepted, what it held stays as it was: {problem}");
                }
            }
            News::Restored { file, .. } => {
                tracing::warn!(file = %file.display(), "what it held is in force as it was accepted last");
            }
            News::Converted { file, form, counts: false, .. } => {
                tracing::info!("{} is in {form}; none of its tasks runs as it says", file.display());
            }
            News::Converted { file, form, .. } => {
                let migration = self.config.migration(file, *form);
                tracing::info!(
                    "{} is in {form} and was converted to {}, as whose tasks it runs; `{} {migration}` writes that down, and this \
                     file stays as it is",
                    file.display(),
                    Form::V1,
                    super::called()
                );
            }
            News::Noticed { warnings, refused, .. } => {
                warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                for problem in refused {
                    tracing::error!("not in force, everything else goes on: {problem}");
                }
            }
            News::Gone { file } => {
                tracing::info!(file = %file.display(), "the file is gone, and with it what it held");
            }
            News::PoolOther { name, file, what, tasks, .. } => {
                let tasks = tasks.join(", ");
                tracing::warn!(file = %file.display(), tasks, "pool {name}: {what}");
            }
            News::PoolGone { name, file, tasks } if tasks.is_empty() => {
                tracing::info!(file = %file.display(), "pool {name} is removed; no flow gets its label any more");
            }
            News::PoolGone { name, file, tasks } => {
                let tasks = tasks.join(", ");
                tracing::warn!(
                    file = %file.display(),
                    tasks,
                    "pool {name} is removed; no flow gets its label any more, and tasks that name it go on as they were"
                );
            }
        }
    }

    fn refuse(&mut self, decision: &Decision, cause: Cause) {
        let mut refused = BTreeMap::new();
        for (task, problems) in &decision.refused {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let key = (task.spec.name.clone(), task.file.to_path_buf());
            // What is asked belongs to it: another edit is told of, though it is refused for the same reason.
            let said = format!("{}\n{}", lines.join("\n"), task.spec.file.definition.0);
            if self.refused.get(&key) != Some(&said) {
                let runs = decision.tasks.get(&task.spec.name).is_some_and(|runs| runs.file == task.file);
                for line in &lines {
                    if runs {
                        tracing::error!(task = task.spec.name, "refused, it goes on as it was: {line}");
                    } else {
                        tracing::error!(task = task.spec.name, "refused, everything else goes on: {line}");
                    }
                }
                self.board.reloads.failed.add(1);
                self.audit.task("rejected", cause, task, &self.config, &[("problems", list(problems))]);
            }
            refused.insert(key, said);
        }
        self.refused = refused;
    }

    /// Writes down what became of the tasks.
    fn settled(&mut self, before: &Wanted, failed: BTreeMap<String, String>, cause: Cause) {
        let now_ns = wall_ns();
        *self.board.refused.lock().unwrap_or_else(PoisonError::into_inner) = self.config.wrong();
        let running = self.stage.running();
        for (name, task) in &self.known {
            let path = [("path", task.spec.file.live_path().to_string_lossy().into())];
            match (before.contains_key(name), running.contains_key(name)) {
                (false, true) => self.audit.task("started", cause, task, &self.config, &path),
                (true, false) if task.spec.phase(now_ns) == Phase::Ended => {
                    self.audit.task("ended", cause, task, &self.config, &path);
                }
                (true, false) => self.audit.task("stopped", cause, task, &self.config, &path),
                _ => {}
            }
            if let Some(why) = failed.get(name).filter(|why| self.failed.get(name) != Some(why)) {
                tracing::error!(task = %name, "{why}; trying again every few seconds");
                self.audit.task("failed", cause, task, &self.config, &[("error", why.as_str().into())]);
            }
        }
        self.board.tasks.lock().unwrap_or_else(PoisonError::into_inner).update(
            &self.config,
            running,
            &failed,
            |name| self.stage.counters_of(name),
            now_ns,
        );
        let mut applied_ns =
            self.board.reloads.last_applied_ns.lock().unwrap_or_else(PoisonError::into_inner);
        *applied_ns = now_ns;
        drop(applied_ns);
        self.failed = failed;
        // After everything else: what was accepted is in force whether or not it can be written down.
        self.notes.send(self.config.unwritten(), self.audit.take());
    }
}

fn failures(
    built: &[(String, flowlog_user::write::Error)],
    applied: &[(String, flowlog_user::write::Error)],
) -> BTreeMap<String, String> {
    built.iter().chain(applied).map(|(name, error)| (name.clone(), error.to_string())).collect()
}
