//! The object itself.

use crate::loaded::Loaded;
use flowlog_abi::{LAYOUT_ID, names};

#[test]
fn every_program_loads_and_the_self_test_tells_the_layout() {
    let mut loaded = Loaded::new();
    for name in names::ETHERNET_PROGRAMS.iter().chain(&names::RAW_IP_PROGRAMS) {
        loaded.load(name);
    }
    loaded.load(names::MARK_PROGRAM);
    assert_eq!(loaded.run(names::SELF_TEST_PROGRAM, &[0; 64]), LAYOUT_ID);
}
