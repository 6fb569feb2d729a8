//! Tasks that were taken out of a file of v1, or renamed in it, and still stand in the file that it was made of.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::gone_pools::{look, refused, start};
use super::pools::folder;
use crate::config::{Config, News, Outcome, load, migrations};

/// `web.yaml` in each older form, with the tasks `web` and `api`.
const OLDER: [(&str, &str); 3] = [
    ("hubble", "flowLogs:\n- {name: web, filePath: /l/web.log}\n- {name: api, filePath: /l/api.log}\n"),
    (
        "v1alpha1",
        "apiVersion: flowlog.io/v1alpha1\nkind: FlowLogs\nflowLogs:\n- {name: web, filePath: /l/web.log}\n- {name: api, filePath: \
         /l/api.log}\n",
    ),
    (
        "v1alpha1-flowlog",
        "apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {name: web}\nspec: {}\n---\napiVersion: \
         flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {name: api}\nspec: {}\n",
    ),
];

fn sha256sum(file: &Path) -> String {
    let sum = Command::new("sha256sum").arg(file).output().unwrap().stdout;
    String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().to_owned()
}

/// Puts `web.v1.yaml` beside `web.yaml`, as made of the text that this has now.
fn convert(folder: &Path, form: &str, tasks: &str) {
    let hash = sha256sum(&folder.join("web.yaml"));
    let mark = format!("convertedFrom: {{file: web.yaml, form: {form}, hash: {hash}}}");
    let text = format!("apiVersion: flowlog.io/v1\nkind: FlowLogs\n{mark}\nflowLogs: [{tasks}]\n");
    fs::write(folder.join("web.v1.yaml"), text).unwrap();
}

/// Name, file and filePath of each task.
fn tasks(config: &Config) -> Vec<String> {
    let shown = |(name, task): (&String, &crate::config::Owned)| {
        format!("{name} {} {}", task.file.file_name().unwrap().display(), task.spec.file.path.display())
    };
    config.tasks().iter().map(shown).collect()
}

fn warned(news: &[News]) -> usize {
    let of = |news: &News| match news {
        News::Noticed { warnings, .. } => {
            warnings.iter().filter(|one| one.message.contains("was removed there and does not run")).count()
        }
        _ => 0,
    };
    news.iter().map(of).sum()
}

/// What `migrate` says of `web.yaml`.
fn outcome(folder: &Path) -> Outcome {
    let all = migrations(&[folder.to_owned()], crate::config::Form::V1, Path::new("/var/log/flowlog"));
    all.unwrap().into_iter().find(|one| one.file.ends_with("web.yaml")).unwrap().outcome
}

#[test]
fn what_was_removed_from_the_newer_file_does_not_run_from_the_older_one() {
    let v1 = |path: &str| format!("{{name: web, filePath: {path}/web.log}}");
    let both = |path: &str| format!("{}, {{name: api, filePath: {path}/api.log}}", v1(path));
    for (form, text) in OLDER {
        let path = if form == "v1alpha1-flowlog" { "/var/log/flowlog" } else { "/l" };
        for (rest, expected) in [
            (v1(path), vec![format!("web web.v1.yaml {path}/web.log")]),
            (String::new(), Vec::new()),
            // Renamed, to the same file and to another.
            (
                format!("{{name: site, filePath: {path}/web.log}}"),
                vec![format!("site web.v1.yaml {path}/web.log")],
            ),
            (
                format!("{{name: site, filePath: {path}/s.log}}"),
                vec![format!("site web.v1.yaml {path}/s.log")],
            ),
        ] {
            let (folder, state) = (folder(&[("web.yaml", text)]), tempfile::tempdir().unwrap());
            convert(folder.path(), form, &both(path));
            let (mut config, news) = start(folder.path(), state.path(), false);
            assert_eq!((config.tasks().len(), warned(&news)), (2, 0));
            convert(folder.path(), form, &rest);
            let news = config.look(2, false).news;
            config.unwritten().write().unwrap();
            let is_removed = 2 - rest.matches("name: web").count();
            assert_eq!(
                (tasks(&config), refused(&config)),
                (expected.clone(), String::new()),
                "{form} {rest}"
            );
            assert_eq!(warned(&news), is_removed, "{news:?}");
            assert_eq!(warned(&config.look(3, true).news), 0, "said once");
            // At a start, with and without what is remembered, and from `check`.
            for state in [state.path(), tempfile::tempdir().unwrap().path()] {
                fs::create_dir_all(state).unwrap();
                assert_eq!(tasks(&start(folder.path(), state, false).0), expected, "{form} {rest}");
            }
            let loaded = load(&[folder.path().to_owned()]).unwrap();
            assert_eq!(loaded.plan.tasks.len(), expected.len());
            let told =
                loaded.warnings.iter().filter(|one| one.message.contains("does not run; to have it back"));
            assert_eq!(told.count(), is_removed, "{:?}", loaded.warnings);
            for (name, task) in config.tasks() {
                let said = config.origin(name, &task.file).unwrap().message;
                assert!(
                    said.contains("`api`") && said.contains("web.yaml only, which was converted into "),
                    "{said}"
                );
                assert_eq!(loaded.origins[name].message, said);
            }
            // It is not brought back.
            let outcome = outcome(folder.path());
            let Outcome::There { file, .. } = &outcome else { panic!("{outcome:?}") };
            assert!(
                file.ends_with("web.v1.yaml") && format!("{outcome:?}").contains("copy it into"),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn the_older_file_counts_again_without_the_newer_one_or_with_another_text() {
    let (form, text) = OLDER[0];
    let only_web = "{name: web, filePath: /l/web.log}";
    let from = |file: &str| format!("api {file} /l/api.log");
    let web = |file: &str| format!("web {file} /l/web.log");
    let folder = folder(&[("web.yaml", text)]);
    convert(folder.path(), form, only_web);
    let state = tempfile::tempdir().unwrap();
    let (mut config, _) = start(folder.path(), state.path(), false);
    assert_eq!(tasks(&config), [web("web.v1.yaml")]);
    // Another text: what stands there only runs, and check says why.
    fs::write(folder.path().join("web.yaml"), format!("# by hand\n{text}")).unwrap();
    look(&mut config);
    assert_eq!(tasks(&config), [from("web.yaml"), web("web.v1.yaml")]);
    let loaded = load(&[folder.path().to_owned()]).unwrap();
    let note = loaded.warnings.iter().find(|one| one.message.contains("is another text than the one"));
    let note = note.unwrap_or_else(|| panic!("{:?}", loaded.warnings));
    assert!(note.place.file.ends_with("web.v1.yaml") && note.place.line == 3, "{note}");
    let Outcome::Convert { text: new, .. } = outcome(folder.path()) else { panic!() };
    assert!(new.contains("name: api") && !new.contains("name: web"), "{new}");
    // Refused at a first start, then gone: as if it had never been there.
    fs::write(folder.path().join("web.yaml"), text).unwrap();
    convert(folder.path(), form, &format!("{only_web}, 7"));
    let other = tempfile::tempdir().unwrap();
    let (mut config, _) = start(folder.path(), other.path(), false);
    assert_eq!(tasks(&config), [from("web.yaml"), web("web.yaml")]);
    convert(folder.path(), form, only_web);
    look(&mut config);
    assert_eq!(tasks(&config), [web("web.v1.yaml")]);
    // What was accepted of it stays the truth while it is bad.
    convert(folder.path(), form, &format!("{only_web}, 7"));
    look(&mut config);
    assert_eq!(tasks(&config), [web("web.v1.yaml")]);
    fs::remove_file(folder.path().join("web.v1.yaml")).unwrap();
    look(&mut config);
    assert_eq!(tasks(&config), [from("web.yaml"), web("web.yaml")]);
    // A mark of a file elsewhere is about that one.
    fs::create_dir(folder.path().join("sub")).unwrap();
    convert(folder.path(), form, only_web);
    fs::rename(folder.path().join("web.v1.yaml"), folder.path().join("sub/web.v1.yaml")).unwrap();
    look(&mut config);
    assert_eq!(config.tasks().len(), 2);
}

#[test]
fn another_owner_s_task_of_the_same_name_is_not_taken_for_a_form_of_it() {
    let other =
        "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {name: web, filePath: /l/theirs.log}\n";
    let mine = "flowLogs:\n- {name: web, filePath: /l/mine.log}\n";
    let folder = folder(&[("web.yaml", mine), ("other.yaml", other)]);
    // For the daemon and `check` they are two, and so they are for `migrate`.
    assert!(load(&[folder.path().to_owned()]).unwrap_err().to_string().contains("is taken at"));
    let outcome = outcome(folder.path());
    let Outcome::Convert { target, text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(target.ends_with("web.v1.yaml") && text.contains("/l/mine.log"), "{text}");
    // Called like it, it is one.
    fs::rename(folder.path().join("other.yaml"), folder.path().join("web.v1.yaml")).unwrap();
    let outcome = self::outcome(folder.path());
    assert!(matches!(&outcome, Outcome::There { difference: Some(_), .. }), "{outcome:?}");
}

#[test]
fn a_mark_that_fits_nothing_is_told_of_with_place_and_remedy() {
    let (_, text) = OLDER[0];
    let path = "expected the name of a file in the same folder, without a path, such as `web.yaml`, found ";
    let table = [
        ("web.yaml", "hubble", None),
        // Deleted since.
        ("gone.yaml", "hubble", None),
        ("./web.yaml", "hubble", Some((23, format!("{path}`./web.yaml`; write that, or remove `convertedFrom`")))),
        ("/etc/web.yaml", "hubble", Some((23, format!("{path}`/etc/web.yaml`; write that, or remove `convertedFrom`")))),
        ("..", "hubble", Some((23, format!("{path}`..`; write that, or remove `convertedFrom`")))),
        (
            "web.v1.yaml",
            "hubble",
            Some((
                23,
                "web.v1.yaml is this file itself; write the name of the one that it was made of, or remove `convertedFrom`".into(),
            )),
        ),
        (
            "web.yaml",
            "v1",
            Some((
                39,
                "nothing is converted from v1; write which form web.yaml had (v1alpha1, v1alpha1-flowlog, hubble), or remove \
                 `convertedFrom`"
                    .into(),
            )),
        ),
        (
            "web.yaml",
            "v1alpha1",
            Some((1, "web.yaml is in Hubble's form, not in flowlog.io/v1alpha1: write `form: hubble`".into())),
        ),
    ];
    for (file, form, expected) in table {
        let folder = folder(&[("web.yaml", text)]);
        let hash = sha256sum(&folder.path().join("web.yaml"));
        let new = format!(
            "apiVersion: flowlog.io/v1\nkind: FlowLogs\nconvertedFrom: {{file: {file}, form: {form}, hash: {hash}}}\nflowLogs: []\n"
        );
        fs::write(folder.path().join("web.v1.yaml"), new).unwrap();
        let loaded = load(&[folder.path().to_owned()]).unwrap();
        let of_mark = loaded.warnings.iter().filter(|one| one.place.file.ends_with("web.v1.yaml"));
        let told: Vec<_> = of_mark
            .map(|one| {
                let message = one.message.replace(&format!("{}/", folder.path().display()), "");
                (one.place.line, one.place.column, message)
            })
            .collect();
        let expected: Vec<_> = expected.into_iter().map(|(column, message)| (3, column, message)).collect();
        assert_eq!(told, expected, "{file} {form}");
        // The daemon says it, too.
        let (_, news) = start(folder.path(), tempfile::tempdir().unwrap().path(), false);
        let said = format!("{news:?}");
        assert!(expected.iter().all(|(.., message)| said.contains(&message[message.len() - 20..])), "{said}");
    }
}
