//! `cargo xtask dist`: static binaries in tarballs with checksums.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use lexopt::ValueExt as _;

use crate::cross::{self, Arch};
use crate::toolchain::{Toolchain, Way};
use crate::{build_ebpf, cli, say, setup, step, system};

/// The command.
pub(crate) const COMMAND: cli::Command = cli::Command {
    name: "dist",
    about: "build static binaries for x86-64 and aarch64, in tarballs",
    help: "cargo xtask dist: build what is shipped\n\n\
           usage: cargo xtask dist [--yes] [--arch x86_64|aarch64]...\n\n  \
           --arch NAME  only this one; left out: this machine's and aarch64\n  \
           --yes        do not ask before system packages are installed\n\n\
           Writes target/dist/flowlog-VERSION-linux-ARCH.tar.gz with one static binary, the licences and config/, and\n\
           SHA256SUMS beside them. Each binary is tried: it replays the project's capture and reads the files back (this\n\
           machine's own in an empty root folder, as root; the other under qemu-user). config/Dockerfile makes an image\n\
           of what is in target/dist. Thin LTO takes minutes.",
    run: main,
};

/// What else is in a tarball.
const BESIDE: [&str; 4] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT", "config"];
/// Lines that the try has to give: what the README shows of the same capture.
const TRY_LINES: usize = 16;

fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut options = setup::Options::default();
    let mut wanted = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("yes") | lexopt::Arg::Short('y') => options.yes = true,
            lexopt::Arg::Long("arch") => wanted.push(Arch::from_name(&args.value()?.string()?)?),
            other => return Err(cli::unexpected("dist", &other)),
        }
    }
    if wanted.is_empty() {
        wanted = Arch::ALL.into_iter().filter(|arch| arch.is_here() || *arch == Arch::Arm).collect();
    }
    let toolchain = setup::ensure(options)?;
    let folder = system::target_dir().join("dist");
    let mut tarballs = Vec::new();
    for arch in wanted {
        let binary = build(arch, &toolchain, options)?;
        try_out(arch, &binary)?;
        tarballs.push(pack(arch, &binary, &folder)?);
    }
    let names = tarballs.iter().map(OsString::from);
    let sums = system::output_of(Command::new("sha256sum").args(names).current_dir(&folder))
        .context("sha256sum does not work here")?;
    std::fs::write(folder.join("SHA256SUMS"), &sums).context("cannot write SHA256SUMS")?;
    say::note(sums.trim_end());
    say::out(&folder.display().to_string());
    Ok(())
}

/// Builds the object and the static binary.
fn build(arch: Arch, toolchain: &Toolchain, options: setup::Options) -> Result<PathBuf> {
    let target_dir = system::target_dir().join("dist-build").join(arch.name());
    let object = target_dir.join("flowlog-ebpf.o");
    say::step(&format!("building the eBPF object for {}", arch.name()));
    build_ebpf::build_for(toolchain, arch.name(), &object)?;
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    let mut command = system::cargo();
    if !arch.is_here() {
        if toolchain.compiler.way != Way::Debian {
            bail!(
                "{} is built with Debian's compiler; run `cargo xtask setup --toolchain debian` first",
                arch.name()
            );
        }
        let cross = cross::ensure(arch, options.yes)?;
        flags.extend(cross.flags);
        command.env("RUSTC", &toolchain.compiler.rustc).envs(cross.env);
    }
    say::step(&format!("building flowlog for {} (profile dist)", arch.name()));
    command
        .args(["build", "--package", "flowlog-user", "--bin", "flowlog", "--profile", "dist", "--target"])
        .arg(arch.triple())
        .env("CARGO_TARGET_DIR", &target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env("FLOWLOG_EBPF_OBJECT", &object)
        .env_remove("RUSTFLAGS");
    step::shown("building flowlog", &mut command)?;
    Ok(target_dir.join(arch.triple()).join("dist/flowlog"))
}

/// Replays the project's capture and reads the files back: where it can be, in a root folder that holds nothing else.
fn try_out(arch: Arch, binary: &Path) -> Result<()> {
    let folder = system::target_dir().join("dist-try");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let root = system::root();
    for (from, to) in [
        (binary, "flowlog"),
        (&root.join("tests/fixtures/quickstart.pcap"), "quickstart.pcap"),
        (&root.join("config/quickstart.yaml"), "tasks.yaml"),
    ] {
        std::fs::copy(from, folder.join(to)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let emptied = arch.is_here() && system::is_root();
    let runner = |args: &[&str]| {
        let mut command = if emptied {
            let mut command = Command::new("chroot");
            command.arg(&folder).arg("/flowlog");
            command
        } else if arch.is_here() {
            Command::new("./flowlog")
        } else {
            let mut command = Command::new(cross::EMULATOR);
            command.arg("./flowlog");
            command
        };
        command.current_dir(&folder).args(args);
        command
    };
    say::step(&format!("trying the binary for {}", arch.name()));
    let replay =
        ["replay", "--pcap", "quickstart.pcap", "--tasks", "tasks.yaml", "--node-name", "n", "--output-dir"];
    step::quiet(&format!("replay on {}", arch.name()), runner(&replay).arg("logs"), None)?;
    let lines = system::output_of(&mut runner(&["cat", "logs"])).map_or(0, |text| text.lines().count());
    if lines != TRY_LINES {
        bail!("the binary for {} read {lines} records back, and {TRY_LINES} were expected", arch.name());
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// Makes the tarball, and puts the binary where the Dockerfile looks for it.
fn pack(arch: Arch, binary: &Path, folder: &Path) -> Result<String> {
    let stem = format!("flowlog-{}-linux-{}", env!("CARGO_PKG_VERSION"), arch.name());
    let staged = folder.join(&stem);
    let _ = std::fs::remove_dir_all(&staged);
    let image = folder.join("linux").join(arch.image_name());
    for made in [&staged, &image] {
        std::fs::create_dir_all(made).with_context(|| format!("cannot create {}", made.display()))?;
    }
    for to in [&staged, &image] {
        std::fs::copy(binary, to.join("flowlog"))
            .with_context(|| format!("cannot copy to {}", to.display()))?;
    }
    step::shown(
        "copying",
        Command::new("cp").arg("-rL").args(BESIDE).arg(&staged).current_dir(system::root()),
    )?;
    let name = format!("{stem}.tar.gz");
    // The same content gives the same bytes, whoever packs it and when.
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=2026-01-01T00:00:00Z"])
        .args(["--mode=u=rwX,go=rX", "--use-compress-program=gzip -n9", "-cf", &name, &stem])
        .current_dir(folder);
    step::shown("packing", &mut tar)?;
    std::fs::remove_dir_all(&staged).with_context(|| format!("cannot remove {}", staged.display()))?;
    let bytes = binary.metadata().map_or(0, |found| found.len());
    say::note(&format!("{}: {:.1} MiB", arch.name(), bytes as f64 / f64::from(1 << 20)));
    Ok(name)
}
