use std::io;
use std::path::PathBuf;

use flowlog_abi::LAYOUT_ID;

/// What keeps the live capture from starting or going on. Each message names cause and remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A capability is missing.
    #[error(
        "not allowed to watch interfaces: missing {missing}; run as root (sudo), or give the binary what it needs: \
         setcap cap_bpf,cap_net_admin,cap_perfmon+ep FILE"
    )]
    Capabilities {
        /// Names of those that are missing.
        missing: String,
    },
    /// The kernel is too old.
    #[error("kernel {release} is too old; flowlog needs 5.10 or newer")]
    KernelTooOld {
        /// As uname gives it.
        release: String,
    },
    /// The kernel does not describe its types.
    #[error(
        "the kernel gives no type information ({path} is missing); use a kernel built with \
         CONFIG_DEBUG_INFO_BTF=y, and in a container mount the host's /sys"
    )]
    NoBtf {
        /// Where it was looked for.
        path: &'static str,
    },
    /// The kernel limits locked memory and the limit could not be raised.
    #[error(
        "locked memory is limited to {limit} bytes and cannot be raised: {source}; raise it with `ulimit -l unlimited`"
    )]
    Memlock {
        /// The limit, bytes.
        limit: u64,
        /// Why it stays.
        source: io::Error,
    },
    /// Object, maps or a program were refused.
    #[error("cannot load {what} into the kernel: {reason}")]
    Load {
        /// Object, map or program.
        what: String,
        /// The kernel's or aya's words.
        reason: String,
    },
    /// The object was built from other sources than this binary.
    #[error(
        "the eBPF object has layout {object:#010x}, this binary expects {LAYOUT_ID:#010x}; build both from the same \
         sources: cargo xtask build-ebpf, then build flowlog again"
    )]
    Layout {
        /// What the object's self-test answered.
        object: u32,
    },
    /// A glob cannot be read.
    #[error("interface pattern \"{pattern}\" is not valid: {reason}")]
    Pattern {
        /// As given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An interface was named that is not there.
    #[error("interface \"{name}\" does not exist; this machine has: {known}")]
    UnknownInterface {
        /// As given.
        name: String,
        /// All names there are.
        known: String,
    },
    /// An interface was named that cannot be watched.
    #[error("interface \"{name}\" cannot be watched: {reason}")]
    Unsupported {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// Globs take an interface and one that stands on it.
    #[error(
        "interfaces \"{lower}\" and \"{upper}\" would count the same packets twice, since \"{upper}\" stands on \
         \"{lower}\"; exclude one of them: --exclude-interface {upper}"
    )]
    Stacked {
        /// The device below.
        lower: String,
        /// The device above.
        upper: String,
    },
    /// A hook could not be attached.
    #[error("cannot attach to interface \"{name}\" ({hook}): {reason}")]
    Attach {
        /// The interface.
        name: String,
        /// `tcx ingress` and the like.
        hook: String,
        /// The kernel's words.
        reason: String,
    },
    /// The interface vanished or was renamed while it was attached.
    #[error("interface \"{name}\" went away or was renamed while it was being attached; start again")]
    Gone {
        /// The interface.
        name: String,
    },
    /// Netlink failed.
    #[error("cannot ask the kernel for its interfaces (netlink): {0}")]
    Netlink(#[source] io::Error),
    /// A map could not be read or written.
    #[error("cannot {action} in map {map}: {reason}")]
    Map {
        /// Name of the map.
        map: &'static str,
        /// What was tried.
        action: &'static str,
        /// The kernel's words.
        reason: String,
    },
    /// The folder for pins is of no use.
    #[error("cannot keep tables in {path}: {reason}")]
    Pin {
        /// Folder or pin.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The kernel does not do what removal of entries relies on.
    #[error("cannot wait for a grace period: {0}")]
    GracePeriod(#[source] io::Error),
    /// The system has no more descriptors.
    #[error("cannot make an eventfd: {0}; raise the limit of open files")]
    Waker(#[source] io::Error),
}

impl Error {
    /// A map's trouble.
    pub(super) fn map(map: &'static str, action: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Map { map, action, reason: reason.to_string() }
    }
}
