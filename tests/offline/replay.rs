//! `flowlog replay` against tshark.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flowlog_tests::daemon::binary;

/// The folder of captures, if it is there.
fn captures() -> Option<PathBuf> {
    let given = std::env::var_os("FLOWLOG_PCAPS").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/pcaps"));
    if folder.is_dir() {
        return Some(folder);
    }
    println!("no captures at {}: set FLOWLOG_PCAPS to run this test", folder.display());
    None
}

/// Every capture is read or refused with a reason, its ledger closes, and nothing panics.
#[test]
fn the_ledger_closes_on_every_capture() -> Result<()> {
    let Some(folder) = captures() else { return Ok(()) };
    let work = tempfile::tempdir()?;
    let tasks = work.path().join("tasks.yaml");
    std::fs::write(&tasks, "flowLogs:\n  - {name: all, filePath: /var/log/flowlog/all.log}\n")?;
    let mut read = 0;
    for kind in ["tcpdump", "zeek"] {
        for entry in std::fs::read_dir(folder.join(kind))? {
            let pcap = entry?.path();
            let output = Command::new(binary())
                .args(["replay", "-o", "json", "--pcap"])
                .arg(&pcap)
                .arg("--tasks")
                .arg(&tasks)
                .arg("--output-dir")
                .arg(work.path().join("out"))
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(!said.contains("panicked"), "{}: {said}", pcap.display());
            let ledger: serde_json::Value = serde_json::from_slice(&output.stdout)
                .with_context(|| format!("{}: {said}", pcap.display()))?;
            ensure!(ledger["closes"] == true, "{}: {}", pcap.display(), ledger["sums"]);
            match output.status.code() {
                Some(0) => read += 1,
                _ => ensure!(said.contains(&*pcap.to_string_lossy()), "{}: {said}", pcap.display()),
            }
        }
    }
    ensure!(read > 200, "only {read} captures could be read");
    Ok(())
}

/// Recorded flows, about 250 bytes each.
fn recorded(path: &Path, flows: u32) -> Result<()> {
    let flow = |n: u32| {
        format!(
            "{{\"flow\":{{\"time\":\"2026-11-30T20:14:26Z\",\"uuid\":\"{n}\",\"verdict\":\"FORWARDED\",\"IP\":{{\"source\":\
             \"10.0.0.2\",\"destination\":\"10.0.0.1\",\"ipVersion\":\"IPv4\"}},\"Summary\":\"{n:0>100}\"}},\"node_name\":\"n\",\
             \"time\":\"2026-11-30T20:14:26Z\"}}\n"
        )
    };
    Ok(std::fs::write(path, (0..flows).map(flow).collect::<String>())?)
}

/// Recorded flows, tasks and a folder for their files.
struct Site {
    work: tempfile::TempDir,
    out: PathBuf,
}

impl Site {
    fn new(flows: u32, tasks: &str) -> Result<Self> {
        let work = tempfile::tempdir()?;
        recorded(&work.path().join("flows.jsonl"), flows)?;
        let out = work.path().join("out");
        let site = Self { work, out };
        site.tasks(tasks)?;
        Ok(site)
    }

    fn tasks(&self, text: &str) -> Result<()> {
        Ok(std::fs::write(self.work.path().join("tasks.yaml"), text)?)
    }

    /// A replay of the flows with these options.
    fn replay(&self, options: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.arg("replay").args(options).arg("--flows").arg(self.work.path().join("flows.jsonl"));
        command.arg("--tasks").arg(self.work.path().join("tasks.yaml"));
        command
    }

    /// The same into the folder.
    fn replay_out(&self, options: &[&str]) -> Result<std::process::Output> {
        Ok(self.replay(options).arg("--output-dir").arg(&self.out).output()?)
    }
}

fn names(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(names(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}

#[test]
fn files_keep_their_folders_below_the_output_folder() -> Result<()> {
    let site = Site::new(3, "")?;
    let replay = |paths: &[&str], out: &Path| -> Result<(Option<i32>, String)> {
        let mut text = "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n".to_owned();
        for (at, path) in paths.iter().enumerate() {
            text += &format!("- {{name: t{at}, compression: none, filePath: '{path}'}}\n");
        }
        site.tasks(&text)?;
        let output = site.replay(&[]).arg("--output-dir").arg(out).output()?;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let cases: [(&[&str], &[&str]); 4] = [
        (&["/var/log/flowlog/a/x.log", "/var/log/flowlog/b/x.log"], &["a", "b"]),
        (&["/data/logs/a/x.log", "/data/logs/b/x.log"], &["a", "b"]),
        (&["/data/logs/only/x.log"], &[""]),
        (&["/srv/{task}/{date}.log", "/srv/{task}/{date}.log"], &["t0", "t1"]),
    ];
    for (at, (paths, folders)) in cases.into_iter().enumerate() {
        let out = site.work.path().join(format!("missing/too{at}"));
        let (code, said) = replay(paths, &out)?;
        ensure!(code == Some(0), "{paths:?}: {said}");
        let found: Vec<_> = names(&out)?.iter().filter_map(|path| Some(path.parent()?.to_owned())).collect();
        let want: Vec<_> =
            folders.iter().map(|folder| out.join(folder).components().collect::<PathBuf>()).collect();
        ensure!(found == want, "{paths:?}: {found:?}");
    }
    let (code, said) = replay(&["/a/x.log"], &site.work.path().join("flows.jsonl"))?;
    ensure!(code == Some(1) && said.contains("--output-dir") && !said.contains("--log-root"), "{said}");
    Ok(())
}

/// Recorded flows are written by the node that is given, as captures are: `{node}` is filled with it, the header names it,
/// and each node's files are its own.
#[test]
fn recorded_flows_are_written_by_the_node_that_is_given() -> Result<()> {
    let site = Site::new(
        3,
        "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {name: t, filePath: '/var/log/flowlog/{node}/t.log'}\n",
    )?;
    let nodes = ["node-a", "node-b"];
    for node in nodes {
        let output = site.replay_out(&["--node-name", node])?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let found = names(&site.out)?;
    ensure!(found.len() == nodes.len(), "{found:?}");
    for (path, node) in found.iter().zip(nodes) {
        ensure!(path.parent() == Some(&*site.out.join(node)), "{}", path.display());
        let bytes = std::fs::read(path)?;
        let named = format!("\"node\":\"{node}\"");
        ensure!(
            bytes.windows(named.len()).any(|window| window == named.as_bytes()),
            "{named} is not in the header"
        );
    }
    Ok(())
}

#[test]
fn a_replay_names_all_its_files_and_what_was_deleted() -> Result<()> {
    let site = Site::new(
        20_000,
        "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {name: t, compression: none, filePath: /l/t.log, \
         fileMaxSizeMb: 1, fileMaxBackups: 1}\n- {name: u, compression: none, filePath: /l/u.log, fileMaxSizeMb: 1}\n",
    )?;
    let run = |format: &str| -> Result<std::process::Output> {
        let _ = std::fs::remove_dir_all(&site.out);
        site.replay_out(&["-o", format])
    };
    let output = run("text")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{said}");
    let there = names(&site.out)?;
    ensure!(there.len() >= 6, "{there:?}");
    for file in &there {
        ensure!(said.contains(&*file.to_string_lossy()), "{} is not named: {said}", file.display());
    }
    ensure!(said.matches(".log\n").count() == there.len(), "a file is named that is not there: {said}");
    ensure!(
        said.contains("files of task t were deleted")
            && said.contains("onEnd)")
            && !said.contains("files of task u"),
        "{said}"
    );
    let said: serde_json::Value = serde_json::from_slice(&run("json")?.stdout)?;
    let there = names(&site.out)?.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    ensure!(said["files"] == serde_json::json!(there), "{said}");
    ensure!(said["files_deleted"]["t"].as_u64() > Some(0), "{said}");
    Ok(())
}

#[test]
fn a_replay_onto_a_full_stdout_fails() -> Result<()> {
    let site = Site::new(100, "flowLogs:\n- {name: t, filePath: stdout}\n")?;
    let run = |to: std::fs::File| -> Result<(Option<i32>, String)> {
        let output = site.replay(&[]).stdout(to).output()?;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let (code, said) = run(std::fs::File::options().write(true).open("/dev/full")?)?;
    ensure!(code == Some(1) && said.contains("100 dropped"), "{code:?} {said}");
    ensure!(said.contains("to stdout") && !said.contains("on disk"), "{said}");
    let (code, said) = run(std::fs::File::create(&site.out)?)?;
    ensure!(code == Some(0) && said.contains(" 0 dropped"), "{code:?} {said}");
    Ok(())
}
