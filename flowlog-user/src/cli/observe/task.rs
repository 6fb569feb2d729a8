//! The one task that `flowlog observe` runs: what `--print-task` prints, read again.

use anyhow::bail;
use flowlog_user::config::{self, Normal};
use flowlog_user::record::Json;
use flowlog_user::task::Planned;
use serde_json::Value;

use super::{ObserveArgs, Shape};

/// What the task is called.
const NAME: &str = "observed";

/// The task file, from which a person can go on.
pub(super) fn text(arguments: &ObserveArgs) -> String {
    let mut task: Normal = vec![
        ("name", NAME.into()),
        ("filePath", format!("{}/{NAME}.log", super::super::run::LOG_ROOT).into()),
        ("description", "what `flowlog observe` showed".into()),
    ];
    let keys = ["includeFilters", "excludeFilters"];
    for (key, filters) in keys.into_iter().zip(arguments.filters.filters.lists()) {
        if !filters.is_empty() {
            task.push((key, Value::from(filters.iter().map(value).collect::<Vec<_>>())));
        }
    }
    if !arguments.field_mask.is_empty() {
        task.push(("fieldMask", arguments.field_mask.clone().into()));
    }
    if arguments.output == Shape::Flat {
        task.push(("format", "flat".into()));
    }
    format!("{}{}", comment(arguments), config::yaml(&[task]))
}

/// How to run it: which interfaces are watched is the daemon's business, not a task's.
fn comment(arguments: &ObserveArgs) -> String {
    let flag = |name: &'static str, globs: &[String]| -> String {
        globs.iter().map(|glob| format!(" {name} {}", quoted(glob))).collect()
    };
    format!(
        "# Keeps what was observed. Save it as {NAME}.yaml, then:\n#   flowlog run --tasks {NAME}.yaml{}{}\n",
        flag("--interface", &arguments.filters.interfaces),
        flag("--exclude-interface", &arguments.filters.exclude),
    )
}

/// A word as a shell takes it, on one line.
fn quoted(word: &str) -> String {
    let line: String = word.chars().filter(|c| !c.is_control()).collect();
    format!("'{}'", line.replace('\'', r"'\''"))
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Unsigned(number) => (*number).into(),
        Json::Signed(number) => (*number).into(),
        Json::Float(number) => (*number).into(),
        Json::Text(text) => Value::from(&**text),
        Json::List(items) => items.iter().map(value).collect(),
        Json::Map(entries) => entries.iter().map(|(key, entry)| (key.to_string(), value(entry))).collect(),
    }
}

/// Reads the task as a daemon would; warnings go to the log.
///
/// # Errors
/// What is wrong with it, such as a path in the mask.
pub(super) fn read(text: &str) -> anyhow::Result<Planned> {
    let (plan, warnings) = config::read("the flags as a task", text)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    match plan.tasks.into_iter().next() {
        Some(task) => Ok(task),
        None => bail!("the flags make no task"),
    }
}
