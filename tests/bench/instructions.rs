//! Instructions a record takes in each stage, counted by valgrind's callgrind: the same on a busy machine and on a quiet
//! one, so that a stage which has become dearer is seen the same day.
//!
//! What is counted is compared with `instructions.tsv`; `--accept` writes what is counted into it.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use flowlog_tests::measure::{Series, progress};
use flowlog_tests::report::{Figure, Target};
use flowlog_user::encode;
use flowlog_user::enrich::Enricher;
use flowlog_user::filter::{Classifier, Spec};
use flowlog_user::record::Format;
use flowlog_user::record::fields::Mask;

use crate::pipeline::{EIGHT, Work, decode, plan};
use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "instructions",
    about: "instructions a record in each stage, by callgrind, beside the accepted ones",
    run,
};

/// Records of a repetition.
const RECORDS: usize = 2_000;
/// What is counted more often less what is counted less often is the stage alone.
const REPETITIONS: [usize; 2] = [2, 6];
/// The compiler's moods.
const TOLERANCE: f64 = 1.03;

/// The stages by name.
const STAGES: [&str; 7] = [
    "decode",
    "enrich",
    "match",
    "encode JSON",
    "encode 8 fields JSON",
    "encode flat JSON",
    "encode protobuf",
];

fn accepted() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/instructions.tsv")
}

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        progress("instructions: not counted, there is no valgrind");
        return Ok(Vec::new());
    }
    let before = std::fs::read_to_string(accepted()).unwrap_or_default();
    let known = |stage: &str| {
        let line = before.lines().find_map(|line| line.strip_prefix(stage)?.strip_prefix('\t'));
        line.and_then(|number| number.parse::<f64>().ok())
    };
    let (mut figures, mut text) = (Vec::new(), String::new());
    for stage in STAGES {
        progress(stage);
        let [few, many] = REPETITIONS.map(|repetitions| counted(stage, repetitions));
        let records = (REPETITIONS[1] - REPETITIONS[0]) * RECORDS;
        let now = (many? - few?) / records as f64;
        writeln!(text, "{stage}\t{now:.1}")?;
        let floor = if settings.accept { now } else { known(stage).unwrap_or(f64::NAN) };
        ensure!(floor.is_finite(), "nothing is accepted for `{stage}` yet; run it with --accept");
        figures.push(Figure::beside(
            format!("instructions: {stage}, beside what is accepted"),
            &Series::of(vec![now]),
            &Series::of(vec![floor]),
            "instructions/record",
            Target::AtMost(TOLERANCE),
        ));
    }
    if settings.accept {
        std::fs::write(accepted(), text).context("instructions.tsv")?;
    }
    Ok(figures)
}

/// Instructions of a process that does a stage so many times.
fn counted(stage: &str, repetitions: usize) -> Result<f64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe()?);
    let output = command.args(["--stage", stage, &repetitions.to_string()]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "callgrind: {said}");
    let line = said.lines().find_map(|line| line.split_once("Collected : ")).context("callgrind counts")?;
    Ok(line.1.trim().parse()?)
}

/// Does a stage so many times; this is what is counted.
pub(crate) fn stage(name: &str, repetitions: usize) -> Result<()> {
    let Work { node, reports, flows } = Work::new(RECORDS)?;
    let tasks = plan(1, EIGHT, Path::new("/l"))?.tasks;
    let eight = tasks.first().map_or(Mask::ALL, |task| task.mask);
    let specs: Vec<Arc<Spec>> = vec![Arc::default(); 1];
    let mut classifier = Classifier::new(specs.iter().map(AsRef::as_ref));
    let (mut text, mut found, mut flows) = (Vec::new(), Vec::new(), flows);
    let enricher = Enricher::default();
    for _ in 0..repetitions {
        text.clear();
        let mut encode = |format, mask: &Mask| {
            for flow in &flows {
                encode::flow(format, flow, &node, mask, &mut text);
            }
        };
        match name {
            "decode" => decode(&reports, |flows| drop(black_box(flows))),
            "enrich" => enricher.enrich(&mut flows, &node),
            "match" => {
                classifier.begin(&node);
                flows.iter_mut().for_each(|flow| classifier.classify(flow, &node, |_| {}, &mut found));
            }
            "encode JSON" => encode(Format::Json, &Mask::ALL),
            "encode 8 fields JSON" => encode(Format::Json, &eight),
            "encode flat JSON" => encode(Format::Flat, &Mask::ALL),
            "encode protobuf" => encode(Format::Protobuf, &Mask::ALL),
            other => anyhow::bail!("there is no stage `{other}`"),
        }
        black_box((&text, &found, &flows));
    }
    Ok(())
}
