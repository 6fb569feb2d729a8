//! What a shell's usual limits must not keep flowlog from.

use std::process::Command;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::binary;

/// More tasks' files than the limit of open files that programs start with lets them have.
#[test]
fn a_folder_of_more_logs_than_may_be_open_at_first_is_read() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for task in 0..100 {
        let line = format!("{{\"flow\":{{\"uuid\":\"{task}\"}}}}\n");
        std::fs::write(folder.path().join(format!("task{task}.log")), line)?;
    }
    let output = Command::new("sh")
        .args(["-c", "ulimit -S -n 50 && exec \"$0\" cat \"$1\""])
        .arg(binary())
        .arg(folder.path())
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut numbers: Vec<u64> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter::<serde_json::Value>()
        .map(|line| {
            line.map(|line| line["flow"]["uuid"].as_str().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX))
        })
        .collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    ensure!(numbers == (0..100).collect::<Vec<_>>(), "{numbers:?}");
    Ok(())
}

/// The error names its cause once.
#[test]
fn a_file_that_is_missing_is_named_with_its_cause_once() -> Result<()> {
    let output = Command::new(binary()).args(["cat", "/nonexistent/a.log"]).output()?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(1) && said.starts_with("flowlog: "), "{said}");
    ensure!(said.matches("No such file").count() == 1, "{said}");
    Ok(())
}
