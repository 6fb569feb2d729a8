//! What builds the eBPF object: found ([`facts`]), chosen ([`pick`]) and written down ([`record`]).

pub(crate) mod facts;
pub(crate) mod pick;
pub(crate) mod record;

use std::fmt;
use std::path::PathBuf;

/// The linker's version that setup builds when none is there that works.
pub(crate) const LINKER_VERSION: &str = "0.13.0";
/// LLVM major versions for which that linker has a cargo feature.
pub(crate) const LINKER_LLVM: std::ops::RangeInclusive<u32> = 21..=23;

/// The two ways to a compiler for BPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A nightly toolchain of rustup with the component rust-src; `core` is built from it.
    Rustup,
    /// Debian's `rustc-web` with its ready-made `core` for BPF.
    Debian,
}

impl Way {
    /// The word of `--toolchain` and of the record.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Rustup => "rustup",
            Self::Debian => "debian",
        }
    }

    /// The way named by a word.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Rustup, Self::Debian].into_iter().find(|way| way.word() == word)
    }
}

/// What `rustc -vV` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RustcVersion {
    /// `1.96.0`, `1.97.0-nightly`.
    pub(crate) release: String,
    /// `22.1.8`.
    pub(crate) llvm: String,
}

impl RustcVersion {
    /// Reads the text of `rustc -vV`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(|v| v.trim().to_owned());
        Some(Self { release: field("release:")?, llvm: field("LLVM version:")? })
    }

    /// 22 of `22.1.8`.
    pub(crate) fn llvm_major(&self) -> Option<u32> {
        self.llvm.split('.').next()?.parse().ok()
    }
}

/// A linker that was tried with the compiler it stands beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Linker {
    /// The program.
    pub(crate) path: PathBuf,
    /// Its version, as it says itself.
    pub(crate) version: String,
}

/// A compiler that may build the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// Where it comes from.
    pub(crate) way: Way,
    /// `nightly-x86_64-unknown-linux-gnu`, `rustc-web`.
    pub(crate) name: String,
    /// The compiler.
    pub(crate) rustc: PathBuf,
    /// Its versions.
    pub(crate) version: RustcVersion,
    /// It has `core` for BPF: the source (rustup) or ready-made (Debian).
    pub(crate) core: bool,
    /// The first linker at hand that links what this compiler emits.
    pub(crate) linker: Option<Linker>,
}

/// The choice, complete enough to build with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Toolchain {
    /// The compiler.
    pub(crate) compiler: Compiler,
    /// Its linker.
    pub(crate) linker: Linker,
    /// Why this one.
    pub(crate) because: String,
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Compiler { way, name, version, .. } = &self.compiler;
        let owner = match way {
            Way::Rustup => "rustup's",
            Way::Debian => "Debian's",
        };
        write!(
            f,
            "eBPF toolchain: {owner} {name} {} (LLVM {}) with bpf-linker {}, because {}",
            version.release, version.llvm, self.linker.version, self.because
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_rustc() {
        let text = "rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)\nbinary: rustc\n\
                    host: x86_64-unknown-linux-gnu\nrelease: 1.96.0\nLLVM version: 22.1.8\n";
        let version = RustcVersion::parse(text).unwrap();
        assert_eq!(version, RustcVersion { release: "1.96.0".into(), llvm: "22.1.8".into() });
        assert_eq!(version.llvm_major(), Some(22));
        assert_eq!(RustcVersion::parse("rustc 1.96.0"), None);
    }
}
