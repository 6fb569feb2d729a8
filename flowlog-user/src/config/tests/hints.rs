//! What is said of what is probably meant, and of pools that are an older version's again.

use std::fs;
use std::path::Path;

use super::gone_pools::{look, start};
use super::pools::{cilium, folder, takes};
use super::versions::content;
use crate::config::versions::Form;
use crate::config::{Config, News, migrations};
use crate::limits::CONFIG_GONE_MS;

fn first_error(text: &str) -> String {
    content(text)
        .1
        .errors
        .first()
        .map_or_else(|| panic!("{text} is taken"), |problem| problem.message.clone())
}

#[test]
fn a_key_of_another_form_is_named_and_never_its_opposite() {
    let draft = |spec: &str| {
        format!("apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata: {{name: a}}\nspec: {{{spec}}}\n")
    };
    let hubble = |key: &str| format!("flowLogs: [{{name: a, filePath: /l/a, {key}}}]\n");
    for (text, meant) in [
        (draft("includeFilters: []"), "filters"),
        (draft("includefilter: []"), "filters"),
        (draft("inlcudeFilters: []"), "filters"),
        (draft("excludeFilter: []"), "excludeFilters"),
        (draft("exludeFilters: []"), "excludeFilters"),
        (draft("end: 2030-01-01T00:00:00Z"), "expiration"),
        (hubble("filters: []"), "includeFilters"),
        (hubble("filter: []"), "includeFilters"),
        (hubble("inculdeFilters: []"), "includeFilters"),
        (hubble("exlcudeFilters: []"), "excludeFilters"),
        (hubble("expiration: 2030-01-01T00:00:00Z"), "end"),
    ] {
        let said = first_error(&text);
        assert!(said.ends_with(&format!("did you mean `{meant}`?")), "{text}: {said}");
    }
}

#[test]
fn what_stands_around_a_task_file_and_large_letters_are_told_with_the_remedy() {
    for (text, meant) in [
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flowlog-tasks-0}\ndata:\n  tasks.yaml: |\n    flowLogs: []\n",
            "take the text out of its `data`",
        ),
        (
            "apiVersion: flowlog.io/v1alpha1\nkind: FlowLogList\nitems:\n- {metadata: {name: a}, spec: {}}\n",
            "apiVersion and kind are missing",
        ),
        (
            "apiVersion: cilium.io/v2\nkind: CiliumPodIPPoolList\nitems:\n- {metadata: {name: a}, spec: {}}\n",
            "apiVersion and kind are missing",
        ),
        ("flowLogs: [{name: a, filePath: /l/a, where: {source_pool: [GREEN]}}]\n", "did you mean `green`?"),
        (
            "flowLogs: [{name: a, filePath: /l/a, where: {source_pool: ['!Green=reserved']}}]\n",
            "did you mean `!green=reserved`?",
        ),
    ] {
        let said = first_error(text);
        assert!(said.contains(meant) && !said.contains("remove it"), "{text}: {said}");
    }
}

#[test]
fn a_pool_that_is_an_older_version_s_again_is_told_of_with_the_difference() {
    let old = cilium("v2alpha1", "{ipv4: {cidrs: [10.0.0.0/25, 12.0.0.0/28], maskSize: 28}}");
    let new = cilium(
        "v2",
        "{ipv4: {cidrs: [{cidr: 10.0.0.0/24, reservedRange: 10.0.0.0-10.0.0.9}], maskSize: 28}}",
    );
    let name = "green";
    let task = |pool: &str| {
        format!("flowLogs:\n- {{name: a, filePath: /l/a, where: {{source_pool: ['{pool}']}}}}\n")
    };
    for (asked, warns) in [("", false), ("=reserved", true)] {
        let (folder, state) = (
            folder(&[("a.yaml", &task(&format!("{name}{asked}"))), ("old.yaml", &old), ("new.yaml", &new)]),
            tempfile::tempdir().unwrap(),
        );
        let (mut config, _) = start(folder.path(), state.path(), false);
        fs::remove_file(folder.path().join("new.yaml")).unwrap();
        config.look(2, false);
        let news = config.look(2 + CONFIG_GONE_MS * 1_000_000, false).news;
        let told = news.iter().find_map(|news| match news {
            News::PoolOther { name, file, what, tasks, .. } => {
                Some((name.clone(), file.clone(), what.clone(), tasks.clone()))
            }
            _ => None,
        });
        // 10.0.0.128-255 are 128; 12.0.0.0/28 are 16; ten were reserved.
        let what = "cilium.io/v2alpha1 counts instead of cilium.io/v2: 16 addresses more, 128 fewer, 0 reserved instead of 10";
        assert_eq!(told, Some((name.into(), folder.path().join("old.yaml"), what.into(), vec!["a".into()])));
        let in_vain = news.iter().any(|news| {
            matches!(news, News::Noticed { warnings, .. } if warnings.iter().any(|one| one.message.contains("no address is reserved in pool")))
        });
        assert_eq!(in_vain, warns);
        assert_eq!(takes(&config, "a", "12.0.0.1"), !warns);
        assert!(!takes(&config, "a", "10.0.0.200"));
        again(&mut config);
    }
}

/// It is told once.
fn again(config: &mut Config) {
    look(config);
    assert!(config.look(3 + CONFIG_GONE_MS * 1_000_000, true).news.is_empty());
}

#[test]
fn what_a_task_has_no_place_for_is_told_and_what_the_cluster_adds_is_not() {
    let draft = |name: &str, metadata: &str| {
        format!(
            "apiVersion: flowlog.io/v1alpha1\nkind: FlowLog\nmetadata:\n  name: {name}\n  uid: 6f1c\n  generation: 2\n{metadata}spec: {{}}\n"
        )
    };
    let applied = "  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}\n";
    for (metadata, keys) in [
        ("  labels: {team: shop}\n", &["metadata.labels"][..]),
        (
            "  annotations: {note: audit}\n  namespace: shop\n",
            &["metadata.annotations", "metadata.namespace"],
        ),
        (applied, &[]),
        ("  labels: {}\n  namespace: default\n", &[]),
    ] {
        let text = draft("a", metadata);
        let (_, problems) = content(&text);
        let found: Vec<&str> = problems.warnings.iter().map(|warning| warning.place.path.as_str()).collect();
        assert_eq!((found.as_slice(), problems.errors.len()), (keys, 0), "{text}");
        // Whoever migrates is told, too.
        let folder = folder(&[("a.yaml", &text)]);
        let all = migrations(&[folder.path().to_owned()], Form::V1, Path::new("/l")).unwrap();
        let lost: Vec<&str> = all[0].lost.iter().map(|lost| lost.place.path.as_str()).collect();
        assert_eq!(lost, keys);
    }
    let two = format!("{}---\n{}", draft("a", "  namespace: one\n"), draft("a", "  namespace: two\n"));
    let folder = folder(&[("a.yaml", &two)]);
    let mut config = Config::new(&[folder.path().to_owned()], None);
    config.start(1);
    let said = config.wrong().join("\n");
    assert!(said.contains("task name `a` is taken at "), "{said}");
    assert!(
        content(&two).1.warnings.iter().all(|warning| warning.message.contains("tasks have no namespaces"))
    );
}

#[test]
fn an_older_form_that_does_not_count_is_not_said_to_run() {
    let old = "flowLogs: [{name: a, filePath: /l/a}]\n";
    let new = format!("apiVersion: flowlog.io/v1\nkind: FlowLogs\n{old}");
    let folder = folder(&[("a.yaml", old), ("a.v1.yaml", &new)]);
    let mut config = Config::new(&[folder.path().to_owned()], None);
    let counts = |news: &[News]| {
        news.iter()
            .find_map(|news| if let News::Converted { counts, .. } = news { Some(*counts) } else { None })
    };
    assert_eq!(counts(&config.start(1).news), Some(false));
    fs::write(folder.path().join("a.yaml"), old.replace("}]", ", fileMaxSizeMb: 7}]")).unwrap();
    assert_eq!(counts(&config.look(1, false).news), Some(false));
    // Spellings and what is the same when left out are no part of the difference.
    fs::write(
        folder.path().join("a.yaml"),
        old.replace("filePath: /l/a}]", "FilePath: /l/a, fileMaxSizeMb: 8, fieldMask: []}]"),
    )
    .unwrap();
    let news = config.look(1, false).news;
    let said = news.iter().find_map(|news| match news {
        News::Noticed { warnings, .. } => warnings.last().map(|warning| warning.message.clone()),
        _ => None,
    });
    let said = said.unwrap();
    assert!(
        said.contains("something else: `fileMaxSizeMb`: -8 +10;")
            && !said.contains("ilePath")
            && !said.contains("fieldMask"),
        "{said}"
    );
    fs::write(folder.path().join("a.yaml"), old.replace("name: a", "name: b").replace("/l/a", "/l/b"))
        .unwrap();
    assert_eq!(counts(&config.look(1, false).news), Some(true));
}
