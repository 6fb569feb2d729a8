//! What is to be said of each task, as plain data for any view.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::{monotonic_ns, rfc3339};
use crate::config::{Config, Form, Hash};
use crate::filter::NOT_RECORDED;
use crate::metrics::TaskCounters;
use crate::task::{Condition, ConditionKind, Conditions, Phase, Spec};

/// A task's state.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// The file it stands in.
    pub file: Arc<Path>,
    /// SHA-256 of the text of that file that is in force.
    pub hash: Option<Hash>,
    /// The form of that file.
    pub form: Form,
    /// Its live file.
    pub path: PathBuf,
    /// What is true of it.
    pub conditions: Conditions,
    /// Its records; kept when it ends. Nothing for a task that has never run.
    pub counters: Option<Arc<TaskCounters>>,
    /// Its newest configuration.
    pub spec: Arc<Spec>,
    /// How many fields of its filters ask for what no record has.
    pub unrecorded: usize,
    /// When it was removed, on the monotonic clock; a removed task stays known for [`REMOVED_KEPT_NS`].
    pub removed_ns: Option<u64>,
}

/// How long a removed task keeps its series, so that what it did last is still collected.
pub const REMOVED_KEPT_NS: u64 = 300_000_000_000;

/// Every task that some accepted file asks for.
#[derive(Clone, Debug, Default)]
pub struct TaskStates(BTreeMap<String, TaskState>);

impl TaskStates {
    /// Takes in what is configured and what runs now. `failed`: tasks whose file could not be opened, and why;
    /// `counters` gives a running
    /// task's.
    pub fn update(
        &mut self,
        config: &Config,
        running: &BTreeMap<String, Arc<Spec>>,
        failed: &BTreeMap<String, String>,
        counters: impl Fn(&str) -> Option<Arc<TaskCounters>>,
        now_ns: i64,
    ) {
        let monotonic = monotonic_ns();
        for (name, state) in &mut self.0 {
            if config.tasks().contains_key(name) {
                state.removed_ns = None;
            } else if state.removed_ns.is_none() {
                state.removed(monotonic, now_ns);
            }
        }
        self.forget(monotonic);
        for (name, task) in config.tasks() {
            let state = self.0.entry(name.clone()).or_insert_with(|| TaskState {
                file: Arc::clone(&task.file),
                hash: None,
                form: Form::default(),
                path: PathBuf::new(),
                conditions: Conditions::default(),
                counters: None,
                spec: Arc::clone(&task.spec),
                unrecorded: 0,
                removed_ns: None,
            });
            state.file = Arc::clone(&task.file);
            state.hash = config.hash(&task.file);
            state.path = task.spec.file.live_path();
            state.spec = Arc::clone(&task.spec);
            state.counters = counters(name).or(state.counters.take());
            let unrecorded = task.spec.filter.unrecorded(&config.pools().pools);
            state.unrecorded = unrecorded.len();
            let set = &mut state.conditions;
            match config.rejected(&task.file) {
                None => match config.refused(name, &task.file) {
                    None => {
                        let (reason, message) = accepted(&unrecorded);
                        set.set(ConditionKind::Accepted, true, reason, &message, now_ns);
                    }
                    Some(problems) => {
                        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                        set.set(ConditionKind::Accepted, false, "Refused", &lines.join("\n"), now_ns);
                    }
                },
                Some(problems) => {
                    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    set.set(ConditionKind::Accepted, false, "FileRejected", &lines.join("\n"), now_ns);
                }
            }
            let (phase, runs) = (task.spec.phase(now_ns), running.contains_key(name));
            let reason = match phase {
                _ if runs => "Running",
                Phase::Waiting => "BeforeStart",
                Phase::Running => "FileNotOpened",
                Phase::Ended => "AfterEnd",
            };
            let why = failed.get(name).map_or("", String::as_str);
            set.set(ConditionKind::Programmed, runs, reason, why, now_ns);
            if !runs {
                set.set(ConditionKind::Writing, false, reason, why, now_ns);
            }
            if let Some(origin) = config.origin(name, &task.file) {
                state.form = origin.form;
                let newest = origin.form == Form::V1;
                let reason = if newest { "Newest" } else { "Converted" };
                set.set(ConditionKind::Current, newest, reason, &origin.message, now_ns);
            }
            set.set(ConditionKind::Ended, phase == Phase::Ended, reason, "", now_ns);
            state.note_trouble(now_ns);
        }
    }

    /// Looks whether the tasks can write at this moment.
    pub fn note_trouble(&mut self, now_ns: i64) {
        for state in self.0.values_mut() {
            state.note_trouble(now_ns);
        }
    }

    /// Lets go of what was removed long ago.
    pub fn forget(&mut self, monotonic_ns: u64) {
        self.0.retain(|_, state| {
            state.removed_ns.is_none_or(|at| monotonic_ns.saturating_sub(at) < REMOVED_KEPT_NS)
        });
    }

    /// All of them by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &TaskState)> {
        self.0.iter()
    }

    /// The whole as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.0.iter().map(|(name, state)| state.to_json(name)).collect()
    }
}

impl TaskState {
    fn removed(&mut self, monotonic_ns: u64, now_ns: i64) {
        self.removed_ns = Some(monotonic_ns);
        for kind in [ConditionKind::Accepted, ConditionKind::Programmed, ConditionKind::Writing] {
            self.conditions.set(kind, false, "Removed", "", now_ns);
        }
    }

    fn note_trouble(&mut self, now_ns: i64) {
        if !self.is_active() {
            return;
        }
        match self.trouble() {
            Some(why) => self.conditions.set(ConditionKind::Writing, false, "Trouble", &why, now_ns),
            None => self.conditions.set(ConditionKind::Writing, true, "Running", "", now_ns),
        }
    }

    /// Whether it is shown records now.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.conditions.get(ConditionKind::Programmed).is_some_and(|condition| condition.holds)
    }

    /// Why its newest version is not in force, or it does not run though it should.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let accepted = self.conditions.get(ConditionKind::Accepted).filter(|condition| !condition.holds);
        let opened = self
            .conditions
            .get(ConditionKind::Programmed)
            .filter(|condition| condition.reason == "FileNotOpened");
        let condition = accepted.or(opened)?;
        Some(format!("{}: {}", condition.reason, condition.message.lines().next().unwrap_or_default()))
    }

    /// Why it cannot write at the moment, though it should.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.counters.as_ref().filter(|_| self.is_active())?.trouble.get()
    }

    /// File, hash, path and conditions.
    #[must_use]
    pub fn to_json(&self, name: &str) -> Value {
        let conditions: Vec<Value> = ConditionKind::ALL
            .into_iter()
            .filter_map(|kind| self.conditions.get(kind).map(|condition| one(kind, condition)))
            .collect();
        json!({ "task": name, "file": &*self.file, "hash": self.hash.map(|hash| hash.to_string()),
            "form": self.form.name(), "path": self.path, "conditions": conditions })
    }
}

/// Why a task is in force, and what there is to say of that.
fn accepted(unrecorded: &[&str]) -> (&'static str, String) {
    match unrecorded {
        [] => ("Valid", String::new()),
        fields => ("FieldsNotRecorded", format!("{NOT_RECORDED} what these ask for: {}", fields.join(", "))),
    }
}

fn one(kind: ConditionKind, condition: &Condition) -> Value {
    json!({ "type": kind.name(), "status": condition.holds, "reason": condition.reason,
        "message": condition.message, "since": rfc3339(condition.since_ns) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    /// A disk that hangs, or answers again, changes no task file: nothing is updated because of it.
    #[test]
    fn conditions_are_as_of_the_moment_when_somebody_asks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks.yaml");
        std::fs::write(&file, "flowLogs: [{name: t, filePath: /var/log/flowlog/t.log}]\n").unwrap();
        let spec = Arc::new(config::load(&[file]).unwrap().plan.tasks.remove(0).spec);
        let counters = Arc::new(TaskCounters::default());
        let mut conditions = Conditions::default();
        conditions.set(ConditionKind::Programmed, true, "Running", "", 1);
        let state = TaskState {
            file: Path::new("tasks.yaml").into(),
            hash: None,
            form: Form::default(),
            path: PathBuf::new(),
            conditions,
            counters: Some(Arc::clone(&counters)),
            spec,
            unrecorded: 0,
            removed_ns: None,
        };
        let mut states = TaskStates(BTreeMap::from([("t".to_owned(), state)]));
        let mut now_ns = 1;
        let mut writing = |trouble: Option<&str>| {
            now_ns += 1;
            counters.trouble.set(trouble);
            states.note_trouble(now_ns);
            let condition = states.0["t"].conditions.get(ConditionKind::Writing).unwrap();
            (condition.holds, condition.message.clone(), condition.since_ns)
        };
        assert_eq!(writing(None), (true, String::new(), 2));
        assert!(!writing(Some("the disk has not answered for 5 s")).0);
        assert_eq!(writing(Some("for 6 s")), (false, "for 6 s".to_owned(), 3));
        assert_eq!(writing(None), (true, String::new(), 5));
    }
}
