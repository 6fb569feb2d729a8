//! From a file's rename to other tasks being in force, as a kubelet does it, with a daemon that watches an interface.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use flowlog_tests::daemon::Daemon;
use flowlog_tests::measure::{Spread, progress};
use flowlog_tests::netns::Pair;
use flowlog_tests::report::{Figure, Target};

use crate::{Bench, Settings};

/// The bench.
pub(crate) const BENCH: Bench =
    Bench { name: "reload", about: "from a change of task files to its effect, 100 and 1,000 tasks", run };

/// What the daemon says when other tasks are in force.
const CHANGED: &str = "the tasks have changed";

/// Tasks, changes in a series, milliseconds that the 99th percentile may take.
const SIZES: [(usize, usize, f64); 2] = [(100, 100, 100.0), (1_000, 100, 1_000.0)];

fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let series = (settings.rounds / 8).max(3);
    let mut figures = Vec::new();
    for (tasks, changes, target_ms) in SIZES {
        let (mut medians, mut p99s, mut floors) = (Vec::new(), Vec::new(), Vec::new());
        let bench = Folders::new(tasks)?;
        bench.swap(0)?;
        symlink("..data/flowlogs.yaml", bench.tasks().join("flowlogs.yaml"))?;
        let pair = Pair::new(false)?;
        // Else the log says the same five times a minute.
        let mut daemon = Daemon::start(&pair.near, &bench.tasks(), &bench.logs(), &["--verbose"])?;
        for round in 0..series {
            progress(&format!("{tasks} tasks, series {} of {series}", round + 1));
            let (mut took, mut read) = (Vec::new(), Vec::new());
            for change in 1..=changes {
                let at = bench.swap(round * changes + change)?;
                daemon.wait_for(CHANGED)?;
                took.push(at.elapsed().as_secs_f64() * 1e3);
                // In turn with it: what no reload can do without.
                if change % 10 == 0 {
                    let at = Instant::now();
                    flowlog_user::config::load(&[bench.tasks()]).context("the floor")?;
                    read.push(at.elapsed().as_secs_f64() * 1e3);
                }
            }
            took.sort_by(f64::total_cmp);
            let at = |part: usize| took.get((took.len() * part / 100).min(took.len() - 1)).copied();
            medians.push(at(50).context("changes")?);
            p99s.push(at(99).context("changes")?);
            floors.push(Spread::of(read).median);
        }
        daemon.stop()?.check()?;
        let name = |what: &str| format!("reload: {tasks} tasks, {what}");
        figures.push(Figure::alone(
            name("99th percentile"),
            Spread::of(p99s),
            "ms",
            Target::AtMost(target_ms),
        ));
        figures.push(Figure::alone(name("median"), Spread::of(medians), "ms", Target::None));
        let floor = Spread::of(floors);
        figures.push(Figure::alone(name("reading and checking the files alone"), floor, "ms", Target::None));
    }
    Ok(figures)
}

/// A mounted ConfigMap and the folder of logs.
struct Folders {
    folder: tempfile::TempDir,
    tasks: usize,
}

impl Folders {
    fn new(tasks: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["tasks", "logs"] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder, tasks })
    }

    fn tasks(&self) -> std::path::PathBuf {
        self.folder.path().join("tasks")
    }

    fn logs(&self) -> std::path::PathBuf {
        self.folder.path().join("logs")
    }

    /// A new version of the file, in which one task asks for another port; gives the moment of the rename.
    fn swap(&self, version: usize) -> Result<Instant> {
        let (tasks, name) = (self.tasks(), format!("..version_{version}"));
        fs::create_dir(tasks.join(&name))?;
        fs::write(tasks.join(&name).join("flowlogs.yaml"), self.text(version))?;
        symlink(&name, tasks.join("..data_tmp"))?;
        let at = Instant::now();
        fs::rename(tasks.join("..data_tmp"), tasks.join("..data"))?;
        if let Some(before) = version.checked_sub(1) {
            remove(&tasks.join(format!("..version_{before}")))?;
        }
        Ok(at)
    }

    fn text(&self, version: usize) -> String {
        let mut text = String::from("flowLogs:\n");
        for task in 0..self.tasks {
            let port = if task == version % self.tasks { 2 + version % 60_000 } else { 1 };
            text += &format!(
                "- {{name: t{task}, filePath: {}/t{task}.log, includeFilters: [{{destination_port: [\"{port}\"]}}]}}\n",
                self.logs().display()
            );
        }
        text
    }
}

fn remove(folder: &Path) -> Result<()> {
    Ok(fs::remove_dir_all(folder)?)
}
