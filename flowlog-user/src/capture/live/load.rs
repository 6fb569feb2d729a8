//! Puts the embedded object into the kernel: globals, map sizes, programs, self-test.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};

use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::{Program, ProgramError, SchedClassifier, TestRun as _, TestRunOptions};
use aya::{Ebpf, EbpfLoader};
use aya_log::EbpfLogger;
use flowlog_abi::{Counters, FlowEntry, FlowKey, Kept, LAYOUT_ID, Ledger, Places, names};
use zerocopy::IntoBytes as _;

use crate::clock;

use super::drops::{DropMaps, DropWatch};
use super::pins::Pins;
use super::places;
use super::rules::RuleMaps;
use super::tunnel_maps::TunnelMaps;
use super::{Error, Options};

static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("FLOWLOG_EBPF_OBJECT"));

/// Bytes of a test run's packet: as many as the shortest Ethernet frame.
const TEST_BYTES: usize = 64;

/// The flow table by key and entry bytes.
pub(super) type FlowMap = HashMap<MapData, [u8; size_of::<FlowKey>()], [u8; size_of::<FlowEntry>()]>;

/// The note of one daemon to the next.
pub(super) type KeptMap = Array<MapData, [u8; size_of::<Kept>()]>;

/// What stands in the kernel after loading, and the way to it.
pub(super) struct Loaded {
    pub(super) ebpf: Ebpf,
    pub(super) ring: RingBuf<MapData>,
    pub(super) flows: FlowMap,
    /// The flow table again, for what aya does not do.
    pub(super) flows_fd: OwnedFd,
    pub(super) hooks: PerCpuArray<MapData, [u8; size_of::<Counters>()]>,
    pub(super) ledger: PerCpuArray<MapData, [u8; size_of::<Ledger>()]>,
    pub(super) reasons: PerCpuArray<MapData, u64>,
    pub(super) observed: HashMap<MapData, u32, u32>,
    pub(super) rules: RuleMaps,
    pub(super) tunnels: TunnelMaps,
    /// Hands what the programs logged to `tracing`.
    pub(super) flush_log: Box<dyn FnMut() + Send>,
}

/// Loads everything, onto the tables that are pinned if there are any, and runs the self-test. Nothing is attached yet.
pub(super) fn load(options: &Options, pins: Option<&Pins>) -> Result<(Loaded, KeptMap, DropWatch), Error> {
    let (places, reasons) = match places::read() {
        Ok((places, reasons)) => (places, Ok(reasons)),
        Err(why) => (Places::default(), Err(why)),
    };
    let mut ebpf = load_object(options, pins, &places)?;
    let mut first = BTreeSet::from([names::MARK_PROGRAM, names::SELF_TEST_PROGRAM]);
    first.extend(names::HANDOVER_PROGRAMS);
    load_programs(&mut ebpf, &first)?;
    // A program that is loaded later finds its maps by descriptor, so each map that is taken here must stay open.
    let mut flush_log: Box<dyn FnMut() + Send> = match EbpfLogger::init(&mut ebpf) {
        Ok(mut logger) => Box::new(move || logger.flush()),
        Err(error) => {
            tracing::debug!(%error, "the programs log nothing");
            Box::new(|| ())
        }
    };
    self_test(&mut ebpf)?;
    flush_log();

    let flows = take(&mut ebpf, names::FLOWS)?;
    let flows_fd = hash_fd(&flows).map_err(|error| Error::map(names::FLOWS, "open", error))?;
    let handover = take(&mut ebpf, names::HANDOVER)?;
    if let Some(pins) = pins {
        // Programs that stay when this process goes hand packets over through it, and the kernel empties an array of
        // programs that no process has open and that has no name.
        let path = pins.handover();
        handover
            .pin(&path)
            .map_err(|error| Error::Pin { path: path.clone(), reason: with_causes(&error) })?;
    }
    let mut tunnels = TunnelMaps::new(
        typed(take(&mut ebpf, names::TUNNELS)?, names::TUNNELS)?,
        typed(take(&mut ebpf, names::OWN_ADDRESSES)?, names::OWN_ADDRESSES)?,
        typed(handover, names::HANDOVER)?,
    );
    tunnels.connect(&mut ebpf)?;
    let kept = typed(take(&mut ebpf, names::KEPT)?, names::KEPT)?;
    let drops = DropWatch::new(drop_maps(&mut ebpf)?, reasons, places.has_reason != 0);
    let loaded = Loaded {
        tunnels,
        ring: typed(take(&mut ebpf, names::RING)?, names::RING)?,
        flows: typed(flows, names::FLOWS)?,
        flows_fd,
        hooks: typed(take(&mut ebpf, names::HOOKS)?, names::HOOKS)?,
        ledger: typed(take(&mut ebpf, names::LEDGER)?, names::LEDGER)?,
        reasons: typed(take(&mut ebpf, names::REASONS)?, names::REASONS)?,
        observed: typed(take(&mut ebpf, names::OBSERVED)?, names::OBSERVED)?,
        rules: RuleMaps::new(
            typed(take(&mut ebpf, names::CONTROL)?, names::CONTROL)?,
            typed(take(&mut ebpf, names::RULES)?, names::RULES)?,
            typed(take(&mut ebpf, names::PREFIXES)?, names::PREFIXES)?,
            typed(take(&mut ebpf, names::PORTS)?, names::PORTS)?,
            typed(take(&mut ebpf, names::PROTOCOLS)?, names::PROTOCOLS)?,
        )?,
        flush_log,
        ebpf,
    };
    Ok((loaded, kept, drops))
}

fn drop_maps(ebpf: &mut Ebpf) -> Result<DropMaps, Error> {
    let table = |ebpf: &mut Ebpf, name: &'static str| {
        let map = take(ebpf, name)?;
        let fd = hash_fd(&map).map_err(|error| Error::map(name, "open", error))?;
        Ok::<_, Error>((typed(map, name)?, fd))
    };
    let [a, b] = names::DROP_TABLES;
    let ((a, a_fd), (b, b_fd)) = (table(ebpf, a)?, table(ebpf, b)?);
    Ok(DropMaps {
        tables: [a, b],
        tables_fd: [a_fd, b_fd],
        names: typed(take(ebpf, names::DROP_NAMES)?, names::DROP_NAMES)?,
        turn: typed(take(ebpf, names::DROP_TURN)?, names::DROP_TURN)?,
        counters: typed(take(ebpf, names::DROPS)?, names::DROPS)?,
        symbol: typed(take(ebpf, names::SYMBOL)?, names::SYMBOL)?,
    })
}

/// Another descriptor of a hash map, for what aya does not do.
fn hash_fd(map: &Map) -> std::io::Result<OwnedFd> {
    match map {
        Map::HashMap(data) => data.fd().as_fd().try_clone_to_owned(),
        _ => Err(std::io::Error::other("not a hash map")),
    }
}

fn load_object(options: &Options, pins: Option<&Pins>, places: &Places) -> Result<Ebpf, Error> {
    let failed = |reason: String| Error::Load { what: "the eBPF object".into(), reason };
    let cpus = aya::util::nr_cpus().map_err(|(path, error)| failed(format!("{path}: {error}")))?;
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
    // Unique on this boot as long as no load makes more than 2^24 connections a second.
    let connection_base = (clock::monotonic_ns() / 1_000_000_000) << 24;
    let report_start = u32::from(options.report_start);
    let mut loader = EbpfLoader::new();
    for (name, path) in pins.into_iter().flat_map(Pins::maps) {
        loader.map_pin_path(name, path);
    }
    loader
        // No program is relocated against the kernel's types, and parsing them costs 11 MB; the object's own BTF,
        // which the spin lock in the flow table needs, is loaded in any case.
        .btf(None)
        .override_global(names::GLOBAL_ACTIVE_NS, &options.timeouts.active_ns, true)
        .override_global(names::GLOBAL_REPORT_AGED, &u32::from(options.timeouts.aged), true)
        .override_global(names::GLOBAL_CONNECTION_BASE, &connection_base, true)
        .override_global(names::GLOBAL_REPORT_START, &report_start, true)
        .override_global(names::GLOBAL_OBSERVE_ALL, &u32::from(options.observe_all), true)
        .override_global(names::GLOBAL_CPUS, &cpus, true)
        .override_global(names::GLOBAL_PLACES, places.as_bytes(), true)
        .map_max_entries(names::FLOWS, options.table_entries)
        .map_max_entries(names::RING, options.ring_bytes)
        .load(options.object.as_deref().unwrap_or(OBJECT))
        .map_err(|error| failed(with_causes(&error)))
}

/// A program of the object.
pub(super) fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut SchedClassifier, Error> {
    ebpf.program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| Error::Load { what: format!("program {name}"), reason: "the object has none".into() })
}

/// Loads those of the programs that are not loaded yet, all at once: verifying one takes up to half a second of CPU,
/// so only what is going to be attached is loaded, each in a thread of its own.
pub(super) fn load_programs(ebpf: &mut Ebpf, names: &BTreeSet<&str>) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let loading: Vec<_> = ebpf
            .programs_mut()
            .filter(|(name, program)| names.contains(name) && program.fd().is_err())
            .map(|(name, program)| (name.to_owned(), scope.spawn(|| load_program(program))))
            .collect();
        for (name, thread) in loading {
            let loaded = thread.join().unwrap_or_else(|_| Err("the thread that loaded it failed".into()));
            loaded.map_err(|reason| Error::Load { what: format!("program {name}"), reason })?;
        }
        Ok(())
    })
}

fn load_program(program: &mut Program) -> Result<(), String> {
    let begin_ns = clock::monotonic_ns();
    let program: &mut SchedClassifier =
        program.try_into().map_err(|error: ProgramError| with_causes(&error))?;
    program.load().map_err(|error| with_causes(&error))?;
    let info = program.info().map_err(|error| with_causes(&error))?;
    tracing::debug!(
        program = info.name_as_str(),
        milliseconds = (clock::monotonic_ns() - begin_ns) / 1_000_000,
        instructions_verified = info.verified_instruction_count(),
        "program loaded"
    );
    Ok(())
}

fn self_test(ebpf: &mut Ebpf) -> Result<(), Error> {
    let packet = [0; TEST_BYTES];
    let run = program(ebpf, names::SELF_TEST_PROGRAM)?
        .test_run(TestRunOptions { data_in: Some(&packet), ..TestRunOptions::new() })
        .map_err(|error| Error::Load { what: "the self-test".into(), reason: with_causes(&error) })?;
    check_layout(run.return_value)
}

const fn check_layout(object: u32) -> Result<(), Error> {
    if object == LAYOUT_ID { Ok(()) } else { Err(Error::Layout { object }) }
}

fn take(ebpf: &mut Ebpf, name: &'static str) -> Result<Map, Error> {
    ebpf.take_map(name).ok_or_else(|| Error::map(name, "open", "the object has none"))
}

fn typed<T: TryFrom<Map, Error = MapError>>(map: Map, name: &'static str) -> Result<T, Error> {
    map.try_into().map_err(|error| Error::map(name, "open", with_causes(&error)))
}

/// An error and what it was caused by, in one line.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let own = error.to_string();
        if !text.contains(&own) {
            let _ = write!(text, ": {own}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_layout_is_refused_with_both_ids_and_the_command() {
        assert!(check_layout(LAYOUT_ID).is_ok());
        let text = check_layout(0xdead_beef).unwrap_err().to_string();
        assert!(text.contains("0xdeadbeef") && text.contains(&format!("{LAYOUT_ID:#010x}")), "{text}");
        assert!(text.contains("cargo xtask build-ebpf"), "{text}");
    }
}
