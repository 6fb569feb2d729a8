//! Least privilege: what the daemon gives up once it knows what it needs.
//!
//! Capabilities, `no_new_privs` and Landlock belong to threads, and a new thread inherits them; so everything here
//! happens while there is one thread, but for the capture's own ([`super::privileged`]).

use std::path::Path;

use anyhow::Context;
use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

/// What loading, attaching and reading maps take.
const CAPTURE: CapabilitySet =
    CapabilitySet::BPF.union(CapabilitySet::NET_ADMIN).union(CapabilitySet::PERFMON);
/// What it takes to look at programs by their ids, so that filters of a killed daemon are known from others': at the
/// start only, and where it was given.
const START: CapabilitySet = CapabilitySet::SYS_ADMIN;
/// What files of other users take (`fileUser`, `fileGroup`, folders that are not root's), where it was given.
const FILES: CapabilitySet =
    CapabilitySet::CHOWN.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::FOWNER);

/// Gives up every capability but those for the start, the capture and files, and the way to new ones, for good.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn keep_what_is_needed() -> anyhow::Result<()> {
    set_no_new_privs(true).context("cannot give up new privileges")?;
    keep(START.union(CAPTURE).union(FILES))
}

/// Gives up the capture's capabilities too: for every thread that does not capture.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn keep_files_only() -> anyhow::Result<()> {
    keep(FILES)
}

/// Gives up every capability: for threads that neither capture nor write files.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn keep_nothing() -> anyhow::Result<()> {
    keep(CapabilitySet::empty())
}

fn keep(wanted: CapabilitySet) -> anyhow::Result<()> {
    let held = capabilities(None).context("cannot read this thread's capabilities")?;
    let kept = CapabilitySets {
        effective: held.effective.intersection(wanted),
        permitted: held.permitted.intersection(wanted),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, kept).context("cannot give up capabilities")
}

/// From now on this thread and those it starts write below these folders only, whatever else they are allowed. A kernel
/// without Landlock (before 5.13, or not enabled) is said, and goes on without it.
///
/// # Errors
/// A folder cannot be opened, or the kernel refuses.
pub(crate) fn write_only_below<'a>(folders: impl IntoIterator<Item = &'a Path>) -> anyhow::Result<()> {
    let abi = ABI::V5;
    let writing = AccessFs::from_write(abi);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writing)
        .context("Landlock")?
        .create()
        .context("Landlock")?;
    for folder in folders {
        let below = PathFd::new(folder).with_context(|| format!("cannot open {}", folder.display()))?;
        rules = rules.add_rule(PathBeneath::new(below, writing)).context("Landlock")?;
    }
    let status = rules.restrict_self().context("Landlock")?;
    match status.ruleset {
        RulesetStatus::NotEnforced => tracing::warn!(
            "this kernel has no Landlock (from 5.13, if enabled), so only file permissions confine where is written"
        ),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => {}
    }
    Ok(())
}

/// For the capturing thread once everything is loaded: what new interfaces and maps take, and to write nothing but
/// pins, where there are any.
///
/// # Errors
/// As [`write_only_below`].
pub(crate) fn only_capture(pins: Option<&Path>) -> anyhow::Result<()> {
    keep(CAPTURE)?;
    write_only_below(pins)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    /// Restrictions last as long as their thread.
    fn in_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(work).join().unwrap()
    }

    #[test]
    fn nothing_is_written_elsewhere() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("old"), "old").unwrap();
        let [within, without] = [inside.path(), outside.path()].map(Path::to_path_buf);
        in_a_thread(move || {
            write_only_below([within.as_path()]).unwrap();
            std::fs::create_dir(within.join("folder")).unwrap();
            std::fs::write(within.join("folder/new"), "new").unwrap();
            std::fs::rename(within.join("folder/new"), within.join("folder/newer")).unwrap();
            let refused = |done: std::io::Result<()>| done.unwrap_err().kind();
            assert_eq!(refused(std::fs::write(without.join("new"), "new")), ErrorKind::PermissionDenied);
            assert_eq!(refused(std::fs::write(without.join("old"), "new")), ErrorKind::PermissionDenied);
            assert_eq!(refused(std::fs::remove_file(without.join("old"))), ErrorKind::PermissionDenied);
            assert_eq!(std::fs::read_to_string(without.join("old")).unwrap(), "old", "reading goes on");
        });
    }

    #[test]
    fn what_is_given_up_is_gone() {
        in_a_thread(|| {
            if !capabilities(None).unwrap().permitted.contains(CapabilitySet::SYS_CHROOT) {
                println!("not run: this takes root");
                return;
            }
            keep_what_is_needed().unwrap();
            let refused = std::os::unix::fs::chroot("/").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
            keep_files_only().unwrap();
            let held = capabilities(None).unwrap();
            assert!((held.permitted | held.effective).intersection(CAPTURE).is_empty(), "{held:?}");
            assert!(
                set_capabilities(None, CapabilitySets { effective: CAPTURE, permitted: CAPTURE, ..held })
                    .is_err()
            );
        });
    }
}
