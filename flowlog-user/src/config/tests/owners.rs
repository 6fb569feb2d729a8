use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{Config, Look, News};
use crate::limits::CONFIG_GONE_MS;
use crate::write::StateDir;

const GONE_NS: u64 = CONFIG_GONE_MS * 1_000_000;

fn one(name: &str) -> String {
    format!("flowLogs:\n- {{name: {name}, filePath: /l/{name}}}\n")
}

fn names(config: &Config) -> Vec<&str> {
    config.tasks().keys().map(String::as_str).collect()
}

/// What a look says, in short; problems by the text they must hold.
fn said(look: &Look) -> Vec<String> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    look.news
        .iter()
        // Every file here is in Hubble's form.
        .filter(|news| !matches!(news, News::Converted { .. }))
        .map(|news| match news {
            News::Accepted { file, .. } => format!("accepted {}", name(file)),
            News::Rejected { file, .. } => format!("rejected {}", name(file)),
            News::Converted { file, form, .. } => format!("converted {} from {}", name(file), form.name()),
            News::Restored { file, .. } => format!("restored {}", name(file)),
            News::Gone { file } => format!("gone {}", name(file)),
            News::PoolOther { name, .. } => format!("other pool {name}"),
            News::PoolGone { name, .. } => format!("gone pool {name}"),
            News::Noticed { file, warnings, refused } => {
                format!("noticed {}: {} warnings, {} refused", name(file), warnings.len(), refused.len())
            }
        })
        .collect()
}

fn started(path: &Path) -> Config {
    let mut config = Config::new(vec![path.to_owned()], None);
    config.start(1);
    config
}

#[test]
fn a_bad_file_leaves_only_its_own_tasks_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
    fs::write(&a, one("a")).unwrap();
    fs::write(&b, one("b")).unwrap();
    let mut config = started(folder.path());
    let bomb: String = std::iter::once("a0: &a0 [x, x]\n".to_owned())
        .chain((1..30).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)))
        .collect();
    let deep = "[".repeat(100_000);
    let bad: [(&[u8], &str); 9] = [
        (b"", "nothing stands in this file"),
        (b"flowLogs:\n- {name: x, filePath: /l/x", "this is not YAML"),
        (b"flowLogs:\n\t- name: x\n", "this is not YAML"),
        (b"flowLogs: []\n# \xff\n", "line 2 is not UTF-8"),
        (b"flowLogs:\n- {name: x, name: y, filePath: /l/x}\n", "twice"),
        (b"flowLogs:\n- {name: 7, filePath: /l/x}\n", "7"),
        (
            b"flowLogs:\n- {name: x, filePath: /l/x}\n- {name: x, filePath: /l/y}\n",
            "task name `x` is taken at",
        ),
        (bomb.as_bytes(), "aliases"),
        (deep.as_bytes(), "recursion limit"),
    ];
    for (round, (text, word)) in bad.into_iter().enumerate() {
        fs::write(&a, text).unwrap();
        // The other file goes on changing.
        let next = format!("b{round}");
        fs::write(&b, one(&next)).unwrap();
        let look = config.look(1, false);
        assert_eq!(said(&look), ["rejected a.yaml", "accepted b.yaml"], "{word}");
        let News::Rejected { problems, .. } = &look.news[0] else { unreachable!() };
        assert!(problems.iter().any(|problem| problem.to_string().contains(word)), "{word}: {problems:?}");
        assert!(problems.iter().all(|problem| *problem.place.file == *a.to_string_lossy()));
        assert_eq!(names(&config), ["a", &next]);
        assert!(config.rejected(&a).is_some() && config.rejected(&b).is_none());
        // Said once.
        assert!(config.look(1, false).news.is_empty());
    }
    fs::write(&a, one("new")).unwrap();
    assert_eq!(said(&config.look(1, false)), ["accepted a.yaml"]);
    assert_eq!(names(&config), ["b8", "new"]);
    assert!(config.error().is_none());
}

#[test]
fn what_stands_in_a_files_place_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let a = folder.path().join("a.yaml");
    let write = || fs::write(&a, one("a")).unwrap();
    for paths in [folder.path().to_owned(), a.clone()] {
        write();
        let mut config = started(&paths);
        let check = |config: &mut Config, what: &str| {
            assert_eq!(said(&config.look(1, false)), ["rejected a.yaml"], "{what}");
            assert_eq!(names(config), ["a"], "{what}");
        };
        fs::remove_file(&a).unwrap();
        fs::create_dir(&a).unwrap();
        check(&mut config, "a folder");
        fs::remove_dir(&a).unwrap();
        symlink("a.yaml", &a).unwrap();
        check(&mut config, "a circle");
        fs::remove_file(&a).unwrap();
        symlink("nowhere", &a).unwrap();
        check(&mut config, "a link before its target");
        fs::remove_file(&a).unwrap();
        write();
        assert_eq!(said(&config.look(1, false)), ["accepted a.yaml"]);
        assert!(config.error().is_none());
        fs::remove_file(&a).unwrap();
    }
}

#[test]
fn a_file_that_stays_away_takes_its_tasks_along_and_a_folder_does_not() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("tasks");
    fs::create_dir(&folder).unwrap();
    for name in ["a", "b"] {
        fs::write(folder.join(format!("{name}.yaml")), one(name)).unwrap();
    }
    let mut config = started(&folder);
    let b = folder.join("b.yaml");
    fs::remove_file(&b).unwrap();
    let look = config.look(10, false);
    assert!(look.again && look.news.is_empty() && look.decision.is_none());
    // It is back before the time is up: nothing has happened.
    fs::write(&b, one("b")).unwrap();
    let look = config.look(10 + GONE_NS, false);
    assert!(!look.again && look.news.is_empty() && look.decision.is_none());
    fs::remove_file(&b).unwrap();
    assert!(config.look(20, false).again);
    assert_eq!(said(&config.look(20 + GONE_NS, false)), ["gone b.yaml"]);
    assert_eq!(names(&config), ["a"]);
    // The folder is moved away and comes back with other content.
    fs::rename(&folder, parent.path().join("away")).unwrap();
    assert_eq!(said(&config.look(30, false)), ["rejected tasks"]);
    assert!(config.look(30 + 2 * GONE_NS, false).news.is_empty());
    assert_eq!(names(&config), ["a"]);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("c.yaml"), one("c")).unwrap();
    assert!(config.look(40, false).again);
    assert_eq!(said(&config.look(40 + GONE_NS, false)), ["accepted c.yaml", "gone a.yaml"]);
    assert_eq!(names(&config), ["c"]);
}

#[test]
fn a_renamed_file_is_refused_nothing_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
    fs::write(&old, one("a")).unwrap();
    let mut config = started(folder.path());
    fs::rename(&old, &new).unwrap();
    // SIGHUP right behind it changes nothing of that.
    for (now_ns, force) in [(10, false), (11, true), (9 + GONE_NS, false)] {
        let look = config.look(now_ns, force);
        assert!(look.again && look.news.is_empty() && look.decision.is_none(), "{now_ns}");
        assert!(config.error().is_none() && *config.tasks()["a"].file == *old, "{now_ns}");
    }
    let look = config.look(10 + GONE_NS, false);
    assert_eq!(said(&look), ["accepted b.yaml", "gone a.yaml"]);
    assert!(look.decision.unwrap().refused.is_empty() && config.error().is_none());
    assert_eq!(*config.tasks()["a"].file, *new);
}

#[test]
fn files_that_come_and_go_hold_a_change_up_once() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(format!("{name}.yaml")));
    fs::write(&a, one("a")).unwrap();
    fs::write(&b, one("b")).unwrap();
    let mut config = started(folder.path());
    fs::write(&c, one("c")).unwrap();
    fs::remove_file(&a).unwrap();
    assert!(config.look(10, false).decision.is_none());
    fs::write(&a, one("a")).unwrap();
    fs::remove_file(&b).unwrap();
    let look = config.look(10 + GONE_NS, false);
    assert!(look.again && look.decision.is_some(), "another one is away, and c has waited");
    assert_eq!((said(&look), names(&config)), (vec!["accepted c.yaml".to_owned()], vec!["a", "b", "c"]));
}

#[test]
fn the_last_accepted_text_is_used_at_a_start_and_said() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("tasks");
    fs::create_dir(&folder).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(folder.join(format!("{name}.yaml")), one(name)).unwrap();
    }
    let state = Arc::new(StateDir::open(&parent.path().join("state")).unwrap());
    let restart = || {
        let mut config = Config::new(vec![folder.clone()], Some(Arc::clone(&state)));
        let look = config.start(1);
        config.unwritten().write().unwrap();
        (config, said(&look))
    };
    restart();
    fs::write(folder.join("a.yaml"), "flowLogs: 7").unwrap();
    fs::remove_file(folder.join("b.yaml")).unwrap();
    let (config, said) = restart();
    assert_eq!(said, ["rejected a.yaml", "accepted c.yaml", "restored a.yaml"]);
    assert_eq!(names(&config), ["a", "c"]);
    // What went while the daemon was down is forgotten, and does not come back when the folder is away.
    fs::rename(&folder, parent.path().join("away")).unwrap();
    let (mut config, said) = restart();
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(names(&config), ["a", "c"]);
    fs::rename(parent.path().join("away"), &folder).unwrap();
    fs::write(folder.join("a.yaml"), one("a2")).unwrap();
    config.look(2, false);
    assert_eq!(names(&config), ["a2", "c"]);
    // Kept texts are for the daemon alone.
    for entry in fs::read_dir(parent.path().join("state/tasks")).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_text_is_looked_at_once_and_forced_looks_only_decide_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, one("a")).unwrap();
    let mut config = started(folder.path());
    fs::write(&file, one("a")).unwrap();
    let look = config.look(1, false);
    assert!(look.news.is_empty() && look.decision.is_none());
    let look = config.look(1, true);
    assert!(look.news.is_empty() && look.decision.is_some());
}

#[test]
fn events_of_strangers_beside_a_file_do_not_concern_it() {
    let config = started(&PathBuf::from("/etc/flowlog/tasks.yaml"));
    let (own, other) = (Path::new("/etc/flowlog"), Path::new("/somewhere"));
    for (folder, name, expected) in [
        (own, Some("tasks.yaml"), true),
        (own, Some("..data"), true),
        (own, Some("other.yaml"), false),
        (own, None, true),
        (other, Some("target"), true),
    ] {
        assert_eq!(config.concerns(folder, name), expected, "{folder:?} {name:?}");
    }
    let config = started(&PathBuf::from("/etc/flowlog"));
    assert!(config.concerns(own, Some("new.yaml")) && config.concerns(&own.join("team"), Some("x.yaml")));
    assert!(!config.concerns(own, Some(".swp")) && !config.concerns(Path::new("/etc"), Some("passwd")));
}
