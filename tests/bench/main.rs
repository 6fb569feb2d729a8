//! What flowlog costs, beside what it cannot cost less than: `cargo xtask bench [NAME...]`.
//!
//! One file a bench. To add one: a file with a [`Bench`] and a line in [`BENCHES`]. The harness' [`measure`](flowlog_tests::measure) times
//! cases in turn and compares them round by round; its [`report`] judges, prints and writes JSON. A bench measures both sides of a ratio in
//! the same rounds, because machines are shared and no figure of yesterday's can be compared with today's.

mod drops;
mod e2e;
mod files;
mod filter;
mod instructions;
mod kernel;
#[expect(clippy::indexing_slicing, reason = "of two directions, and of tables by their own length")]
mod model;
mod noise;
mod pipeline;
mod pools;
mod reload;
mod reports;
mod soak;
mod tasks;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use flowlog_tests::measure::progress;
use flowlog_tests::report::{self, Figure};

/// One bench.
pub(crate) struct Bench {
    /// The word after `cargo xtask bench`.
    pub(crate) name: &'static str,
    /// One line of the list.
    pub(crate) about: &'static str,
    /// Measures. What takes longer than a second says so through [`progress`].
    pub(crate) run: fn(&Settings) -> Result<Vec<Figure>>,
}

/// All benches, in the order in which they run when none is named.
const BENCHES: &[Bench] = &[
    noise::BENCH,
    drops::BENCH,
    e2e::BENCH,
    files::BENCH,
    filter::BENCH,
    instructions::BENCH,
    kernel::BENCH,
    pipeline::BENCH,
    pools::BENCH,
    reload::BENCH,
    soak::BENCH,
    tasks::BENCH,
];

/// What the command line asks for.
pub(crate) struct Settings {
    /// Rounds of each comparison.
    pub(crate) rounds: usize,
    /// How long a bench that has no rounds runs (soak); `None` is the bench's own choice.
    pub(crate) duration: Option<std::time::Duration>,
    /// What is counted is accepted from now on.
    pub(crate) accept: bool,
}

enum Output {
    Table,
    Json,
}

const USAGE: &str = "usage: bench [NAME...] [--rounds N] [--for TIME] [-o table|json] [--accept] [--list]";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(code) => code,
        Err(error) => {
            progress(&format!("error: {error:#}"));
            progress_end();
            ExitCode::from(2)
        }
    }
}

fn run(args: impl Iterator<Item = String>) -> Result<ExitCode> {
    let mut settings = Settings { rounds: 41, duration: None, accept: false };
    let mut output = Output::Table;
    let mut names = Vec::new();
    let mut args = args;
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value; {USAGE}"));
        match arg.as_str() {
            // What cargo hands to every bench.
            "--bench" => {}
            "--list" => return list(),
            "--accept" => settings.accept = true,
            "--stage" => {
                let (stage, repetitions) = (value()?, value()?.parse()?);
                return instructions::stage(&stage, repetitions).map(|()| ExitCode::SUCCESS);
            }
            "--rounds" => settings.rounds = value()?.parse().context("--rounds takes a number")?,
            "--for" => settings.duration = Some(duration(&value()?)?),
            "-o" | "--output" => {
                output = match value()?.as_str() {
                    "table" => Output::Table,
                    "json" => Output::Json,
                    other => bail!("there is no output `{other}`; {USAGE}"),
                };
            }
            name if name.starts_with('-') => bail!("there is no option `{name}`; {USAGE}"),
            name => names.push(name.to_owned()),
        }
    }
    let figures = measured(&chosen(&names)?, &settings)?;
    let text = match output {
        Output::Table => report::table(&figures),
        Output::Json => report::json(&figures)?,
    };
    writeln!(std::io::stdout().lock(), "{text}")?;
    let missed = figures.iter().any(|figure| figure.met() == Some(false));
    Ok(if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// `90`, `90s`, `5m`, `1h`.
fn duration(text: &str) -> Result<std::time::Duration> {
    let (number, seconds) = match text.char_indices().next_back() {
        Some((at, 's')) => (text.get(..at), 1),
        Some((at, 'm')) => (text.get(..at), 60),
        Some((at, 'h')) => (text.get(..at), 3600),
        _ => (Some(text), 1),
    };
    let number: u64 =
        number.unwrap_or_default().parse().context("--for takes a time such as 90s, 5m or 1h")?;
    Ok(std::time::Duration::from_secs(number * seconds))
}

fn chosen(names: &[String]) -> Result<Vec<&'static Bench>> {
    if names.is_empty() {
        return Ok(BENCHES.iter().collect());
    }
    let known = || BENCHES.iter().map(|bench| bench.name).collect::<Vec<_>>().join(", ");
    names
        .iter()
        .map(|name| {
            let found = BENCHES.iter().find(|bench| bench.name == name);
            found.with_context(|| format!("there is no bench `{name}`; there are {}", known()))
        })
        .collect()
}

fn measured(benches: &[&Bench], settings: &Settings) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for bench in benches {
        progress(&format!("{}: {}", bench.name, bench.about));
        figures.extend((bench.run)(settings).with_context(|| format!("bench {}", bench.name))?);
        progress_end();
    }
    Ok(figures)
}

fn list() -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for bench in BENCHES {
        writeln!(out, "{:<10} {}", bench.name, bench.about)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn progress_end() {
    if std::io::stderr().is_terminal() {
        drop(writeln!(std::io::stderr().lock()));
    }
}
