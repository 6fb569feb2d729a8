//! A compiler for another architecture: Debian's rustc with its library for that one, Debian's gcc as linker.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cli::Usage;
use crate::{packages, say, step, system};

/// Runs a binary of the other architecture.
pub(crate) const EMULATOR: &str = "qemu-aarch64-static";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const PROGRAMS: [(&str, &str); 2] = [(LINKER, "gcc-aarch64-linux-gnu"), (EMULATOR, "qemu-user-static")];
/// The standard library of the compiler that builds the object, for the other architecture.
const LIBRARY: &str = "libstd-rust-web-dev:arm64";
/// Where Debian's rustc has its libraries.
const RUSTLIB: &str = "/usr/lib/rustlib";

/// What a binary is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    /// x86-64.
    X86,
    /// 64-bit ARM.
    Arm,
}

impl Arch {
    pub(crate) const ALL: [Self; 2] = [Self::X86, Self::Arm];

    /// As the kernel and rustc call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// As container images call it.
    pub(crate) const fn image_name(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }

    /// rustc's target.
    pub(crate) fn triple(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// Whether it is this machine's.
    pub(crate) fn is_here(self) -> bool {
        self.name() == std::env::consts::ARCH
    }

    /// By either name.
    pub(crate) fn from_name(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|arch| arch.name() == name || arch.image_name() == name);
        known.ok_or_else(|| Usage(format!("no architecture `{name}`; take x86_64 or aarch64")).into())
    }
}

/// How to build for it.
pub(crate) struct Cross {
    /// rustc's flags.
    pub(crate) flags: Vec<String>,
    /// cargo's environment.
    pub(crate) env: Vec<(&'static str, OsString)>,
}

/// Installs what is missing; the library is fetched and unpacked below target/, since it belongs to another
/// architecture than the system's packages.
pub(crate) fn ensure(arch: Arch, yes: bool) -> Result<Cross> {
    if arch != Arch::Arm {
        bail!("{} cannot be built on {}", arch.name(), std::env::consts::ARCH);
    }
    let wanted = packages::missing(&PROGRAMS);
    if !wanted.is_empty() {
        packages::install("building for aarch64 needs its C compiler and an emulator", &wanted, false, yes)?;
    }
    let sysroot = system::target_dir().join("dist-build/sysroot");
    if !sysroot.join("usr/lib/rustlib").join(arch.triple()).is_dir() {
        fetch_library(&sysroot)?;
    }
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let link = sysroot.join("usr/lib/rustlib").join(&host);
    if !link.exists() {
        // Procedural macros are built for this machine.
        symlink(Path::new(RUSTLIB).join(&host), &link)
            .with_context(|| format!("cannot link {}", link.display()))?;
    }
    let sysroot = sysroot.join("usr");
    Ok(Cross {
        flags: vec![format!("--sysroot={}", sysroot.display()), format!("-Clinker={LINKER}")],
        env: vec![("CC_aarch64_unknown_linux_gnu", LINKER.into())],
    })
}

/// apt with folders of its own, so that the system's lists and architectures stay as they are.
fn apt_options(folder: &Path) -> Vec<String> {
    let host = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let settings = [
        format!("APT::Architectures::={host}"),
        "APT::Architectures::=arm64".into(),
        format!("Dir::State::lists={}", folder.join("lists").display()),
        format!("Dir::Cache={}", folder.join("cache").display()),
    ];
    settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect()
}

fn fetch_library(sysroot: &Path) -> Result<()> {
    let folder = sysroot.with_file_name("apt");
    for made in ["lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(folder.join(made)).context("cannot create a folder for apt")?;
    }
    say::note(&format!("{LIBRARY} is fetched and unpacked below target/dist-build (34 MB)"));
    let options = apt_options(&folder);
    let mut update = Command::new("apt-get");
    update.args(["-o", "APT::Sandbox::User=root"]).args(&options).arg("update");
    step::quiet("fetching package lists for arm64", &mut update, None)?;
    packages::unpack(LIBRARY, &options, &folder, sysroot)?;
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_known_by_both_names() {
        assert_eq!(Arch::from_name("arm64").unwrap(), Arch::Arm);
        assert_eq!(Arch::from_name("x86_64").unwrap(), Arch::X86);
        assert!(Arch::from_name("riscv64").unwrap_err().to_string().contains("aarch64"));
    }
}
