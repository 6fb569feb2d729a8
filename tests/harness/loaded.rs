//! A fresh copy of the object in the kernel, and what its maps say. Needs root.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot load or read what it tests has failed"
)]

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, ProgramArray, RingBuf};
use aya::programs::{ProgramError, RawTracePoint, SchedClassifier, TestRun, TestRunOptions, TestRunResult};
use aya::{Ebpf, EbpfLoader};
use flowlog_abi::{
    CONTROL_TEST, Counters, FlowEntry, FlowKey, Ledger, PREFIX_SET_BITS, REASONS, Reason, Report, RuleBase,
    TunnelRules, names, port_key, prefix_data, protocol_index, slot,
};
use flowlog_user::capture::rules::Tables;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::LazyLock;
use zerocopy::{FromBytes, IntoBytes};

/// The program of an uplink's ingress.
pub const UPLINK_IN: &str = names::ETHERNET_PROGRAMS[flowlog_abi::hook::UPLINK_INGRESS as usize];

/// The loopback device: what a test run gives as the interface.
pub const IFINDEX: u32 = 1;

/// The object's maps and programs, attached nowhere.
pub struct Loaded {
    ebpf: Ebpf,
    ring: RingBuf<MapData>,
    in_kernel: HashSet<String>,
}

static CPUS: LazyLock<u32> =
    LazyLock::new(|| u32::try_from(aya::util::nr_cpus().expect("possible CPUs")).expect("few"));

/// What a test run can say beside the packet's bytes.
#[derive(Clone, Copy, Default)]
pub struct Beside {
    /// What `names::BENCH_TURN` takes as the number of sources.
    pub mark: u32,
    /// Device through which the packet entered the node; 0 for one made here.
    pub ingress_ifindex: u32,
    /// Segments that an offloaded packet stands for.
    pub gso_segs: u32,
    /// Payload bytes of each of them.
    pub gso_size: u32,
}

impl Beside {
    /// As struct __sk_buff of linux/bpf.h.
    fn context(self) -> [u8; 192] {
        let mut context = [0; 192];
        for (offset, value) in
            [(8, self.mark), (36, self.ingress_ifindex), (164, self.gso_segs), (176, self.gso_size)]
        {
            context[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        }
        context
    }
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

impl Default for Loaded {
    fn default() -> Self {
        Self::new()
    }
}

impl Loaded {
    /// With maps of the object's own sizes.
    pub fn new() -> Self {
        Self::with(&mut EbpfLoader::new())
    }

    /// As a loader is told.
    pub fn with(loader: &mut EbpfLoader<'_>) -> Self {
        let mut ebpf = loader
            .override_global(names::GLOBAL_CPUS, &*CPUS, true)
            .load(&object())
            .expect("the object's maps can be created");
        let ring = RingBuf::try_from(ebpf.take_map(names::RING).expect("a ring")).expect("a ring buffer");
        Self { ebpf, ring, in_kernel: HashSet::new() }
    }

    /// A program, loaded when it is asked for first.
    pub fn load(&mut self, name: &str) -> &mut SchedClassifier {
        let program: &mut SchedClassifier = self
            .ebpf
            .program_mut(name)
            .unwrap_or_else(|| panic!("the object has no program {name}"))
            .try_into()
            .expect("a classifier");
        if self.in_kernel.insert(name.to_owned()) {
            program.load().unwrap_or_else(|error| panic!("{name}: {}", explain(&error)));
        }
        program
    }

    /// The program for drops, loaded but not attached.
    pub fn load_drop(&mut self) -> &mut RawTracePoint {
        let program = self.ebpf.program_mut(names::DROP_PROGRAM).expect("a program for drops");
        let program: &mut RawTracePoint = program.try_into().expect("on a raw tracepoint");
        if self.in_kernel.insert(names::DROP_PROGRAM.to_owned()) {
            program.load().unwrap_or_else(|error| panic!("{}: {}", names::DROP_PROGRAM, explain(&error)));
        }
        program
    }

    /// Runs a program over a packet and says how it ended and what it took.
    pub fn run_as(&mut self, name: &str, data: &[u8], beside: Beside, repeat: u32) -> TestRunResult {
        let context = beside.context();
        let options = TestRunOptions {
            data_in: Some(data),
            ctx_in: Some(&context),
            repeat,
            ..TestRunOptions::default()
        };
        self.load(name)
            .test_run(options)
            .unwrap_or_else(|error| panic!("{name}, {} bytes: {error}", data.len()))
    }

    /// Runs a program over a packet once; its verdict.
    pub fn run(&mut self, name: &str, data: &[u8]) -> u32 {
        self.run_as(name, data, Beside::default(), 1).return_value
    }

    /// All connections in the table.
    pub fn flows(&self) -> Vec<(FlowKey, FlowEntry)> {
        let flows: HashMap<_, [u8; size_of::<FlowKey>()], [u8; size_of::<FlowEntry>()]> =
            HashMap::try_from(self.ebpf.map(names::FLOWS).expect("flows")).expect("a hash");
        flows
            .iter()
            .map(|item| {
                let (key, entry) = item.expect("an element");
                (
                    FlowKey::read_from_bytes(&key).expect("a key"),
                    FlowEntry::read_from_bytes(&entry).expect("an entry"),
                )
            })
            .collect()
    }

    /// The only connection in the table.
    pub fn flow(&self) -> (FlowKey, FlowEntry) {
        let flows = self.flows();
        assert_eq!(flows.len(), 1, "{flows:#?}");
        flows[0]
    }

    /// All CPUs' words of one element added up.
    fn sum<const N: usize>(&self, map: &str, index: u32) -> [u8; N] {
        let array: PerCpuArray<_, [u8; N]> =
            PerCpuArray::try_from(self.ebpf.map(map).expect("a map")).expect("a per-CPU array");
        let mut sum = vec![0_u64; N / 8];
        for cpu in array.get(&index, 0).expect("an element").iter() {
            for (word, chunk) in sum.iter_mut().zip(cpu.chunks_exact(8)) {
                *word += u64::from_ne_bytes(chunk.try_into().expect("8 bytes"));
            }
        }
        sum.as_bytes().try_into().expect("N bytes")
    }

    /// What became of the packets at the loopback device's ingress or egress; they must add up.
    pub fn hook(&self, egress: bool) -> Counters {
        let bytes = self.sum::<{ size_of::<Counters>() }>(names::HOOKS, slot(IFINDEX, egress));
        let all = Counters::read_from_bytes(&bytes).expect("counters");
        assert_eq!(
            (all.seen_packets, all.seen_bytes),
            (
                all.counted_packets
                    + all.elsewhere_packets
                    + all.rejected_packets
                    + all.unparsed_packets
                    + all.not_ip_packets
                    + all.alone_packets
                    + all.lost_packets
                    - all.inner_packets,
                all.counted_bytes
                    + all.elsewhere_bytes
                    + all.rejected_bytes
                    + all.unparsed_bytes
                    + all.not_ip_bytes
                    + all.alone_bytes
                    + all.lost_bytes
                    - all.inner_bytes
            ),
            "the hook's ledger does not close: {all:#?}"
        );
        all
    }

    /// Table and ring.
    pub fn ledger(&self) -> Ledger {
        Ledger::read_from_bytes(&self.sum::<{ size_of::<Ledger>() }>(names::LEDGER, 0)).expect("a ledger")
    }

    /// Packets by reason, those that were counted only.
    pub fn reasons(&self) -> Vec<(Reason, u64)> {
        REASONS
            .iter()
            .map(|(reason, _)| (*reason, u64::from_ne_bytes(self.sum(names::REASONS, *reason as u32))))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// What is in the ring.
    pub fn reports(&mut self) -> Vec<Report> {
        let mut reports = Vec::new();
        drain(&mut self.ring, &mut reports);
        reports
    }

    /// Runs a program over each packet `repeat` times, all at once on as many threads, and drains the ring meanwhile.
    pub fn race(&mut self, name: &str, packets: &[Vec<u8>], repeat: u32) -> Vec<Report> {
        self.load(name);
        let Self { ebpf, ring, .. } = self;
        let program: &SchedClassifier = ebpf.program(name).expect("loaded").try_into().expect("a classifier");
        let mut reports = Vec::new();
        std::thread::scope(|scope| {
            let runs: Vec<_> = packets
                .iter()
                .map(|data| {
                    scope.spawn(move || {
                        let options =
                            TestRunOptions { data_in: Some(data), repeat, ..TestRunOptions::default() };
                        program.test_run(options).expect("a test run")
                    })
                })
                .collect();
            while !runs.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                drain(ring, &mut reports);
            }
            runs.into_iter().for_each(|run| assert_eq!(run.join().expect("no panic").return_value, u32::MAX));
        });
        drain(ring, &mut reports);
        reports
    }

    /// Runs a program over a packet from one of `sources` addresses at random, again and again; nanoseconds of one run,
    /// what chooses the source included.
    pub fn turn(&mut self, name: &str, data: &[u8], sources: u32, repeat: u32) -> f64 {
        let program = self.load(name).fd().expect("loaded").try_clone().expect("a descriptor");
        let mut programs: ProgramArray<_> = typed(&mut self.ebpf, names::HANDOVER);
        programs.set(0, &program, 0).expect("an element");
        let beside = Beside { mark: sources, ..Beside::default() };
        self.run_as(names::BENCH_TURN, data, beside, repeat).duration.as_secs_f64() * 1e9
    }

    /// Runs a program over the same packet on two CPUs at once, each thread on one of its own; the nanoseconds of the
    /// slower one. Where there is only one CPU, they take turns.
    pub fn two_at_once(&mut self, name: &str, data: &[u8], repeat: u32) -> f64 {
        self.load(name);
        let program: &SchedClassifier =
            self.ebpf.program(name).expect("loaded").try_into().expect("a classifier");
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let run = |cpu: Option<usize>| {
                if let Some(cpu) = cpu {
                    let mut only = CpuSet::new();
                    only.set(cpu);
                    sched_setaffinity(None, &only).expect("a CPU of ours");
                }
                start.wait();
                let options = TestRunOptions { data_in: Some(data), repeat, ..TestRunOptions::default() };
                program.test_run(options).expect("a test run").duration.as_secs_f64() * 1e9
            };
            let ours = sched_getaffinity(None).expect("the CPUs of this process");
            let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| ours.is_set(*cpu));
            let (one, other) = (cpus.next(), cpus.next());
            let runs = [one, other].map(|cpu| scope.spawn(move || run(cpu)));
            runs.into_iter().map(|run| run.join().expect("no panic")).fold(0.0, f64::max)
        })
    }

    /// Puts rules into the set of a generation and switches to it.
    pub fn set_rules(&mut self, tables: &Tables, generation: u32) {
        let ebpf = &mut self.ebpf;
        let mut prefixes: LpmTrie<_, [u8; 24], [u8; 16]> = typed(ebpf, names::PREFIXES);
        for (prefix, groups) in &tables.prefixes {
            let data = prefix_data(generation, prefix.bits.to_be_bytes());
            let key = Key::new(PREFIX_SET_BITS + u32::from(prefix.length), data);
            let groups: [u8; 16] = zerocopy::transmute!(*groups);
            prefixes.insert(&key, groups, 0).expect("room");
        }
        let mut ports: HashMap<_, u32, [u8; 16]> = typed(ebpf, names::PORTS);
        for (port, groups) in &tables.ports {
            let groups: [u8; 16] = zerocopy::transmute!(*groups);
            ports.insert(port_key(generation, *port), groups, 0).expect("room");
        }
        let mut protocols: Array<_, u64> = typed(ebpf, names::PROTOCOLS);
        for (protocol, groups) in (0..=u8::MAX).zip(tables.protocols) {
            protocols.set(protocol_index(generation, protocol), groups, 0).expect("an element");
        }
        let mut base: Array<_, [u8; size_of::<RuleBase>()]> = typed(ebpf, names::RULES);
        let words: [u8; size_of::<RuleBase>()] = zerocopy::transmute!(tables.base);
        base.set(generation & 1, words, 0).expect("an element");
        let mut control: Array<_, u64> = typed(ebpf, names::CONTROL);
        control.set(0, CONTROL_TEST | u64::from(generation), 0).expect("an element");
    }

    /// Lets everything pass from this generation on.
    pub fn pass_everything(&mut self, generation: u32) {
        let mut control: Array<_, u64> = typed(&mut self.ebpf, names::CONTROL);
        control.set(0, u64::from(generation), 0).expect("an element");
    }

    /// Lets the programs look into tunnels by these rules, on a node with these addresses (IPv4-mapped).
    pub fn set_tunnels(&mut self, rules: TunnelRules, own: &[[u8; 16]]) {
        for (index, name) in (0..).zip(names::HANDOVER_PROGRAMS) {
            let program = self.load(name).fd().expect("loaded").try_clone().expect("a descriptor");
            let mut programs: ProgramArray<_> = typed(&mut self.ebpf, names::HANDOVER);
            programs.set(index, &program, 0).expect("an element");
        }
        let mut map: Array<_, [u8; size_of::<TunnelRules>()]> = typed(&mut self.ebpf, names::TUNNELS);
        let bytes: [u8; size_of::<TunnelRules>()] = zerocopy::transmute!(rules);
        map.set(0, bytes, 0).expect("an element");
        let mut addresses: HashMap<_, [u8; 16], u32> = typed(&mut self.ebpf, names::OWN_ADDRESSES);
        for address in own {
            addresses.insert(address, 1, 0).expect("room");
        }
    }

    /// Says that an interface is observed at ingress: 1, or 2 for an endpoint.
    pub fn observe(&mut self, ifindex: u32, role: u32) {
        let mut observed: HashMap<_, u32, u32> =
            HashMap::try_from(self.ebpf.map_mut(names::OBSERVED).expect("a map")).expect("a hash");
        observed.insert(ifindex, role, 0).expect("room");
    }
}

fn typed<'a, T: TryFrom<&'a mut Map, Error = MapError>>(ebpf: &'a mut Ebpf, name: &str) -> T {
    T::try_from(ebpf.map_mut(name).expect("a map")).expect("its type")
}

fn drain(ring: &mut RingBuf<MapData>, reports: &mut Vec<Report>) {
    while let Some(record) = ring.next() {
        reports.push(Report::read_from_bytes(&record).expect("a report"));
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
