//! What others wait for stays with its owner when the owner's file is another, whether the daemon runs meanwhile or not.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::gone_pools::{look, refused, start};
use super::pools::{cilium, folder, own};
use crate::config::versions::{DEFAULT_FOLDER, Form};
use crate::config::{Config, News, Outcome, Sources, migrations};
use crate::limits::CONFIG_GONE_MS;
use crate::write::StateDir;

/// What a folder holds at first: the owner's file `m.yaml`, and that of somebody who waits, `a.yaml`.
struct Case {
    what: &'static str,
    owner: String,
    other: String,
    /// Who has it.
    has: fn(&Config) -> String,
    expected: &'static str,
}

fn path_of_web(config: &Config) -> String {
    config.tasks()["web"].spec.file.path.display().to_string()
}

fn size_of_web(config: &Config) -> String {
    (config.tasks()["web"].spec.file.size_bytes_max >> 20).to_string()
}

fn who_writes(config: &Config) -> String {
    let writes = config.tasks().values().find(|of| of.spec.file.path == Path::new("/l/web.log"));
    writes.unwrap().spec.name.clone()
}

fn block_of_green(config: &Config) -> String {
    config.pools().defined["green"].1.blocks_shown().next().unwrap()
}

fn tasks() -> Vec<Case> {
    let web = |path: &str| format!("flowLogs:\n- {{name: web, filePath: {path}}}\n");
    let v1 = |text: String| format!("apiVersion: flowlog.io/v1\nkind: FlowLogs\n{text}");
    let draft =
        "apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {name: web}\nspec: {}\n".to_owned();
    let api = "flowLogs:\n- {name: api, filePath: /l/web.log}\n".to_owned();
    let case = |what, owner, other, has, expected| Case { what, owner, other, has, expected };
    vec![
        case("a name", web("/l/web.log"), web("/l/theirs.log"), path_of_web, "/l/web.log"),
        case("a name, asked for in v1", web("/l/web.log"), v1(web("/l/x.log")), path_of_web, "/l/web.log"),
        case("a name of a draft", draft, web("/l/x.log"), path_of_web, "/var/log/flowlog/web.log"),
        case("both", web("/l/web.log"), web("/l/web.log, fileMaxSizeMb: 3"), size_of_web, "10"),
        case("a path", web("/l/web.log"), api.clone(), who_writes, "web"),
        case("a path, asked for in v1", web("/l/web.log"), v1(api), who_writes, "web"),
    ]
}

fn pools() -> Vec<Case> {
    let pool = |range: &str| own("green", &format!("{{cidrs: [{range}]}}"));
    let alpha = cilium("v2alpha1", "{ipv4: {cidrs: [10.0.0.0/8], maskSize: 28}}");
    let case = |what, owner, other| Case { what, owner, other, has: block_of_green, expected: "10.0.0.0/8" };
    vec![
        case("a pool", pool("10.0.0.0/8"), pool("11.0.0.0/8")),
        case("a pool of Cilium's", alpha, pool("11.0.0.0/8")),
    ]
}

fn rename(folder: &Path) {
    fs::rename(folder.join("m.yaml"), folder.join("z.yaml")).unwrap();
}

/// The two files have changed places, the owner's under another name.
fn swap(folder: &Path) {
    rename(folder);
    fs::rename(folder.join("a.yaml"), folder.join("m.yaml")).unwrap();
}

/// The same, said in other words.
fn rename_and_comment(folder: &Path) {
    let text = fs::read_to_string(folder.join("m.yaml")).unwrap();
    fs::write(folder.join("z.yaml"), format!("# moved\n{text}")).unwrap();
    fs::remove_file(folder.join("m.yaml")).unwrap();
}

fn migrate(folder: &Path) -> String {
    let all = migrations(&[folder.join("m.yaml")], Form::V1, Path::new(DEFAULT_FOLDER)).unwrap();
    let Outcome::Convert { target, text, .. } = &all[0].outcome else { panic!("{all:?}") };
    assert!(target.ends_with("m.v1.yaml"));
    fs::remove_file(folder.join("m.yaml")).unwrap();
    text.clone()
}

fn migrate_and_delete(folder: &Path) {
    let text = migrate(folder);
    fs::write(folder.join("m.v1.yaml"), text).unwrap();
}

/// The mark says of what it was made, though nothing else does.
fn migrate_change_and_rename(folder: &Path) {
    let text = migrate(folder)
        .replace("    filePath: /l/web.log", "    filePath: /l/web.log\n    fileMaxSizeMb: 77");
    fs::write(folder.join("z.yaml"), text).unwrap();
}

/// As the newer version of the resource, elsewhere, and with more addresses.
fn to_v2(folder: &Path) {
    let text = fs::read_to_string(folder.join("m.yaml")).unwrap();
    fs::write(folder.join("z.yaml"), text.replace("v2alpha1", "v2").replace("/8]", "/8, 12.0.0.0/8]"))
        .unwrap();
    fs::remove_file(folder.join("m.yaml")).unwrap();
}

type Way = (&'static str, fn(&Path));

const RENAMED: [Way; 3] =
    [("renamed", rename), ("swapped", swap), ("renamed with a comment", rename_and_comment)];
const MIGRATED: [Way; 2] = [
    ("migrated and deleted", migrate_and_delete),
    ("migrated, changed and renamed", migrate_change_and_rename),
];

/// Does it both ways; gives what is told.
fn check(Case { what, owner, other, has, expected }: &Case, (way, change): Way, runs: bool) -> Vec<News> {
    let case = format!("{what}, {way}, {}", if runs { "running" } else { "down" });
    let (folder, state) = (folder(&[("m.yaml", owner)]), tempfile::tempdir().unwrap());
    let (mut config, _) = start(folder.path(), state.path(), false);
    fs::write(folder.path().join("a.yaml"), other).unwrap();
    look(&mut config);
    assert_eq!((has(&config).as_str(), refused(&config).is_empty()), (*expected, false), "{case}");
    let mut told = Vec::new();
    if runs {
        change(folder.path());
        for now_ms in [0, CONFIG_GONE_MS] {
            told.extend(config.look(9 + now_ms * 1_000_000, false).news);
            assert_eq!(has(&config), *expected, "{case}");
        }
        config.unwritten().write().unwrap();
    } else {
        drop(config);
        change(folder.path());
    }
    for _ in 0..2 {
        let (config, news) = start(folder.path(), state.path(), false);
        assert_eq!(has(&config), *expected, "{case}");
        assert!(!refused(&config).is_empty(), "{case}: the other one waits still");
        told.extend(news);
    }
    told
}

#[test]
fn a_name_and_a_path_stay_with_whoever_had_them_when_the_file_is_another() {
    for case in tasks() {
        // In v1 what writes to the same file is a form of it, whoever wrote that.
        let migrated = MIGRATED.into_iter().filter(|_| case.what != "both");
        for way in RENAMED.into_iter().chain(migrated) {
            for runs in [true, false] {
                check(&case, way, runs);
            }
        }
    }
}

#[test]
fn a_pool_stays_with_whoever_had_it_when_the_file_is_another() {
    for case in pools() {
        let newer = case.owner.contains("v2alpha1").then_some(("of the newer version", to_v2 as fn(&Path)));
        for way in RENAMED.into_iter().chain(newer) {
            for runs in [true, false] {
                let told = check(&case, way, runs);
                let other =
                    told.iter().filter(|news| matches!(news, News::PoolOther { .. } | News::PoolGone { .. }));
                assert_eq!(other.count(), usize::from(way.0 == "of the newer version"), "{told:?}");
            }
        }
    }
}

#[test]
fn a_mark_or_a_text_alone_shows_whose_a_definition_is() {
    let folder_of = |folder: &Path, root: &str| Sources {
        log_root: Some(root.into()),
        ..Sources::from(vec![folder.to_owned()])
    };
    for runs in [true, false] {
        // Of a draft, in v1, with another filePath, and not beside where that was.
        let draft = "apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {name: web}\nspec: {}\n";
        let other = "flowLogs:\n- {name: web, filePath: /l/theirs.log}\n";
        let (folder, state) = (folder(&[("m.yaml", draft)]), tempfile::tempdir().unwrap());
        let (mut config, _) = start(folder.path(), state.path(), false);
        fs::write(folder.path().join("a.yaml"), other).unwrap();
        look(&mut config);
        let text = migrate(folder.path()).replace("/var/log/flowlog/web.log", "/l/mine.log");
        fs::create_dir(folder.path().join("z")).unwrap();
        fs::write(folder.path().join("z/z.yaml"), text).unwrap();
        match runs {
            true => look(&mut config),
            false => config = start(folder.path(), state.path(), false).0,
        }
        assert_eq!(path_of_web(&config), "/l/mine.log", "{runs}");
        // A draft as it was, where other files are written.
        fs::remove_file(folder.path().join("z/z.yaml")).unwrap();
        fs::remove_file(folder.path().join("a.yaml")).unwrap();
        fs::write(folder.path().join("m.yaml"), draft).unwrap();
        start(folder.path(), state.path(), false);
        fs::write(folder.path().join("a.yaml"), other).unwrap();
        rename(folder.path());
        let kept = Some(Arc::new(StateDir::open(state.path()).unwrap()));
        let mut config = Config::new(folder_of(folder.path(), "/elsewhere"), kept);
        config.start(1);
        assert_eq!(path_of_web(&config), "/elsewhere/web.log");
    }
}

/// The task is called otherwise, and writes where it did.
#[test]
fn a_path_stays_with_a_task_that_gets_another_name() {
    for runs in [true, false] {
        let text = "flowLogs:\n- {name: web, filePath: /l/web.log}\n";
        let (folder, state) = (folder(&[("m.yaml", text)]), tempfile::tempdir().unwrap());
        let (mut config, _) = start(folder.path(), state.path(), false);
        // One that is new, and one that has a file and asks for this one.
        fs::write(folder.path().join("a.yaml"), text.replace("web,", "api,")).unwrap();
        fs::write(folder.path().join("b.yaml"), text.replace("web,", "b,").replace("web.log", "b.log"))
            .unwrap();
        look(&mut config);
        fs::write(folder.path().join("b.yaml"), text.replace("web,", "b,")).unwrap();
        look(&mut config);
        assert_eq!(who_writes(&config), "web");
        fs::write(folder.path().join("m.yaml"), text.replace("web,", "site,")).unwrap();
        if runs {
            look(&mut config);
        } else {
            config = start(folder.path(), state.path(), false).0;
        }
        let names: Vec<&str> = config.tasks().keys().map(String::as_str).collect();
        assert_eq!((who_writes(&config).as_str(), names.as_slice()), ("site", &["b", "site"][..]), "{runs}");
    }
}

#[test]
fn a_copy_takes_nothing_over_and_what_is_given_up_is_free() {
    let text = "flowLogs:\n- {name: web, filePath: /l/web.log}\n";
    let pool = own("green", "{cidrs: [10.0.0.0/8]}");
    for runs in [true, false] {
        let (folder, state) = (folder(&[("m.yaml", text), ("p.yaml", &pool)]), tempfile::tempdir().unwrap());
        let (mut config, _) = start(folder.path(), state.path(), false);
        let again = |config: &mut Config| {
            if runs {
                look(config);
            } else {
                *config = start(folder.path(), state.path(), false).0;
            }
        };
        // A copy of what it was, first in byte order, and the original is changed.
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        fs::write(folder.path().join("b.yaml"), &pool).unwrap();
        fs::write(folder.path().join("m.yaml"), text.replace("web.log", "new.log")).unwrap();
        fs::write(folder.path().join("p.yaml"), pool.replace("10.", "12.")).unwrap();
        again(&mut config);
        assert_eq!(
            (path_of_web(&config).as_str(), block_of_green(&config).as_str()),
            ("/l/new.log", "12.0.0.0/8")
        );
        // Nobody says the same as the owner did: whoever waits has it.
        fs::remove_file(folder.path().join("m.yaml")).unwrap();
        fs::remove_file(folder.path().join("p.yaml")).unwrap();
        again(&mut config);
        assert_eq!(
            (path_of_web(&config).as_str(), block_of_green(&config).as_str()),
            ("/l/web.log", "10.0.0.0/8")
        );
        assert_eq!(refused(&config), "");
    }
}

#[test]
fn a_pool_that_another_file_has_now_with_other_addresses_is_told_of() {
    let green = |spec: &str| own("green", spec);
    let task = "flowLogs:\n- {name: a, filePath: /l/a, where: {source_pool: [green]}}\n";
    for runs in [true, false] {
        let (folder, state) = (
            folder(&[("m.yaml", &green("{cidrs: [10.0.0.0/24]}")), ("t.yaml", task)]),
            tempfile::tempdir().unwrap(),
        );
        let (mut config, _) = start(folder.path(), state.path(), false);
        let other = green("{cidrs: [10.0.0.128/25, 11.0.0.0/30], reserved: [11.0.0.0/31]}");
        fs::write(folder.path().join("a.yaml"), other).unwrap();
        look(&mut config);
        fs::remove_file(folder.path().join("m.yaml")).unwrap();
        let news = if runs {
            config.look(9, false);
            config.look(9 + CONFIG_GONE_MS * 1_000_000, false).news
        } else {
            start(folder.path(), state.path(), false).1
        };
        let told = news.iter().filter_map(|news| match news {
            News::PoolOther { name, file, what, is_older, tasks } => {
                Some((name, file, what, is_older, tasks))
            }
            _ => None,
        });
        let [(name, file, what, false, tasks)] = told.collect::<Vec<_>>()[..] else { panic!("{news:?}") };
        assert_eq!(
            (&**name, file, tasks.as_slice()),
            ("green", &folder.path().join("a.yaml"), &["a".to_owned()][..])
        );
        let (a, m) = (file.display(), folder.path().join("m.yaml"));
        let expected = format!(
            "it is defined in {a} instead of {}: 4 addresses more, 128 fewer, 2 reserved instead of 0",
            m.display()
        );
        assert_eq!(what, &expected);
    }
}
