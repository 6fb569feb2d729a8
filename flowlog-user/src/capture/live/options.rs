use std::path::PathBuf;
use std::sync::Arc;

use flowlog_ebpf::Timeouts;

use super::attach::Kinds;
use crate::capture::tunnels::TunnelMode;
use crate::limits::{RING_BYTES, TABLE_ENTRIES};
use crate::record::rules::Rules;

/// Which kind of hook may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookMode {
    /// TCX where the kernel has it, else clsact.
    #[default]
    Auto,
    /// Only TCX.
    Tcx,
    /// Only clsact. Beside a TCX program that ends the chain it sees nothing.
    Clsact,
}

impl HookMode {
    pub(super) const fn kinds(self) -> Kinds {
        match self {
            Self::Auto => Kinds { tcx: true, clsact: true },
            Self::Tcx => Kinds { tcx: true, clsact: false },
            Self::Clsact => Kinds { tcx: false, clsact: true },
        }
    }
}

/// What a live capture needs to know.
#[derive(Clone, Debug)]
pub struct Options {
    /// Globs of `--interface`; empty: by role.
    pub interfaces: Vec<String>,
    /// Globs of `--exclude-interface`.
    pub exclude: Vec<String>,
    /// Which kind of hook may be used.
    pub hook: HookMode,
    /// Which packet of a tunnel's two is a flow.
    pub tunnel: TunnelMode,
    /// Each packet counts once at each interface, not once on the node.
    pub observe_all: bool,
    /// Entries of the kernel's flow table.
    pub table_entries: u32,
    /// Bytes of the ring: a power of two and a multiple of the page size.
    pub ring_bytes: u32,
    /// Active and idle timeouts.
    pub timeouts: Timeouts,
    /// Some task wants `start` records.
    pub report_start: bool,
    /// What the tasks want: the kernel counts nothing else.
    pub rules: Rules,
    /// No other flowlog watches this network namespace: what one left that was killed may be removed.
    pub only: bool,
    /// Folder in a BPF file system where tables and links outlive this process.
    pub pin: Option<PathBuf>,
    /// Nanoseconds in which the whole table is looked through for what is over.
    pub sweep_ns: u64,
    /// Nanoseconds between two looks at whether hooks are shown their packets.
    pub lookout_ns: u64,
    /// How entries leave the table.
    pub removal: Removal,
    /// The eBPF object, where it is not the one that this program carries.
    pub object: Option<Arc<[u8]>>,
}

/// How entries leave the flow table. All but the first are wrong: they are there to show that the tests would notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// Marked, and after a grace period read and deleted.
    #[default]
    Exact,
    /// Marked, read and deleted: programs that saw the mark missing may still add.
    WithoutGrace,
    /// Read and deleted.
    Unmarked,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interfaces: Vec::new(),
            exclude: Vec::new(),
            hook: HookMode::Auto,
            tunnel: TunnelMode::Auto,
            observe_all: false,
            table_entries: TABLE_ENTRIES,
            ring_bytes: RING_BYTES,
            timeouts: Timeouts::default(),
            report_start: true,
            rules: Rules::everything(),
            only: false,
            pin: None,
            sweep_ns: 1_000_000_000,
            lookout_ns: 30_000_000_000,
            removal: Removal::Exact,
            object: None,
        }
    }
}
