//! What tasks ask of pools.

use super::filters::flow;
use super::pools::{TASK, folder, own};
use crate::config::load;
use crate::record::{Flow, Node};

#[test]
fn where_asks_for_pools_and_their_reserved_parts() {
    let pool = own("green", "{cidrs: [10.0.0.0/24], reserved: [10.0.0.0/28]}");
    let blue = own("blue", "{cidrs: ['fd00::/64']}");
    let file = format!("{pool}---\n{blue}");
    // Condition; of 10.0.0.1 (reserved), 10.0.0.100, fd00::1, 192.0.2.1.
    let table = [
        ("source_pool: [green]", [true, true, false, false]),
        ("source_pool: [green=reserved]", [true, false, false, false]),
        ("source_pool: [green, '!green=reserved']", [false, true, false, false]),
        ("source_pool: ['!green']", [false, false, true, true]),
        ("source_pool: [green, blue]", [true, true, true, false]),
        ("source_pool: ['!green', '!blue']", [false, false, false, true]),
        ("source_pool: [blue=reserved]", [false, false, false, false]),
        ("destination_pool: [green]", [false, false, false, false]),
    ];
    for (condition, expected) in table {
        let task = format!("flowLogs: [{{name: a, filePath: /l/a, where: {{{condition}}}}}]\n");
        let folder = folder(&[("p.yaml", &file), ("a.yaml", &task)]);
        let loaded = load(&[folder.path().to_owned()]).unwrap();
        let filter = &loaded.plan.tasks[0].filter;
        for (source, expected) in ["10.0.0.1", "10.0.0.100", "fd00::1", "192.0.2.1"].into_iter().zip(expected)
        {
            let flow = Flow { source: source.parse().unwrap(), ..flow() };
            assert_eq!(filter.matches(&flow, &Node::default()), expected, "{condition}: {source}");
            let line = format!("{{\"flow\":{{\"IP\":{{\"source\":\"{source}\"}}}}}}");
            let recorded = crate::read::event(line.as_bytes()).unwrap();
            assert_eq!(filter.takes(&recorded), expected, "{condition}: recorded {source}");
        }
    }
    for (names, message) in [
        ("[Green]", "`Green` names no pool; expected a name like"),
        ("['green=used']", "`green=used` names no pool"),
        ("['']", "`` names no pool"),
        ("green", "expected a list"),
    ] {
        let folder = folder(&[("p.yaml", &file), ("a.yaml", &TASK.replace("[green]", names))]);
        let said = load(&[folder.path().to_owned()]).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn a_flow_has_its_pool_s_label_and_filters_see_it() {
    let task = "flowLogs:\n- name: a\n  filePath: /l/a\n  includeFilters:\n  - source_label: ['pool:green=reserved']\n  - \
                destination_label: [pool:green]\n    source_label: ['!pool:green']\n";
    let files =
        [("p.yaml", &*own("green", "{cidrs: [10.0.0.0/24], reserved: [10.0.0.0/28]}")), ("a.yaml", task)];
    let folder = folder(&files);
    let loaded = load(&[folder.path().to_owned()]).unwrap();
    assert_eq!(loaded.warnings, [], "records have what these ask for");
    let node = Node { pools: loaded.pools.pools.clone(), ..Node::default() };
    let enricher = crate::enrich::Enricher::new(Vec::new());
    let takes = |source: &str, destination: &str| {
        let mut flows =
            [Flow { source: source.parse().unwrap(), destination: destination.parse().unwrap(), ..flow() }];
        enricher.enrich(&mut flows, &node);
        loaded.plan.tasks[0].filter.matches(&flows[0], &node)
    };
    assert!(takes("10.0.0.15", "192.0.2.1") && !takes("10.0.0.16", "192.0.2.1"));
    assert!(
        takes("192.0.2.1", "10.0.0.255")
            && !takes("192.0.2.1", "10.0.1.0")
            && !takes("10.0.0.16", "10.0.0.17")
    );
}
