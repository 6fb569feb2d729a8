//! The maps and globals; names as in `flowlog_abi::names`.
#![expect(unsafe_code, reason = "the loader finds globals by their unmangled names")]

use aya_ebpf::Global;
use aya_ebpf::btf_maps::{HashMap, PerCpuArray, RingBuf};
use aya_ebpf::macros::btf_map;
use flowlog_abi::{Counters, FlowEntry, FlowKey, Ledger, REASONS, Report, SLOTS};

/// Connections unless the loader says otherwise.
const FLOWS_MAX: usize = 131_072;
/// Bytes of the ring unless the loader says otherwise.
const RING_BYTES: usize = 8 << 20;
const OBSERVED_MAX: usize = 1024;

/// Connections, preallocated: an insert in a softirq must not depend on the allocator.
#[btf_map]
pub(crate) static FLOWLOG_FLOWS: HashMap<FlowKey, FlowEntry, FLOWS_MAX> = HashMap::new();

/// Reports on their way to the daemon.
#[btf_map]
pub(crate) static FLOWLOG_RING: RingBuf<Report, RING_BYTES> = RingBuf::new();

/// What became of each hook's packets.
#[btf_map]
pub(crate) static FLOWLOG_HOOKS: PerCpuArray<Counters, { SLOTS as usize }> = PerCpuArray::new();

/// The kernel's side of the ledger.
#[btf_map]
pub(crate) static FLOWLOG_LEDGER: PerCpuArray<Ledger, 1> = PerCpuArray::new();

/// Packets that are no flow, by reason.
#[btf_map]
pub(crate) static FLOWLOG_REASONS: PerCpuArray<u64, { REASONS.len() }> = PerCpuArray::new();

/// Interfaces observed at ingress.
#[btf_map]
pub(crate) static FLOWLOG_OBSERV: HashMap<u32, u32, OBSERVED_MAX> = HashMap::new();

/// Where an entry is made before it is inserted: the stack has no room for it. (Words: a per-CPU value may hold no spin
/// lock.)
#[btf_map]
pub(crate) static FLOWLOG_FRESH: PerCpuArray<[u64; size_of::<FlowEntry>() / 8], 1> = PerCpuArray::new();

/// Nanoseconds between two reports of a connection while traffic flows.
#[unsafe(no_mangle)]
pub(crate) static ACTIVE_NS: Global<u64> = Global::new(60_000_000_000);

/// First connection id of this load.
#[unsafe(no_mangle)]
pub(crate) static CONNECTION_BASE: Global<u64> = Global::new(1);

/// 1 when some task wants `start` records.
#[unsafe(no_mangle)]
pub(crate) static REPORT_START: Global<u32> = Global::new(1);

/// Possible CPUs of this machine.
#[unsafe(no_mangle)]
pub(crate) static CPUS: Global<u32> = Global::new(1);
