//! Which tasks want a record: what that costs for one task, for many, and beside testing them one by one.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hint::black_box;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use flowlog_tests::measure::{Case, Series, Spread, in_turn};
use flowlog_tests::model::{self, SERVICE_PORTS};
use flowlog_tests::random::Random;
use flowlog_tests::report::{Figure, Target};
use flowlog_user::config;
use flowlog_user::filter::{Classifier, Filter, FlowFilter, Spec};
use flowlog_user::record::{Flow, Node};
use flowlog_user::task::Plan;

use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "filter",
    about: "which tasks want a record: one task's large filter, and a thousand tasks",
    run,
};

/// Records of a round: more than the processor remembers branches for.
const RECORDS: usize = 100_000;
/// Records that the daemon shows the tasks at a time.
pub(crate) const BATCH: usize = 1024;
/// Records of a round of plain evaluation of a thousand tasks, which takes a thousand times as long.
const RECORDS_PLAIN: usize = 500;
/// Of a million pairs of task and record, how many match (ten thousand are asked for).
const PAIRS_PER_MILLION: std::ops::RangeInclusive<usize> = 8_000..=12_000;

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let node = model::node();
    let flows = model::flows(1, RECORDS);
    let mut figures = large(settings, &flows, &node)?;
    figures.extend(small(settings, &flows, &node)?);
    figures.extend(many(settings, &flows, &node)?);
    Ok(figures)
}

/// One task with 1,000 prefixes and 100 ports.
fn large(settings: &Settings, flows: &[Flow], node: &Node) -> Result<Vec<Figure>> {
    let mut random = Random::new(2);
    let mut prefixes = BTreeSet::new();
    while prefixes.len() < 1000 {
        prefixes.insert(prefix(&mut random));
    }
    let mut ports: BTreeSet<u16> = SERVICE_PORTS.into_iter().collect();
    while ports.len() < 100 {
        ports.insert(u16::try_from(1 + random.below(32_000))?);
    }
    let list = |items: Vec<String>| format!("['{}']", items.join("', '"));
    let filter = format!(
        "{{destination_ip: {}, destination_port: {}}}",
        list(prefixes.into_iter().collect()),
        list(ports.iter().map(u16::to_string).collect())
    );
    let plan = specs(&[vec![filter]])?;
    let [one, plain, matched] = compare(settings.rounds, &plan, flows, node, RECORDS_PLAIN * 10)?;
    Ok(vec![
        alone("filter: one task, 1,000 prefixes and 100 ports", &one, Target::AtMost(60.0)),
        Figure::beside("filter: the same, beside plain evaluation", &one, &plain, "ns/record", Target::None),
        share("filter: records that match it", &matched),
    ])
}

/// One task as people write them: a port, a protocol, an exclude filter.
fn small(settings: &Settings, flows: &[Flow], node: &Node) -> Result<Vec<Figure>> {
    let filter = "{destination_port: ['443', '80'], protocol: [tcp]}".to_owned();
    let plan = specs(&[vec![filter]])?;
    let [one, plain, _] = compare(settings.rounds, &plan, flows, node, RECORDS)?;
    Ok(vec![Figure::beside(
        "filter: one task, one filter of ports and protocol",
        &one,
        &plain,
        "ns/record",
        Target::None,
    )])
}

/// A thousand tasks with ten filters each, of which one in a hundred takes a record.
fn many(settings: &Settings, flows: &[Flow], node: &Node) -> Result<Vec<Figure>> {
    let tasks = thousand(flows, node)?;
    let [one, plain, matched] = compare(settings.rounds, &tasks, flows, node, RECORDS_PLAIN)?;
    one_in_a_hundred(matched.median())?;
    Ok(vec![
        alone("filter: 1,000 tasks of 10 filters", &one, Target::AtMost(300.0)),
        Figure::beside(
            "filter: the same, beside testing them one by one",
            &one,
            &plain,
            "ns/record",
            Target::None,
        ),
        share("filter: tasks that take a record, of 1,000", &matched),
    ])
}

/// Whether so many of a thousand tasks take a record as are asked for.
pub(crate) fn one_in_a_hundred(tasks: f64) -> Result<()> {
    let pairs = tasks * 1e6 / 1000.0;
    let range = (*PAIRS_PER_MILLION.start() as f64)..=(*PAIRS_PER_MILLION.end() as f64);
    anyhow::ensure!(
        range.contains(&pairs),
        "{pairs} of a million pairs match; the tasks are not those asked for"
    );
    Ok(())
}

/// The filters of a thousand tasks, ten each.
pub(crate) fn thousand(flows: &[Flow], node: &Node) -> Result<Vec<Arc<Spec>>> {
    let mut random = Random::new(3);
    let rare = rare(&mut random, flows, node)?;
    let task = |_| {
        let include = (0..10).map(|_| random.pick(&rare).clone()).collect();
        Arc::new(Spec { include, ..Spec::default() })
    };
    Ok((0..1000).map(task).collect())
}

/// Filters that take a record in a thousand on average: those that take the most are left out until they do.
fn rare(random: &mut Random, flows: &[Flow], node: &Node) -> Result<Vec<FlowFilter>> {
    const SAMPLE: usize = 4000;
    let filters: Vec<Vec<String>> = (0..4000).map(|_| vec![filter(random)]).collect();
    let plan = specs(&filters)?;
    // An odd step: every second record is of the same direction.
    let step = (flows.len() / SAMPLE) | 1;
    let mut counted: Vec<(usize, FlowFilter)> = plan
        .into_iter()
        .filter_map(|spec| {
            let filter = Filter::new(&spec);
            let sample = flows.iter().step_by(step);
            Some((sample.filter(|flow| filter.matches(flow, node)).count(), spec.include.first()?.clone()))
        })
        .collect();
    counted.sort_by_key(|(count, _)| *count);
    let mut sum = 0;
    let rare = counted.into_iter().zip(1..).take_while(|((count, _), number)| {
        sum += count;
        // In the sample's records: a thousandth of them each.
        sum * 1000 <= number * flows.len() / step
    });
    Ok(rare.map(|((_, filter), _)| filter).collect())
}

fn alone(name: &str, series: &Series, target: Target) -> Figure {
    let spread = Spread::of(series.values().to_vec());
    Figure::alone(name, spread, "ns/record", target)
}

fn share(name: &str, series: &Series) -> Figure {
    Figure::alone(name, Spread::of(series.values().to_vec()), "tasks/record", Target::None)
}

/// A prefix in which some of the model's addresses lie.
fn prefix(random: &mut Random) -> String {
    let (client, service) = model::ends(random);
    let address = if random.once_in(2) { client } else { service };
    match address {
        IpAddr::V4(address) => format!("{address}/{}", 16 + random.below(17)),
        IpAddr::V6(address) => format!("{address}/{}", 48 + random.below(81)),
    }
}

/// A filter as teams have them: their networks or services, narrowed by what else one asks for.
fn filter(random: &mut Random) -> String {
    let mut fields = Vec::new();
    let network = if random.once_in(2) { "source_ip" } else { "destination_ip" };
    if !random.once_in(5) {
        let some: Vec<String> = (0..=random.below(3)).map(|_| prefix(random)).collect();
        fields.push(format!("{network}: ['{}']", some.join("', '")));
    }
    if fields.is_empty() || random.once_in(3) {
        let end = if random.once_in(2) { "source_port" } else { "destination_port" };
        let ports: Vec<String> =
            (0..=random.below(3)).map(|_| random.pick(&SERVICE_PORTS).to_string()).collect();
        fields.push(format!("{end}: ['{}']", ports.join("', '")));
    }
    if random.once_in(2) {
        fields.push(format!("protocol: [{}]", random.pick(&["tcp", "udp"])));
    }
    if random.once_in(4) {
        fields.push("tcp_flags: [{SYN: true}, {FIN: true}]".into());
    }
    if random.once_in(4) {
        fields.push(format!("reply: [{}]", random.once_in(2)));
    }
    if random.once_in(8) {
        fields.push("traffic_direction: [EGRESS]".into());
    }
    format!("{{{}}}", fields.join(", "))
}

fn specs(tasks: &[Vec<String>]) -> Result<Vec<Arc<Spec>>> {
    Ok(plan(tasks, Path::new("/l"))?.tasks.into_iter().map(|task| task.spec.filter).collect())
}

/// Tasks with these filters, whose files are in that folder.
pub(crate) fn plan(tasks: &[Vec<String>], folder: &Path) -> Result<Plan> {
    let (mut text, folder) = ("flowLogs:\n".to_owned(), folder.display());
    for (number, filters) in tasks.iter().enumerate() {
        let filters = filters.join(", ");
        writeln!(
            text,
            "  - {{name: t{number}, filePath: {folder}/t{number}.log, includeFilters: [{filters}]}}"
        )?;
    }
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), &text)?;
    let loaded = config::load(&[file.path().to_owned()]).context("the bench's own tasks are not valid")?;
    Ok(loaded.plan)
}

/// Nanoseconds a record, shown in batches as the daemon has them: in the processor's cache, where they were just made.
pub(crate) fn by_batches(flows: &[Flow], mut show: impl FnMut(&mut [Flow])) -> f64 {
    let (mut batch, mut spent) = (Vec::with_capacity(BATCH), Duration::ZERO);
    for some in flows.chunks(BATCH) {
        batch.clear();
        batch.extend_from_slice(some);
        let began = Instant::now();
        show(&mut batch);
        spent += began.elapsed();
    }
    spent.as_nanos() as f64 / flows.len() as f64
}

/// Nanoseconds a record by the classifier and by plain evaluation, and how many tasks take a record.
fn compare(
    rounds: usize,
    tasks: &[Arc<Spec>],
    flows: &[Flow],
    node: &Node,
    plain: usize,
) -> Result<[Series; 3]> {
    let filters: Vec<Filter> = tasks.iter().map(Filter::new).collect();
    let mut classifier = Classifier::new(tasks.iter().map(AsRef::as_ref));
    let taken = RefCell::new(0_usize);
    let classify = || {
        let (mut tasks, mut count) = (Vec::new(), 0);
        let ns = by_batches(flows, |batch| {
            classifier.begin(node);
            for flow in batch {
                classifier.classify(flow, node, |flow| _ = black_box(flow), &mut tasks);
                count += tasks.len();
            }
        });
        taken.replace(count);
        Ok(ns)
    };
    let one_by_one = || {
        let mut count = 0;
        let some = flows.get(..plain.min(flows.len())).unwrap_or_default();
        let ns = by_batches(some, |batch| {
            let tasks = |flow| filters.iter().filter(|filter| filter.matches(flow, node)).count();
            count += batch.iter().map(tasks).sum::<usize>();
        });
        black_box(count);
        Ok(ns)
    };
    let matched = || Ok(*taken.borrow() as f64 / RECORDS as f64);
    let mut cases = [
        Case::new("classifier", classify),
        Case::new("plain evaluation", one_by_one),
        Case::new("matched", matched),
    ];
    let series = in_turn(rounds, &mut cases)?;
    series.try_into().map_err(|_| anyhow::anyhow!("three cases"))
}
