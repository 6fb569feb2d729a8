//! The daemon as it is shipped, beside real traffic over a veth pair.

mod flows;
mod start;
mod throughput;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flowlog_tests::daemon::Daemon;
use flowlog_tests::http;
use flowlog_tests::netns::Pair;
use flowlog_tests::report::Figure;

use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench = Bench {
    name: "e2e",
    about: "real traffic: throughput with and without flowlog, 100,000 new flows a second, time to the first record",
    run,
};

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let mut figures = start::measured(settings.rounds)?;
    figures.extend(throughput::measured(settings.rounds)?);
    figures.extend(flows::measured(settings.rounds)?);
    Ok(figures)
}

/// A daemon on the near host, with a socket to ask it by.
pub(crate) struct Agent {
    pub(crate) daemon: Daemon,
    folder: PathBuf,
}

impl Agent {
    /// Starts it with tasks (name and keys) in a folder, and waits until it watches.
    pub(crate) fn start(pair: &Pair, folder: &Path, tasks: &[(&str, &str)], more: &[&str]) -> Result<Self> {
        let logs = folder.join("logs");
        std::fs::create_dir_all(&logs)?;
        let task = |(name, keys): &(&str, &str)| {
            let path = logs.join(format!("{name}.log"));
            format!("- {{name: {name}, filePath: {}, {keys}}}\n", path.display())
        };
        let file = folder.join("tasks.yaml");
        std::fs::write(&file, format!("flowLogs:\n{}", tasks.iter().map(task).collect::<String>()))?;
        let socket = folder.join("flowlog.sock");
        let more = [&["--socket", socket.to_str().context("a plain path")?], more].concat();
        let daemon = Daemon::start(&pair.near, &file, &logs, &more)?;
        Ok(Self { daemon, folder: folder.into() })
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// Its metrics now.
    pub(crate) fn metrics(&self) -> Result<BTreeMap<String, f64>> {
        let page = http::get(http::unix(&self.folder.join("flowlog.sock"))?, "/metrics")?.1;
        Ok(http::series(&page))
    }

    /// Records that a task has written.
    pub(crate) fn written(&self, task: &str) -> Result<f64> {
        let name = format!("flowlog_task_written_records_total{{task=\"{task}\"}}");
        Ok(self.metrics()?.get(&name).copied().unwrap_or_default())
    }
}
