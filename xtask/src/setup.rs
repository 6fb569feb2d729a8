//! `cargo xtask setup`: finds or installs what the eBPF build and the tests need.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::cli::{self, Usage};
use crate::toolchain::pick::{Next, pick};
use crate::toolchain::{LINKER_VERSION, Toolchain, Way, facts, record};
use crate::{packages, say, step, system};

/// rustup answers within this time or is left alone.
const RUSTUP_LIMIT: Duration = Duration::from_secs(60);
/// Steps that lead to a toolchain: more would mean going in a circle.
const STEPS_MAX: usize = 8;

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "setup",
    about: "find or install what the eBPF build and the tests need",
    help: "cargo xtask setup: find or install what the eBPF build and the tests need\n\n\
           usage: cargo xtask setup [--yes] [--check] [--tests] [--toolchain rustup|debian]\n\n\
           The object needs a compiler with `core` for BPF and bpf-linker of the same LLVM. Taken, in this order:\n  \
           1. rustup's nightly with rust-src, and a bpf-linker that works with it\n  \
           2. Debian's rustc-web with its ready-made core, and bpf-linker built from source (2 minutes)\n\
           What is complete already wins. The choice is said, and kept in target/ebpf/toolchain.\n\n  \
           --yes        do not ask before system packages are installed (nor does CI, or without a terminal)\n  \
           --check      install nothing; exit 1 when something is missing\n  \
           --tests      also the tests' programs: tshark, ping, ethtool, zstd, jq, ip, sysctl, nft\n  \
           --toolchain  only this way; `rustup` may then also install a nightly\n\n\
           Changes: Debian packages that it names first, bpf-linker in cargo's bin folder (or in target/ebpf when\n\
           another one is there). rust-src is added to rustup's nightly only when a person says yes or with\n\
           `--toolchain rustup`. Run again, it does nothing.",
    run: main,
};

/// What setup may do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Do not ask.
    pub(crate) yes: bool,
    /// Install nothing.
    pub(crate) check: bool,
    /// The tests' programs too.
    pub(crate) tests: bool,
    /// Only this way.
    pub(crate) way: Option<Way>,
}

fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("yes") | lexopt::Arg::Short('y') => options.yes = true,
            lexopt::Arg::Long("check") => options.check = true,
            lexopt::Arg::Long("tests") => options.tests = true,
            lexopt::Arg::Long("toolchain") => {
                let word = args.value()?.to_string_lossy().into_owned();
                let way = Way::from_word(&word);
                options.way = Some(
                    way.ok_or_else(|| Usage(format!("no toolchain way `{word}`; take rustup or debian")))?,
                );
            }
            other => return Err(cli::unexpected("setup", &other)),
        }
    }
    ensure(options)?;
    Ok(())
}

/// Makes sure that everything is there, and says what builds the object.
pub(crate) fn ensure(options: Options) -> Result<Toolchain> {
    if options.tests {
        test_tools(options)?;
    }
    c_compiler(options)?;
    let kept = record::load().filter(|toolchain| options.way.is_none_or(|way| way == toolchain.compiler.way));
    let toolchain = match kept {
        Some(toolchain) => toolchain,
        None => find(options)?,
    };
    say::note(&toolchain.to_string());
    Ok(toolchain)
}

fn test_tools(options: Options) -> Result<()> {
    let missing = packages::missing_test_tools();
    if missing.is_empty() {
        return Ok(());
    }
    if options.check {
        bail!("the tests' programs are not all here: {}; run `cargo xtask setup --tests`", missing.join(" "));
    }
    packages::install("the tests use programs that are missing", &missing, false, options.yes)
}

/// zstd's C code wants one; cargo itself links with it.
fn c_compiler(options: Options) -> Result<()> {
    if system::find_program("cc").is_some() {
        return Ok(());
    }
    if options.check {
        bail!("there is no C compiler (cc); run `cargo xtask setup`");
    }
    let packages = ["gcc", "libc6-dev"].map(str::to_owned);
    packages::install("the build needs a C compiler", &packages, false, options.yes)
}

/// Looks, chooses, does the next step, and looks again until the toolchain is complete.
fn find(options: Options) -> Result<Toolchain> {
    say::step("looking for a toolchain for the eBPF object");
    let mut refused = false;
    for _ in 0..STEPS_MAX {
        let mut facts = facts::detect()?;
        // A toolchain is the person's own: nothing is fetched into it unattended, unless that way was asked for.
        let asked_for = options.way == Some(Way::Rustup);
        facts.may_add_component &= !refused && (asked_for || (!options.yes && system::person_present()));
        facts.may_add_nightly = facts.may_add_component && asked_for;
        let next = pick(&facts, options.way);
        if let Next::Ready(toolchain) = next {
            record::save(&toolchain)?;
            return Ok(toolchain);
        }
        if options.check {
            bail!("the eBPF toolchain is not complete; next: {next}; run `cargo xtask setup`");
        }
        advance(&next, options, &mut refused)?;
    }
    bail!("setup goes in a circle; `cargo xtask setup --check` says what is missing")
}

fn advance(next: &Next, options: Options, refused: &mut bool) -> Result<()> {
    match next {
        Next::Ready(_) => Ok(()),
        Next::AddRustSrc(name) => {
            rustup(&["component", "add", "rust-src", "--toolchain", name], options, refused)
        }
        Next::AddNightly => rustup(
            &["toolchain", "install", "nightly", "--profile", "minimal", "--component", "rust-src"],
            options,
            refused,
        ),
        Next::InstallDebian => {
            let wanted = facts::DEBIAN_PACKAGES.map(str::to_owned);
            packages::install(
                "the eBPF object needs a compiler with core for BPF",
                &wanted,
                true,
                options.yes,
            )
        }
        Next::InstallLlvm(major) => packages::install(
            &format!("bpf-linker needs the development files of LLVM {major}"),
            &[format!("llvm-{major}-dev")],
            false,
            options.yes,
        ),
        Next::BuildLinker(major) => build_linker(*major),
        Next::Stuck(text) => bail!("{text}"),
    }
}

/// A refusal, by the person or by rustup, is a note and not a failure: there is another way.
fn rustup(args: &[&str], options: Options, refused: &mut bool) -> Result<()> {
    let shown = format!("rustup {}", args.join(" "));
    let limit = if options.way == Some(Way::Rustup) { None } else { Some(RUSTUP_LIMIT) };
    let result = packages::consent("rustup's nightly lacks the source of `core`", &shown, options.yes)
        .and_then(|()| step::quiet("asking rustup", Command::new("rustup").args(args), limit));
    if let Err(error) = result {
        *refused = true;
        say::warn(&format!("`{shown}`: {error:#}; trying the next way"));
    }
    Ok(())
}

fn build_linker(major: u32) -> Result<()> {
    let mut command = system::cargo();
    command
        .args(["install", "bpf-linker", "--version", LINKER_VERSION, "--locked", "--no-default-features"])
        .args(["--features", &format!("llvm-{major}")])
        .env("LLVM_PREFIX", facts::llvm_prefix(major))
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("CARGO_TARGET_DIR");
    // A linker in cargo's folder that fits no compiler here may serve another project: it stays.
    if facts::cargo_bin().is_some_and(|folder| folder.join("bpf-linker").exists()) {
        let own = facts::own_linker_root();
        if own.join("bin/bpf-linker").exists() {
            bail!(
                "{} was built here but links nothing; delete it, see that LLVM {major} works",
                own.display()
            );
        }
        command.arg("--root").arg(own);
    }
    say::step(&format!(
        "building bpf-linker {LINKER_VERSION} for LLVM {major} (about 2 minutes): {}",
        step::words(&command)
    ));
    step::shown("building bpf-linker", &mut command)
}
