//! `cargo xtask run --demo`: a node with two pods in network namespaces, a workload, three tasks, and what comes of it.

mod stage;
mod traffic;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{cli, packages, say, step, system};
use stage::Stage;

/// What root runs: nobody types it.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "demo-stage",
    about: "",
    help: "cargo xtask demo-stage: a part of `cargo xtask run --demo`, which starts it as root",
    run: main,
};

/// How long the views are shown.
const LOOK: &str = "8s";
const PATIENCE: Duration = Duration::from_secs(20);

const TASKS: &str = "\
apiVersion: flowlog.io/v1
kind: FlowLogs
flowLogs:
  - name: connections
    description: every connection, once it is over
    filePath: LOGS/connections.log
    events: [end]
  - name: dns
    description: who asks the name server
    filePath: LOGS/dns.log
    includeFilters:
      - destination_port: [\"53\"]
      - source_port: [\"53\"]
    fieldMask: [IP, l4, is_reply, Summary, extensions]
  - name: web
    description: the shop's requests, as they happen
    filePath: LOGS/web.log
    format: protobuf
    includeFilters:
      - destination_port: [\"8080\"]
    updateInterval: 2s
";
/// What the owner of `web` changes while it runs.
const BEFORE: &str = "      - destination_port: [\"8080\"]\n";
const AFTER: &str = "      - destination_port: [\"8080\", \"5201\"]\n      - protocol: [icmp]\n";

/// Starts the demo as root.
pub(crate) fn start(flowlog: &Path, yes: bool) -> Result<()> {
    let missing = packages::missing(&[("ip", "iproute2"), ("ping", "iputils-ping")]);
    if !missing.is_empty() {
        packages::install("the demo makes network namespaces and pings", &missing, false, yes)?;
    }
    let own = std::env::current_exe().context("cannot tell where xtask is")?;
    let words: [OsString; 4] = ["demo-stage".into(), "play".into(), flowlog.into(), LOOK.into()];
    step::shown("the demo", &mut system::as_root(&own.to_string_lossy(), &words)?)
}

fn main(mut args: lexopt::Parser) -> Result<()> {
    let words: Vec<String> = args.raw_args()?.map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["play", flowlog, look] => play(Path::new(flowlog), look),
        ["serve"] => traffic::serve(),
        ["visit", server] => traffic::visit(server),
        _ => bail!("this is a part of `cargo xtask run --demo`"),
    }
}

fn play(flowlog: &Path, look: &str) -> Result<()> {
    let folder = system::target_dir().join("demo-run");
    let _ = std::fs::remove_dir_all(&folder);
    let (tasks, logs) = (folder.join("tasks"), folder.join("logs"));
    for made in [&tasks, &logs] {
        std::fs::create_dir_all(made).with_context(|| format!("cannot create {}", made.display()))?;
    }
    let text = TASKS.replace("LOGS", &logs.to_string_lossy());
    let file = tasks.join("demo.yaml");
    std::fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;

    say::step("making a node with two pods, shop and web, in network namespaces");
    let stage = Stage::set()?;
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let _web = stage.start(stage::WEB, &own, &["demo-stage", "serve"])?;
    let _shop = stage.start(stage::SHOP, &own, &["demo-stage", "visit", stage::WEB_ADDRESS])?;
    let _pings = stage.start(stage::SHOP, "ping", &["-q", "-i", "0.5", stage::WEB_ADDRESS])?;

    say::step(&format!("flowlog runs three tasks: {}", file.display()));
    let mut daemon = daemon(&stage, flowlog, &folder)?;
    let socket = folder.join("flowlog.sock");
    wait("flowlog's socket", &mut daemon, || socket.exists())?;
    let server = format!("unix://{}", socket.display());
    let ask = |args: &[&str]| {
        step::shown(args.first().unwrap_or(&""), Command::new(flowlog).args(args).args(["--server", &server]))
    };
    say::step(&format!("flowlog top, for {look} (on a terminal, ? says what keys do)"));
    ask(&["top", "--for", look])?;

    say::step("the owner of `web` wants bulk transfers and pings too, and changes the file:");
    say::note(&format!("-{BEFORE}+{}", AFTER.replace("\n      ", "\n+      ")));
    std::fs::write(&file, text.replace(BEFORE, AFTER)).context("cannot change the tasks")?;
    std::thread::sleep(Duration::from_secs(1));
    say::step("flowlog status: nothing was restarted, and the other tasks did not notice");
    ask(&["status"])?;
    ask(&["top", "--for", look])?;

    say::step("stopping flowlog");
    stop(daemon)?;
    landed(flowlog, &logs)?;
    say::note(&format!("the files stay in {}; the namespaces are gone", logs.display()));
    Ok(())
}

fn daemon(stage: &Stage, flowlog: &Path, folder: &Path) -> Result<Child> {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let log = std::fs::File::create(folder.join("flowlog.log"))?;
    let args = [
        "run",
        "--tasks",
        &path("tasks"),
        "--log-root",
        &path("logs"),
        "--state-dir",
        &path("state"),
        "--socket",
        &path("flowlog.sock"),
        "--listen",
        "none",
        "--node-name",
        "demo-node",
    ];
    stage
        .command(stage::NODE, &flowlog.to_string_lossy(), &args)
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(log)
        .spawn()
        .context("cannot start flowlog")
}

fn wait(what: &str, child: &mut Child, done: impl Fn() -> bool) -> Result<()> {
    let start = Instant::now();
    while !done() {
        if let Some(status) = child.try_wait()? {
            bail!("flowlog ended ({status}); its log is target/demo-run/flowlog.log");
        }
        if start.elapsed() > PATIENCE {
            bail!("{what} did not come within {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// As Ctrl-C would.
fn stop(mut daemon: Child) -> Result<()> {
    let pid = daemon.id().to_string();
    step::shown("stopping flowlog", Command::new("kill").args(["-INT", &pid]))?;
    let status = daemon.wait()?;
    if !status.success() {
        bail!("flowlog ended with {status}; its log is target/demo-run/flowlog.log");
    }
    Ok(())
}

/// What is in the files now.
fn landed(flowlog: &Path, logs: &Path) -> Result<()> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(logs)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.sort();
    say::step("what landed where, the last records of each:");
    for file in files {
        let bytes = file.metadata()?.len();
        say::note(&format!("{} ({bytes} bytes)", file.display()));
        step::shown(
            "flowlog cat",
            Command::new(flowlog).arg("cat").arg(&file).args(["--last", "3", "-o", "table"]),
        )?;
    }
    Ok(())
}
