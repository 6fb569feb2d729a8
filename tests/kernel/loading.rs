//! The object itself.

use crate::loaded::Loaded;
use aya::EbpfLoader;
use flowlog_abi::{LAYOUT_ID, names};
use flowlog_tests::guest::kernel;
use zerocopy::IntoBytes as _;

/// Instructions that the verifier looked at: kernel, program, count. It must read every path that a program can take,
/// so this is what grows when a change looks harmless. A kernel gives up at a million.
const VERIFIED: &str = include_str!("verified.txt");
/// Growth that is let pass: compilers differ.
const PERCENT: u32 = 5;
/// For kernels of which nothing is written down.
const MOST: u32 = 300_000;

/// The count that is written down.
fn written(kernel: &str, program: &str) -> Option<u32> {
    let lines = VERIFIED.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>()).find_map(|words| match words[..] {
        [other, name, count] if other == kernel && name == program => count.parse().ok(),
        _ => None,
    })
}

#[test]
fn every_program_loads_and_the_self_test_tells_the_layout() {
    let places = flowlog_user::capture::live::places().expect("this kernel's types are known");
    let mut loader = EbpfLoader::new();
    let mut loaded = Loaded::with(loader.override_global(names::GLOBAL_PLACES, places.as_bytes(), true));
    let (major, minor) = kernel();
    let kernel = format!("{major}.{minor}");
    let mut grown = Vec::new();
    let mut counts: Vec<_> = names::ETHERNET_PROGRAMS
        .iter()
        .chain(&names::RAW_IP_PROGRAMS)
        .chain(&names::HANDOVER_PROGRAMS)
        .map(|name| (*name, loaded.load(name).info().expect("info")))
        .collect();
    counts.push((names::DROP_PROGRAM, loaded.load_drop().info().expect("info")));
    for (name, info) in counts {
        let checked = info.verified_instruction_count().expect("a count");
        println!("{kernel} {name} {checked}");
        let most = written(&kernel, name).map_or(MOST, |count| count + count * PERCENT / 100);
        if checked > most {
            grown.push(format!("{name}: {checked}, at most {most}"));
        }
    }
    assert!(
        grown.is_empty(),
        "the verifier looks at more: {grown:#?}; lines for tests/kernel/verified.txt above"
    );
    loaded.load(names::MARK_PROGRAM);
    assert_eq!(loaded.run(names::SELF_TEST_PROGRAM, &[0; 64]), LAYOUT_ID);
}
