//! `cargo xtask run`: from a clone to flows on this machine.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use anyhow::{Result, bail};

use crate::build::Profile;
use crate::{build, build_ebpf, cli, demo, say, setup, system};

const TASKS: &str = "config/quickstart.yaml";

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "run",
    about: "set up, build, and log this machine's flows",
    help: "cargo xtask run: set up, build, and log the flows of this machine's interfaces\n\n\
           usage: cargo xtask run [--yes] [--demo | -- flowlog's arguments]\n\n  \
           --demo    instead: a node with two pods in network namespaces, a small workload, three tasks on it, a\n            \
           change while they run, and what landed where; half a minute, touches no network of yours\n  \
           --yes     do not ask before system packages are installed\n  \
           -- ARGS   handed to `flowlog run`, such as `-- --interface eth0 --for 30s`\n\n\
           Starts `flowlog run --tasks config/quickstart.yaml --live` as root (through sudo if need be: only for this\n\
           step and for packages). With a --tasks of your own after `--` the quick start's tasks are left out. Ctrl-C\n\
           ends it with a summary. The first time takes minutes, started again it is a matter of seconds.",
    run: main,
};

fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut options = setup::Options::default();
    let mut passed: Vec<OsString> = Vec::new();
    let mut demo = false;
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("yes") | lexopt::Arg::Short('y') => options.yes = true,
            lexopt::Arg::Long("demo") => demo = true,
            // lexopt hands over what stands after `--` as values.
            lexopt::Arg::Value(value) => passed.push(value),
            other => return Err(cli::unexpected("run", &other)),
        }
    }
    // `-- cat` or a word without a dash would only fail after the build.
    if let Some(word) = passed.first().filter(|word| !word.to_string_lossy().starts_with('-')) {
        bail!(
            "`{}` is no option of `flowlog run`; write e.g. `cargo xtask run -- --interface eth0 --for 30s`",
            word.to_string_lossy()
        );
    }
    let toolchain = setup::ensure(options)?;
    say::step("building the eBPF object");
    build_ebpf::build(&toolchain)?;
    let flowlog = build::daemon(Profile::Quick)?;
    if demo {
        return demo::start(&flowlog, options.yes);
    }

    let mut words: Vec<OsString> = vec!["run".into()];
    let own_tasks =
        passed.iter().any(|word| word == "--tasks" || word.to_string_lossy().starts_with("--tasks="));
    if !own_tasks {
        words.extend(["--tasks".into(), system::root().join(TASKS).into()]);
    }
    words.push("--live".into());
    words.extend(passed);
    let mut command = system::as_root(&flowlog.to_string_lossy(), &words)?;
    say::step(&format!("starting {}", crate::step::words(&command)));
    // Becomes the daemon: Ctrl-C and every other signal reach it, and its exit code is ours.
    let error = command.exec();
    bail!("cannot start {}: {error}", flowlog.display())
}
