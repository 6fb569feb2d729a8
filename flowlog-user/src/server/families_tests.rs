use std::time::Instant;

use super::*;
use crate::server::board::Facts;
use crate::server::exposition::Exposition;
use crate::server::ledger::Books;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/metrics.md");

/// A board on which every family has a place.
fn board() -> Board {
    let board = Board::new(Facts { node: "n".into(), ..Facts::default() });
    board.tell(View { books: Books::default(), interfaces: Vec::new(), taken: Instant::now() });
    board
}

fn document() -> String {
    let mut text = String::from(
        "# Metrics\n\nServed at `/metrics` of `--listen`, as OpenMetrics where it is asked for and in Prometheus' classic \
         text form else.\nLabels are tasks, fixed sets of outcomes and reasons, and task files; never an address, a \
         port or an interface's name.\nAn ended task keeps its series, a removed one loses them after five \
         minutes.\n\n| name | kind | what it says |\n|---|---|---|\n",
    );
    for family in families(&board()) {
        let (suffix, kind) = match family.kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
        };
        text += &format!("| `{}{suffix}` | {kind} | {} |\n", family.name, family.help);
    }
    text + "\nWith `--hubble-metrics` also Hubble's `hubble_dynamic_exporter_exporters_total`, `_up`, \
            `_reconfigurations_total`,\n`_config_hash` and `_config_last_applied`, for dashboards that know them; leave it \
            out where Cilium's agent serves them\nitself.\n"
}

#[test]
fn every_metric_is_documented() {
    let written = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(written == document(), "config/metrics.md is stale; it should be:\n{}", document());
}

#[test]
fn names_say_their_unit_and_are_ours() {
    for family in families(&board()) {
        assert!(family.name.starts_with("flowlog_"), "{}", family.name);
        assert!(!family.name.ends_with("_total"), "{}: the encoder adds it", family.name);
        assert!(family.help.ends_with('.'), "{}", family.name);
    }
}

#[test]
fn hubble_names_come_only_when_asked_for() {
    let board = std::sync::Arc::new(board());
    let page = |hubble| Exposition::Classic.write(&board, hubble).unwrap();
    assert!(!page(false).contains("hubble_"));
    for name in ["exporters_total", "reconfigurations_total", "config_hash", "config_last_applied"] {
        assert!(page(true).contains(&format!("\nhubble_dynamic_exporter_{name}")), "{name}");
    }
    assert!(Exposition::OpenMetrics.write(&board, false).unwrap().ends_with("# EOF\n"));
}
