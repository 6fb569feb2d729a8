//! What is said of what is probably meant, and of pools that are an older version's again.

use std::fs;

use super::gone_pools::{look, start};
use super::pools::{cilium, folder, takes};
use super::versions::content;
use crate::config::{Config, News};
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
            News::PoolOlder { name, file, what, tasks } => {
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
