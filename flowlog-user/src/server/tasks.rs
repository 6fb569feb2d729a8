//! What is to be said of each task, as plain data for any view.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::rfc3339;
use crate::config::{Config, Hash};
use crate::task::{Condition, ConditionKind, Conditions, Phase, Spec};

/// A task's state.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// The file it stands in.
    pub file: Arc<Path>,
    /// SHA-256 of the text of that file that is in force.
    pub hash: Option<Hash>,
    /// Its live file.
    pub path: PathBuf,
    /// What is true of it.
    pub conditions: Conditions,
}

/// Every task that some accepted file asks for.
#[derive(Clone, Debug, Default)]
pub struct TaskStates(BTreeMap<String, TaskState>);

impl TaskStates {
    /// Takes in what is configured and what runs now. `failed`: tasks whose file could not be opened, and why;
    /// `trouble` says why a running task writes nothing.
    pub fn update(
        &mut self,
        config: &Config,
        running: &BTreeMap<String, Arc<Spec>>,
        failed: &BTreeMap<String, String>,
        trouble: impl Fn(&str) -> Option<Arc<str>>,
        now_ns: i64,
    ) {
        self.0.retain(|name, _| config.tasks().contains_key(name));
        for (name, task) in config.tasks() {
            let state = self.0.entry(name.clone()).or_insert_with(|| TaskState {
                file: Arc::clone(&task.file),
                hash: None,
                path: PathBuf::new(),
                conditions: Conditions::default(),
            });
            state.file = Arc::clone(&task.file);
            state.hash = config.hash(&task.file);
            state.path = task.spec.file.live_path();
            let set = &mut state.conditions;
            match config.rejected(&task.file) {
                None => match config.refused(name, &task.file) {
                    None => set.set(ConditionKind::Accepted, true, "Valid", "", now_ns),
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
            match trouble(name).filter(|_| runs) {
                Some(why) => set.set(ConditionKind::Writing, false, "Trouble", &why, now_ns),
                None => set.set(ConditionKind::Writing, runs, reason, why, now_ns),
            }
            set.set(ConditionKind::Ended, phase == Phase::Ended, reason, "", now_ns);
        }
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
    fn to_json(&self, name: &str) -> Value {
        let conditions: Vec<Value> = ConditionKind::ALL
            .into_iter()
            .filter_map(|kind| self.conditions.get(kind).map(|condition| one(kind, condition)))
            .collect();
        json!({ "task": name, "file": &*self.file, "hash": self.hash.map(|hash| hash.to_string()),
            "path": self.path, "conditions": conditions })
    }
}

fn one(kind: ConditionKind, condition: &Condition) -> Value {
    json!({ "type": kind.name(), "status": condition.holds, "reason": condition.reason,
        "message": condition.message, "since": rfc3339(condition.since_ns) })
}
