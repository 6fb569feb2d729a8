//! The choice on disk (`target/ebpf/toolchain`, key=value), so that the next command does not look again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Compiler, Linker, RustcVersion, Toolchain, Way, facts};
use crate::system;

/// Where the choice is written down.
pub(crate) fn path() -> PathBuf {
    system::target_dir().join("ebpf/toolchain")
}

/// Writes the choice down.
pub(crate) fn save(toolchain: &Toolchain) -> Result<()> {
    let path = path();
    let text = to_text(toolchain);
    if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).context("cannot create target/ebpf")?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The choice that was written down, if it still holds: both programs are there and the compiler is the same.
pub(crate) fn load() -> Option<Toolchain> {
    let toolchain = from_text(&std::fs::read_to_string(path()).ok()?)?;
    let same = facts::version_of(&toolchain.compiler.rustc)? == toolchain.compiler.version;
    (same && system::is_executable(&toolchain.linker.path)).then_some(toolchain)
}

fn to_text(toolchain: &Toolchain) -> String {
    let Compiler { way, name, rustc, version, .. } = &toolchain.compiler;
    format!(
        "way={}\nname={name}\nrustc={}\nrustc_version={}\nllvm={}\nlinker={}\nlinker_version={}\nbecause={}\n",
        way.word(),
        rustc.display(),
        version.release,
        version.llvm,
        toolchain.linker.path.display(),
        toolchain.linker.version,
        toolchain.because
    )
}

fn from_text(text: &str) -> Option<Toolchain> {
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.split_once('=').filter(|(k, _)| *k == key))
            .map(|(_, v)| v.to_owned())
    };
    let linker = Linker { path: value("linker")?.into(), version: value("linker_version")? };
    let compiler = Compiler {
        way: Way::from_word(&value("way")?)?,
        name: value("name")?,
        rustc: value("rustc")?.into(),
        version: RustcVersion { release: value("rustc_version")?, llvm: value("llvm")? },
        core: true,
        linker: Some(linker.clone()),
    };
    Some(Toolchain { compiler, linker, because: value("because")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let linker = Linker { path: "/p/bpf-linker".into(), version: "0.13.0".into() };
        let compiler = Compiler {
            way: Way::Debian,
            name: "rustc-web".into(),
            rustc: "/usr/bin/rustc".into(),
            version: RustcVersion { release: "1.96.0".into(), llvm: "22.1.8".into() },
            core: true,
            linker: Some(linker.clone()),
        };
        let toolchain = Toolchain { compiler, linker, because: "a=b is fine".into() };
        assert_eq!(from_text(&to_text(&toolchain)), Some(toolchain));
        assert_eq!(from_text("way=debian\n"), None);
    }
}
