//! Finds the eBPF object for `include_bytes_aligned!` and compiles nothing: without the object it says what to run.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=FLOWLOG_EBPF_OBJECT");
    let object = std::env::var_os("FLOWLOG_EBPF_OBJECT").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ebpf/flowlog-ebpf.o")),
        PathBuf::from,
    );
    println!("cargo::rerun-if-changed={}", object.display());
    match object.canonicalize() {
        Ok(path) => println!("cargo::rustc-env=FLOWLOG_EBPF_OBJECT={}", path.display()),
        Err(error) => println!(
            "cargo::error=the eBPF object {} is not there ({error}); build it with `cargo xtask build-ebpf`",
            object.display()
        ),
    }
}
