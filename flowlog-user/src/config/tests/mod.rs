mod conditions;
mod diff;
mod drafts;
mod edits;
mod files;
mod filters;
mod golden;
mod gone_pools;
mod heirs;
mod hints;
mod hubble;
mod in_pools;
mod incumbents;
mod json;
mod leaving_out;
mod lineage;
mod migrating;
mod normal;
mod owners;
mod pools;
mod recorded;
mod refused;
mod schema;
mod superseded;
mod tasks;
mod twins;
mod versions;
mod watch;

use std::path::Path;

use super::document::{self, Holds};
use super::versions::DEFAULT_FOLDER;
use crate::task::{Plan, Spec};
use crate::tree::Problems;

/// Reads a text as the file `t.yaml`.
fn read(text: &str) -> (Vec<Spec>, Problems) {
    let mut problems = Problems::default();
    let content = document::read("t.yaml", text, Holds::Anything, Path::new(DEFAULT_FOLDER), &mut problems);
    (content.tasks.into_iter().map(|spec| Spec::clone(&spec)).collect(), problems)
}

/// The plan of a text in which nothing is wrong.
fn plan(text: &str) -> Plan {
    let (specs, mut problems) = read(text);
    let plan = Plan::new(specs, &mut problems);
    assert_eq!(problems.to_string(), "");
    plan
}

/// The one task of a text: `keys` are lines of it, indented by four.
fn task(keys: &str) -> Spec {
    let text = format!("flowLogs:\n  - name: a\n    filePath: /l/a.log\n{keys}");
    plan(&text).tasks.remove(0).spec
}
