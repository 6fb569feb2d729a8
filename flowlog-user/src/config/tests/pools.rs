//! Pools of addresses. Which pool an address at a boundary belongs to is written down by hand.

use std::fs;
use std::path::{Path, PathBuf};

use super::filters::flow;
use crate::config::{Config, News, Sources, load};
use crate::filter::Filter;
use crate::limits::CONFIG_GONE_MS;
use crate::record::{Flow, Node, Pools};

/// Cilium's first version: CIDRs are texts.
const GREEN_V2ALPHA1: &str = "
apiVersion: cilium.io/v2alpha1
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - 10.20.0.0/16
      - 10.30.0.0/16
    maskSize: 24
  ipv6:
    cidrs:
      - fd00:100::/80
      - fc00:100::/80
    maskSize: 96
";

/// As designed: CIDRs are objects, parts of which are reserved.
const GREEN_V2: &str = "
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - cidr: 10.20.0.0/16
        reservedRange: 10.20.0.0-10.20.0.99
      - cidr: 10.30.0.0/16
    maskSize: 24
  ipv6:
    cidrs:
      - cidr: fd00:100::/80
        reservedRange: fd00:100::100-fd00:100::1ff
      - cidr: fc00:100::/80
    maskSize: 96
";

/// As built: CIDRs are texts, and what is reserved stands in a list of its own.
const GREEN_V2_BUILT: &str = "
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata:
  name: green-pool
  creationTimestamp: \"2026-08-13T09:00:00Z\"
spec:
  allowFirstIP: true
  allowLastIP: false
  podSelector: {matchLabels: {app: green}}
  ipv4:
    cidrs: [10.20.0.0/16, 10.30.0.0/16]
    maskSize: 24
    pool:
      - cidr: 10.20.0.0/16
        reservedRanges:
          - {start: 10.20.0.0, end: 10.20.0.99}
  ipv6:
    cidrs: ['fd00:100::/80', 'fc00:100::/80']
    maskSize: 96
    pool:
      - cidr: fd00:100::/80
        reservedRange: fd00:100::100-fd00:100::1ff
status: {}
";

const GREEN_OWN: &str = "
apiVersion: flowlog.io/v1
kind: AddressPool
metadata: {name: green-pool}
spec:
  cidrs: [10.20.0.0/16, 'fd00:100::/80']
  ranges: [10.30.0.0-10.30.255.255, 'fc00:100::-fc00:100::ffff:ffff:ffff']
  reserved: [10.20.0.0-10.20.0.99, 'fd00:100::100/120']
";

/// A folder with these files; the paths of tasks are left out.
pub(super) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    folder
}

fn pools(text: &str) -> Pools {
    let folder = folder(&[("p.yaml", text)]);
    let loaded = load(&[folder.path().to_owned()]).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(loaded.warnings, []);
    Pools::clone(&loaded.pools.pools)
}

fn label<'a>(pools: &'a Pools, address: &str) -> Option<&'a str> {
    pools.label(pools.tag(address.parse().unwrap()))
}

#[test]
fn each_address_at_and_around_each_boundary_has_the_right_pool() {
    const IN: Option<&str> = Some("pool:green-pool");
    const RESERVED: Option<&str> = Some("pool:green-pool=reserved");
    // Address; without and with the reserved range.
    let table = [
        ("10.19.255.255", None, None),
        ("10.20.0.0", IN, RESERVED),
        ("10.20.0.1", IN, RESERVED),
        ("10.20.0.98", IN, RESERVED),
        ("10.20.0.99", IN, RESERVED),
        ("10.20.0.100", IN, IN),
        ("10.20.0.255", IN, IN),
        ("10.20.1.0", IN, IN),
        ("10.20.255.254", IN, IN),
        ("10.20.255.255", IN, IN),
        ("10.21.0.0", None, None),
        ("10.29.255.255", None, None),
        ("10.30.0.0", IN, IN),
        ("10.30.0.99", IN, IN),
        ("10.30.255.255", IN, IN),
        ("10.31.0.0", None, None),
        ("0.0.0.0", None, None),
        ("255.255.255.255", None, None),
        ("fd00:ff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
        ("fd00:100::", IN, IN),
        ("fd00:100::ff", IN, IN),
        ("fd00:100::100", IN, RESERVED),
        ("fd00:100::1ff", IN, RESERVED),
        ("fd00:100::200", IN, IN),
        ("fd00:100::ffff:ffff:ffff", IN, IN),
        ("fd00:100::1:0:0:0", None, None),
        ("fc00:ff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
        ("fc00:100::", IN, IN),
        ("fc00:100::ffff:ffff:ffff", IN, IN),
        ("fc00:100::1:0:0:0", None, None),
        ("::", None, None),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
        // Not an address of IPv4.
        ("::ffff:10.20.0.0", None, None),
    ];
    let old = GREEN_V2ALPHA1.to_owned();
    let plain = old.replace("v2alpha1", "v2");
    for manifest in [&old, &plain, &format!("# first\n---\n{old}---\n# nothing\n---\n")] {
        let pools = pools(manifest);
        for (address, without, _) in table {
            assert_eq!(label(&pools, address), without, "{address} in {manifest}");
        }
    }
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}", GREEN_V2.trim().replace('\n', "\n  "));
    for manifest in [GREEN_V2, GREEN_V2_BUILT, GREEN_OWN, &list] {
        let pools = pools(manifest);
        for (address, _, with) in table {
            assert_eq!(label(&pools, address), with, "{address} in {manifest}");
        }
    }
}

pub(super) fn own(name: &str, spec: &str) -> String {
    format!("apiVersion: flowlog.io/v1\nkind: AddressPool\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

pub(super) fn cilium(version: &str, spec: &str) -> String {
    format!(
        "apiVersion: cilium.io/{version}\nkind: CiliumPodIPPool\nmetadata: {{name: green}}\nspec: {spec}\n"
    )
}

#[test]
fn what_is_wrong_in_cilium_s_manifests_is_refused_with_place_and_remedy() {
    let ipv4 = |cidrs: &str| cilium("v2", &format!("{{ipv4: {{cidrs: [{cidrs}], maskSize: 28}}}}"));
    let table = [
        (
            ipv4("{cidr: 10.0.0.0/24, reservedRange: 10.0.0.250-10.0.1.4}"),
            "p.yaml:4:58: spec.ipv4.cidrs[0].reservedRange: reserved range `10.0.0.250-10.0.1.4` does not lie within \
             `10.0.0.0/24`; correct one",
        ),
        (
            ipv4("{cidr: 10.0.0.0/24, reservedRange: 10.0.0.9-10.0.0.4}"),
            "`10.0.0.9-10.0.0.4` ends before it begins; write 10.0.0.4-10.0.0.9",
        ),
        (
            ipv4("{cidr: 10.0.0.0/24, reservedRange: '10.0.0.9-fd00::1'}"),
            "`10.0.0.9-fd00::1` mixes IPv4 and IPv6; write a range of one of them",
        ),
        (ipv4("{cidr: 10.0.0.0/24, reservedRange: 10.0.0.9}"), "`10.0.0.9` is no range; expected one like"),
        (
            ipv4("{cidr: 10.0.0.0/24, reservedrange: 1}"),
            "unknown key `reservedrange`; did you mean `reservedRange`?",
        ),
        (ipv4("{reservedRange: 10.0.0.1-10.0.0.2}"), "spec.ipv4.cidrs[0]: cidr is required; add it"),
        (ipv4("10.0.0.1/24"), "spec.ipv4.cidrs[0]: `10.0.0.1/24` has host bits; write 10.0.0.0/24"),
        (ipv4("10.0.0.1"), "`10.0.0.1` has no length; write 10.0.0.1/32 for this address alone"),
        (ipv4("10.0.0.0/33"), "`10.0.0.0/33` is no CIDR; expected one like 10.0.0.0/8 or fd00::/64"),
        (ipv4("'fd00::/64'"), "IPv6 under ipv4; move it to the other family"),
        (ipv4(""), "spec.ipv4: no cidrs are here; add one or remove the family"),
        (
            ipv4("10.0.0.0/24, 10.0.0.0/24"),
            "`10.0.0.0/24` has addresses in common with `10.0.0.0/24` of the same pool",
        ),
        (ipv4("10.0.0.0/24, 10.0.0.128/25"), "`10.0.0.128/25` has addresses in common with `10.0.0.0/24`"),
        (cilium("v2", "{}"), "pool `green` has no addresses; give it some or remove it"),
        (
            cilium("v2", "{ipv4: {cidrs: [10.0.0.0/8], maskSize: 33}}"),
            "expected a whole number from 1 to 32, found `33`",
        ),
        (
            cilium("v2", "{ipv4: {cidrs: [10.0.0.0/8]}, allowFirstIP: maybe}"),
            "expected true or false, found `maybe`",
        ),
        (
            cilium("v2", "{ipv4: {cidrs: [10.0.0.0/8], pool: [{cidr: 10.0.0.0/9}]}}"),
            "`10.0.0.0/9` is none of the pool's cidrs; add it there or correct it here",
        ),
        (
            cilium("v3", "{ipv4: {cidrs: [10.0.0.0/8]}}"),
            "p.yaml:1:13: apiVersion: unknown version `cilium.io/v3` of CiliumPodIPPool; cilium.io/v2 and cilium.io/v2alpha1 \
             are known",
        ),
    ];
    refused(&table);
}

#[test]
fn what_is_wrong_in_a_selector_is_refused_though_it_changes_nothing_of_a_pool() {
    let selecting = |selector: &str| {
        cilium("v2", &format!("{{ipv4: {{cidrs: [10.0.0.0/8], maskSize: 28}}, podSelector: {selector}}}"))
    };
    let table = [
        (selecting("{matchLabels: 5}"), "spec.podSelector.matchLabels: expected a map"),
        (selecting("{matchLabels: {a: [b]}}"), "spec.podSelector.matchLabels.a: expected a string"),
        (selecting("{matchExpressions: {}}"), "spec.podSelector.matchExpressions: expected a list"),
        (
            selecting("{matchExpressions: [{key: a, operator: Bogus}]}"),
            "spec.podSelector.matchExpressions[0].operator: unknown operator `Bogus`; expected one of In, NotIn, Exists, \
             DoesNotExist",
        ),
        (
            selecting("{matchExpressions: [{operator: Exists}]}"),
            "matchExpressions[0]: key is required; add it",
        ),
        (selecting("{matchExpressions: [{key: a}]}"), "matchExpressions[0]: operator is required; add it"),
        (
            selecting("{matchExpressions: [{key: a, operator: In, values: 3}]}"),
            "matchExpressions[0].values: expected a list",
        ),
        (selecting("{matchExpressions: [{key: a, operator: NotIn}]}"), "`NotIn` needs values; add some"),
        (
            selecting("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}"),
            "`Exists` takes no values; remove them",
        ),
        (selecting("{foo: bar}"), "unknown key `foo`; expected one of matchLabels, matchExpressions"),
    ];
    refused(&table);
    let good = "{matchLabels: {app: green}, matchExpressions: [{key: a, operator: NotIn, values: [b]}, {key: c, operator: Exists}]}";
    assert!(pools(&selecting(good)).addresses("green").is_some());
}

#[test]
fn what_is_wrong_in_pools_of_ours_is_refused_with_place_and_remedy() {
    let table = [
        (own("Green", "{cidrs: [10.0.0.0/8]}"), "`Green` is no name of a pool"),
        (
            own("a", "{cidrs: [10.0.0.0/8]}").replace("io/v1", "io/v2"),
            "unknown version `flowlog.io/v2` of AddressPool",
        ),
        (own("a", "{cidrs: []}"), "pool `a` has no addresses; give it some or remove it"),
        (own("a", "{ranges: ['10.0.0.0-fd00::1']}"), "mixes IPv4 and IPv6"),
        (
            own("a", "{cidrs: [10.0.0.0/8], reserved: [11.0.0.0/9]}"),
            "reserved range `11.0.0.0/9` does not lie within one of the pool's CIDRs and ranges; correct one",
        ),
        (own("a", "{cidr: [10.0.0.0/8]}"), "unknown key `cidr`; did you mean `cidrs`?"),
        (
            own("a", "{cidrs: [10.0.0.0/8], reserved: [10.0.0.1]}"),
            "`10.0.0.1` is no range; write 10.0.0.1/32 for this address alone",
        ),
        (
            own("a", "{cidrs: [10.0.0.0/8]}") + "---\n" + &own("a", "{cidrs: [11.0.0.0/8]}"),
            "p.yaml:8:18: metadata.name: pool `a` is defined at ",
        ),
        (
            own("a", "{cidrs: [10.0.0.0/8]}") + "---\nflowLogs: []\n",
            "p.yaml:5:1: a second document begins here; put each into a file of its own",
        ),
    ];
    refused(&table);
}

fn refused(table: &[(String, &str)]) {
    for (text, expected) in table {
        let folder = folder(&[("p.yaml", text)]);
        let said = load(&[folder.path().to_owned()]).expect_err(text).to_string();
        assert!(said.contains(expected), "{text}\n{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        // A daemon says the same of it, and goes on without it.
        let mut config = Config::new(&[folder.path().to_owned()], None);
        let look = config.start(1);
        assert!(matches!(look.news.as_slice(), [News::Rejected { .. }]), "{text}: {:?}", look.news);
        assert!(config.pools().pools.is_empty());
    }
}

pub(super) const TASK: &str = "flowLogs:\n- {name: a, filePath: /l/a, where: {source_pool: [green]}}\n";

#[test]
fn a_pool_that_nobody_defines_is_an_error_of_the_task_that_names_it() {
    let other = "flowLogs:\n- {name: b, filePath: /l/b}\n";
    let green = own("greene", "{cidrs: [10.0.0.0/8]}");
    for (pools, remedy) in [
        (None, "no pools are there at all; put their manifests into the tasks' folder or give --pools PATH"),
        (Some(green), "did you mean `greene`?"),
        (Some(own("red", "{cidrs: [10.0.0.0/8]}")), "expected one of red"),
    ] {
        let folder = folder(&[("a.yaml", TASK), ("b.yaml", other)]);
        if let Some(pools) = pools {
            fs::write(folder.path().join("p.yaml"), pools).unwrap();
        }
        let expected =
            format!("a.yaml:2:51: flowLogs[0].where.source_pool[0]: no pool `green` is defined; {remedy}");
        let said = load(&[folder.path().to_owned()]).unwrap_err().to_string();
        assert!(said.ends_with(&expected), "{said}");
        let mut config = Config::new(&[folder.path().to_owned()], None);
        config.start(1);
        assert_eq!(config.tasks().keys().collect::<Vec<_>>(), ["b"]);
        let refused = config.refused("a", &folder.path().join("a.yaml")).unwrap();
        assert!(refused[0].to_string().ends_with(&expected), "{refused:?}");
    }
}

pub(super) fn takes(config: &Config, task: &str, source: &str) -> bool {
    let flow = Flow { source: source.parse().unwrap(), ..flow() };
    Filter::new(&config.tasks()[task].spec.filter).matches(&flow, &Node::default())
}

#[test]
fn pools_come_change_and_go_while_the_daemon_runs() {
    let folder = folder(&[("a.yaml", TASK)]);
    let more = tempfile::tempdir().unwrap();
    let sources =
        Sources { tasks: vec![folder.path().into()], pools: vec![more.path().into()], ..Sources::default() };
    let file = more.path().join("green.yaml");
    fs::write(&file, own("green", "{cidrs: [10.0.0.0/8]}")).unwrap();
    let mut config = Config::new(sources, None);
    config.start(1);
    assert!(takes(&config, "a", "10.1.2.3") && !takes(&config, "a", "11.1.2.3"));

    // It changes: the task does, too.
    fs::write(&file, own("green", "{cidrs: [11.0.0.0/8]}")).unwrap();
    let before = config.tasks()["a"].spec.clone();
    assert!(config.look(1, false).decision.is_some());
    assert!(!takes(&config, "a", "10.1.2.3") && takes(&config, "a", "11.1.2.3"));
    assert_eq!(before.differences(&config.tasks()["a"].spec), ["filters"]);
    // A change that changes no address changes no task.
    let before = config.tasks()["a"].spec.clone();
    fs::write(&file, own("green", "\n  ranges: [11.0.0.0-11.255.255.255]")).unwrap();
    config.look(1, false);
    assert!(before.differences(&config.tasks()["a"].spec).is_empty());

    // It becomes bad: it stays as it was.
    fs::write(&file, own("green", "{cidrs: [12.0.0.0/7, 13.0.0.0/8]}")).unwrap();
    assert!(matches!(config.look(1, false).news.as_slice(), [News::Rejected { .. }]));
    assert!(takes(&config, "a", "11.1.2.3"));

    // It goes: the task stays as it was, and is told of.
    fs::remove_file(&file).unwrap();
    config.look(2, false);
    let look = config.look(2 + CONFIG_GONE_MS * 1_000_000, false);
    let [News::Gone { .. }, News::PoolGone { name, tasks, .. }] = look.news.as_slice() else {
        panic!("{:?}", look.news)
    };
    assert_eq!((&**name, tasks.as_slice()), ("green", ["a".to_owned()].as_slice()));
    assert!(config.pools().pools.is_empty() && takes(&config, "a", "11.1.2.3"));
    let refused = &look.decision.unwrap().refused;
    let said = "no pool `green` is defined any more; the task goes on with the addresses that it had: define the pool again, \
                or name another here";
    assert_eq!(refused[0].1[0].message, said);
    // It is back.
    fs::write(&file, own("green", "{cidrs: [14.0.0.0/8]}")).unwrap();
    assert!(config.look(u64::MAX, false).decision.unwrap().refused.is_empty());
    assert!(takes(&config, "a", "14.1.2.3"));
}

#[test]
fn tasks_do_not_belong_among_pools() {
    let folder = folder(&[("a.yaml", TASK)]);
    let sources = Sources { tasks: Vec::new(), pools: vec![folder.path().into()], ..Sources::default() };
    let said = load(sources).unwrap_err().to_string();
    assert!(
        said.ends_with("expected pools, found tasks; name this file with --tasks instead of --pools"),
        "{said}"
    );
}

/// Files, what is in force and what is said, each text by its end.
fn joined(files: &[(&str, &str)], expected: &[&str]) -> (Pools, String) {
    let folder = folder(files);
    let mut config = Config::new(&[folder.path().to_owned()], None);
    config.start(1);
    let joined = config.pools();
    let all: Vec<String> =
        joined.warnings.iter().chain(&joined.refused).map(|problem| problem.message.clone()).collect();
    let strip = |text: &str| text.replace(&format!("{}/", folder.path().display()), "");
    assert_eq!(all.iter().map(|text| strip(text)).collect::<Vec<_>>(), expected);
    let loaded = load(&[folder.path().to_owned()]);
    let valid = loaded.map_or_else(
        |error| error.to_string(),
        |loaded| loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    );
    (Pools::clone(&joined.pools), strip(&valid))
}

#[test]
fn of_both_versions_of_a_pool_the_newer_counts() {
    let (old, new) = (
        cilium("v2alpha1", "{ipv4: {cidrs: [10.0.0.0/24], maskSize: 28}}"),
        cilium(
            "v2",
            "{ipv4: {cidrs: [{cidr: 10.0.0.0/24, reservedRange: 10.0.0.0-10.0.0.9}], maskSize: 28}}",
        ),
    );
    for (first, second, place) in [("a.yaml", "b.yaml", "b.yaml:3:18"), ("b.yaml", "a.yaml", "a.yaml:3:18")] {
        let said = format!(
            "pool `green` is there as cilium.io/v2 at {place} too, which counts; they differ: cilium.io/v2 has 10.0.0.0/24 \
             without 10.0.0.0-10.0.0.9, cilium.io/v2alpha1 has 10.0.0.0/24; remove this one when no older Cilium needs it"
        );
        let (pools, warned) = joined(&[(first, &old), (second, &new)], &[&said]);
        assert_eq!(label(&pools, "10.0.0.9"), Some("pool:green=reserved"));
        assert_eq!(warned, format!("{first}:3:18: metadata.name: {said}"));
    }
    let same = old.replace("v2alpha1", "v2");
    let (_, warned) = joined(
        &[("a.yaml", &format!("{old}---\n{same}"))],
        &[
            "pool `green` is there as cilium.io/v2 at a.yaml:8:18 too, which counts; it says the same; remove this one when no \
           older Cilium needs it",
        ],
    );
    assert!(warned.starts_with("a.yaml:3:18"), "{warned}");
}

#[test]
fn a_name_is_one_pool_s() {
    let (one, two) = (own("green", "{cidrs: [10.0.0.0/8]}"), own("green", "{cidrs: [11.0.0.0/8]}"));
    let said = ["pool `green` is defined at a.yaml:3:18 already; choose another name or remove one"];
    let (pools, _) = joined(&[("a.yaml", &one), ("b.yaml", &two)], &said);
    assert_eq!((label(&pools, "10.0.0.1"), label(&pools, "11.0.0.1")), (Some("pool:green"), None));
    let (pools, error) =
        joined(&[("a.yaml", &one), ("b.yaml", &cilium("v2", "{ipv4: {cidrs: [11.0.0.0/8]}}"))], &said);
    assert_eq!(label(&pools, "11.0.0.1"), None);
    assert!(error.starts_with("b.yaml:3:18: metadata.name: pool `green`"), "{error}");

    // Whose it is keeps it.
    let folder = folder(&[("b.yaml", &one)]);
    let mut config = Config::new(&[folder.path().to_owned()], None);
    config.start(1);
    fs::write(folder.path().join("a.yaml"), &two).unwrap();
    let look = config.look(1, false);
    let file = |path: &PathBuf| path.file_name() == Path::new("a.yaml").file_name();
    let noticed = |news: &News| matches!(news, News::Noticed { file: at, refused, .. } if file(at) && refused.len() == 1);
    assert!(look.news.iter().any(noticed), "{:?}", look.news);
    assert_eq!(label(&config.pools().pools, "10.0.0.1"), Some("pool:green"));
    assert!(config.look(1, false).news.is_empty());
}

#[test]
fn overlapping_pools_are_told_of() {
    let wide = own("wide", "{cidrs: [10.0.0.0/8]}");
    let narrow = own("narrow", "{cidrs: [10.1.0.0/16]}");
    let twin = own("twin", "{cidrs: [10.0.0.0/8]}");
    let (pools, warned) = joined(
        &[("a.yaml", &wide), ("b.yaml", &narrow), ("c.yaml", &twin)],
        &[
            "pools `twin` and `wide` both have 10.0.0.0/8: it belongs to `twin`, whose name comes first",
            "pools `narrow`, `twin` and `wide` all have 10.1.0.0/16: it belongs to `narrow`, whose prefix is longer",
        ],
    );
    assert!(warned.starts_with("c.yaml:3:18: metadata.name: pools `twin`"), "{warned}");
    assert_eq!(label(&pools, "10.1.0.1"), Some("pool:narrow"));
    assert_eq!(label(&pools, "10.2.0.1"), Some("pool:twin"));
}
