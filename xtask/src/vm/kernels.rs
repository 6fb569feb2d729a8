//! Debian's kernels and busybox: fetched with apt-get, unpacked, not installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{packages, step, system};

/// An unpacked kernel with its modules, uncompressed and with their dependencies.
pub(super) struct Kernel {
    /// As `uname -r` will say.
    pub(super) release: String,
    /// Whether it has TCX (6.6 and newer).
    pub(super) has_tcx: bool,
    /// The folder that holds `boot` and `lib`.
    pub(super) root: PathBuf,
}

impl Kernel {
    pub(super) fn image(&self) -> PathBuf {
        self.root.join(format!("boot/vmlinuz-{}", self.release))
    }

    pub(super) fn modules(&self) -> PathBuf {
        self.root.join("lib/modules").join(&self.release)
    }
}

/// The newest kernel of a series: the one that is there, or, when there is none or `fresh`, the newest that apt knows.
pub(super) fn get(series: &str, fresh: bool) -> Result<Kernel> {
    let folder = super::folder().join("kernels");
    let there = || newest(packages::names_in(&folder), series);
    let package = match there() {
        Some(package) if !fresh => package,
        _ => newest(known_to_apt(series), series).with_context(|| {
            format!("apt knows no linux-image-{series}*-cloud-amd64; `apt-get update`, or look for the suite that has it")
        })?,
    };
    let root = folder.join(&package);
    if !root.is_dir() {
        prepare(&package, &root)?;
    }
    let release = package.trim_start_matches("linux-image-").to_owned();
    let has_tcx = numbers(&release).get(..2).is_some_and(|version| version >= &[6, 6]);
    Ok(Kernel { release, has_tcx, root })
}

/// A program for the guest and for what a host may lack (depmod, cpio).
pub(super) fn busybox() -> Result<PathBuf> {
    let root = super::folder().join("busybox");
    let program = root.join("bin/busybox");
    if !program.is_file() {
        unpack("busybox-static", &root)?;
    }
    Ok(program)
}

/// Fetches, unpacks and makes ready beside the final place, so that a stop half-way leaves nothing that looks whole.
fn prepare(package: &str, root: &Path) -> Result<()> {
    let beside = root.with_extension("part");
    if beside.exists() {
        std::fs::remove_dir_all(&beside)?;
    }
    unpack(package, &beside)?;
    let busybox = busybox()?;
    let release = package.trim_start_matches("linux-image-");
    let packed = files_ending(&beside.join("lib/modules"), ".ko.xz")?;
    for some in packed.chunks(200) {
        step::shown("unpacking modules", Command::new(&busybox).args(["xz", "-d"]).args(some))?;
    }
    step::shown("listing modules", Command::new(&busybox).args(["depmod", "-b"]).arg(&beside).arg(release))?;
    std::fs::rename(&beside, root).with_context(|| format!("cannot rename to {}", root.display()))
}

fn unpack(package: &str, root: &Path) -> Result<()> {
    packages::unpack(package, &[], &super::folder().join("packages"), root)
}

fn known_to_apt(series: &str) -> Vec<String> {
    let mut command = Command::new("apt-cache");
    command.args(["pkgnames", &format!("linux-image-{series}.")]);
    system::output_of(&mut command).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The signed cloud kernel with the highest version.
fn newest(names: Vec<String>, series: &str) -> Option<String> {
    let start = format!("linux-image-{series}.");
    names
        .into_iter()
        .filter(|name| name.starts_with(&start) && name.ends_with("-cloud-amd64"))
        .max_by_key(|name| numbers(name))
}

fn numbers(name: &str) -> Vec<u64> {
    name.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn files_ending(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
        {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().ends_with(end) {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_signed_cloud_kernel_of_the_series_is_taken() {
        let names = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-57-cloud-amd64",
            "linux-image-6.1.0-58-amd64",
            "linux-image-6.1.0-59-cloud-amd64-unsigned",
            "linux-image-6.1.0-59-cloud-amd64.part",
            "linux-image-6.12.117+deb12-cloud-amd64",
            "linux-image-6.12.9+deb12-cloud-amd64",
        ];
        let names = || names.map(str::to_owned).to_vec();
        assert_eq!(newest(names(), "6.1").as_deref(), Some("linux-image-6.1.0-57-cloud-amd64"));
        assert_eq!(newest(names(), "6.12").as_deref(), Some("linux-image-6.12.117+deb12-cloud-amd64"));
        assert_eq!(newest(names(), "5.10"), None);
    }
}
