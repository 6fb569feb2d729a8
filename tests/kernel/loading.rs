//! The object itself.

use crate::loaded::Loaded;
use flowlog_abi::{LAYOUT_ID, names};

#[test]
fn every_program_loads_and_the_self_test_tells_the_layout() {
    let mut loaded = Loaded::new();
    for name in
        names::ETHERNET_PROGRAMS.iter().chain(&names::RAW_IP_PROGRAMS).chain(&names::HANDOVER_PROGRAMS)
    {
        let checked = loaded.load(name).info().expect("info").verified_instruction_count().expect("a count");
        println!("{name}: {checked} instructions verified");
        // A measure of the time that loading takes: a few milliseconds for 10,000.
        assert!(checked < 120_000, "{name}: the verifier looked at {checked} instructions");
    }
    loaded.load(names::MARK_PROGRAM);
    assert_eq!(loaded.run(names::SELF_TEST_PROGRAM, &[0; 64]), LAYOUT_ID);
}
