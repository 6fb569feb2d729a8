//! A fresh copy of the object in the kernel.

use aya::programs::{ProgramError, SchedClassifier, TestRun, TestRunOptions};
use aya::{Ebpf, EbpfLoader};
use std::collections::HashSet;
use std::path::PathBuf;

pub(crate) struct Loaded {
    pub(crate) ebpf: Ebpf,
    in_kernel: HashSet<String>,
}

fn object() -> Vec<u8> {
    let path = std::env::var_os("FLOWLOG_EBPF_OBJECT").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ebpf/flowlog-ebpf.o")),
        PathBuf::from,
    );
    std::fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "cannot read the eBPF object {}: {error}; build it with `cargo xtask build-ebpf`",
            path.display()
        )
    })
}

impl Loaded {
    pub(crate) fn new() -> Self {
        Self::with(EbpfLoader::new().btf(None))
    }

    pub(crate) fn with(loader: &mut EbpfLoader<'_>) -> Self {
        Self { ebpf: loader.load(&object()).expect("maps created"), in_kernel: HashSet::new() }
    }

    pub(crate) fn load(&mut self, name: &str) -> &mut SchedClassifier {
        let program: &mut SchedClassifier = self
            .ebpf
            .program_mut(name)
            .unwrap_or_else(|| panic!("no program {name}"))
            .try_into()
            .expect("classifier");
        if self.in_kernel.insert(name.to_owned()) {
            program.load().unwrap_or_else(|error| panic!("{name}: {}", explain(&error)));
        }
        program
    }

    /// Runs a program once over `data`.
    pub(crate) fn run(&mut self, name: &str, data: &[u8]) -> u32 {
        let options = TestRunOptions { data_in: Some(data), ..TestRunOptions::default() };
        self.load(name).test_run(options).expect("test run").return_value
    }
}

fn explain(error: &ProgramError) -> String {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = verifier_log.to_string();
            let lines: Vec<_> = log.lines().collect();
            format!("{io_error}\n{}", lines[lines.len().saturating_sub(60)..].join("\n"))
        }
        other => other.to_string(),
    }
}
