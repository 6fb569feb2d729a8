//! `cargo xtask bench`: figures beside their floors.

use std::ffi::OsString;

use anyhow::{Result, bail};

use crate::build::Profile;
use crate::{build, build_ebpf, cli, say, setup, system, test};

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "bench",
    about: "measure, each figure beside its floor in the same run",
    help: "cargo xtask bench: measure flowlog, each figure beside its floor or peer in the same run\n\n\
           usage: cargo xtask bench [NAME...] [--rounds N] [--for TIME] [--accept] [-o table|json]\n\n  \
           NAME            which benches; none is all of them; --list names them\n  \
           --rounds N      rounds of each comparison (41)\n  \
           --for TIME      how long `soak` runs: 90s, 5m (the default), 1h\n  \
           --accept        `instructions` takes what it counts as what is right from now on\n  \
           -o json         one JSON object on stdout and nothing else there:\n                  \
           {\"results\":[{\"name\",\"value\",\"unit\",\"floor\",\"ratio\",\"low\",\"high\",\"target\",\"met\"}]}\n\n\
           Both sides of a ratio are measured in turn in the same rounds; a ratio is the median of the rounds' own\n\
           ratios, with the interval that holds it with 95 % confidence. When that interval reaches across the target\n\
           nothing is judged (`met` is null). Builds with the release profile, and needs root for what it loads into\n\
           the kernel. Exit code 1: a target is missed.",
    run: main,
};

fn main(mut args: lexopt::Parser) -> Result<()> {
    // The words belong to the bench itself, which knows its names and options.
    let words: Vec<OsString> = args.raw_args()?.collect();
    let toolchain = setup::ensure(setup::Options { tests: true, ..setup::Options::default() })?;
    say::step("building the eBPF object");
    build_ebpf::build(&toolchain)?;
    let flowlog = build::daemon(Profile::Release)?;
    let mut command = system::cargo();
    command.args(["bench", "--package", "flowlog-tests", "--bench", "bench", "--"]).args(&words);
    command.env("FLOWLOG_BIN", &flowlog);
    if !system::is_root() {
        test::through_sudo(&mut command)?;
    }
    say::step("measuring");
    if !command.status()?.success() {
        bail!("a target is missed, or the bench could not measure");
    }
    Ok(())
}
