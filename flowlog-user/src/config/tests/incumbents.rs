//! A start decides about names as the daemon did before.

use std::fs;
use std::path::Path;

use super::gone_pools::{look, refused, start};
use super::pools::{cilium, folder, own};
use crate::config::{Config, News};

fn v1(task: &str) -> String {
    format!("apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {{{task}}}\n")
}

/// Each task with its file and filePath, each pool with its file.
fn have(config: &Config) -> Vec<String> {
    let name = |file: &Path| file.file_name().unwrap().to_string_lossy().into_owned();
    let task = |(task, of): (&String, &crate::config::Owned)| {
        format!("{task} {} {}", name(&of.file), of.spec.file.path.display())
    };
    let pools = config.pools().defined.iter().map(|(pool, (file, _))| format!("{pool} {}", name(file)));
    config.tasks().iter().map(task).chain(pools).collect()
}

#[test]
fn who_has_a_name_or_a_file_keeps_it_over_a_restart() {
    let hubble = |task: &str| format!("flowLogs:\n- {{{task}}}\n");
    let pool = |range: &str| own("green", &format!("{{cidrs: [{range}]}}"));
    let alpha = cilium("v2alpha1", "{ipv4: {cidrs: [10.0.0.0/24], maskSize: 28}}");
    let z = |rest: &str| v1(&format!("name: z, {rest}"));
    // What is there, what comes, and what stays as it was.
    let table: [(&str, String, &str, String, &[&str]); 7] = [
        // A name, asked for in an older form, in the same, and beside a file that changes.
        ("web.yaml", z("filePath: /l/z"), "a.yaml", hubble("name: z, filePath: /l/a"), &["z web.yaml /l/z"]),
        ("web.yaml", z("filePath: /l/z"), "a.yaml", z("filePath: /l/a"), &["z web.yaml /l/z"]),
        (
            "web.yaml",
            hubble("name: z, filePath: /l/z"),
            "a.yaml",
            hubble("name: z, filePath: /l/a"),
            &["z web.yaml /l/z"],
        ),
        // A file.
        ("web.yaml", z("filePath: /l/z"), "a.yaml", v1("name: a, filePath: /l/z"), &["z web.yaml /l/z"]),
        // A pool, of each sort.
        ("p.yaml", pool("10.0.0.0/8"), "a.yaml", pool("11.0.0.0/8"), &["green p.yaml"]),
        ("p.yaml", alpha.clone(), "a.yaml", pool("11.0.0.0/8"), &["green p.yaml"]),
        ("p.yaml", pool("11.0.0.0/8"), "a.yaml", alpha, &["green p.yaml"]),
    ];
    for (own, text, name, other, expected) in table {
        let (folder, state) = (folder(&[(own, &text)]), tempfile::tempdir().unwrap());
        let (mut config, _) = start(folder.path(), state.path(), false);
        fs::write(folder.path().join(name), &other).unwrap();
        look(&mut config);
        let why = refused(&config);
        assert_eq!(have(&config), expected, "{why}");
        assert!(!why.is_empty());
        for _ in 0..2 {
            let (config, _) = start(folder.path(), state.path(), false);
            assert_eq!(refused(&config), why, "{text} {other}");
            assert_eq!(have(&config), expected, "{text} {other}");
        }
        // Without the state folder one byte order decides.
        let (config, _) = start(folder.path(), tempfile::tempdir().unwrap().path(), false);
        assert!(have(&config).iter().all(|one| one.contains(name)), "{:?}", have(&config));
        // Who is gone has nothing any more.
        fs::remove_file(folder.path().join(own)).unwrap();
        let (config, _) = start(folder.path(), state.path(), false);
        assert!(refused(&config).is_empty() && have(&config)[0].contains(name), "{:?}", have(&config));
    }
}

#[test]
fn a_change_that_is_refused_is_refused_over_a_restart_too() {
    let task = |name: &str, path: &str, size: u32| {
        v1(&format!("name: {name}, filePath: {path}, fileMaxSizeMb: {size}"))
    };
    let (folder, state) = (
        folder(&[("a.yaml", &task("a", "/l/a", 3)), ("b.yaml", &task("b", "/l/b", 4))]),
        tempfile::tempdir().unwrap(),
    );
    let (mut config, _) = start(folder.path(), state.path(), false);
    // It asks for the other's file: it stays where it is, with what it was, and the other is not touched.
    fs::write(folder.path().join("a.yaml"), task("a", "/l/b", 5)).unwrap();
    look(&mut config);
    for _ in 0..2 {
        let sizes = ["a", "b"].map(|name| config.tasks()[name].spec.file.size_bytes_max >> 20);
        assert_eq!((have(&config), sizes), (vec!["a a.yaml /l/a".into(), "b b.yaml /l/b".into()], [3, 4]));
        assert!(config.refused("a", &folder.path().join("a.yaml")).is_some(), "{}", refused(&config));
        config = start(folder.path(), state.path(), false).0;
    }
}

#[test]
fn nothing_is_told_at_a_start_of_what_is_not_in_force_after_it() {
    let old = cilium("v2alpha1", "{ipv4: {cidrs: [10.0.0.0/24], maskSize: 28}}");
    let new = cilium(
        "v2",
        "{ipv4: {cidrs: [{cidr: 10.0.0.0/24, reservedRange: 10.0.0.0-10.0.0.9}], maskSize: 28}}",
    );
    let task = v1(
        "name: a, filePath: /l/a, where: {source_pool: ['green=reserved']}, includeFilters: [{source_label: \
         ['pool:green=reserved']}]",
    );
    let (folder, state) = (
        folder(&[("pools.yaml", &old), ("pools2.yaml", &new), ("t.yaml", &task)]),
        tempfile::tempdir().unwrap(),
    );
    start(folder.path(), state.path(), false);
    fs::write(folder.path().join("pools2.yaml"), new.replace("v2\n", "v2\nx: [\n")).unwrap();
    let (config, news) = start(folder.path(), state.path(), false);
    assert!(news.iter().any(|news| matches!(news, News::Restored { .. })), "{news:?}");
    assert_eq!(have(&config), ["a t.yaml /l/a", "green pools2.yaml"]);
    let said = format!("{news:?}");
    assert!(!said.contains("no address is reserved") && !said.contains("matches nothing"), "{said}");
}
