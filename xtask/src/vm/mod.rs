//! `cargo xtask vm`: the kernel tests on Debian's kernels, under emulation.
//!
//! [`kernels`] fetches and unpacks them, [`image`] makes what a guest boots from, [`guest`] runs one and reads what
//! it says. Nothing is installed but qemu, and nothing needs root.

mod guest;
mod image;
mod kernels;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::build::Profile;
use crate::cli::Usage;
use crate::{build, build_ebpf, cli, packages, say, setup, system};
use guest::{Outcome, Run};

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "vm",
    about: "run the kernel tests on Debian's 6.1 and 6.12 kernels, under emulation",
    help: "cargo xtask vm: run the kernel tests on Debian's 6.1 and 6.12 kernels, under emulation\n\n\
           usage: cargo xtask vm [--kernel 6.1|6.12] [--hook tcx|clsact] [--fresh] [--long] [FILTER...]\n\n  \
           --kernel  only this kernel; may be given twice\n  \
           --hook    only with this kind of hook: tcx is 6.12, clsact is both\n  \
           --fresh   fetch the newest kernels, even when there are some in target/vm\n  \
           --long    also the tests that take long\n  \
           FILTER    only tests whose name contains one of these; `--exact NAME` for just one\n\n\
           Three runs: 6.1 (clsact is all it has), 6.12 with TCX, 6.12 with clsact. Debian's cloud kernels are fetched\n\
           with apt-get into target/vm and not installed; the guest has nothing but them, busybox, the test binary\n\
           and the tests' programs. Needs qemu-system-x86_64 (which it offers to install), no KVM and no root. All of\n\
           it takes about half an hour on two cores: an emulated CPU is some twenty times slower. Tests that measure time say\n\
           that they were skipped. The last lines are a summary; the guests' kernel logs are in target/vm.",
    run: main,
};

/// Files of the guests, downloads and logs.
fn folder() -> PathBuf {
    system::target_dir().join("vm")
}

/// How programs are attached in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// What the daemon takes by itself where the kernel has it.
    Tcx,
    /// What it takes elsewhere, or is told to.
    Clsact,
}

impl Hook {
    const fn name(self) -> &'static str {
        match self {
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
        }
    }
}

/// The runs, slowest last.
const RUNS: [(&str, Hook); 3] = [("6.1", Hook::Clsact), ("6.12", Hook::Tcx), ("6.12", Hook::Clsact)];

#[derive(Default)]
struct Options {
    kernels: Vec<String>,
    hook: Option<Hook>,
    fresh: bool,
    words: Vec<String>,
}

fn main(args: lexopt::Parser) -> Result<()> {
    let options = options(args)?;
    let runs: Vec<_> = RUNS
        .into_iter()
        .filter(|(kernel, _)| {
            options.kernels.is_empty() || options.kernels.iter().any(|asked| asked == kernel)
        })
        .filter(|(_, hook)| options.hook.is_none_or(|asked| asked == *hook))
        .collect();
    if runs.is_empty() {
        return Err(Usage("6.1 has no tcx; leave out --kernel or --hook".to_owned()).into());
    }
    let toolchain = setup::ensure(setup::Options { tests: true, ..setup::Options::default() })?;
    emulator()?;
    say::step("building the eBPF object");
    build_ebpf::build(&toolchain)?;
    let flowlog = build::daemon(Profile::Quick)?;
    let tests = test_binary()?;

    let mut outcomes: Vec<Outcome> = Vec::new();
    for (series, hook) in runs {
        let kernel = kernels::get(series, options.fresh && !outcomes.iter().any(|run| run.series == series))?;
        let image = image::build(&kernel, &flowlog, &tests)?;
        let run = Run { series, hook, kernel: &kernel, image: &image, words: &options.words };
        outcomes.push(run.boot()?);
    }
    summary(&outcomes)
}

fn options(mut args: lexopt::Parser) -> Result<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("kernel") => {
                let series = args.value()?.to_string_lossy().into_owned();
                if !RUNS.iter().any(|(known, _)| *known == series) {
                    return Err(Usage(format!("no kernel `{series}` here; take 6.1 or 6.12")).into());
                }
                options.kernels.push(series);
            }
            lexopt::Arg::Long("hook") => {
                let word = args.value()?.to_string_lossy().into_owned();
                let hook = [Hook::Tcx, Hook::Clsact].into_iter().find(|hook| hook.name() == word);
                options.hook =
                    Some(hook.ok_or_else(|| Usage(format!("no hook `{word}`; take tcx or clsact")))?);
            }
            lexopt::Arg::Long("fresh") => options.fresh = true,
            lexopt::Arg::Long("long") => options.words.push("--include-ignored".to_owned()),
            lexopt::Arg::Long("exact") => options.words.push("--exact".to_owned()),
            lexopt::Arg::Value(value) => options.words.push(value.to_string_lossy().into_owned()),
            other => return Err(cli::unexpected("vm", &other)),
        }
    }
    // The kernel's command line carries them into the guest.
    if let Some(word) = options.words.iter().find(|word| !word.chars().all(is_plain)) {
        return Err(Usage(format!("a filter is part of a test's name, not `{word}`")).into());
    }
    Ok(options)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':' | '-')
}

fn emulator() -> Result<()> {
    let needed = [("qemu-system-x86_64", "qemu-system-x86"), ("mke2fs", "e2fsprogs")];
    let missing = needed.iter().filter(|(program, _)| system::find_program(program).is_none());
    let missing: Vec<_> = missing.map(|(_, package)| (*package).to_owned()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    packages::install("the guests need programs that are missing", &missing, false, false)
}

/// Builds the kernel tests and says where cargo put them.
fn test_binary() -> Result<PathBuf> {
    say::step("building the kernel tests");
    let mut command = system::cargo();
    command.args(["test", "--package", "flowlog-tests", "--test", "kernel", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let output = command.spawn()?.wait_with_output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the kernel tests do not build");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The package's other programs are named there, too.
    let mut lines = text.lines().filter(|line| line.contains("\"kind\":[\"test\"]"));
    let path = lines.find_map(|line| line.split_once("\"executable\":\"")?.1.split('"').next());
    Ok(path.context("cargo does not say where the kernel tests are")?.into())
}

/// Prints what became of each run, and fails when one did.
fn summary(outcomes: &[Outcome]) -> Result<()> {
    let mut text = format!(
        "{:<8} {:<8} {:>7} {:>7} {:>8} {:>9}",
        "KERNEL", "HOOK", "PASSED", "FAILED", "SKIPPED", "MINUTES"
    );
    for run in outcomes {
        let minutes = run.took.as_secs().div_ceil(60);
        text.push_str(&format!(
            "\n{:<8} {:<8} {:>7} {:>7} {:>8} {:>9}",
            run.series,
            run.hook.name(),
            run.passed(),
            run.counts.failed,
            run.counts.skipped + run.left_out.len() as u64,
            minutes
        ));
    }
    for run in outcomes {
        for (what, names) in [("failed", &run.failed), ("skipped", &run.left_out)] {
            for name in names {
                text.push_str(&format!("\n{what} on {} with {}: {name}", run.series, run.hook.name()));
            }
        }
        if let Some(why) = &run.died {
            text.push_str(&format!("\n{} with {} did not end by itself: {why}", run.series, run.hook.name()));
        }
    }
    say::out(&text);
    if outcomes.iter().any(|run| run.died.is_some() || run.counts.failed > 0) {
        bail!("not all is well; the guests' kernel logs are in {}", folder().display());
    }
    if outcomes.iter().all(|run| run.counts.passed == 0) {
        bail!("no test ran; is the filter right?");
    }
    Ok(())
}

/// Everything in a guest may take this long between two lines of its tests.
const SILENCE_MAX: Duration = Duration::from_secs(15 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options> {
        options(lexopt::Parser::from_args(words.iter()))
    }

    #[test]
    fn what_cannot_be_meant_is_a_usage_error() {
        for words in [&["--kernel", "5.4"][..], &["--hook", "xdp"], &["a b"], &["--nonsense"]] {
            let error = parsed(words).err().map(|error| error.is::<Usage>());
            assert_eq!(error, Some(true), "{words:?}");
        }
        let options = parsed(&["--kernel", "6.1", "--long", "perf::"]).unwrap();
        assert_eq!(
            (options.kernels, options.words),
            (vec!["6.1".into()], vec!["--include-ignored".into(), "perf::".into()])
        );
    }

    #[test]
    fn a_kernel_without_that_hook_is_said() {
        let error = main(lexopt::Parser::from_args(["--kernel", "6.1", "--hook", "tcx"])).unwrap_err();
        assert!(error.is::<Usage>() && error.to_string().contains("no tcx"));
    }
}
