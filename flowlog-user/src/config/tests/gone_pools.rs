//! Pools that are gone, bad, or asked for in vain.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::pools::{TASK, cilium, folder, own, takes};
use crate::config::{Config, News, Sources, load};
use crate::filter::shape::CONDITIONS;
use crate::limits::CONFIG_GONE_MS;
use crate::tree::{Problem, Shape};
use crate::write::StateDir;

/// A daemon's configuration that has started, and everything of it that was to be kept is.
pub(super) fn start(tasks: &Path, state: &Path, refuse_older: bool) -> (Config, Vec<News>) {
    let state = Some(Arc::new(StateDir::open(state).unwrap()));
    let sources = Sources { refuse_older, ..Sources::from(vec![tasks.to_owned()]) };
    let mut config = Config::new(sources, state);
    let news = config.start(1).news;
    config.unwritten().write().unwrap();
    (config, news)
}

pub(super) fn refused(config: &Config) -> String {
    config.wrong().join("\n")
}

/// Goes on looking until what is gone is taken for gone.
pub(super) fn look(config: &mut Config) {
    config.look(2, false);
    config.look(2 + CONFIG_GONE_MS * 1_000_000, false);
    config.unwritten().write().unwrap();
}

const BOTH: &str = "flowLogs:\n- {name: a, filePath: /l/a, where: {source_pool: [green, '!green=reserved']}}\n- {name: not, filePath: \
                    /l/not, where: {source_pool: ['!green']}}\n- {name: other, filePath: /l/other}\n";

#[test]
fn a_pool_that_is_gone_at_a_start_leaves_its_tasks_as_they_were() {
    let pool = own("green", "{cidrs: [10.0.0.0/24, 'fd00::/64'], reserved: [10.0.0.0/28]}");
    let remove = |folder: &Path| fs::remove_file(folder.join("p.yaml")).unwrap();
    let replace = |folder: &Path| {
        fs::write(folder.join("p.yaml"), own("blue", "{cidrs: [10.0.0.0/8]}")).unwrap();
    };
    let change = |folder: &Path| {
        remove(folder);
        fs::write(folder.join("a.yaml"), BOTH.replace("'!green'", "'!green', red")).unwrap();
    };
    let ways: [&dyn Fn(&Path); 3] = [&remove, &replace, &change];
    for (number, way) in ways.into_iter().enumerate() {
        for while_it_runs in [true, false] {
            let (folder, state) =
                (folder(&[("a.yaml", BOTH), ("p.yaml", &pool)]), tempfile::tempdir().unwrap());
            let check = |config: &Config| {
                let found = ["10.0.0.1", "10.0.0.100", "fd00::1", "10.0.1.1"]
                    .map(|source| (takes(config, "a", source), takes(config, "not", source)));
                let expected = [(false, false), (true, false), (true, false), (false, true)];
                assert_eq!(found, expected, "{number} {while_it_runs}");
            };
            let (mut config, _) = start(folder.path(), state.path(), false);
            check(&config);
            if while_it_runs {
                way(folder.path());
                look(&mut config);
                check(&config);
            }
            drop(config);
            if !while_it_runs {
                way(folder.path());
            }
            // As often as it starts.
            for _ in 0..2 {
                let (config, _) = start(folder.path(), state.path(), false);
                check(&config);
                let said = refused(&config);
                assert!(
                    said.contains("no pool `green` is defined any more; the task goes on with the addresses"),
                    "{said}"
                );
                assert_eq!(config.tasks().len(), 3);
                assert!(config.refused("a", &folder.path().join("a.yaml")).is_some());
            }
            // Older forms are refused all the same, and nothing comes back that is not asked for any more.
            let (config, _) = start(folder.path(), state.path(), true);
            assert!(config.tasks().is_empty(), "{}", refused(&config));
        }
    }
}

#[test]
fn what_is_kept_of_a_task_goes_with_it_and_a_pool_that_is_back_counts() {
    let (folder, state) = (
        folder(&[("a.yaml", TASK), ("p.yaml", &own("green", "{cidrs: [10.0.0.0/8]}"))]),
        tempfile::tempdir().unwrap(),
    );
    let kept = || fs::read_dir(state.path().join("pools")).map_or(0, Iterator::count);
    start(folder.path(), state.path(), false);
    assert_eq!(kept(), 1);
    fs::write(folder.path().join("p.yaml"), own("green", "{cidrs: [11.0.0.0/8]}")).unwrap();
    let (config, _) = start(folder.path(), state.path(), false);
    assert!(
        takes(&config, "a", "11.0.0.1") && !takes(&config, "a", "10.0.0.1") && refused(&config).is_empty()
    );
    // The task is gone and comes again without its pool: there is nothing that it could go on with.
    fs::remove_file(folder.path().join("a.yaml")).unwrap();
    fs::remove_file(folder.path().join("p.yaml")).unwrap();
    start(folder.path(), state.path(), false);
    assert_eq!(kept(), 0);
    fs::write(folder.path().join("a.yaml"), TASK).unwrap();
    let (config, _) = start(folder.path(), state.path(), false);
    assert!(config.tasks().is_empty() && refused(&config).contains("no pools are there at all"));
}

#[test]
fn a_bad_newer_version_of_a_pool_is_no_reason_to_remove_the_older_one() {
    let old = cilium("v2alpha1", "{ipv4: {cidrs: [10.0.0.0/24], maskSize: 28}}");
    let new = cilium(
        "v2",
        "{ipv4: {cidrs: [{cidr: 11.0.0.0/24, reservedRange: 11.0.0.0-11.0.0.9}], maskSize: 28}}",
    );
    let bad = new.replace("11.0.0.0-", "11.0.0.99-");
    for names in [["a.yaml", "z.yaml"], ["z.yaml", "a.yaml"]] {
        let folder = folder(&[(names[0], &old), (names[1], &bad), ("t.yaml", TASK)]);
        let error = load(&[folder.path().to_owned()]).unwrap_err();
        let problems = error.problems();
        let said = problems.errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(said.len() == 1 && said[0].contains("ends before it begins"), "{said:?}");
        let [Problem { place, message }] = problems.warnings.as_slice() else {
            panic!("{:?}", problems.warnings)
        };
        assert!(place.file.ends_with(names[0]) && !message.contains("remove"), "{message}");
        assert!(
            message.starts_with(
                "this version of pool `green` is in force as long as the file of its cilium.io/v2, at "
            ),
            "{message}"
        );

        // The older one runs; the newer one once it is good, also when it is bad again, also after another start.
        let state = tempfile::tempdir().unwrap();
        let (mut config, _) = start(folder.path(), state.path(), false);
        let is = |config: &Config| [takes(config, "a", "10.0.0.1"), takes(config, "a", "11.0.0.1")];
        assert_eq!(is(&config), [true, false]);
        fs::write(folder.path().join(names[1]), &new).unwrap();
        look(&mut config);
        assert_eq!(is(&config), [false, true]);
        fs::write(folder.path().join(names[1]), &bad).unwrap();
        look(&mut config);
        assert_eq!(is(&config), [false, true]);
        let (config, news) = start(folder.path(), state.path(), false);
        assert_eq!(is(&config), [false, true]);
        assert!(news.iter().any(|news| matches!(news, News::Restored { .. })), "{news:?}");
    }
    // In one file both are as good as not there.
    let folder = folder(&[("p.yaml", &format!("{old}---\n{bad}")), ("t.yaml", TASK)]);
    let error = load(&[folder.path().to_owned()]).unwrap_err();
    assert_eq!((error.problems().errors.len(), error.problems().warnings.len()), (1, 0), "{error}");
    let (config, _) = start(folder.path(), tempfile::tempdir().unwrap().path(), false);
    assert!(config.tasks().is_empty() && refused(&config).contains("no pool `green` is defined"));
}

/// Keys of a task, and what is to be said of them.
const VAIN: [(&str, Option<&str>); 12] = [
    (
        "includeFilters: [{source_label: ['pool:gren']}]",
        Some("`pool:gren` matches nothing: no pool `gren` is defined; did you mean `green`?"),
    ),
    (
        "excludeFilters: [{destination_label: ['pool:gren=reserved']}]",
        Some("`pool:gren` matches nothing: no pool `gren` is defined; did you mean `green`?"),
    ),
    (
        "includeFilters: [{source_label: ['!pool:red']}]",
        Some("`pool:red` holds for every flow: no pool `red` is defined; expected one of blue, green, wide"),
    ),
    (
        "includeFilters: [{source_label: ['pool:red notin (reserved)']}]",
        Some("`pool:red` holds for every flow: no pool `red` is defined; expected one of blue, green, wide"),
    ),
    (
        "includeFilters: [{source_label: ['pool:green=used']}]",
        Some(
            "`pool:green` matches nothing: the label of a pool has the value `reserved` or none, not `used`",
        ),
    ),
    (
        "includeFilters: [{source_label: ['pool:green>7']}]",
        Some("`pool:green` matches nothing: the label of a pool has no number"),
    ),
    (
        "includeFilters: [{source_label: ['pool:blue=reserved']}]",
        Some("`pool:blue` matches nothing: no address is reserved in pool `blue`"),
    ),
    (
        "includeFilters: [{source_label: ['pool:wide']}]",
        Some(
            "`pool:wide` matches nothing: no address belongs to pool `wide`: all of its own belong to other pools",
        ),
    ),
    (
        "where: {source_pool: [wide]}",
        Some("no address belongs to pool `wide`: all of its own belong to other pools"),
    ),
    ("where: {destination_pool: ['!blue=reserved']}", Some("no address is reserved in pool `blue`")),
    (
        "includeFilters: [{source_label: ['pool:green', 'pool:green=reserved', 'pool:green in (reserved, x)']}]",
        None,
    ),
    ("where: {source_pool: [green, '!green=reserved', blue]}", None),
];

#[test]
fn what_no_pool_can_give_is_warned_of() {
    let pools = [
        own("green", "{cidrs: [10.0.0.0/24], reserved: [10.0.0.0/28]}"),
        own("blue", "{cidrs: [11.0.0.0/8]}"),
        own("wide", "{cidrs: [11.0.0.0/8]}"),
    ]
    .join("---\n");
    for (keys, expected) in VAIN {
        let task = format!("flowLogs:\n- {{name: a, filePath: /l/a, {keys}}}\n");
        let folder = folder(&[("a.yaml", &task), ("p.yaml", &pools)]);
        let of_task = |problems: &[Problem]| -> Vec<String> {
            let mine = problems.iter().filter(|problem| problem.place.file.ends_with("a.yaml"));
            mine.map(|problem| problem.message.clone()).collect()
        };
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        let loaded = load(&[folder.path().to_owned()]).unwrap();
        assert_eq!(of_task(&loaded.warnings), expected, "{keys}");
        // A daemon says it, too.
        let mut config = Config::new(&[folder.path().to_owned()], None);
        let noticed = config.start(1).news.into_iter().filter_map(|news| match news {
            News::Noticed { warnings, .. } => Some(of_task(&warnings)),
            _ => None,
        });
        assert_eq!(noticed.flatten().collect::<Vec<_>>(), expected, "{keys}");
    }
    // A pool that goes: the label is given to no flow any more, and that is said.
    let task = "flowLogs:\n- {name: a, filePath: /l/a, includeFilters: [{source_label: ['pool:green']}]}\n";
    let folder = folder(&[("a.yaml", task), ("p.yaml", &pools)]);
    let mut config = Config::new(&[folder.path().to_owned()], None);
    config.start(1);
    fs::remove_file(folder.path().join("p.yaml")).unwrap();
    config.look(2, false);
    let news = config.look(2 + CONFIG_GONE_MS * 1_000_000, false).news;
    let said = format!("{news:?}");
    assert!(
        said.contains("`pool:green` matches nothing: no pool `green` is defined; no pools are there at all"),
        "{said}"
    );
}

#[test]
fn a_condition_that_names_nothing_is_refused() {
    let Shape::Map(keys, _) = CONDITIONS else { panic!("no map") };
    for (key, _) in keys {
        for nothing in ["[]", "null", ""] {
            let task = format!("flowLogs:\n- name: a\n  filePath: /l/a\n  where:\n    {key}: {nothing}\n");
            let (_, problems) = super::read(&task);
            let expected = format!(
                "t.yaml:5:5: flowLogs[0].where.{key}: names nothing; write what it asks for, or remove it"
            );
            assert_eq!(problems.to_string(), expected, "{task}");
        }
    }
}

#[test]
fn ipv4_in_the_notation_of_ipv6_is_warned_of() {
    let table = [
        (own("green", "{cidrs: ['::ffff:10.0.0.0/104']}"), Some(("::ffff:10.0.0.0/104", "10.0.0.0/8"))),
        (
            own("green", "{ranges: ['::ffff:10.0.0.1-::ffff:10.0.0.9']}"),
            Some(("::ffff:10.0.0.1-::ffff:10.0.0.9", "10.0.0.1-10.0.0.9")),
        ),
        (
            own("green", "{cidrs: ['::/0'], reserved: ['::ffff:0:0/96']}"),
            Some(("::ffff:0:0/96", "0.0.0.0/0")),
        ),
        (
            cilium("v2", "{ipv6: {cidrs: ['::ffff:10.0.0.0/120']}}"),
            Some(("::ffff:10.0.0.0/120", "10.0.0.0/24")),
        ),
        (own("green", "{cidrs: ['::/0'], ranges: [10.0.0.1-10.0.0.2]}"), None),
    ];
    for (pool, expected) in table {
        let folder = folder(&[("p.yaml", &pool)]);
        let warnings = load(&[folder.path().to_owned()]).unwrap().warnings;
        let said: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
        let message =
            |(text, meant)| format!("no IPv4 packet has an address of `{text}`; write {meant} for IPv4");
        assert_eq!(said, expected.map(message).iter().collect::<Vec<_>>(), "{pool}");
    }
}

#[test]
fn labels_that_a_pool_gives_are_not_said_to_be_missing() {
    let pool = own("green-pool", "{cidrs: [10.0.0.0/8]}");
    for (labels, unseen) in [
        ("'pool:green-pool', 'k8s:app=x'", &["flowLogs[0].includeFilters[0].source_label[1]"][..]),
        ("green-pool", &[]),
        ("'any:green-pool'", &[]),
        ("'green-pool,world'", &[]),
        ("'green-pool,app'", &["flowLogs[0].includeFilters[0].source_label[0]"]),
        (
            "blue-pool, app",
            &[
                "flowLogs[0].includeFilters[0].source_label[0]",
                "flowLogs[0].includeFilters[0].source_label[1]",
            ],
        ),
        ("'k8s:green-pool'", &["flowLogs[0].includeFilters[0].source_label[0]"]),
    ] {
        let list = format!("includeFilters: [{{source_label: [{labels}]}}]");
        let task = format!("flowLogs:\n- {{name: a, filePath: /l/a, {list}}}\n");
        let folder = folder(&[("a.yaml", &task), ("p.yaml", &pool)]);
        let loaded = load(&[folder.path().to_owned()]).unwrap();
        let told = loaded.warnings.iter().filter(|one| one.message.contains("sees nothing"));
        let told: Vec<&str> = told.map(|one| &*one.place.path).collect();
        assert_eq!(told, unseen, "{labels}");
        let mut config = Config::new(&[folder.path().to_owned()], None);
        config.start(1);
        let fields = config.tasks()["a"].spec.filter.unrecorded(&config.pools().pools);
        let none_is_left = unseen.len() == labels.split(", ").count();
        assert_eq!(fields.is_empty(), !none_is_left, "{labels}");
    }
}
