//! What the running daemon may still do, as the kernel says of each of its threads.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use flowlog_tests::daemon::{Daemon, PATIENCE};
use flowlog_tests::drops::{DROPS, chain, datagrams, of, to_port};
use flowlog_tests::netns::{FAR, INTERFACE, Pair};
use flowlog_tests::process::Process;
use flowlog_tests::records::all;
use flowlog_tests::traffic::ping;

use crate::end_to_end::{EVERYTHING, tasks};

// Bits of capabilities(7).
const CHOWN: u64 = 1 << 0;
const DAC_OVERRIDE: u64 = 1 << 1;
const FOWNER: u64 = 1 << 3;
const CAPTURE: u64 = 1 << 12 | 1 << 38 | 1 << 39;

/// Name of each thread, and its permitted capabilities; asserts that there is no way to others.
fn threads(pid: u32) -> Result<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = std::fs::read_to_string(thread?.path().join("status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            Ok::<_, anyhow::Error>(
                line.with_context(|| name.to_owned())?.trim_start_matches(':').trim().to_owned(),
            )
        };
        assert_eq!(field("NoNewPrivs")?, "1", "{status}");
        let [permitted, effective, inheritable] = ["CapPrm", "CapEff", "CapInh"]
            .map(|name| u64::from_str_radix(&field(name).unwrap_or_default(), 16));
        let permitted = permitted?;
        assert_eq!((permitted, 0), (effective?, inheritable?), "{status}");
        *all.entry(field("Name")?).or_insert(permitted) |= permitted;
    }
    Ok(all)
}

#[test]
fn only_the_thread_that_captures_keeps_what_capturing_takes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let daemon =
        Daemon::start(&pair.near, &tasks(folder.path(), EVERYTHING)?, &folder.path().join("logs"), &[])?;
    ping(&pair, FAR, 1)?;
    let threads = threads(daemon.pid())?;
    assert!(threads.len() >= 3, "{threads:?}");
    for (name, held) in threads {
        let allowed = if name == "flowlog-capture" { CAPTURE } else { 0 };
        assert_eq!(held & CAPTURE, allowed, "{name} holds {held:x}");
        assert_eq!(held & !(CAPTURE | CHOWN | DAC_OVERRIDE | FOWNER), 0, "{name} holds {held:x}");
    }
    daemon.stop()?.check()
}

/// What leaves a program with the three and no way to others.
const THREE: [&str; 3] = ["setpriv", "--bounding-set=-all,+bpf,+net_admin,+perfmon", "--no-new-privs"];

#[test]
fn three_capabilities_are_enough() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), EVERYTHING)?;
    let logs = folder.path().join("logs");
    let mut daemon = Daemon::spawn_through(&pair.near, &THREE, &tasks, &logs, &[])?;
    daemon.wait_for("\"watching\"")?;
    for (name, held) in threads(daemon.pid())? {
        assert_eq!(held & !CAPTURE, 0, "{name} holds {held:x}");
    }
    ping(&pair, FAR, 3)?;
    daemon.stop()?.check()?;
    let packets: u64 = all(&logs, "all")?.iter().map(|record| record.amount("packets")).sum();
    assert_eq!(packets, 6);
    Ok(())
}

/// The kernel's memory is read, and its functions are named.
#[test]
fn three_capabilities_are_enough_for_drops() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pair = Pair::new(false)?;
    let tasks = tasks(folder.path(), DROPS)?;
    let logs = folder.path().join("logs");
    chain(&pair.far, "input", &[(7029, "dropped", "drop")])?;
    let mut daemon = Daemon::spawn_through(&pair.near, &THREE, &tasks, &logs, &[])?;
    daemon.wait_for("\"watching dropped packets\"")?;
    daemon.wait_for("\"watching\"")?;
    datagrams(&pair.near, FAR, 7029, 4, 100)?;
    for (name, held) in threads(daemon.pid())? {
        assert_eq!(held & !CAPTURE, 0, "{name} holds {held:x}");
    }
    daemon.stop()?.check()?;
    let (reason, sum) = to_port(&of(&all(&logs, "drops-")?, &pair.far)?, 7029)?;
    assert_eq!(
        (reason.as_str(), sum.packets, sum.interface.as_str()),
        ("NETFILTER_DROP", 4, INTERFACE),
        "{sum:?}"
    );
    assert!(sum.location.starts_with("nf"), "{sum:?}");
    Ok(())
}

/// The live view writes no file, so it keeps nothing that writing would take.
#[test]
fn the_live_view_keeps_what_capturing_takes_and_nothing_else() -> Result<()> {
    let pair = Pair::new(false)?;
    let mut observer = Process::flowlog(&pair.near, &["observe"])?;
    observer.told("Ctrl-C ends it")?;
    ping(&pair, FAR, 1)?;
    observer.line(PATIENCE)?;
    for (name, held) in threads(observer.pid())? {
        let allowed = if name == "flowlog-capture" { CAPTURE } else { 0 };
        assert_eq!(held, allowed, "{name} holds {held:x}");
    }
    anyhow::ensure!(observer.interrupt()?.status.success());
    Ok(())
}
