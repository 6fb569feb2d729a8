//! The parser on captures that others made, with tshark as the judge.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flowlog_tests::corpus::{Comparison, captures, compare};

/// `FLOWLOG_PCAPS`, or the folder beside the project's.
fn shared() -> PathBuf {
    let given = std::env::var_os("FLOWLOG_PCAPS").map(PathBuf::from);
    given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/pcaps"))
}

fn same(file: &Path) -> Result<Comparison> {
    let compared = compare(file).with_context(|| file.display().to_string())?;
    ensure!(compared.differences.is_empty(), "{}: {:#?}", file.display(), compared.differences);
    Ok(compared)
}

#[test]
fn the_quick_start_is_read_as_tshark_reads_it() -> Result<()> {
    let compared = same(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/quickstart.pcap")))?;
    ensure!((compared.frames, compared.flows) == (20, 6), "{compared:?}");
    Ok(())
}

/// One capture in forty; `cargo xtask corpus` takes them all.
#[test]
fn some_captures_of_others_are_read_as_tshark_reads_them() -> Result<()> {
    let folder = shared();
    if !folder.is_dir() {
        println!("skipped: there are no captures at {}; set FLOWLOG_PCAPS", folder.display());
        return Ok(());
    }
    for file in captures(&folder)?.iter().step_by(40) {
        same(file)?;
    }
    Ok(())
}

#[test]
#[ignore = "takes a minute"]
fn all_captures_of_others_are_read_as_tshark_reads_them() -> Result<()> {
    let folder = shared();
    if !folder.is_dir() {
        println!("skipped: there are no captures at {}; set FLOWLOG_PCAPS", folder.display());
        return Ok(());
    }
    captures(&folder)?.iter().try_for_each(|file| same(file).map(drop))
}
