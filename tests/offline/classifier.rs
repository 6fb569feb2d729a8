//! The filters of many tasks as one, beside the plain evaluation of each.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use flowlog_tests::generated::filters;
use flowlog_tests::model;
use flowlog_tests::random::Random;
use flowlog_user::config;
use flowlog_user::filter::{Classifier, Conditions, Filter, FlowFilter, Spec};
use flowlog_user::record::{
    DropKind, Dropped, Flow, ForeignName, Hook, Identity, L4, Node, Tunnel, TunnelKind,
};

const CONDITIONS: [&str; 16] = [
    "source_port: ['1024-65535', '!40000']",
    "destination_port: ['1-1023']",
    "tcp_flags: [{SYN: true, ACK: false}]",
    "packets: '>10'",
    "packets: ['>1', '<1000']",
    "bytes: '>=1000'",
    "duration: '<1s'",
    "duration: '>0s'",
    "vlan: ['0', '7']",
    "tunnel: [none, 'vxlan:1-50']",
    "source_pool: [prefixes]",
    "source_pool: [prefixes, ranges], destination_pool: [many]",
    "destination_pool: [other=reserved, prefixes]",
    "source_pool: ['!ranges']",
    "source_pool: [many, '!prefixes']",
    "destination_pool: [many], source_port: ['0-60000']",
];

/// Pools around the addresses of flows: of prefixes, of a range that is none, and one of many ranges.
fn pools() -> String {
    let kind = |name: &str, spec: &str| {
        format!(
            "---\napiVersion: flowlog.io/v1\nkind: AddressPool\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
        )
    };
    let many: Vec<String> = (0..200_u8).map(|at| format!("10.{at}.0.0-10.{at}.130.7")).collect();
    let other = "---\napiVersion: cilium.io/v2\nkind: CiliumPodIPPool\nmetadata: {name: other}\nspec: {ipv4: {cidrs: \
                 [{cidr: 192.0.2.0/29, reservedRange: 192.0.2.1-192.0.2.6}], maskSize: 30}}\n";
    [
        other.to_owned(),
        kind("prefixes", "cidrs: [10.1.2.3/32, 203.0.113.0/25, 'fd00::/64']"),
        kind(
            "ranges",
            "cidrs: [192.0.2.10/31], \
             ranges: [10.1.2.4-10.1.77.0, '2001:db8::7-2001:db8::b', 255.255.255.3-255.255.255.255]",
        ),
        kind("many", &format!("ranges: ['{}']", many.join("', '"))),
    ]
    .concat()
}

/// Filters and conditions as a file would have them.
fn pool(random: &mut Random, size: usize) -> anyhow::Result<(Vec<FlowFilter>, Vec<Conditions>)> {
    let mut text = "flowLogs:\n".to_owned();
    for number in 0..size {
        let filters = filters(random, 4);
        write!(text, "  - {{name: t{number}, filePath: /l/t{number}.log, includeFilters: {filters}")?;
        writeln!(text, ", where: {{{}}}}}", random.pick(&CONDITIONS))?;
    }
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("tasks.yaml"), &text)?;
    std::fs::write(folder.path().join("pools.yaml"), pools())?;
    let loaded = config::load(&[folder.path().to_owned()])
        .map_err(|error| anyhow::anyhow!("{error}: {:?}", error.problems().errors.first()))?;
    let specs = || loaded.plan.tasks.iter().map(|task| &task.spec.filter);
    let filters = specs().flat_map(|spec| spec.include.clone()).collect();
    Ok((filters, specs().map(|spec| spec.conditions.clone()).collect()))
}

/// Tasks with filters of a pool: some have none, some many to exclude, and many share them.
fn tasks(random: &mut Random, tasks: usize) -> anyhow::Result<Vec<Arc<Spec>>> {
    let (filters, conditions) = pool(random, tasks.min(150))?;
    let some = |random: &mut Random, count| (0..count).map(|_| random.pick(&filters).clone()).collect();
    let task = |_| {
        let (include, few, many) = (random.below(4), random.below(3), random.once_in(8));
        let include = some(random, include);
        let exclude = if many { 9 + random.below(9) } else { few };
        let exclude = some(random, exclude);
        let conditions =
            if random.once_in(4) { random.pick(&conditions).clone() } else { Conditions::default() };
        Arc::new(Spec { include, exclude, conditions })
    };
    Ok((0..tasks).map(task).collect())
}

/// A flow of the model, most often with something changed to what filters ask for.
fn flow(random: &mut Random, of: &[Flow]) -> Flow {
    const SOURCES: [&str; 11] = [
        "10.1.2.3",
        "10.1.2.4",
        "10.200.0.1",
        "255.255.255.255",
        "203.0.113.7",
        "fd00::1",
        "2001:db8::9",
        "::ffff:10.1.2.3",
        "0.0.0.0",
        "192.0.2.5",
        "192.0.2.10",
    ];
    let mut flow = *random.pick(of);
    let address = |random: &mut Random| random.pick(&SOURCES).parse::<IpAddr>().expect("an address");
    if !random.once_in(4) {
        (flow.source, flow.destination) = (address(random), address(random));
    }
    let port = |random: &mut Random| *random.pick(&[0, 53, 80, 443, 40_000, 65_535]);
    let (source_port, destination_port) = (port(random), port(random));
    let flags = *random.pick(&[0, 2, 0x12, 0x1b, 4, 0xff]);
    flow.l4 = match random.below(8) {
        0 => L4::Other,
        1 => L4::Icmpv4 { icmp_type: 8, code: 0 },
        2 => L4::Icmpv6 { icmp_type: 128, code: 0 },
        3 => L4::Sctp { source_port, destination_port },
        4 => L4::Udp { source_port, destination_port },
        5 => flow.l4,
        _ => L4::Tcp { source_port, destination_port, flags },
    };
    flow.vlans = *random.pick(&[[0, 0], [7, 0], [100, 7]]);
    let (source, destination) = (flow.source, flow.destination);
    let tunnel = |vni| Some(Tunnel { kind: TunnelKind::Vxlan, source, destination, ports: (1, 4789), vni });
    flow.tunnel = *random.pick(&[None, tunnel(42), tunnel(77)]);
    let dropped = |reason| {
        let interface = ForeignName::default();
        Some(Dropped { kind: DropKind::of(reason, "f"), netns: 1, interface })
    };
    flow.dropped = *random.pick(&[None, None, dropped("NETFILTER_DROP"), dropped("NO_SOCKET"), dropped("")]);
    flow.is_reply = *random.pick(&[None, Some(true), Some(false)]);
    flow.hook =
        *random.pick(&[Hook::EndpointEgress, Hook::EndpointIngress, Hook::UplinkEgress, Hook::UplinkIngress]);
    flow.interfaces = *random.pick(&[[0; 4], [2, 0, 0, 0], [10, 2, 0, 0], [2, 13, 0, 0]]);
    flow
}

/// Stands for what `enrich` does: identities that depend on the flow, and count as unknown before.
fn enrich(flow: &mut Flow) {
    let identity = |number: u64| match number % 3 {
        0 => Identity::Host,
        1 => Identity::World,
        _ => Identity::Unmanaged,
    };
    flow.source_identity = identity(flow.packets);
    flow.destination_identity = identity(flow.bytes);
}

/// Compares on `flows` flows; gives how many pairs of flow and task matched.
fn compare(seed: u64, tasks: usize, flows: usize) -> anyhow::Result<usize> {
    let mut random = Random::new(seed);
    let specs = self::tasks(&mut random, tasks)?;
    let filters: Vec<Filter> = specs.iter().map(Filter::new).collect();
    let mut classifier = Classifier::new(specs.iter().map(AsRef::as_ref));
    let of = model::flows(seed, 4096);
    let nodes = [model::node(), Node { name: "node-7".into(), ..model::node() }];
    let (mut found, mut pairs) = (Vec::new(), 0);
    for at in 0..flows {
        let node = &nodes[at * 2 / flows];
        classifier.begin(node);
        let flow = flow(&mut random, &of);
        let mut enriched = flow;
        enrich(&mut enriched);
        let plain: Vec<u32> = (0..)
            .zip(&filters)
            .filter(|(_, filter)| filter.matches(&enriched, node))
            .map(|(number, _)| number)
            .collect();
        let mut seen = flow;
        classifier.classify(&mut seen, node, enrich, &mut found);
        found.sort_unstable();
        let differ = |number: &&u32| found.contains(number) != plain.contains(number);
        if let Some(number) = found.iter().chain(&plain).find(differ) {
            let task = &specs[*number as usize];
            anyhow::bail!(
                "seed {seed}: plain evaluation takes {}: {flow:?} {task:?}",
                plain.contains(number)
            );
        }
        anyhow::ensure!(found.is_empty() || seen == enriched, "seed {seed}: taken as it was: {seen:?}");
        pairs += found.len();
    }
    Ok(pairs)
}

#[test]
fn many_tasks_as_one_take_what_each_alone_takes() -> anyhow::Result<()> {
    let long = flowlog_tests::guest::long();
    let seeds = if long { 400 } else { 10 };
    let mut pairs = 0;
    for seed in 0..seeds {
        pairs += compare(seed, 10, 400)?;
    }
    pairs += compare(1000, 100, 300)? + compare(1001, 1000, 200)? + compare(1002, 10_000, 30)?;
    anyhow::ensure!(pairs > 10_000, "only {pairs} matched: the test compares nothing");
    Ok(())
}

#[test]
#[ignore = "minutes; run by `cargo xtask test --long`"]
fn many_more_tasks_as_one_take_what_each_alone_takes() -> anyhow::Result<()> {
    for seed in 0..20 {
        compare(seed, 1000, 2000)?;
        compare(seed + 100, 10_000, 300)?;
    }
    Ok(())
}
