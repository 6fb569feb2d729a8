//! `cargo xtask corpus DIR`: every capture of a folder, as flowlog and as tshark read it.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use flowlog_tests::corpus::{BY_DESIGN, Others, captures, compare};
use flowlog_tests::measure::progress;

fn main() -> Result<ExitCode> {
    let folder = std::env::args().nth(1).context("usage: corpus DIR")?;
    let files = captures(Path::new(&folder))?;
    ensure!(!files.is_empty(), "there is no capture below {folder}");
    let mut out = std::io::stdout().lock();
    let (mut frames, mut flows, mut unlike, mut unread) = (0, 0, 0, 0);
    let mut cut = Vec::new();
    let mut others = Others::new();
    for (n, file) in files.iter().enumerate() {
        progress(&format!("{} of {}: {}", n + 1, files.len(), file.display()));
        let compared = match compare(file) {
            Ok(compared) => compared,
            Err(error) => {
                unread += 1;
                writeln!(out, "{}: {error:#}", file.display())?;
                continue;
            }
        };
        frames += compared.frames;
        flows += compared.flows;
        for (kind, (packets, bytes)) in compared.by_design {
            let sum = others.entry(kind).or_default();
            sum.0 += packets;
            sum.1 += bytes;
        }
        if compared.is_cut {
            cut.push(file.display().to_string());
        }
        unlike += usize::from(!compared.differences.is_empty());
        for difference in compared.differences {
            writeln!(out, "{}: {difference}", file.display())?;
        }
    }
    progress("");
    writeln!(out, "{} captures, {frames} frames: {flows} directions of flows are the same", files.len())?;
    for file in &cut {
        writeln!(out, "{file}: ends inside a packet, as tshark says, too; compared up to there")?;
    }
    for (kind, why) in BY_DESIGN {
        let (packets, bytes) = others.get(kind).copied().unwrap_or_default();
        writeln!(out, "{kind}: {packets} frames, {bytes} bytes. By design: {why}")?;
    }
    if unlike + unread == 0 {
        writeln!(out, "clean")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{unlike} captures differ, {unread} could not be read")?;
    Ok(ExitCode::FAILURE)
}
