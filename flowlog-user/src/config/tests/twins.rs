//! Older and newer forms of one task, over time.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::config::versions::Form;
use crate::config::{Config, Look, News, Outcome, Sources, load, migrations};
use crate::limits::CONFIG_GONE_MS;
use crate::write::StateDir;

const OLD: &str = "flowLogs:\n- name: web\n  filePath: /l/web.log\n  fileMaxSizeMb: 7\n";
const NEW: &str = "apiVersion: flowlog.io/v1\nkind: FlowLogs\n";

fn newer(size: u32) -> String {
    format!("{NEW}{}", OLD.replace("Mb: 7", &format!("Mb: {size}")))
}

fn said(look: &Look) -> Vec<String> {
    let news = look.news.iter().map(|news| match news {
        News::Accepted { .. } => "accepted".to_owned(),
        News::Rejected { .. } => "rejected".into(),
        News::Restored { .. } => "restored".into(),
        News::Gone { .. } => "gone".into(),
        News::PoolOther { name, what, .. } => format!("pool {name}: {what}"),
        News::PoolGone { name, .. } => format!("pool {name} gone"),
        News::Converted { form, .. } => format!("converted from {}", form.name()),
        News::Noticed { warnings, .. } => {
            warnings.iter().map(|warning| warning.message.clone()).collect::<Vec<_>>().join("\n")
        }
    });
    news.collect()
}

fn origin(config: &Config) -> (Form, String) {
    let task = &config.tasks()["web"];
    let origin = config.origin("web", &task.file).unwrap();
    (origin.form, origin.message)
}

#[test]
fn the_newer_form_is_the_truth_and_the_way_back_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("web.yaml"), folder.path().join("web.v1.yaml"));
    fs::write(&old, OLD).unwrap();
    let mut config = Config::new(&[folder.path().to_owned()], None);
    assert_eq!(said(&config.start(1)), ["converted from hubble", "accepted"]);
    let (form, message) = origin(&config);
    assert_eq!(form, Form::Hubble);
    assert!(
        message.contains("--write` writes flowlog.io/v1 beside it") && message.contains("it may be deleted"),
        "{message}"
    );
    let first = config.tasks()["web"].spec.clone();

    // The newer form comes, and says the same: the task notices nothing.
    fs::write(&new, newer(7)).unwrap();
    assert_eq!(said(&config.look(1, false)), ["accepted"]);
    assert_eq!(*config.tasks()["web"].file, *new);
    let (form, message) = origin(&config);
    assert_eq!(form, Form::V1);
    assert!(message.contains("web.yaml says the same in Hubble's form; it may be deleted once"), "{message}");
    let same = config.tasks()["web"].spec.clone();
    assert_eq!(first.differences(&same), Vec::<&str>::new());

    // It says something else: it counts, and the difference is told.
    fs::write(&new, newer(9)).unwrap();
    let look = config.look(1, false);
    assert_eq!(
        said(&look),
        [
            "accepted".to_owned(),
            format!(
                "task `web` is there as flowlog.io/v1 at {}:4:9 too, which counts, and this one says something else: \
                 `fileMaxSizeMb`: -7 +9; make them agree, or remove this one",
                new.display()
            )
        ]
    );
    assert_eq!(config.tasks()["web"].spec.file.size_bytes_max, 9 << 20);
    assert!(origin(&config).1.contains("which does not count: `fileMaxSizeMb`: -7 +9"));
    assert!(config.look(1, false).news.is_empty(), "said once");
    let checked = load(&[folder.path().to_owned()]).unwrap();
    assert!(checked.warnings.iter().any(|warning| warning.message.contains("`fileMaxSizeMb`: -7 +9")));
    assert_eq!((checked.plan.tasks.len(), checked.origins["web"].form), (1, Form::V1));

    // A change of the old one changes nothing.
    fs::write(&old, OLD.replace("Mb: 7", "Mb: 8")).unwrap();
    assert!(said(&config.look(1, false)).iter().any(|line| line.contains("`fileMaxSizeMb`: -8 +9")));
    assert_eq!(config.tasks()["web"].spec.file.size_bytes_max, 9 << 20);
    // A newer form that is bad is as good as none, but what was accepted of it stays.
    fs::write(&new, "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs: 7\n").unwrap();
    assert_eq!(said(&config.look(1, false)), ["rejected"]);
    assert_eq!(config.tasks()["web"].spec.file.size_bytes_max, 9 << 20);
    // It goes: the old form is there, byte for byte, and runs again.
    fs::remove_file(&new).unwrap();
    config.look(2, false);
    assert_eq!(said(&config.look(2 + CONFIG_GONE_MS * 1_000_000, false)), ["gone"]);
    assert_eq!(config.tasks()["web"].spec.file.size_bytes_max, 8 << 20);
    assert_eq!((&*config.tasks()["web"].file, origin(&config).0), (&*old, Form::Hubble));
}

#[test]
fn a_text_is_converted_once_and_the_mark_outlives_the_daemon() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let old = folder.path().join("web.yaml");
    fs::write(&old, OLD).unwrap();
    let start = || {
        let state = Some(Arc::new(StateDir::open(state.path()).unwrap()));
        let mut config = Config::new(&[folder.path().to_owned()], state);
        let look = config.start(1);
        let mut unwritten = config.unwritten();
        unwritten.write().unwrap();
        said(&look)
    };
    assert_eq!(start(), ["converted from hubble", "accepted"]);
    let files: Vec<_> = fs::read_dir(state.path().join("converted")).unwrap().collect();
    let mark = fs::read_to_string(files.last().unwrap().as_ref().unwrap().path()).unwrap();
    let mark: serde_json::Value = serde_json::from_str(&mark).unwrap();
    let sum = std::process::Command::new("sha256sum").arg(&old).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    assert_eq!((mark["form"].as_str(), mark["to"].as_str()), (Some("hubble"), Some("flowlog.io/v1")));
    assert_eq!(mark["hash"].as_str(), sum.split_whitespace().next());
    assert!(mark["text"].as_str().unwrap().starts_with("apiVersion: flowlog.io/v1\n"), "{mark}");
    assert_eq!(start(), ["accepted"], "done already");
    assert_eq!(fs::read_to_string(&old).unwrap(), OLD);
    fs::write(&old, OLD.replace("Mb: 7", "Mb: 8")).unwrap();
    assert_eq!(start(), ["converted from hubble", "accepted"], "another text");
    fs::write(&old, newer(8)).unwrap();
    assert_eq!(start(), ["accepted"]);
    assert_eq!(
        fs::read_dir(state.path().join("converted")).unwrap().count(),
        0,
        "nothing is converted any more"
    );
}

#[test]
fn older_forms_can_be_refused_with_the_command_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("web.yaml");
    fs::write(&old, OLD).unwrap();
    let sources =
        || Sources { tasks: vec![folder.path().to_owned()], refuse_older: true, ..Sources::default() };
    let expected = format!(
        "web.yaml:2:9: flowLogs[0].name: this is Hubble's form, and --no-convert was given; run `flowlog migrate {} --write`",
        old.display()
    );
    let error = load(sources()).unwrap_err().to_string();
    assert!(error.ends_with(&expected), "{error}");
    let mut config = Config::new(sources(), None);
    assert_eq!(said(&config.start(1)), ["accepted"]);
    assert!(config.tasks().is_empty());
    assert!(config.error().unwrap().to_string().ends_with(&expected));
    // With the new form beside it there is nothing to refuse.
    fs::write(folder.path().join("web.v1.yaml"), newer(7)).unwrap();
    let look = config.look(1, false);
    assert!(look.decision.unwrap().refused.is_empty() && config.error().is_none());
    assert_eq!(config.tasks()["web"].file.file_name().unwrap(), "web.v1.yaml");
    load(sources()).unwrap();
}

#[test]
fn what_is_migrated_is_decided_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let outcomes = || -> Vec<String> {
        let all = migrations(&[folder.path().to_owned()], Form::V1, Path::new("/l")).unwrap();
        let shown = |outcome: &Outcome| match outcome {
            Outcome::Current => "current".to_owned(),
            Outcome::Pools => "pools".into(),
            Outcome::There { difference, .. } => {
                format!("there {}", difference.as_deref().unwrap_or("the same"))
            }
            Outcome::Convert { target, .. } => format!("to {}", target.file_name().unwrap().display()),
            Outcome::Failed(problems) => problems[0].message.clone(),
        };
        all.iter()
            .map(|one| format!("{}: {}", one.file.file_name().unwrap().display(), shown(&one.outcome)))
            .collect()
    };
    fs::write(path("a.yaml"), OLD).unwrap();
    fs::write(path("b.json"), OLD.replace("web", "b")).unwrap();
    fs::write(path("c.yaml"), "flowLogs: 7\n").unwrap();
    fs::write(path("p.yaml"), super::pools::own("green", "{cidrs: [10.0.0.0/8]}")).unwrap();
    fs::write(path("v.yaml"), newer(9).replace("web", "v")).unwrap();
    assert_eq!(
        outcomes(),
        [
            "a.yaml: to a.v1.yaml",
            "b.json: to b.v1.json",
            "c.yaml: expected a list, found `7`",
            "p.yaml: pools",
            "v.yaml: current"
        ]
    );
    fs::write(path("a.v1.yaml"), newer(9)).unwrap();
    fs::write(path("b.v1.json"), newer(7).replace("web", "b")).unwrap();
    let outcomes = outcomes();
    assert_eq!(outcomes[1], "a.yaml: there task web: `fileMaxSizeMb`: -7 +9");
    assert_eq!(outcomes[2], "b.json: there the same");
}
