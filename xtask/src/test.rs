//! `cargo xtask test`: everything that can say no.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::build::Profile;
use crate::counts::Counts;
use crate::{build, build_ebpf, cli, python, say, setup, step, system, tidy, tools};

/// What the tests find in their environment, and what must pass through sudo.
const ENVIRONMENT: &str =
    "FLOWLOG_BIN,FLOWLOG_EBPF_OBJECT,FLOWLOG_TEST_LONG,CARGO_MANIFEST_DIR,RUST_BACKTRACE,CI";

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "test",
    about: "set up, build, and run every check and every test",
    help: "cargo xtask test: set up, build, and run every check and every test\n\n\
           usage: cargo xtask test [--long] [FILTER...]\n\n  \
           --long    also the tests that take long (marked ignored)\n  \
           FILTER    only tests whose name contains one of these; the checks are left out then\n\n\
           Checks: house rules (tidy), formatting, clippy. Tests: unit, offline, and end to end in the running kernel,\n\
           which needs root (through sudo if need be: only for that test binary and for packages). The tests find\n\
           FLOWLOG_BIN and, with --long, FLOWLOG_TEST_LONG=1 in their environment. The last line is the sum of all\n\
           tests.",
    run: main,
};

/// The same under CI's name.
pub(crate) const CI_COMMAND: cli::Command = cli::Command {
    name: "ci",
    about: "what CI runs: the same as `test`",
    help: "cargo xtask ci: what CI runs, the same as `cargo xtask test`",
    run: main,
};

fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut long = false;
    let mut filters = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("long") => long = true,
            lexopt::Arg::Value(value) => filters.push(value.to_string_lossy().into_owned()),
            other => return Err(cli::unexpected("test", &other)),
        }
    }
    let readers = python::begin();
    let toolchain = setup::ensure(setup::Options { tests: true, ..setup::Options::default() })?;
    say::step("building the eBPF object");
    build_ebpf::build(&toolchain)?;
    let mut failures = if filters.is_empty() { checks() } else { Vec::new() };
    let flowlog = build::daemon(Profile::Dev)?;

    readers.finish();
    let promtool = tools::promtool();
    let mut counts = Counts::default();
    for run in runs(system::is_root()) {
        let mut command = system::cargo();
        command.args(["test", "--no-fail-fast"]).args(run.args).arg("--").args(&filters);
        command.env("FLOWLOG_BIN", &flowlog);
        if let Some(promtool) = &promtool {
            command.env("PROMTOOL", promtool);
        }
        if long {
            command.arg("--include-ignored").env("FLOWLOG_TEST_LONG", "1");
        }
        if run.through_sudo {
            through_sudo(&mut command)?;
        }
        say::step(run.what);
        if !counted(&mut command, &mut counts)? {
            failures.push(run.what.to_owned());
        }
    }
    say::out(&counts.to_string());
    if !failures.is_empty() {
        bail!("not all is well: {}", failures.join(", "));
    }
    if counts.passed == 0 {
        bail!("no test ran; is the filter right?");
    }
    Ok(())
}

/// One run of `cargo test`.
struct Run {
    what: &'static str,
    args: &'static [&'static str],
    through_sudo: bool,
}

/// As root everything at once; else only the binary that loads programs into the kernel runs through sudo.
fn runs(root: bool) -> Vec<Run> {
    if root {
        return vec![Run { what: "running all tests", args: &["--workspace"], through_sudo: false }];
    }
    let plain = &["--workspace", "--exclude", "flowlog-tests"];
    let offline = &["--package", "flowlog-tests", "--lib", "--test", "offline"];
    let kernel = &["--package", "flowlog-tests", "--test", "kernel"];
    vec![
        Run { what: "running the unit tests", args: plain, through_sudo: false },
        Run { what: "running the offline tests", args: offline, through_sudo: false },
        Run { what: "running the kernel tests", args: kernel, through_sudo: true },
    ]
}

/// The names of the checks that failed. Each says why itself.
fn checks() -> Vec<String> {
    let mut failed = Vec::new();
    let mut note = |name: &str, result: Result<()>| {
        if let Err(error) = result {
            say::problem(&error);
            failed.push(name.to_owned());
        }
    };
    say::step("checking the house rules");
    note("tidy", tidy::check(&system::root()));
    note("tidy's own fixture", tidy::check_fixture());
    say::step("checking the formatting");
    note("formatting", step::shown("cargo fmt", system::cargo().args(["fmt", "--all", "--check"])));
    say::step("running clippy");
    let mut clippy = system::cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    note("clippy", step::shown("clippy", &mut clippy));
    failed
}

/// Runs cargo test, passes its output on and adds it up. True when all passed.
fn counted(command: &mut Command, counts: &mut Counts) -> Result<bool> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo test")?;
    let Some(stdout) = child.stdout.take() else { bail!("cargo test has no output") };
    for line in BufReader::new(stdout).split(b'\n') {
        let line = String::from_utf8_lossy(&line.context("cannot read what cargo test says")?).into_owned();
        counts.add(&line);
        say::out(&line);
    }
    Ok(child.wait()?.success())
}

/// Lets cargo start what it has built through sudo, with what tests and benches find in their environment.
pub(crate) fn through_sudo(command: &mut Command) -> Result<()> {
    let host = host()?.to_uppercase().replace('-', "_");
    command.env(format!("CARGO_TARGET_{host}_RUNNER"), format!("sudo --preserve-env={ENVIRONMENT}"));
    Ok(())
}

fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = system::output_of(Command::new(rustc).arg("-vV")).context("rustc does not start")?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}
