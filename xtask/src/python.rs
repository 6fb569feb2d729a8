//! The Python packages with which the tests read flowlog's files as others do: put below `target/` while the rest builds.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::{say, system};

/// Versions that are known to work together; their wheels need no compiler.
const PACKAGES: [&str; 9] = [
    "duckdb==2.0.1",
    "grpcio-tools==1.85.1",
    // Helm's own engine in a wheel, and Kubernetes' own schema: they try the chart and the manifests.
    "helm-python-sdk==0.2.2",
    "kubernetes-validate==1.37.0",
    "pandas==3.1.1",
    "polars==2.1.0",
    "protobuf==7.36.2",
    "pyarrow==26.0.1",
    "zstandard==0.25.0",
];

/// An installation that is going on.
pub(crate) struct Installing(Option<Child>);

/// Where the packages are; `.complete` in it names those that are.
fn folder() -> PathBuf {
    system::target_dir().join("python")
}

/// Begins to install what is missing, without waiting for it.
pub(crate) fn begin() -> Installing {
    let known = std::fs::read_to_string(folder().join(".complete")).unwrap_or_default();
    if known == PACKAGES.join("\n") {
        return Installing(None);
    }
    match install() {
        Ok(child) => {
            say::note("meanwhile pip puts the readers that the tests compare with into target/python");
            Installing(Some(child))
        }
        Err(error) => {
            say::warn(&format!("{error:#}; the tests that compare with others' readers are SKIPPED"));
            Installing(None)
        }
    }
}

fn install() -> Result<Child> {
    let folder = folder();
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let log = File::create(folder.join("pip.log"))?;
    Command::new("python3")
        .args([
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--no-compile",
            "--only-binary",
            ":all:",
        ])
        .args(["--timeout", "20", "--retries", "1", "--target"])
        .arg(&folder)
        .args(PACKAGES)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start `python3 -m pip`")
}

impl Installing {
    /// Waits for the end. What fails is said, and keeps nothing else from being tested.
    pub(crate) fn finish(self) {
        let Some(mut child) = self.0 else { return };
        let done = child.wait().is_ok_and(|status| status.success());
        let marked = done && std::fs::write(folder().join(".complete"), PACKAGES.join("\n")).is_ok();
        if !marked {
            let log = folder().join("pip.log");
            say::warn(&format!(
                "pip could not install the readers that the tests compare with (see {}); those tests are SKIPPED",
                log.display()
            ));
        }
    }
}
