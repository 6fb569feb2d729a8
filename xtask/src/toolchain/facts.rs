//! Looking at the machine: compilers, linkers, LLVM. Changes nothing outside the project's target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::pick::Facts;
use super::{Compiler, LINKER_LLVM, Linker, RustcVersion, Way};
use crate::{packages, system};

/// Debian's compiler.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// Debian's package of it.
pub(crate) const DEBIAN_PACKAGES: [&str; 2] = ["rustc-web", "libstd-rust-web-dev-bpf"];
/// What the trial link is made from: if its bitcode becomes an eBPF object, compiler and linker fit.
const PROBE: &str =
    "#![no_std]\n#[unsafe(no_mangle)]\npub extern \"C\" fn probe(x: u64) -> u64 {\n    x + 1\n}\n";
/// First bytes of an ELF object.
const ELF: &[u8] = b"\x7fELF";

/// Everything the choice depends on.
pub(crate) fn detect() -> Result<Facts> {
    let linkers = linkers();
    let mut compilers = nightlies();
    compilers.extend(debian());
    for compiler in &mut compilers {
        for linker in &linkers {
            if links(&compiler.rustc, &linker.path)? {
                compiler.linker = Some(linker.clone());
                break;
            }
        }
    }
    let apt = packages::has_apt();
    let known = |major: &u32| {
        system::output_of(Command::new("apt-cache").args([
            "show",
            "--no-all-versions",
            &format!("llvm-{major}-dev"),
        ]))
        .is_some_and(|text| !text.is_empty())
    };
    let llvm_apt = if apt { LINKER_LLVM.filter(known).collect() } else { Vec::new() };
    let llvm_dev = LINKER_LLVM.filter(|major| llvm_prefix(*major).join("bin/llvm-config").exists()).collect();
    let offline = std::env::var("CARGO_NET_OFFLINE").is_ok_and(|value| value == "true" || value == "1");
    let rustup = system::find_program("rustup").is_some();
    Ok(Facts {
        compilers,
        llvm_dev,
        llvm_apt,
        may_add_component: rustup && !offline,
        may_add_nightly: false,
        apt,
    })
}

/// Where Debian puts an LLVM.
pub(crate) fn llvm_prefix(major: u32) -> PathBuf {
    PathBuf::from(format!("/usr/lib/llvm-{major}"))
}

/// What a compiler says about itself. The library path that cargo sets for us belongs to another compiler.
pub(crate) fn version_of(rustc: &Path) -> Option<RustcVersion> {
    let mut command = Command::new(rustc);
    RustcVersion::parse(&system::output_of(command.arg("-vV").env_remove("LD_LIBRARY_PATH"))?)
}

/// Where `cargo install` puts programs.
pub(crate) fn cargo_bin() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
        .map(|d| d.join("bin"))
}

/// A linker of our own, for when another version stands in cargo's folder.
pub(crate) fn own_linker_root() -> PathBuf {
    system::target_dir().join("ebpf/linker")
}

fn nightlies() -> Vec<Compiler> {
    let listed =
        system::output_of(Command::new("rustup").args(["toolchain", "list", "-v"])).unwrap_or_default();
    listed.lines().filter_map(nightly_line).filter_map(|(name, folder)| nightly(name, &folder)).collect()
}

/// Name and folder of a nightly in `rustup toolchain list -v`.
fn nightly_line(line: &str) -> Option<(&str, PathBuf)> {
    let name = line.split_whitespace().next().filter(|name| name.starts_with("nightly"))?;
    let folder = line.split_whitespace().last().filter(|word| word.starts_with('/'))?;
    Some((name, PathBuf::from(folder)))
}

fn nightly(name: &str, folder: &Path) -> Option<Compiler> {
    let rustc = folder.join("bin/rustc");
    let version = version_of(&rustc)?;
    let core = folder.join("lib/rustlib/src/rust/library/core/Cargo.toml").exists();
    Some(Compiler { way: Way::Rustup, name: name.to_owned(), rustc, version, core, linker: None })
}

fn debian() -> Option<Compiler> {
    let [package, _] = DEBIAN_PACKAGES;
    let rustc = PathBuf::from(DEBIAN_RUSTC);
    if !rustc.exists() || !packages::installed(package) {
        return None;
    }
    let version = version_of(&rustc)?;
    let core = Path::new("/usr/lib/rustlib/bpfel-unknown-none/lib").exists();
    Some(Compiler { way: Way::Debian, name: package.to_owned(), rustc, version, core, linker: None })
}

/// Every bpf-linker at hand that starts: our own, cargo's, the one on PATH.
fn linkers() -> Vec<Linker> {
    let own = own_linker_root().join("bin/bpf-linker");
    let cargos = cargo_bin().map(|folder| folder.join("bpf-linker"));
    let mut found: Vec<Linker> = Vec::new();
    for path in [Some(own), cargos, system::find_program("bpf-linker")].into_iter().flatten() {
        if found.iter().any(|linker| linker.path == path) {
            continue;
        }
        let said = system::output_of(Command::new(&path).arg("--version").env_remove("LD_LIBRARY_PATH"));
        if let Some(version) = said.as_deref().and_then(|text| text.split_whitespace().nth(1)) {
            found.push(Linker { version: version.to_owned(), path });
        }
    }
    found
}

/// Links a tiny program's bitcode from that compiler: the only proof that their LLVMs fit.
fn links(rustc: &Path, linker: &Path) -> Result<bool> {
    let folder = system::target_dir().join("ebpf/probe");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (source, bitcode, object) =
        (folder.join("probe.rs"), folder.join("probe.bc"), folder.join("probe.o"));
    std::fs::write(&source, PROBE).with_context(|| format!("cannot write {}", source.display()))?;
    if object.exists() {
        std::fs::remove_file(&object).with_context(|| format!("cannot remove {}", object.display()))?;
    }
    let compiled = system::output_of(
        Command::new(rustc)
            .args([
                "--edition",
                "2024",
                "--crate-type",
                "lib",
                "--emit",
                "llvm-bc",
                "-Cpanic=abort",
                "-O",
                "-o",
            ])
            .args([&bitcode, &source])
            .env_remove("LD_LIBRARY_PATH")
            .current_dir(&folder),
    );
    let linked = system::output_of(
        Command::new(linker)
            .args(["--target", "bpfel-unknown-none", "--export", "probe", "-o"])
            .args([&object, &bitcode])
            .env_remove("LD_LIBRARY_PATH"),
    );
    let is_elf = std::fs::read(&object).is_ok_and(|bytes| bytes.starts_with(ELF));
    Ok(compiled.is_some() && linked.is_some() && is_elf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nightlies_are_taken_from_rustups_list() {
        let line = "nightly-x86_64-unknown-linux-gnu (default) /h/.rustup/toolchains/nightly-x86_64-unknown-linux-gnu";
        let (name, folder) = nightly_line(line).unwrap();
        assert_eq!(name, "nightly-x86_64-unknown-linux-gnu");
        assert!(folder.ends_with("nightly-x86_64-unknown-linux-gnu"));
        assert_eq!(
            nightly_line("stable-x86_64-unknown-linux-gnu (active) /h/.rustup/toolchains/stable"),
            None
        );
        assert_eq!(nightly_line("no installed toolchains"), None);
    }
}
