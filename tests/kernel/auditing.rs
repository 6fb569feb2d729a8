//! What audit.log says of files.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::PATIENCE;
use flowlog_tests::guest::pace;
use flowlog_tests::netns::FAR;
use flowlog_tests::records::files;
use flowlog_tests::traffic::udp;

use crate::reload::{Bench, now, rfc3339};

/// The files in the log folder are those that audit.log calls finished less those that it calls deleted, also where the
/// task ended or was removed before its last file was closed.
#[test]
fn audit_log_tells_of_every_file_of_a_task_that_is_gone() -> Result<()> {
    let bench = Bench::new()?;
    let end = rfc3339(now()? + Duration::from_secs(6) * pace())?;
    let stay = "{name: stay, filePath: LOGS/stay.log}";
    let ends = |name: &str, more: &str| {
        format!("{{name: {name}, filePath: LOGS/{name}.log, end: \"{end}\", {more}}}")
    };
    // Files go by age before its end, and its last one is finished at it.
    let (past, over) =
        (ends("past", "fileRotationInterval: 1s, fileMaxAge: 1s"), ends("over", "onEnd: delete"));
    let gone =
        ["{name: kept, filePath: LOGS/kept.log}", "{name: gone, filePath: LOGS/gone.log, onEnd: delete}"];
    bench.write("a.yaml", &[stay, &past, &over, gone[0], gone[1]])?;
    let daemon = bench.start(&[])?;
    udp(&bench.pair, format!("{FAR}:6000").parse()?, 10, 50)?;
    let until = |event: &str, task: &str, count: usize| -> Result<()> {
        let begun = Instant::now();
        loop {
            let told = bench.audit(event)?.iter().filter(|line| line["task"] == task).count();
            if told >= count {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "{told} {event} of {task}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until("file_finished", "past", 1)?;
    udp(&bench.pair, format!("{FAR}:6001").parse()?, 10, 50)?;
    until("ended", "over", 1)?;
    until("file_deleted", "over", 1)?;
    bench.write("a.yaml", &[stay, &past, &over])?;
    until("removed", "gone", 1)?;
    daemon.stop()?.check()?;
    let told = |event: &str| -> Result<BTreeSet<PathBuf>> {
        bench.audit(event)?.iter().map(|line| Ok(line["path"].as_str().context("a path")?.into())).collect()
    };
    let (finished, deleted) = (told("file_finished")?, told("file_deleted")?);
    let there = files(&bench.path("logs"))?.into_iter().collect();
    ensure!(&finished - &deleted == there, "{finished:?} less {deleted:?} is not {there:?}");
    let of = |task: &str| -> Result<Vec<String>> {
        let lines = bench.audit("file_deleted")?;
        let own = lines.iter().filter(|line| line["task"] == task);
        Ok(own.map(|line| line["why"].as_str().unwrap_or_default().to_owned()).collect())
    };
    for (task, want) in [("gone", &["onEnd: delete"][..]), ("over", &["onEnd: delete"]), ("kept", &[])] {
        let whys = of(task)?;
        ensure!(whys == want, "{task}: {whys:?}");
    }
    let (ended, past) = (bench.audit("ended")?, of("past")?);
    ensure!(
        ended.len() == 2 && !past.is_empty() && past.iter().all(|why| why != "onEnd: delete"),
        "{past:?}"
    );
    Ok(())
}
