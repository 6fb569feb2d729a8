//! Folders in which tasks stand in several forms: what counts, what is said of the older ones, and what is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::pools::folder;
use crate::config::versions::{DEFAULT_FOLDER, Form, same};
use crate::config::{Config, Migration, Outcome, load, migrations};
use crate::task::Spec;

const FORMS: [Form; 4] = [Form::Draft, Form::Hubble, Form::V1alpha1, Form::V1];

/// A file of a form with these tasks, and of each, where there is one, the port that it asks for.
fn text(form: Form, tasks: &[(&str, u16)]) -> String {
    let filters = |port: u16| format!("[{{destination_port: [\"{port}\"]}}]");
    if form == Form::Draft {
        let one = |(name, port): &(&str, u16)| {
            format!(
                "# of {name}\napiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {{name: {name}}}\nspec:\n  # ports of \
                 {name}\n  filters: {}\n",
                filters(*port)
            )
        };
        return tasks.iter().map(one).collect::<Vec<_>>().join("---\n");
    }
    let header = match form {
        Form::V1 => "apiVersion: flowlog.io/v1\nkind: FlowLogs\n",
        Form::V1alpha1 => "apiVersion: flowlog.io/v1alpha1\nkind: FlowLogs\n",
        _ => "",
    };
    let one = |(name, port): &(&str, u16)| {
        format!(
            "  # of {name}\n  - name: {name}\n    filePath: {DEFAULT_FOLDER}/{name}.log\n    # ports of {name}\n    includeFilters: \
             {}\n",
            filters(*port)
        )
    };
    let list: String = tasks.iter().map(one).collect();
    format!("# team net\n{header}flowLogs:{}\n{list}# the end\n", if tasks.is_empty() { " []" } else { "" })
}

fn migrate(folder: &Path, to: Form) -> Vec<Migration> {
    migrations(&[folder.to_owned()], to, Path::new(DEFAULT_FOLDER)).unwrap()
}

/// Writes what is to be written; each file once, and none that is there.
fn write(all: &[Migration]) -> usize {
    let mut written = 0;
    for migration in all {
        if let Outcome::Convert { target, text, .. } = &migration.outcome {
            assert!(!target.exists(), "{target:?}");
            fs::write(target, text).unwrap();
            written += 1;
        }
    }
    written
}

fn plan(folder: &Path) -> Option<BTreeMap<String, Spec>> {
    let loaded = load(&[folder.to_owned()]).ok()?;
    Some(loaded.plan.tasks.into_iter().map(|task| (task.spec.name.clone(), task.spec)).collect())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn only_what_is_missing_is_written_with_its_comments() {
    for older in [Form::Draft, Form::Hubble, Form::V1alpha1] {
        let folder = folder(&[
            ("web.yaml", &text(older, &[("a", 80), ("b", 81), ("c", 82)])),
            ("web.v1.yaml", &text(Form::V1, &[("b", 99)])),
        ]);
        let all = migrate(folder.path(), Form::V1);
        let Outcome::Convert { target, text, without } = &all[1].outcome else { panic!("{all:?}") };
        assert_eq!(name(target), "web-2.v1.yaml", "the name itself is another file's");
        assert!(
            without.len() == 1 && without[0].contains("task `b` is in ") && without[0].contains("\"99\""),
            "{without:?}"
        );
        for task in ["a", "c"] {
            let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
            let (of, named, ports) = (
                at(&format!("# of {task}\n")),
                at(&format!("- name: {task}\n")),
                at(&format!("# ports of {task}\n")),
            );
            assert!(
                of < named && named < ports && ports < at(if task == "a" { "[\"80\"]" } else { "[\"82\"]" }),
                "{text}"
            );
        }
        assert!(
            !text.contains("# of b") && !text.contains("# ports of b") && !text.contains("\"81\""),
            "{text}"
        );
        let before = plan(folder.path()).unwrap();
        assert_eq!(write(&all), 1);
        let after = plan(folder.path()).unwrap();
        assert!(
            before.len() == 3 && before.iter().zip(&after).all(|((_, one), (_, other))| same(one, other))
        );
        assert_eq!(write(&migrate(folder.path(), Form::V1)), 0, "done once");
    }
}

#[test]
fn a_name_that_is_taken_is_no_end() {
    // A file whose own name ends like that of a new one; two whose new ones would have one name.
    let folder = folder(&[
        ("z.v1.yaml", &text(Form::Hubble, &[("z", 80)])),
        ("y.yaml", &text(Form::Hubble, &[("y", 80)])),
        ("y.v1alpha1.yaml", &text(Form::V1alpha1, &[("x", 80)])),
    ]);
    let all = migrate(folder.path(), Form::V1);
    let targets: Vec<_> = all
        .iter()
        .map(|one| match &one.outcome {
            Outcome::Convert { target, .. } => name(target),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(targets, ["y.v1.yaml", "y-2.v1.yaml", "z-2.v1.yaml"]);
    assert_eq!(write(&all), 3);
    assert_eq!(plan(folder.path()).unwrap().len(), 3);
    // What is there and not valid may be meant to hold these tasks.
    fs::write(folder.path().join("w.yaml"), text(Form::Hubble, &[("w", 80)])).unwrap();
    fs::write(folder.path().join("w.v1.yaml"), "flowLogs: 7\n").unwrap();
    let all = migrate(folder.path(), Form::V1);
    let Outcome::Failed(problems) = &all.iter().find(|one| name(&one.file) == "w.yaml").unwrap().outcome
    else {
        panic!()
    };
    assert!(
        problems[0].message.ends_with(
            "w.v1.yaml is there and is not valid (expected a list, found `7`); correct it or move it away"
        ),
        "{problems:?}"
    );
}

#[test]
fn a_file_alone_is_migrated_as_its_folder_is() {
    let folder = folder(&[
        ("web.yaml", &text(Form::Hubble, &[("a", 80), ("b", 81)])),
        ("other.yaml", &text(Form::V1, &[("b", 81)])),
    ]);
    let file = folder.path().join("web.yaml");
    let all = migrations(&[file], Form::V1, Path::new(DEFAULT_FOLDER)).unwrap();
    let [Migration { outcome: Outcome::Convert { text, without, .. }, .. }] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert!(text.contains("name: a\n") && !text.contains("name: b\n"), "{text}");
    assert!(without[0].ends_with("other.yaml already"), "{without:?}");
}

#[test]
fn an_old_file_is_kept_as_long_as_it_has_a_task_s_only_definition() {
    let folder = folder(&[
        ("web.yaml", &text(Form::Hubble, &[("a", 80), ("b", 81), ("c", 82)])),
        ("web.v1.yaml", &text(Form::V1, &[("a", 80)])),
    ]);
    let message = |folder: &Path, task: &str| {
        let checked = load(&[folder.to_owned()]).unwrap().origins.remove(task).unwrap();
        let mut config = Config::new(&[folder.to_owned()], None);
        config.start(1);
        let told = config.origin(task, &config.tasks()[task].file).unwrap();
        assert_eq!(checked, told);
        told.message
    };
    let said = message(folder.path(), "a");
    let expected =
        "web.yaml says the same in Hubble's form; keep it for the tasks `b`, `c`, which stand nowhere else";
    assert!(said.ends_with(expected), "{said}");
    fs::write(folder.path().join("web.v1.yaml"), text(Form::V1, &[("a", 80), ("b", 80)])).unwrap();
    let said = message(folder.path(), "b");
    assert!(
        said.ends_with("make them agree first, then keep it for task `c`, which stands nowhere else"),
        "{said}"
    );
    write(&migrate(folder.path(), Form::V1));
    for task in ["a", "b", "c"] {
        let said = message(folder.path(), task);
        assert!(said.contains("it may be deleted once every node runs"), "{said}");
    }
    // As long as the newer file is bad, the older one is what a start without the state folder would find.
    let mut config = Config::new(&[folder.path().to_owned()], None);
    config.start(1);
    fs::write(folder.path().join("web.v1.yaml"), "flowLogs: 7\n").unwrap();
    config.look(1, false);
    let said = config.origin("a", &config.tasks()["a"].file).unwrap().message;
    assert!(said.contains("keep it until the errors of ") && !said.contains("deleted"), "{said}");
}

#[test]
fn of_two_older_forms_the_newer_counts() {
    for (at, newer) in FORMS.into_iter().enumerate() {
        for older in FORMS.into_iter().take(at) {
            for names in [["a.yaml", "b.yaml"], ["b.yaml", "a.yaml"]] {
                let folder =
                    folder(&[(names[0], &text(newer, &[("t", 80)])), (names[1], &text(older, &[("t", 81)]))]);
                let loaded = load(&[folder.path().to_owned()]).unwrap();
                assert_eq!((loaded.plan.tasks.len(), loaded.origins["t"].form), (1, newer));
                assert_eq!(
                    loaded.plan.tasks[0].spec.place.file,
                    folder.path().join(names[0]).to_string_lossy().into()
                );
                let said = &loaded.warnings[0];
                assert!(said.place.file.ends_with(names[1]), "{said}");
                assert!(said.message.starts_with(&format!("task `t` is there as {newer} at ")), "{said}");
                let mut config = Config::new(&[folder.path().to_owned()], None);
                config.start(1);
                assert!(config.wrong().is_empty() && name(&config.tasks()["t"].file) == names[0]);
            }
        }
    }
}

/// Files of all forms with some of the tasks each, no task twice in one form.
fn files() -> impl Strategy<Value = Vec<(String, String)>> {
    let of_form = prop::collection::vec((0_usize..3, 80_u16..82), 4);
    prop::collection::vec(of_form, 4).prop_map(|forms| {
        let mut files = Vec::new();
        for (form, tasks) in FORMS.into_iter().zip(forms) {
            for file in 1..3 {
                let mine = tasks.iter().zip(["t0", "t1", "t2", "t3"]).filter(|((at, _), _)| *at == file);
                let mine: Vec<_> = mine.map(|((_, port), name)| (name, *port)).collect();
                if !mine.is_empty() {
                    files.push((format!("f{file}.{}.yaml", form.name()), text(form, &mine)));
                }
            }
        }
        files
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is written, into whatever form: the folder stays valid, the tasks the same, and it is done once.
    #[test]
    fn a_folder_stays_valid_and_says_the_same(files in files(), to in prop::sample::select(FORMS.to_vec())) {
        let borrowed: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let folder = folder(&borrowed);
        let before = plan(folder.path()).unwrap();
        let all = migrate(folder.path(), to);
        prop_assert!(!all.iter().any(|one| matches!(one.outcome, Outcome::Failed(_))), "{:?}", all);
        write(&all);
        let after = plan(folder.path()).unwrap();
        prop_assert!(before.keys().eq(after.keys()));
        prop_assert!(before.values().zip(after.values()).all(|(one, other)| same(one, other)));
        prop_assert_eq!(write(&migrate(folder.path(), to)), 0);
        // Each task is in the form now.
        let there: BTreeSet<String> = all_names(folder.path(), to);
        prop_assert!(before.keys().all(|name| there.contains(name)), "{:?}", there);
        for (name, text) in &files {
            prop_assert_eq!(&fs::read_to_string(folder.path().join(name)).unwrap(), text);
        }
    }
}

/// Names of the tasks that files of a form have.
fn all_names(folder: &Path, form: Form) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for migration in migrate(folder, form) {
        if matches!(migration.outcome, Outcome::Current) {
            let text = fs::read_to_string(&migration.file).unwrap();
            let (specs, _) = super::read(&text);
            names.extend(specs.into_iter().map(|spec| spec.name));
        }
    }
    names
}
