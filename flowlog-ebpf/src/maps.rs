//! The maps and globals; names as in `flowlog_abi::names`.
#![expect(unsafe_code, reason = "the loader finds globals by their unmangled names")]

use crate::drops::Desk;
use crate::tunnels::Handed;
use aya_ebpf::Global;
use aya_ebpf::bindings::BPF_F_NO_PREALLOC;
use aya_ebpf::btf_maps::{Array, HashMap, LpmTrie, LruHashMap, PerCpuArray, ProgramArray, RingBuf};
use aya_ebpf::macros::btf_map;
use flowlog_abi::{
    Counters, DEVICE_NAME_BYTES, Direction, DropKey, Drops, FlowEntry, FlowKey, Groups, Kept, Ledger, Places,
    REASONS, REJECTED_SETS, Rejected, Report, RuleBase, SLOTS, TunnelRules, names,
};
use flowlog_ebpf::fragments::{FirstFragment, FragmentKey};

/// Connections unless the loader says otherwise.
const FLOWS_MAX: usize = 131_072;
/// Bytes of the ring unless the loader says otherwise.
const RING_BYTES: usize = 8 << 20;
const OBSERVED_MAX: usize = 1024;
/// Packets whose fragments are on their way at one time.
const FIRSTS_MAX: usize = 4096;
/// Prefixes of both sets.
const PREFIXES_MAX: usize = 1 << 16;
/// Keys of dropped packets between two visits of the daemon.
const DROPS_MAX: usize = names::DROP_TABLE_ENTRIES as usize;
/// Interfaces of all namespaces whose names are remembered.
const DROP_NAMES_MAX: usize = names::DROP_NAMES_ENTRIES as usize;
const NOWHERE: Places = Places {
    skb_head: 0,
    skb_data: 0,
    skb_end: 0,
    skb_len: 0,
    skb_data_len: 0,
    skb_mac_header: 0,
    skb_network_header: 0,
    skb_protocol: 0,
    skb_dev: 0,
    skb_sk: 0,
    skb_dst: 0,
    skb_iif: 0,
    skb_vlan_tci: 0,
    skb_vlan: 0,
    vlan_mask: 0,
    shared_gso_size: 0,
    shared_gso_segs: 0,
    dev_ifindex: 0,
    dev_net: 0,
    dev_name: 0,
    net_inum: 0,
    sock_net: 0,
    dst_dev: 0,
    has_reason: 0,
    has_socket: 0,
    no_drop: [0; 2],
};
/// Ports of both sets.
const PORTS_MAX: usize = 1 << 14;

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

/// Which tunnels are looked into.
#[btf_map]
pub(crate) static FLOWLOG_TUNNEL: Array<TunnelRules, 1> = Array::new();

/// The node's own addresses, where tunnels end.
#[btf_map]
pub(crate) static FLOWLOG_OWN: HashMap<
    [u8; 16],
    u32,
    { names::OWN_ADDRESSES_MAX as usize },
    { BPF_F_NO_PREALLOC as usize },
> = HashMap::new();

/// The programs that look into tunnels.
#[btf_map]
pub(crate) static FLOWLOG_HANDTO: ProgramArray<2> = ProgramArray::new();

/// What it is told.
#[btf_map]
pub(crate) static FLOWLOG_HANDED: PerCpuArray<Handed, 1> = PerCpuArray::new();

/// Where an entry is made before it is inserted: the stack has no room for it. (Words: a per-CPU value may hold no spin
/// lock.)
#[btf_map]
pub(crate) static FLOWLOG_FRESH: PerCpuArray<[u64; size_of::<FlowEntry>() / 8], 1> = PerCpuArray::new();

/// First fragments, for the ports of those that follow; the oldest go when it is full.
#[btf_map]
pub(crate) static FLOWLOG_FIRSTS: LruHashMap<FragmentKey, FirstFragment, FIRSTS_MAX> = LruHashMap::new();

/// Key and value for the map above: the stack has no room for them.
#[btf_map]
pub(crate) static FLOWLOG_FRAGMT: PerCpuArray<Scratch, 1> = PerCpuArray::new();

/// See [`FLOWLOG_FRAGMT`].
#[repr(C)]
pub(crate) struct Scratch {
    pub(crate) key: FragmentKey,
    pub(crate) first: FirstFragment,
}

/// Whether connections are tested, and by which set.
#[btf_map]
pub(crate) static FLOWLOG_CONTROL: Array<u64, 1> = Array::new();

/// What each set says beside the three maps below, which hold both sets.
#[btf_map]
pub(crate) static FLOWLOG_RULES: Array<RuleBase, 2> = Array::new();

/// Addresses.
#[btf_map]
pub(crate) static FLOWLOG_PREFIX: LpmTrie<[u8; 24], Groups, PREFIXES_MAX> = LpmTrie::new();

/// Ports; written by the daemon only, so not preallocated.
#[btf_map]
pub(crate) static FLOWLOG_PORTS: HashMap<u32, Groups, PORTS_MAX, { BPF_F_NO_PREALLOC as usize }> =
    HashMap::new();

/// Protocols.
#[btf_map]
pub(crate) static FLOWLOG_PROTOS: Array<u64, 512> = Array::new();

/// Connections that this CPU has rejected.
#[btf_map]
pub(crate) static FLOWLOG_NO: PerCpuArray<Rejected, { REJECTED_SETS as usize }> = PerCpuArray::new();

/// Dropped packets, added up until the daemon comes for them; preallocated, since a program on a tracepoint must not
/// allocate.
#[btf_map]
pub(crate) static FLOWLOG_DROP_A: HashMap<DropKey, Direction, DROPS_MAX> = HashMap::new();

/// The same, while the daemon reads the other.
#[btf_map]
pub(crate) static FLOWLOG_DROP_B: HashMap<DropKey, Direction, DROPS_MAX> = HashMap::new();

/// Whose turn it is.
#[btf_map]
pub(crate) static FLOWLOG_DROP_T: Array<u64, 1> = Array::new();

/// Names of the interfaces where something was dropped.
#[btf_map]
pub(crate) static FLOWLOG_DROP_N: LruHashMap<[u32; 2], [u8; DEVICE_NAME_BYTES], DROP_NAMES_MAX> =
    LruHashMap::new();

/// What became of dropped packets.
#[btf_map]
pub(crate) static FLOWLOG_DROPS: PerCpuArray<Drops, 1> = PerCpuArray::new();

/// Where a dropped packet is looked at: the stack has no room for it.
#[btf_map]
pub(crate) static FLOWLOG_DROP_D: PerCpuArray<Desk, 1> = PerCpuArray::new();

/// The name of a place in the kernel's code.
#[btf_map]
pub(crate) static FLOWLOG_SYMBOL: Array<[u8; names::SYMBOL_BYTES], 1> = Array::new();

/// What one daemon leaves for the next; no program looks at it.
#[btf_map]
pub(crate) static FLOWLOG_KEPT: Array<Kept, 1> = Array::new();

/// Where the running kernel keeps what is read of a dropped packet. Used, or its members are taken apart.
#[used]
#[unsafe(no_mangle)]
pub(crate) static PLACES: Global<Places> = Global::new(NOWHERE);

/// Nanoseconds between two reports of a connection while traffic flows.
#[unsafe(no_mangle)]
pub(crate) static ACTIVE_NS: Global<u64> = Global::new(60_000_000_000);

/// 1 when reports come rarer as a connection ages.
#[unsafe(no_mangle)]
pub(crate) static REPORT_AGED: Global<u32> = Global::new(0);

/// First connection id of this load.
#[unsafe(no_mangle)]
pub(crate) static CONNECTION_BASE: Global<u64> = Global::new(1);

/// 1 when some task wants `start` records.
#[unsafe(no_mangle)]
pub(crate) static REPORT_START: Global<u32> = Global::new(1);

/// 1 when each packet counts once at each interface, not once on the node.
#[unsafe(no_mangle)]
pub(crate) static OBSERVE_ALL: Global<u32> = Global::new(0);

/// Possible CPUs of this machine.
#[unsafe(no_mangle)]
pub(crate) static CPUS: Global<u32> = Global::new(1);
