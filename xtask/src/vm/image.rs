//! What a guest boots from: a small archive that finds the disk, and the disk with programs, libraries and modules.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::kernels::{Kernel, busybox};
use crate::{packages, say, step, system};

/// Drivers that the first program needs to find the disk; 6.12 has some of them built in.
const DISK_DRIVERS: [&str; 2] = ["virtio_pci", "virtio_blk"];
/// Programs beside those of `cargo xtask setup --tests`: what comes with them, and what looks for causes.
const MORE_PROGRAMS: [&str; 7] = ["dumpcap", "capinfos", "ss", "tc", "date", "setpriv", "bpftool"];
/// Files that programs look up names in.
const NAMES: [&str; 4] = ["passwd", "group", "services", "protocols"];
/// Large enough for what is copied and written; holes in a file take no room.
const DISK_SIZE: &str = "2G";

/// A guest's files.
pub(super) struct Image {
    /// The archive that the kernel unpacks.
    pub(super) archive: PathBuf,
    /// The disk.
    pub(super) disk: PathBuf,
}

/// Makes both anew: seconds, and nothing stale.
pub(super) fn build(kernel: &Kernel, flowlog: &Path, tests: &Path) -> Result<Image> {
    let folder = super::folder();
    say::step(&format!("making a guest with {}", kernel.release));
    let image = Image {
        archive: folder.join(format!("{}.cpio", kernel.release)),
        disk: folder.join(format!("{}.ext4", kernel.release)),
    };
    first(&fresh(&folder.join("first"))?, kernel, &image.archive)?;
    let root = fresh(&folder.join("root"))?;
    programs(&root, flowlog, tests)?;
    let modules = root.join("lib/modules");
    std::fs::create_dir_all(&modules)?;
    step::shown("copying modules", Command::new("cp").arg("-r").arg(kernel.modules()).arg(&modules))?;
    remove(&image.disk)?;
    let mut command = Command::new(program("mke2fs")?);
    command.args(["-q", "-t", "ext4", "-O", "^has_journal", "-d"]).arg(&root).arg(&image.disk).arg(DISK_SIZE);
    step::quiet("making the guest's disk", &mut command, None)?;
    std::fs::remove_dir_all(&root)?;
    Ok(image)
}

/// The archive: busybox, the disk's drivers in order, and a script.
fn first(root: &Path, kernel: &Kernel, archive: &Path) -> Result<()> {
    for folder in ["bin", "modules", "dev", "proc", "sys", "new"] {
        std::fs::create_dir_all(root.join(folder))?;
    }
    let busybox = busybox()?;
    copy(&busybox, &root.join("bin/busybox"))?;
    let dependencies = std::fs::read_to_string(kernel.modules().join("modules.dep"))?;
    for (n, module) in load_order(&dependencies, &DISK_DRIVERS).iter().enumerate() {
        let name = Path::new(module).file_name().context("a module has a name")?.to_string_lossy();
        copy(&kernel.modules().join(module), &root.join(format!("modules/{n:02}-{name}")))?;
    }
    script(&root.join("init"), include_str!("first.sh"))?;
    remove(archive)?;
    // cpio wants the names on its input.
    let names = system::output_of(Command::new("find").arg(".").current_dir(root)).context("find failed")?;
    let mut child = Command::new(busybox)
        .args(["cpio", "-o", "-H", "newc", "-F"])
        .arg(archive)
        .current_dir(root)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    std::io::Write::write_all(&mut child.stdin.take().context("stdin is piped")?, names.as_bytes())?;
    if !child.wait()?.success() {
        bail!("cannot write {}", archive.display());
    }
    Ok(())
}

/// Files of modules.dep, what others need before the others.
fn load_order(dependencies: &str, wanted: &[&str]) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    for name in wanted {
        let line = dependencies
            .lines()
            .find(|line| line.split(':').next().is_some_and(|file| file.ends_with(&format!("/{name}.ko"))));
        let Some((file, needs)) = line.and_then(|line| line.split_once(':')) else { continue };
        // Nearest first, as modprobe would unload them.
        for module in needs.split_whitespace().rev().chain([file]) {
            if !order.iter().any(|other| other == module) {
                order.push(module.to_owned());
            }
        }
    }
    order
}

fn programs(root: &Path, flowlog: &Path, tests: &Path) -> Result<()> {
    for folder in [
        "bin", "sbin", "usr/bin", "dev", "proc", "sys", "tmp", "run", "root", "etc", "flowlog", "var/lib",
        "var/log",
    ] {
        std::fs::create_dir_all(root.join(folder))?;
    }
    let busybox = busybox()?;
    copy(&busybox, &root.join("bin/busybox"))?;
    let applets =
        system::output_of(Command::new(&busybox).arg("--list")).context("busybox does not start")?;
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", root.join("bin").join(applet))?;
    }
    // The kernel asks for modules here.
    symlink("../bin/busybox", root.join("sbin/modprobe"))?;
    for name in NAMES {
        let file = Path::new("/etc").join(name);
        if file.is_file() {
            copy(&file, &root.join("etc").join(name))?;
        }
    }
    script(&root.join("flowlog/init"), include_str!("guest.sh"))?;
    copy(&system::object_path(), &root.join("flowlog/flowlog-ebpf.o"))?;
    // A test's own program, which it compiles where there is a compiler.
    let mut compile = Command::new("cc");
    compile
        .args(["-O1", "-o"])
        .arg(root.join("flowlog/wire"))
        .arg(system::root().join("tests/harness/wire.c"));
    step::shown("compiling wire.c", &mut compile)?;
    let mut libraries = BTreeSet::new();
    for (file, place) in [(flowlog, "flowlog/flowlog"), (tests, "flowlog/tests")] {
        copy(file, &root.join(place))?;
        libraries.extend(needs(file));
    }
    let tools = packages::TEST_TOOLS.iter().map(|(program, _)| *program).chain(MORE_PROGRAMS);
    for name in tools {
        let Some(file) = system::find_program(name) else { continue };
        copy(&file, &root.join("usr/bin").join(name))?;
        libraries.extend(needs(&file));
    }
    for library in libraries {
        let place = root.join(library.strip_prefix("/").unwrap_or(&library));
        std::fs::create_dir_all(place.parent().unwrap_or(root))?;
        copy(&library, &place)?;
    }
    Ok(())
}

/// The shared libraries of a program, and what loads them.
fn needs(file: &Path) -> Vec<PathBuf> {
    let said = system::output_of(Command::new("ldd").arg(file)).unwrap_or_default();
    let paths = said.split_whitespace().filter(|word| word.starts_with('/') && !word.ends_with(':'));
    paths.map(PathBuf::from).collect()
}

fn program(name: &str) -> Result<PathBuf> {
    system::find_program(name).with_context(|| format!("there is no {name}"))
}

fn script(place: &Path, text: &str) -> Result<()> {
    std::fs::write(place, text).with_context(|| format!("cannot write {}", place.display()))?;
    Ok(std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755))?)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn fresh(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_after_what_it_needs() {
        let dependencies = "kernel/net/x.ko:\n\
                            kernel/v/virtio_pci.ko: kernel/v/modern.ko kernel/v/virtio.ko kernel/v/ring.ko\n\
                            kernel/b/virtio_blk.ko: kernel/v/virtio.ko kernel/v/ring.ko\n";
        let order = load_order(dependencies, &["virtio_pci", "virtio_blk", "built_in"]);
        let names: Vec<_> = order.iter().filter_map(|file| file.rsplit('/').next()).collect();
        assert_eq!(names, ["ring.ko", "virtio.ko", "modern.ko", "virtio_pci.ko", "virtio_blk.ko"]);
    }
}
