//! What a packet costs in the kernel, beside an empty program and the least that any flow counter must do.

mod runs;
mod wire;

use anyhow::{Result, ensure};

use flowlog_tests::report::Figure;

use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "kernel",
    about: "a packet in the kernel: known, first, rejected; in test runs and on a veth",
    run,
};

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    ensure!(rustix::process::geteuid().is_root(), "programs are loaded into the kernel, which needs root");
    let mut figures = runs::measured(settings.rounds)?;
    figures.extend(wire::measured(settings.rounds)?);
    Ok(figures)
}
