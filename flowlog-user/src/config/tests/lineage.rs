//! Whose form of a task a newer one is, what of it counts, and what goes on when the newest cannot.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::gone_pools::{look, refused, start};
use super::pools::{folder, own, takes};
use crate::config::versions::Form;
use crate::config::{Config, Outcome, Sources, load, migrations};
use crate::write::{Roots, StateDir};

const HUBBLE: &str = "flowLogs:\n- {name: audit, filePath: /l/audit.log}\n";

/// Something done to the files of a folder.
type Step<'a> = &'a dyn Fn(&Path);

fn v1(rest: &str) -> String {
    format!("apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {{name: audit, {rest}}}\n")
}

/// Where the task stands that is in force, its form, and what `status` says of the form.
fn in_force(config: &Config) -> (String, Form, String) {
    let Some(task) = config.tasks().get("audit") else { return Default::default() };
    let origin = config.origin("audit", &task.file).unwrap_or_else(|| panic!("{}", task.file.display()));
    (task.file.file_name().unwrap().to_string_lossy().into_owned(), origin.form, origin.message)
}

#[test]
fn a_newer_form_that_is_refused_leaves_the_older_one_as_it_is() {
    let taken =
        "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {name: other, filePath: /l/taken.log}\n";
    let cases = [
        // Same owner by its path, by its name beside the old one, and by what it says of itself.
        ("b.yaml", v1("filePath: /l/audit.log, where: {source_pool: [nope]}")),
        ("z.v1.yaml", v1("filePath: /l/else.log, where: {source_pool: [nope]}")),
        (
            "z-2.v1.yaml",
            format!(
                "{}convertedFrom: {{file: z.yaml, form: hubble, hash: ab}}\n",
                v1("filePath: /l/else.log, where: {source_pool: ['!nope']}")
            ),
        ),
        ("z.v1.yaml", v1("filePath: /elsewhere/audit.log")),
        // Somebody else writes that file already.
        ("z.v1.yaml", v1("filePath: /l/taken.log")),
    ];
    let roots = tempfile::tempdir().unwrap();
    let root = |text: &str| text.replace("/l/", &format!("{}/", roots.path().display()));
    for (name, newer) in cases {
        let (folder, state) =
            (folder(&[("z.yaml", &root(HUBBLE)), ("a.yaml", &root(taken))]), tempfile::tempdir().unwrap());
        let start = || {
            let sources = Sources {
                roots: Some(Arc::new(Roots::new(&[roots.path().to_owned()]).unwrap())),
                ..Sources::from(vec![folder.path().to_owned()])
            };
            let mut config = Config::new(sources, Some(Arc::new(StateDir::open(state.path()).unwrap())));
            config.start(1);
            config.unwritten().write().unwrap();
            config
        };
        let check = |config: &Config, when: &str| {
            let (file, form, message) = in_force(config);
            assert_eq!((&*file, form), ("z.yaml", Form::Hubble), "{name} {when}: {}", refused(config));
            let expected =
                format!("{name} says it in flowlog.io/v1 and is refused: correct that, and it counts; keep ");
            assert!(message.contains(&expected), "{name} {when}: {message}");
            assert!(!message.contains("does not count") && !message.contains("--write"), "{message}");
            assert!(refused(config).contains(name), "{when}: {}", refused(config));
            let why = config.refused("audit", &config.tasks()["audit"].file);
            assert!(why.is_some_and(|why| why[0].place.file.ends_with(name)), "{name} {when}: {why:?}");
        };
        let mut config = start();
        assert_eq!(in_force(&config).0, "z.yaml");
        fs::write(folder.path().join(name), root(&newer)).unwrap();
        look(&mut config);
        check(&config, "live");
        drop(config);
        check(&start(), "after a restart");
        fs::remove_dir_all(state.path().join("tasks")).unwrap();
        let mut config = start();
        check(&config, "at a first start");
        // Its own text still counts, and so does the newer form as soon as it can.
        fs::write(folder.path().join(name), root(&v1("filePath: /l/audit.log, team: new"))).unwrap();
        look(&mut config);
        assert_eq!(&*in_force(&config).0, name, "{}", refused(&config));
    }
}

#[test]
fn an_older_form_follows_its_own_text_while_the_newer_one_is_refused() {
    let folder = folder(&[
        ("audit.yaml", HUBBLE),
        ("audit.v1.yaml", &v1("filePath: /l/audit.log, where: {source_pool: [nope]}")),
    ]);
    let mut config = Config::new(&[folder.path().to_owned()], None);
    config.start(1);
    fs::write(folder.path().join("audit.yaml"), HUBBLE.replace("audit.log}", "audit.log, fileMaxSizeMb: 7}"))
        .unwrap();
    look(&mut config);
    assert_eq!(config.tasks()["audit"].spec.file.size_bytes_max, 7 << 20);
    // What was in force of the newer form stays when that becomes bad.
    fs::write(folder.path().join("audit.v1.yaml"), v1("filePath: /l/audit.log, fileMaxSizeMb: 9")).unwrap();
    look(&mut config);
    fs::write(
        folder.path().join("audit.v1.yaml"),
        v1("filePath: /l/audit.log, where: {source_pool: [nope]}"),
    )
    .unwrap();
    look(&mut config);
    assert_eq!((config.tasks()["audit"].spec.file.size_bytes_max, in_force(&config).1), (9 << 20, Form::V1));
    // `check` says what is wrong, and not that it counts.
    let error = load(&[folder.path().to_owned()]).unwrap_err().to_string();
    assert!(error.contains("nope") && !error.contains("which counts"), "{error}");
}

#[test]
fn a_form_of_somebody_else_is_a_clash_and_who_runs_keeps_the_name() {
    let newer = v1("filePath: /l/theirs.log");
    let marked = format!("{newer}convertedFrom: {{file: tasks.yaml, form: hubble, hash: ab}}\n");
    for (own, theirs, text) in [
        ("teamA/tasks.yaml", "teamB/b.yaml", &newer),
        ("teamA/tasks.yaml", "teamB/tasks.yaml", &newer),
        ("teamA/tasks.yaml", "teamB/tasks.v1.yaml", &marked),
        ("teamB/tasks.yaml", "teamA/tasks.v1.yaml", &newer),
        ("a.yaml", "b.yaml", &newer),
        ("b.yaml", "a.yaml", &newer),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for team in ["teamA", "teamB"] {
            fs::create_dir(folder.path().join(team)).unwrap();
        }
        let own = folder.path().join(own);
        fs::write(&own, HUBBLE).unwrap();
        let mut config = Config::new(&[folder.path().to_owned()], None);
        config.start(1);
        fs::write(folder.path().join(theirs), text).unwrap();
        look(&mut config);
        assert_eq!(&*config.tasks()["audit"].file, own, "{theirs}");
        assert!(refused(&config).contains("task name `audit` is taken at "), "{}", refused(&config));
        assert!(load(&[folder.path().to_owned()]).is_err());
        // The owner moves to the newer form, which the clash does not hinder.
        let migrated = own.with_file_name(format!("{}.v1.yaml", own.file_stem().unwrap().display()));
        fs::write(&migrated, v1("filePath: /l/audit.log")).unwrap();
        look(&mut config);
        assert_eq!(&*config.tasks()["audit"].file, migrated, "{theirs}");
    }
}

#[test]
fn the_addresses_of_a_pool_that_is_gone_go_with_the_task_into_its_newer_form_and_its_new_file() {
    const TASK: &str = "flowLogs:\n- {name: a, filePath: /l/a, where: {source_pool: [green]}}\n";
    let migrate = |folder: &Path| {
        let all = migrations(&[folder.to_owned()], Form::V1, Path::new("/l")).unwrap();
        let Outcome::Convert { target, text, .. } = &all[0].outcome else { panic!("{all:?}") };
        fs::write(target, text).unwrap();
    };
    let delete = |folder: &Path| fs::remove_file(folder.join("t.yaml")).unwrap();
    let rename = |folder: &Path| fs::rename(folder.join("t.yaml"), folder.join("u.yaml")).unwrap();
    let spoil = |folder: &Path| {
        let other = TASK.replace("green", "nope");
        fs::write(folder.join("t.v1.yaml"), format!("apiVersion: flowlog.io/v1\nkind: FlowLogs\n{other}"))
            .unwrap();
    };
    let steps: [&[Step<'_>]; 5] =
        [&[&migrate], &[&migrate, &delete], &[&rename], &[&rename, &migrate], &[&spoil]];
    for (number, steps) in steps.into_iter().enumerate() {
        for while_it_runs in [true, false] {
            let (folder, state) = (
                folder(&[("t.yaml", TASK), ("p.yaml", &own("green", "{cidrs: [10.0.0.0/8]}"))]),
                tempfile::tempdir().unwrap(),
            );
            let check = |config: &Config| {
                let when = format!("{number} {while_it_runs}");
                assert!(config.tasks().contains_key("a"), "{when}: {}", refused(config));
                assert_eq!(
                    (takes(config, "a", "10.0.0.1"), takes(config, "a", "11.0.0.1")),
                    (true, false),
                    "{when}"
                );
                let said = config.refused("a", &config.tasks()["a"].file).map(|of| of[0].message.clone());
                assert!(
                    said.is_some_and(|said| said.contains("goes on with the addresses that it had")),
                    "{when}"
                );
            };
            let (mut config, _) = start(folder.path(), state.path(), false);
            fs::remove_file(folder.path().join("p.yaml")).unwrap();
            look(&mut config);
            for step in steps {
                step(folder.path());
                if while_it_runs {
                    look(&mut config);
                    check(&config);
                }
            }
            drop(config);
            for _ in 0..2 {
                check(&start(folder.path(), state.path(), false).0);
            }
        }
    }
}

#[test]
fn status_offers_no_migration_that_would_refuse() {
    let folder = folder(&[
        ("audit.yaml", HUBBLE),
        ("audit.v1.yaml", "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs: 7\n"),
    ]);
    let mut config = Config::new(&[folder.path().to_owned()], None);
    config.start(1);
    let (file, form, message) = in_force(&config);
    assert_eq!((&*file, form), ("audit.yaml", Form::Hubble));
    assert!(
        message.contains("audit.v1.yaml beside it is not valid: correct that")
            && !message.contains("--write"),
        "{message}"
    );
}

#[test]
fn an_older_file_is_kept_while_the_newer_one_cannot_be_read() {
    let (old, new) = (folder(&[("audit.yaml", HUBBLE)]), tempfile::tempdir().unwrap());
    let (tasks, away) = (new.path().join("tasks2"), new.path().join("away"));
    fs::create_dir(&tasks).unwrap();
    fs::write(tasks.join("audit.yaml"), v1("filePath: /l/audit.log")).unwrap();
    let mut config = Config::new(&[old.path().to_owned(), tasks.clone()], None);
    config.start(1);
    let said = |config: &Config| in_force(config).2;
    assert!(said(&config).contains("it may be deleted"), "{}", said(&config));
    fs::rename(&tasks, &away).unwrap();
    look(&mut config);
    assert!(
        said(&config).ends_with(&format!("keep it until {} can be read", tasks.display())),
        "{}",
        said(&config)
    );
    fs::rename(&away, &tasks).unwrap();
    look(&mut config);
    assert!(said(&config).contains("it may be deleted"), "{}", said(&config));
}

#[test]
fn with_the_switch_nothing_is_said_to_be_converted() {
    let (folder, state) = (
        folder(&[("audit.yaml", HUBBLE), ("audit.v1.yaml", &v1("filePath: /l/audit.log"))]),
        tempfile::tempdir().unwrap(),
    );
    let (mut config, _) = start(folder.path(), state.path(), true);
    fs::remove_file(folder.path().join("audit.v1.yaml")).unwrap();
    look(&mut config);
    let (file, form, message) = in_force(&config);
    assert_eq!((&*file, form), ("audit.yaml", Form::Hubble));
    assert!(
        message
            .contains("--no-convert was given: the task goes on as it was, until flowlog is started again")
            && message.contains("--write`")
            && !message.contains("converted from"),
        "{message}"
    );
    let (config, _) = start(folder.path(), state.path(), true);
    assert!(config.tasks().is_empty() && refused(&config).contains("--no-convert was given"));
}
