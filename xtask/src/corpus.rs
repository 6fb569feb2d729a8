//! `cargo xtask corpus`: captures as flowlog and as tshark read them.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::cli::Usage;
use crate::{cli, say, setup, system};

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "corpus",
    about: "compare flowlog with tshark on every capture of a folder",
    help: "cargo xtask corpus: compare flowlog with tshark on every capture of a folder\n\n\
           usage: cargo xtask corpus DIR\n\n\
           Replays each capture below DIR and compares the five-tuples, packets and bytes of all flows with what\n\
           tshark reads (reassembly off; later fragments get the ports of their first, as flowlog's do), and the frames\n\
           that belong to no flow by kind. Each difference is a line; what is otherwise by design is counted and given\n\
           its reason at the end. Exit code 1: something differs.",
    run: main,
};

fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut folder: Option<PathBuf> = None;
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Value(value) if folder.is_none() => folder = Some(value.into()),
            other => return Err(cli::unexpected("corpus", &other)),
        }
    }
    let Some(folder) = folder else {
        return Err(Usage("which folder? `cargo xtask corpus DIR`".into()).into());
    };
    // Cargo runs the program in the project's folder.
    let folder = std::path::absolute(folder)?;
    setup::ensure(setup::Options { tests: true, ..setup::Options::default() })?;
    let mut command = system::cargo();
    command.args(["run", "--quiet", "--package", "flowlog-tests", "--bin", "corpus", "--"]).arg(folder);
    say::step("comparing with tshark");
    if !command.status()?.success() {
        bail!("not every capture reads the same");
    }
    Ok(())
}
