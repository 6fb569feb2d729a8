//! The choice as a pure function over facts: a toolchain, or the next step towards one.

use std::cmp::Reverse;
use std::fmt;

use super::{Compiler, LINKER_LLVM, LINKER_VERSION, Toolchain, Way};

/// What was found on the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Compilers at hand.
    pub(crate) compilers: Vec<Compiler>,
    /// LLVM majors whose development files are installed.
    pub(crate) llvm_dev: Vec<u32>,
    /// LLVM majors whose development files apt can install.
    pub(crate) llvm_apt: Vec<u32>,
    /// rustup is there and may be asked for a component: a person is there to say yes or asked for that way, the
    /// network is not switched off, and it was not refused before.
    pub(crate) may_add_component: bool,
    /// A new nightly may be installed through rustup: the person asked for that way.
    pub(crate) may_add_nightly: bool,
    /// There is an apt-get.
    pub(crate) apt: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing is missing.
    Ready(Toolchain),
    /// `rustup component add rust-src` for this toolchain.
    AddRustSrc(String),
    /// `rustup toolchain install nightly --component rust-src`.
    AddNightly,
    /// Install Debian's compiler, its `core` and the LLVM that comes along.
    InstallDebian,
    /// Install the development files of this LLVM.
    InstallLlvm(u32),
    /// Build bpf-linker against this LLVM.
    BuildLinker(u32),
    /// Nothing more can be done here; the text says what a person can do.
    Stuck(String),
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(toolchain) => write!(f, "nothing, {toolchain}"),
            Self::AddRustSrc(name) => write!(f, "rust-src for {name}"),
            Self::AddNightly => f.write_str("a nightly of rustup with rust-src"),
            Self::InstallDebian => f.write_str("the package rustc-web and its core for BPF"),
            Self::InstallLlvm(major) => write!(f, "the package llvm-{major}-dev"),
            Self::BuildLinker(major) => write!(f, "bpf-linker for LLVM {major}"),
            Self::Stuck(text) => f.write_str(text),
        }
    }
}

/// Chooses. What needs nothing installed wins; among those, and among what needs work, rustup's nightly comes first.
pub(crate) fn pick(facts: &Facts, wanted: Option<Way>) -> Next {
    let open = |way: Way| wanted.is_none_or(|only| only == way);
    let mut compilers: Vec<&Compiler> =
        facts.compilers.iter().filter(|compiler| open(compiler.way)).collect();
    compilers.sort_by_key(|compiler| (compiler.way == Way::Debian, Reverse(compiler.version.llvm_major())));

    for compiler in &compilers {
        if let (true, Some(linker)) = (compiler.core, &compiler.linker) {
            let because = because(facts, compiler, wanted);
            return Next::Ready(Toolchain { compiler: (*compiler).clone(), linker: linker.clone(), because });
        }
    }
    for compiler in compilers.iter().filter(|compiler| compiler.way == Way::Rustup) {
        let Some(step) = linker_step(facts, compiler) else { continue };
        if compiler.core {
            return step;
        }
        if facts.may_add_component {
            return Next::AddRustSrc(compiler.name.clone());
        }
    }
    if open(Way::Rustup) && facts.may_add_nightly && facts.compilers.iter().all(|c| c.way != Way::Rustup) {
        return Next::AddNightly;
    }
    if !open(Way::Debian) {
        return Next::Stuck(stuck(facts));
    }
    let debian = compilers.iter().find(|compiler| compiler.way == Way::Debian && compiler.core);
    match debian {
        None if facts.apt => Next::InstallDebian,
        None => Next::Stuck(stuck(facts)),
        Some(compiler) => linker_step(facts, compiler).unwrap_or_else(|| Next::Stuck(stuck(facts))),
    }
}

/// What gives this compiler a linker; `None` when nothing at hand can. With a linker there is nothing to do but to
/// complete the compiler, so any step will do.
fn linker_step(facts: &Facts, compiler: &Compiler) -> Option<Next> {
    let major = compiler.version.llvm_major()?;
    if compiler.linker.is_some() || (LINKER_LLVM.contains(&major) && facts.llvm_dev.contains(&major)) {
        return Some(Next::BuildLinker(major));
    }
    (LINKER_LLVM.contains(&major) && facts.llvm_apt.contains(&major)).then_some(Next::InstallLlvm(major))
}

fn because(facts: &Facts, chosen: &Compiler, wanted: Option<Way>) -> String {
    if wanted.is_some() {
        return "it was asked for".to_owned();
    }
    if chosen.way == Way::Rustup {
        return "it has rust-src and the linker works with it".to_owned();
    }
    let nightly = facts.compilers.iter().find(|compiler| compiler.way == Way::Rustup);
    match nightly {
        None => "rustup has no nightly toolchain here".to_owned(),
        Some(nightly) if !nightly.core => "rustup's nightly here lacks rust-src".to_owned(),
        Some(_) => "no bpf-linker here works with rustup's nightly".to_owned(),
    }
}

fn stuck(facts: &Facts) -> String {
    let found: Vec<String> = facts
        .compilers
        .iter()
        .map(|c| {
            let lacks = match (c.core, &c.linker) {
                (false, _) => "no core for BPF",
                (true, None) => "no working bpf-linker",
                (true, Some(_)) => "complete",
            };
            format!("{} {} (LLVM {}): {lacks}", c.name, c.version.release, c.version.llvm)
        })
        .collect();
    let found = if found.is_empty() { "no compiler for BPF".to_owned() } else { found.join("; ") };
    format!(
        "cannot complete a toolchain for the eBPF object; found {found}. Remedy: `rustup toolchain install nightly \
         --component rust-src` and a bpf-linker for its LLVM on PATH (`cargo install bpf-linker --version \
         {LINKER_VERSION}`), or on Debian the packages rustc-web and libstd-rust-web-dev-bpf"
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Linker, RustcVersion};
    use super::*;

    fn compiler(way: Way, llvm: &str, core: bool, linker: bool) -> Compiler {
        Compiler {
            way,
            name: way.word().into(),
            rustc: "/rustc".into(),
            version: RustcVersion { release: "1.96.0".into(), llvm: llvm.into() },
            core,
            linker: linker.then(|| Linker { path: "/bpf-linker".into(), version: LINKER_VERSION.into() }),
        }
    }

    fn ready(next: Next) -> Toolchain {
        match next {
            Next::Ready(toolchain) => toolchain,
            other => panic!("not ready: {other:?}"),
        }
    }

    #[test]
    fn a_complete_nightly_comes_before_debian() {
        let compilers =
            vec![compiler(Way::Debian, "22.1.8", true, true), compiler(Way::Rustup, "22.1.4", true, true)];
        let facts = Facts { compilers, ..Facts::default() };
        assert_eq!(ready(pick(&facts, None)).compiler.way, Way::Rustup);
        assert_eq!(ready(pick(&facts, Some(Way::Debian))).compiler.way, Way::Debian);
    }

    #[test]
    fn a_nightly_without_rust_src_is_never_picked() {
        let compilers =
            vec![compiler(Way::Rustup, "22.1.4", false, true), compiler(Way::Debian, "22.1.8", true, true)];
        let picked = ready(pick(&Facts { compilers, may_add_component: true, ..Facts::default() }, None));
        assert_eq!(picked.compiler.way, Way::Debian);
        assert!(picked.because.contains("lacks rust-src"));
    }

    #[test]
    fn a_missing_component_is_tried_once_then_debian() {
        let compilers = vec![compiler(Way::Rustup, "22.1.4", false, false)];
        let mut facts =
            Facts { compilers, llvm_apt: vec![22], may_add_component: true, apt: true, ..Facts::default() };
        assert_eq!(pick(&facts, None), Next::AddRustSrc("rustup".into()));
        facts.may_add_component = false;
        assert_eq!(pick(&facts, None), Next::InstallDebian);
    }

    #[test]
    fn a_nightly_whose_llvm_nobody_has_is_left_alone() {
        let compilers = vec![compiler(Way::Rustup, "24.1.0", true, false)];
        let facts = Facts { compilers, apt: true, may_add_component: true, ..Facts::default() };
        assert_eq!(pick(&facts, None), Next::InstallDebian);
        assert!(matches!(pick(&facts, Some(Way::Rustup)), Next::Stuck(_)));
    }

    #[test]
    fn the_linker_follows_the_compilers_llvm() {
        let mut facts =
            Facts { compilers: vec![compiler(Way::Debian, "23.1.0", true, false)], ..Facts::default() };
        facts.llvm_apt = vec![22, 23];
        assert_eq!(pick(&facts, None), Next::InstallLlvm(23));
        facts.llvm_dev = vec![22, 23];
        assert_eq!(pick(&facts, None), Next::BuildLinker(23));
    }

    #[test]
    fn nothing_and_no_apt_says_what_to_do() {
        match pick(&Facts::default(), None) {
            Next::Stuck(text) => assert!(text.contains("rustup toolchain install nightly"), "{text}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_nightly_is_installed_only_when_asked_for() {
        let mut facts = Facts { apt: true, ..Facts::default() };
        assert_eq!(pick(&facts, None), Next::InstallDebian);
        facts.may_add_nightly = true;
        assert_eq!(pick(&facts, Some(Way::Rustup)), Next::AddNightly);
    }

    #[test]
    fn a_debian_compiler_without_core_is_completed() {
        let compilers = vec![compiler(Way::Debian, "22.1.8", false, true)];
        assert_eq!(pick(&Facts { compilers, apt: true, ..Facts::default() }, None), Next::InstallDebian);
    }
}
