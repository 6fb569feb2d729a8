//! A daemon whose task files go bad in every way: the old tasks go on, the log says what and where, and the next valid
//! file is taken.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::Daemon;
use flowlog_tests::netns::FAR;
use flowlog_tests::records::{all, sums};
use flowlog_tests::traffic::udp;

use crate::reload::{Bench, CHANGED};

/// Puts a text, whole, where a file is.
fn put(file: &Path, text: &[u8]) -> Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, text)?;
    Ok(fs::rename(new, file)?)
}

/// Texts that are wrong, and what must be said of them, file and line included.
fn texts() -> Vec<(Vec<u8>, &'static str)> {
    let bomb: String = std::iter::once("a0: &a0 [x, x]\n".to_owned())
        .chain((1..30).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)))
        .collect();
    let (many, wrong) = ("- x\n".repeat(2_500_000), "- x\n".repeat(100_000));
    vec![
        (bomb.into_bytes(), "aliases repeat too much"),
        ("[".repeat(100_000).into_bytes(), "recursion limit"),
        (
            format!("flowLogs:\n{many}").into_bytes(),
            "a.yaml:499999:3: flowLogs[499997]: the file has more than 500000 values",
        ),
        (format!("flowLogs:\n{wrong}").into_bytes(), "a.yaml: 99900 more errors are not shown"),
        (vec![b'#'; 17 << 20], "a.yaml: the file has more than 16 MiB"),
        (b"flowLogs: []\n# \xff\xfe\n".to_vec(), "a.yaml: line 2 is not UTF-8"),
        (b"flowLogs:\n\t- name: x\n".to_vec(), "a.yaml:2:2: flowLogs: this is not YAML: tabs"),
        (
            b"flowLogs:\n- {name: x, name: y, filePath: /l/x}\n".to_vec(),
            "`name` stands here twice, first at ",
        ),
        (
            b"flowLogs:\n- {name: 7, filePath: /l/x}\n".to_vec(),
            "a.yaml:2:10: flowLogs[0].name: expected a string, found `7`",
        ),
        (b"".to_vec(), "a.yaml: nothing stands in this file"),
        (
            b"flowLogs:\n- name: x\n  filePath: \"/var/log/fl".to_vec(),
            "a.yaml:3:13: flowLogs[0].filePath: this is not YAML",
        ),
    ]
}

#[test]
fn old_tasks_go_on_whatever_stands_in_their_file() -> Result<()> {
    let bench = Bench::new()?;
    let good = |more: &str| {
        bench.write("a.yaml", &[&format!("{{name: a, filePath: LOGS/a.log, events: [start, end]{more}}}")])
    };
    good("")?;
    bench.write("b.yaml", &["{name: b, filePath: LOGS/b.log, events: [end]}"])?;
    let mut daemon = bench.start(&[])?;
    let (tasks, file) = (bench.path("tasks"), bench.path("tasks").join("a.yaml"));
    let mut ports = 7_000..;
    let mut send = || -> Result<u16> {
        let port = ports.next().unwrap_or_default();
        udp(&bench.pair, format!("{FAR}:{port}").parse()?, 3, 50)?;
        Ok(port)
    };
    let mut sent = vec![send()?];
    for (text, words) in texts() {
        put(&file, &text)?;
        daemon.wait_for(words)?;
        sent.push(send()?);
    }
    let mut bad = |daemon: &mut Daemon, words: &str| -> Result<()> {
        if !words.is_empty() {
            daemon.wait_for(words)?;
        }
        sent.push(send()?);
        Ok(())
    };
    // What is no file, or cannot be read.
    fs::remove_file(&file)?;
    fs::create_dir(&file)?;
    bad(&mut daemon, "a.yaml: cannot be read: it is a folder")?;
    fs::remove_dir(&file)?;
    symlink("a.yaml", &file)?;
    bad(&mut daemon, "a.yaml: cannot be read: too many levels of symbolic links")?;
    fs::remove_file(&file)?;
    symlink("nowhere.yaml", &file)?;
    bad(&mut daemon, "a.yaml: cannot be read: no such file or directory")?;
    fs::remove_file(&file)?;
    // Root may read any file but one like this, which is for writing only.
    symlink("/proc/sys/net/ipv4/route/flush", &file)?;
    bad(&mut daemon, "a.yaml: cannot be read: permission denied")?;
    // The next valid text is taken, in the same open file.
    good(", description: next")?;
    daemon.wait_for(CHANGED)?;
    bad(&mut daemon, "")?; // nothing more is to be said
    // The folder goes and comes back with another file.
    let away = bench.path("away");
    fs::rename(&tasks, &away)?;
    bad(&mut daemon, "tasks: cannot be read: no such file or directory")?;
    fs::create_dir(&tasks)?;
    bench.write("a.yaml", &["{name: a, filePath: LOGS/a.log, events: [start, end]}"])?;
    daemon.wait_for("the file is gone, and with it what it held")?; // b, for good
    daemon.wait_for(CHANGED)?; // with it a, which has no description any more
    bad(&mut daemon, "")?; // nothing more is to be said
    daemon.stop()?.check()?;

    let started = sums(&all(&bench.path("logs"), "a-")?);
    let started: Vec<u64> =
        started.iter().filter(|(_, sum)| sum.starts == 1).map(|(tuple, _)| tuple.4).collect();
    for port in &sent {
        ensure!(started.contains(&u64::from(*port)), "a has nothing of {port}: {started:?}");
    }
    ensure!(bench.files("a-")?.len() == 1, "{:?}", bench.files("a-")?);
    // b went with its file, and was told so; a never went.
    let removed: Vec<String> = bench
        .audit("removed")?
        .iter()
        .map(|line| line["task"].as_str().unwrap_or_default().to_owned())
        .collect();
    ensure!(removed == ["b"], "{removed:?}");
    ensure!(bench.audit("file_rejected")?.len() >= texts().len() + 4, "{:?}", bench.audit("file_rejected")?);
    Ok(())
}
