//! The developer's commands: `cargo xtask <command>`.
//!
//! Depends on next to nothing, so that its first word comes after seconds on a fresh machine. One file per command;
//! what they share: [`say`] (words to the person), [`step`] (running programs with progress), [`system`] (who and
//! where we are), [`packages`] (Debian's packages) and [`toolchain`] (what builds the eBPF object). To add a command:
//! a file with a [`cli::Command`] and a line in [`cli::COMMANDS`].

mod bench;
mod build;
mod build_ebpf;
mod cli;
mod corpus;
mod counts;
mod cross;
mod demo;
mod dist;
mod packages;
mod python;
mod run;
mod say;
mod setup;
mod step;
mod system;
mod test;
mod tidy;
mod toolchain;
mod tools;
mod vm;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::dispatch(std::env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::problem(&error);
            ExitCode::from(if error.is::<cli::Usage>() || error.is::<lexopt::Error>() { 2 } else { 1 })
        }
    }
}
