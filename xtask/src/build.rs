//! `cargo xtask build`: the daemon with the object inside.

use std::path::PathBuf;

use anyhow::Result;

use crate::{build_ebpf, cli, say, setup, step, system};

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "build",
    about: "build the release binary with the object embedded",
    help: "cargo xtask build: build the `flowlog` binary with the eBPF object embedded\n\n\
           usage: cargo xtask build [--debug]\n\n  \
           --debug   cargo's dev profile instead of release\n\n\
           Sets up what is missing, builds the object, then the binary, and prints its path.",
    run: main,
};

/// How the daemon is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// What users and CI measure.
    Release,
    /// `cargo xtask run`: ready in a fraction of release's minutes, fast enough for a node.
    Quick,
    /// What the tests run: shares its dependencies with the test binaries.
    Dev,
}

impl Profile {
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Release => ("release", "release"),
            Self::Quick => ("quick", "quick"),
            Self::Dev => ("dev", "debug"),
        }
    }
}

fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut profile = Profile::Release;
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("debug") => profile = Profile::Dev,
            other => return Err(cli::unexpected("build", &other)),
        }
    }
    let toolchain = setup::ensure(setup::Options::default())?;
    say::step("building the eBPF object");
    build_ebpf::build(&toolchain)?;
    say::out(&daemon(profile)?.display().to_string());
    Ok(())
}

/// Builds the daemon and says where it is.
pub(crate) fn daemon(profile: Profile) -> Result<PathBuf> {
    let (name, folder) = profile.names();
    say::step(&format!("building flowlog (profile {name})"));
    let mut command = system::cargo();
    command.args(["build", "--package", "flowlog-user", "--bin", "flowlog", "--profile", name]);
    // Not FLOWLOG_EBPF_OBJECT: the object is where the build script looks, and a variable that comes and goes between
    // this and a plain `cargo build` would rebuild the daemon each time.
    step::shown("building flowlog", &mut command)?;
    Ok(system::target_dir().join(folder).join("flowlog"))
}
