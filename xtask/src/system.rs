//! Who and where we are: the user, the terminal, the programs at hand, the project's folders.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    root().join("target")
}

/// Where the object lands, and where the build script of the daemon looks for it.
pub(crate) fn object_path() -> PathBuf {
    target_dir().join("ebpf/flowlog-ebpf.o")
}

/// The cargo that started us, building into the project's own target folder whatever the environment says.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).env("CARGO_TARGET_DIR", target_dir());
    command
}

/// Effective user id 0, as the kernel says; false when it cannot be told.
pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| effective_uid(&status) == Some(0))
}

fn effective_uid(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

/// A person can be asked: a terminal on stdin and stderr, and not CI.
pub(crate) fn person_present() -> bool {
    std::env::var_os("CI").is_none() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The first executable of that name on PATH, or in the system folders that an ordinary user's PATH lacks.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

/// A regular file that somebody may execute.
pub(crate) fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A command that needs root: as it is for root, else through sudo; without sudo the error says what to run.
pub(crate) fn as_root<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<Command> {
    if is_root() {
        let mut command = Command::new(program);
        command.args(args);
        return Ok(command);
    }
    if find_program("sudo").is_none() {
        let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy().into_owned()).collect();
        bail!("this step needs root and there is no sudo; run as root: {program} {}", words.join(" "));
    }
    let mut command = Command::new("sudo");
    command.arg(program).args(args);
    Ok(command)
}

/// What a program prints on stdout, if it starts and succeeds.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_user_is_the_second_number() {
        assert_eq!(effective_uid("Name:\tx\nUid:\t1000\t0\t1000\t1000\n"), Some(0));
        assert_eq!(effective_uid("Uid:\t0\t1000\t0\t0\n"), Some(1000));
        assert_eq!(effective_uid(""), None);
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program-here").is_none());
    }
}
