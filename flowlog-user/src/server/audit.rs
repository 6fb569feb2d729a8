//! `audit.log` in the state folder: a JSON line for whatever happens to a task or a task file.

use std::path::Path;

use serde_json::{Map, Value};

use crate::clock::{rfc3339, wall_ns};
use crate::config::{Config, Form, Hash, News, Owned};
use crate::tree::Problem;

/// The file's name.
pub const NAME: &str = "audit.log";

/// Why something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The daemon starts.
    Start,
    /// A folder has changed.
    Watch,
    /// SIGHUP.
    Signal,
    /// The regular look, which does not depend on notifications.
    Poll,
    /// A task's start or end, or a step of the clock.
    Clock,
    /// The daemon stops.
    Stop,
}

impl Cause {
    /// The name in `audit.log`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Watch => "watch",
            Self::Signal => "sighup",
            Self::Poll => "poll",
            Self::Clock => "clock",
            Self::Stop => "stop",
        }
    }
}

/// Lines that belong together.
#[derive(Debug, Default)]
pub struct Audit {
    lines: String,
}

impl Audit {
    /// Notes what a look at the files has shown.
    pub fn news(&mut self, news: &News, cause: Cause) {
        match news {
            News::Accepted { file, hash, warnings } => {
                self.line("file_accepted", cause, file, Some(*hash), &[("warnings", list(warnings))]);
            }
            News::Rejected { file, hash, problems } => {
                self.line("file_rejected", cause, file, *hash, &[("problems", list(problems))]);
            }
            News::Restored { file, hash } => self.line("file_restored", cause, file, Some(*hash), &[]),
            News::Converted { file, form, hash, counts } => {
                let more = [
                    ("form", form.name().into()),
                    ("to", Form::V1.name().into()),
                    ("counts", (*counts).into()),
                ];
                self.line("file_converted", cause, file, Some(*hash), &more);
            }
            News::Noticed { file, warnings, refused } => {
                let more = [("warnings", list(warnings)), ("refused", list(refused))];
                self.line("file_noticed", cause, file, None, &more);
            }
            News::Gone { file } => self.line("file_gone", cause, file, None, &[]),
            News::PoolOther { name, file, what, is_older, tasks } => {
                let more = [
                    ("pool", Value::from(&**name)),
                    ("what", what.as_str().into()),
                    ("tasks", tasks.clone().into()),
                ];
                self.line(if *is_older { "pool_older" } else { "pool_moved" }, cause, file, None, &more);
            }
            News::PoolGone { name, file, tasks } => {
                let more = [("pool", Value::from(&**name)), ("tasks", tasks.clone().into())];
                self.line("pool_removed", cause, file, None, &more);
            }
        }
    }

    /// Notes what became of a task, with anything more to be said.
    pub fn task(&mut self, event: &str, cause: Cause, task: &Owned, config: &Config, more: &[(&str, Value)]) {
        let mut all = vec![("task", Value::from(task.spec.name.as_str()))];
        all.extend(more.iter().cloned());
        self.line(event, cause, &task.file, config.hash(&task.file), &all);
    }

    fn line(&mut self, event: &str, cause: Cause, file: &Path, hash: Option<Hash>, more: &[(&str, Value)]) {
        let mut line = Map::new();
        line.insert("time".into(), rfc3339(wall_ns()).into());
        line.insert("event".into(), event.into());
        line.insert("cause".into(), cause.name().into());
        line.insert("file".into(), file.to_string_lossy().into());
        line.insert("hash".into(), hash.map(|hash| hash.to_string()).into());
        line.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        self.lines += &Value::from(line).to_string();
        self.lines.push('\n');
    }

    /// What was noted since the last call, each line with its newline.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }
}

/// Problems as a list of lines.
#[must_use]
pub fn list(problems: &[Problem]) -> Value {
    problems.iter().map(ToString::to_string).collect()
}
