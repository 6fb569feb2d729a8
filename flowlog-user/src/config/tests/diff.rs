use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use crate::config::document::{self, Holds};
use crate::config::versions::DEFAULT_FOLDER;
use crate::config::{Decision, Others, Tasks, decide as decide_among};
use crate::task::Spec;
use crate::tree::Problems;

/// Files by name, each a list of (task, path, `updateInterval` in seconds).
type Written<'a> = &'a [(&'a str, &'a [(&'a str, &'a str, u32)])];

fn text(tasks: &[(&str, &str, u32)]) -> String {
    let mut text = String::from("flowLogs:\n");
    for (name, path, seconds) in tasks {
        text += &format!("- {{name: {name}, filePath: /l/{path}, updateInterval: {seconds}s}}\n");
    }
    if tasks.is_empty() {
        text = "flowLogs: []\n".into();
    }
    text
}

fn files(written: Written<'_>) -> BTreeMap<PathBuf, Vec<Arc<Spec>>> {
    let read = |(file, tasks): &(&str, &[(&str, &str, u32)])| {
        let mut problems = Problems::default();
        let content =
            document::read(file, &text(tasks), Holds::Anything, Path::new(DEFAULT_FOLDER), &mut problems);
        assert_eq!(problems.to_string(), "");
        (PathBuf::from(file), content.tasks)
    };
    written.iter().map(read).collect()
}

/// Where each task stands in one form.
fn decide(files: &BTreeMap<PathBuf, Vec<Arc<Spec>>>, now: &Tasks) -> Decision {
    decide_among(files, &Others::new(), now)
}

fn shown(tasks: &Tasks) -> Vec<String> {
    tasks.values().map(|task| format!("{} {}", task.spec.name, task.spec.file.path.display())).collect()
}

fn refused(decision: &Decision) -> Vec<String> {
    decision.refused.iter().flat_map(|(_, problems)| problems).map(ToString::to_string).collect()
}

#[test]
fn at_a_start_the_first_file_in_byte_order_has_it_and_both_places_are_named() {
    let decision = decide(
        &files(&[("Z.yaml", &[("a", "1", 1)]), ("b.yaml", &[("a", "2", 1), ("c", "1", 1), ("d", "4", 1)])]),
        &Tasks::new(),
    );
    assert_eq!(shown(&decision.tasks), ["a /l/1", "d /l/4"]);
    assert_eq!(
        refused(&decision),
        [
            "b.yaml:2:10: flowLogs[0].name: task name `a` is taken at Z.yaml:2:10; choose another",
            "b.yaml:3:23: flowLogs[1].filePath: `/l/1` is written by task `a` at Z.yaml:2:23; choose another",
        ]
    );
}

#[test]
fn what_runs_keeps_name_and_path_and_gives_them_up_when_it_goes() {
    let late = decide(&files(&[("b.yaml", &[("a", "1", 1)])]), &Tasks::new());
    let both = files(&[("a.yaml", &[("a", "2", 1), ("x", "1", 1)]), ("b.yaml", &[("a", "1", 1)])]);
    let decision = decide(&both, &late.tasks);
    assert_eq!(shown(&decision.tasks), ["a /l/1"]);
    assert_eq!(decision.refused.len(), 2);
    let gone = decide(&files(&[("a.yaml", &[("a", "2", 1), ("x", "1", 1)])]), &decision.tasks);
    assert_eq!(shown(&gone.tasks), ["a /l/2", "x /l/1"]);
    assert!(gone.refused.is_empty());
}

#[test]
fn two_tasks_may_swap_their_paths() {
    let before = decide(&files(&[("f.yaml", &[("a", "1", 1), ("b", "2", 1)])]), &Tasks::new());
    let after = decide(&files(&[("f.yaml", &[("a", "2", 1), ("b", "1", 1)])]), &before.tasks);
    assert_eq!(shown(&after.tasks), ["a /l/2", "b /l/1"]);
    assert!(after.refused.is_empty());
}

#[test]
fn a_changed_task_that_cannot_have_its_path_stays_as_it_was_and_holds_back_who_wants_the_old_one() {
    let before = decide(
        &files(&[("f.yaml", &[("a", "1", 1)]), ("g.yaml", &[("b", "2", 1)]), ("h.yaml", &[("c", "3", 1)])]),
        &Tasks::new(),
    );
    let after = decide(
        &files(&[("f.yaml", &[("a", "1", 1)]), ("g.yaml", &[("b", "1", 1)]), ("h.yaml", &[("c", "2", 1)])]),
        &before.tasks,
    );
    assert_eq!(shown(&after.tasks), ["a /l/1", "b /l/2", "c /l/3"]);
    assert_eq!(after.refused.len(), 2);
}

#[test]
fn a_fifth_cadence_is_refused_to_the_newcomer_only() {
    let four: Written<'_> = &[("f.yaml", &[("a", "1", 1), ("b", "2", 2), ("c", "3", 3), ("d", "4", 4)])];
    let before = decide(&files(four), &Tasks::new());
    assert_eq!(before.tasks.len(), 4);
    let five = [("a.yaml", &[("e", "5", 5), ("f", "6", 4)][..]), four[0]];
    let after = decide(&files(&five), &before.tasks);
    assert_eq!(after.tasks.len(), 5);
    let said = refused(&after);
    assert!(said.len() == 1 && said[0].starts_with("a.yaml:2:10: flowLogs[0].name: `e` "), "{said:?}");
}

/// One edit: a file gets these tasks (name, path, interval), or goes.
type Edit = (usize, Option<Vec<(usize, usize, u32)>>);

fn edit() -> impl Strategy<Value = Edit> {
    let task = (0..6_usize, 0..6_usize, 1..6_u32);
    (0..4_usize, prop::option::weighted(0.8, prop::collection::vec(task, 0..4)))
}

proptest! {
    /// Over any sequence of edits: nothing runs that no file has asked for, names, paths and cadences are one task's
    /// each, a task whose wish nobody else shares has it, and the same files again change nothing.
    #[test]
    fn random_edits(edits in prop::collection::vec(edit(), 1..20)) {
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut written: BTreeMap<PathBuf, Vec<Arc<Spec>>> = BTreeMap::new();
        let mut now = Tasks::new();
        for (file, tasks) in edits {
            let file = format!("{file}.yaml");
            match tasks {
                None => drop(written.remove(&PathBuf::from(&file))),
                Some(tasks) => {
                    // A file contradicts itself never: such a one is not accepted as a whole.
                    let (mut seen, mut paths) = (BTreeSet::new(), BTreeSet::new());
                    let tasks: Vec<_> = tasks
                        .into_iter()
                        .filter(|(name, path, _)| seen.insert(*name) && paths.insert(*path))
                        .map(|(name, path, seconds)| (names[name], names[path], seconds))
                        .collect();
                    written.extend(files(&[(&file, &tasks)]));
                }
            }
            let before = now.clone();
            let decision = decide(&written, &before);
            now = decision.tasks.clone();
            let asked: Vec<&Arc<Spec>> = written.values().flatten().collect();
            let paths: BTreeSet<_> = now.values().map(|task| task.spec.file.path.clone()).collect();
            let cadences: BTreeSet<_> = now.values().map(|task| task.spec.cadence.to_string()).collect();
            prop_assert_eq!(paths.len(), now.len());
            prop_assert!(cadences.len() <= 4);
            for (name, task) in &now {
                prop_assert!(asked.iter().any(|spec| spec.name == *name), "{} is in no file", name);
                let as_before = before.get(name).is_some_and(|old| old.spec.differences(&task.spec).is_empty());
                let as_asked = asked.iter().any(|spec| spec.name == *name && spec.differences(&task.spec).is_empty());
                prop_assert!(as_before || as_asked);
            }
            for spec in &asked {
                let others = || asked.iter().filter(|other| !Arc::ptr_eq(other, spec));
                let held = |task: &crate::config::Owned| task.spec.file.path == spec.file.path && task.spec.name != spec.name;
                let free = others().all(|other| other.name != spec.name && other.file.path != spec.file.path)
                    && !now.values().any(held)
                    && cadences.contains(&spec.cadence.to_string());
                let has = now.get(&spec.name).is_some_and(|task| task.spec.differences(spec).is_empty());
                prop_assert!(has || !free, "{} is free to run and does not", spec.name);
            }
            // Every wish is granted or refused, none forgotten.
            let granted = asked.iter().filter(|spec| now.get(&spec.name).is_some_and(|task| Arc::ptr_eq(&task.spec, spec))).count();
            prop_assert_eq!(granted + decision.refused.len(), asked.len());
            let again = decide(&written, &now);
            prop_assert_eq!(shown(&again.tasks), shown(&now));
        }
    }
}
