//! `cargo xtask build-ebpf`: the eBPF object.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use lexopt::ValueExt as _;

use crate::toolchain::{Toolchain, Way};
use crate::{cli, say, setup, step, system};

const TARGET: &str = if cfg!(target_endian = "big") { "bpfeb-unknown-none" } else { "bpfel-unknown-none" };
/// Separates flags in `CARGO_ENCODED_RUSTFLAGS`.
const FLAG_END: &str = "\x1f";

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "build-ebpf",
    about: "build the eBPF object",
    help: "cargo xtask build-ebpf: build the eBPF object\n\n\
           usage: cargo xtask build-ebpf [--features LIST --output FILE]\n\n\
           Writes target/ebpf/flowlog-ebpf.o with the toolchain that `cargo xtask setup` found (and finds it first if\n\
           need be). The file is only touched when its content changes, so the daemon is not rebuilt for nothing.\n\n\
           --features LIST  features of flowlog-ebpf, beside those it needs; for tests\n\
           --output FILE    write the object there instead",
    run: main,
};

fn main(mut args: lexopt::Parser) -> Result<()> {
    let (mut features, mut output) = (String::new(), None);
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("features") => features = args.value()?.string()?,
            lexopt::Arg::Long("output") => output = Some(PathBuf::from(args.value()?)),
            arg => return Err(cli::unexpected("build-ebpf", &arg)),
        }
    }
    let toolchain = setup::ensure(setup::Options::default())?;
    let object = match (features.is_empty(), output) {
        (true, None) => build(&toolchain)?,
        (_, Some(output)) => build_with(&toolchain, &features, &output)?,
        (false, None) => {
            bail!("--features needs --output FILE: the daemon must not be built with such an object")
        }
    };
    say::out(&object.display().to_string());
    Ok(())
}

/// Builds the object and says where it is.
pub(crate) fn build(toolchain: &Toolchain) -> Result<PathBuf> {
    build_with(toolchain, "", &system::object_path())
}

/// The same for another architecture than this machine's, of the same byte order.
pub(crate) fn build_for(toolchain: &Toolchain, arch: &str, object: &Path) -> Result<()> {
    let folder = system::target_dir().join("ebpf-build");
    let mut command = command(toolchain, &folder, "kernel", arch);
    step::shown("building the eBPF object", &mut command)?;
    replace_if_changed(&folder.join(TARGET).join("ebpf/flowlog-ebpf"), object)
}

/// The same with features beside those that it needs, to another place.
fn build_with(toolchain: &Toolchain, features: &str, object: &Path) -> Result<PathBuf> {
    let folder = system::target_dir().join("ebpf-build");
    let features = format!("kernel,{features}");
    step::shown(
        "building the eBPF object",
        &mut command(toolchain, &folder, features.trim_end_matches(','), std::env::consts::ARCH),
    )?;
    let built = folder.join(TARGET).join("ebpf/flowlog-ebpf");
    replace_if_changed(&built, object)?;
    Ok(object.to_owned())
}

fn command(toolchain: &Toolchain, folder: &Path, features: &str, arch: &str) -> Command {
    let compiler = &toolchain.compiler;
    let mut command = match compiler.way {
        // `-Zbuild-std` wants the cargo of the same nightly.
        Way::Rustup => Command::new(compiler.rustc.with_file_name("cargo")),
        Way::Debian => system::cargo(),
    };
    let arch = format!("--cfg=bpf_target_arch=\"{arch}\"");
    command
        .current_dir(system::root())
        .args(["build", "--profile", "ebpf", "--package", "flowlog-ebpf", "--bin", "flowlog-ebpf"])
        .args(["--features", features, "--target", TARGET])
        .arg("--target-dir")
        .arg(folder)
        .env("RUSTC", &compiler.rustc)
        .env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &toolchain.linker.path)
        .env("CARGO_TARGET_BPFEB_UNKNOWN_NONE_LINKER", &toolchain.linker.path)
        .env("CARGO_ENCODED_RUSTFLAGS", [arch.as_str(), "-Cdebuginfo=2", "-Clink-arg=--btf"].join(FLAG_END))
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("LD_LIBRARY_PATH");
    match compiler.way {
        Way::Rustup => command.arg("-Zbuild-std=core"),
        // Inline assembly on BPF is unstable.
        Way::Debian => command.env("RUSTC_BOOTSTRAP", "1"),
    };
    command
}

/// Puts the new object in place in one step, unless the old one is the same.
fn replace_if_changed(built: &Path, object: &Path) -> Result<()> {
    let new = std::fs::read(built).with_context(|| format!("cannot read {}", built.display()))?;
    if std::fs::read(object).is_ok_and(|old| old == new) {
        return Ok(());
    }
    std::fs::create_dir_all(object.parent().unwrap_or(Path::new(".")))
        .context("cannot create target/ebpf")?;
    let beside = object.with_extension("o.new");
    std::fs::write(&beside, new).with_context(|| format!("cannot write {}", beside.display()))?;
    std::fs::rename(&beside, object).with_context(|| format!("cannot rename to {}", object.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_object_is_not_touched() {
        let folder = std::env::temp_dir().join(format!("flowlog-xtask-object-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (built, object) = (folder.join("built"), folder.join("object.o"));
        std::fs::write(&built, b"one").unwrap();
        replace_if_changed(&built, &object).unwrap();
        let first = object.metadata().unwrap().modified().unwrap();
        replace_if_changed(&built, &object).unwrap();
        assert_eq!(object.metadata().unwrap().modified().unwrap(), first);
        std::fs::write(&built, b"two").unwrap();
        replace_if_changed(&built, &object).unwrap();
        assert_eq!(std::fs::read(&object).unwrap(), b"two");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
