//! Task files that nobody would write: whatever is read ends soon, with tasks or with errors, in little memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_tests::generated::filters;
use flowlog_tests::model;
use flowlog_tests::random::Random;
use flowlog_user::config;
use flowlog_user::filter::Classifier;
use flowlog_user::record::Flow;

/// What a file may take at most, by a debug build beside other tests.
const TIME_MAX: Duration = Duration::from_secs(10);
/// How much more memory may have been taken at most by all files together.
const MEMORY_MAX_KIB: u64 = 512 << 10;

/// Words that mean something to YAML, to the tasks or to their filters.
const WORDS: [&str; 48] = [
    "flowLogs:",
    "- ",
    "name: ",
    "filePath: ",
    "/var/log/a.log",
    "includeFilters: [",
    "excludeFilters:",
    "where: {",
    "{",
    "}",
    "[",
    "]",
    ",",
    ": ",
    "\n",
    "\n  ",
    "\t",
    "\"",
    "'",
    "|",
    ">",
    "&a ",
    "*a ",
    "<<: *a",
    "!!binary ",
    "---\n",
    "...\n",
    "#",
    "%YAML 1.2\n",
    "null",
    "~",
    "yes",
    "0x7f",
    "1e999",
    "-1",
    "18446744073709551616",
    "'0.0.0.0/0'",
    "source_ip: [",
    "destination_port: ['",
    "experimental: {cel_expression: ['",
    "_flow.l4.TCP",
    "((((",
    "'\\Q[a&&b]'",
    "dns_query: ['(a+)+$",
    "{1000}",
    "\u{feff}",
    "\u{0}",
    "é",
];

fn seeds() -> Vec<Vec<u8>> {
    let quickstart = include_bytes!("../../config/quickstart.yaml").to_vec();
    let of = |seed: u64| {
        let mut random = Random::new(seed);
        let (include, exclude) = (filters(&mut random, 4), filters(&mut random, 2));
        format!(
            "flowLogs:\n- name: a\n  filePath: /l/a.log\n  includeFilters: {include}\n  excludeFilters: {exclude}\n  \
             where: {{source_port: ['1-9', '!3'], packets: '>1', tcp_flags: [{{SYN: true}}]}}\n  fieldMask: [IP, l4]\n  \
             start: 2026-01-01T00:00:00Z\n  events: [start, end]\n  rateLimit: 5\n"
        )
        .into_bytes()
    };
    let cel = b"flowLogs: [{name: a, filePath: /l/a.log, includeFilters: [{experimental: {cel_expression: [\
        '_flow.l4.TCP.destination_port == 80u && _flow.source.labels.exists(l, l.startsWith(\"k8s:\")) ? true : false'\
        ]}, dns_query: ['^(a|b)*\\.c{1,3}$'], source_label: ['k8s:app in (a,b),!x'], node_name: ['*/n-*']}]}]";
    (0..8).map(of).chain([quickstart, cel.to_vec()]).collect()
}

/// Changes a text in some places, as editors, disks and enemies do.
fn mutate(random: &mut Random, text: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(6) {
        let at = random.below(text.len() + 1);
        let end = (at + random.rank(64)).min(text.len());
        match random.below(8) {
            0 => drop(text.drain(at..end)),
            1 => text.truncate(at),
            2 => drop(text.splice(at..at, [u8::try_from(random.below(256)).unwrap_or(0)])),
            3 => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            4 => {
                let copied = text[at..end].repeat(1 + random.rank(40));
                drop(text.splice(at..at, copied));
            }
            5 => {
                let from = random.below(other.len());
                let to = (from + random.rank(200)).min(other.len());
                drop(text.splice(at..end, other[from..to].iter().copied()));
            }
            _ => {
                let word = random.pick(&WORDS).repeat(1 + random.rank(30));
                drop(text.splice(at..at, word.into_bytes()));
            }
        }
    }
}

/// Reads a text as a task file, and shows flows to what it asks for. True when it was accepted.
fn survive(text: &[u8], flows: &[Flow]) -> Result<bool> {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), text)?;
    let began = Instant::now();
    let loaded = config::load(&[file.path().to_owned()]);
    let accepted = loaded.is_ok();
    match loaded {
        Err(error) => ensure!(!error.to_string().is_empty(), "an error says nothing"),
        Ok(loaded) => {
            let node = model::node();
            let mut classifier = Classifier::new(loaded.plan.tasks.iter().map(|task| &*task.spec.filter));
            classifier.begin(&node);
            let mut found = Vec::new();
            for flow in flows {
                classifier.classify(&mut flow.clone(), &node, |_| {}, &mut found);
                let plain = loaded.plan.tasks.iter().filter(|task| task.filter.matches(flow, &node)).count();
                ensure!(found.len() == plain, "{} tasks, {plain} by plain evaluation", found.len());
            }
        }
    }
    ensure!(began.elapsed() < TIME_MAX, "took {:?}", began.elapsed());
    Ok(accepted)
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn fuzz(first: u64, files: u64) -> Result<()> {
    let (seeds, flows) = (seeds(), model::flows(5, 20));
    let before_kib = peak_kib()?;
    let mut accepted = 0;
    for seed in first..first + files {
        let mut random = Random::new(seed);
        let mut text = random.pick(&seeds).clone();
        let other = random.pick(&seeds).clone();
        mutate(&mut random, &mut text, &other);
        let survived = survive(&text, &flows);
        accepted +=
            u64::from(survived.with_context(|| format!("seed {seed}: {}", String::from_utf8_lossy(&text)))?);
    }
    let grown_kib = peak_kib()?.saturating_sub(before_kib);
    ensure!(grown_kib < MEMORY_MAX_KIB, "the files took {grown_kib} KiB");
    // Else it would only show that nonsense is refused.
    ensure!(accepted * 50 > files, "only {accepted} of {files} files were accepted");
    Ok(())
}

#[test]
fn no_task_file_panics_hangs_or_takes_much_memory() -> Result<()> {
    fuzz(0, if flowlog_tests::guest::long() { 100_000 } else { 1_500 })
}

/// What grows when it is read: each would take gigabytes or minutes if anything were taken at its word.
#[test]
fn bombs_are_refused_at_once() -> Result<()> {
    let before_kib = peak_kib()?;
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        laughs += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    let deep = |open: &str| format!("flowLogs: {}", open.repeat(200_000));
    let filter = |field: &str, value: &str| {
        format!("flowLogs: [{{name: a, filePath: /l/a, includeFilters: [{{{field}: ['{value}']}}]}}]")
    };
    let cel = |text: &str| {
        format!(
            "flowLogs: [{{name: a, filePath: /l/a, includeFilters: [{{experimental: {{cel_expression: ['{text}']}}}}]}}]"
        )
    };
    let bombs = [
        laughs,
        deep("["),
        deep("{a: "),
        deep("- "),
        "flowLogs: ".to_owned() + &"&a ".repeat(100_000),
        filter("dns_query", "((((a{1000}){1000}){1000}){1000})"),
        filter("dns_query", &"(".repeat(100_000)),
        filter("http_path", &"(a|".repeat(20_000)),
        filter("source_fqdn", &"*".repeat(200_000)),
        filter("source_label", &"a,".repeat(200_000)),
        cel(&"(".repeat(4_000)),
        cel(&"[".repeat(4_000)),
        cel(&"!".repeat(4_000)),
        cel(&format!("{}true", "true && ".repeat(500))),
        cel(&format!("1{} == 1", " + 1".repeat(1_000))),
        cel(&format!("_flow{}", ".source".repeat(500))),
    ];
    for bomb in &bombs {
        let short: String = bomb.chars().take(80).collect();
        survive(bomb.as_bytes(), &model::flows(5, 2)).with_context(|| short)?;
    }
    let grown_kib = peak_kib()?.saturating_sub(before_kib);
    ensure!(grown_kib < MEMORY_MAX_KIB, "they took {grown_kib} KiB");
    Ok(())
}
