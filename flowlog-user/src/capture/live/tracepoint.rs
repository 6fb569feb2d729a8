//! The program on the kernel's tracepoint, what it counts, and the kernel's names of its own code.

use std::os::fd::{AsFd as _, AsRawFd as _};

use aya::Ebpf;
use aya::maps::{Array, MapData};
use aya::programs::raw_trace_point::RawTracePointLinkId;
use aya::programs::{RawTracePoint, SchedClassifier, TestRun as _, TestRunOptions};
use flowlog_abi::{Drops, names};
use zerocopy::IntoBytes as _;

use super::load::with_causes;

pub(super) fn tracepoint(ebpf: &mut Ebpf) -> Result<&mut RawTracePoint, String> {
    let program = ebpf.program_mut(names::DROP_PROGRAM).ok_or("the object has no program for it")?;
    program.try_into().map_err(|error| with_causes(&error))
}

pub(super) fn attach(ebpf: &mut Ebpf) -> Result<RawTracePointLinkId, String> {
    let program = tracepoint(ebpf)?;
    if program.fd().is_err() {
        program
            .load()
            .map_err(|error| format!("cannot load {}: {}", names::DROP_PROGRAM, with_causes(&error)))?;
    }
    program
        .attach(names::DROP_TRACEPOINT)
        .map_err(|error| format!("cannot attach to {}: {}", names::DROP_TRACEPOINT, with_causes(&error)))
}

/// Runs that the kernel has passed over because the program was running on that CPU already (from 6.2 on).
pub(super) fn missed(ebpf: &Ebpf) -> Option<u64> {
    let program: &RawTracePoint = ebpf.program(names::DROP_PROGRAM)?.try_into().ok()?;
    let fd = program.fd().ok()?.as_fd().as_raw_fd();
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?.trim().parse().ok()
}

pub(super) fn symbol(
    ebpf: &mut Ebpf,
    name: &Array<MapData, [u8; names::SYMBOL_BYTES]>,
    address: u64,
) -> Result<String, String> {
    /// An Ethernet header of a type that nobody looks into.
    const HEADER: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0xb5];
    let program = ebpf.program_mut(names::SYMBOL_PROGRAM).ok_or("the object has no program for it")?;
    let program: &mut SchedClassifier = program.try_into().map_err(|error| with_causes(&error))?;
    if program.fd().is_err() {
        program.load().map_err(|error| with_causes(&error))?;
    }
    let mut data = HEADER.to_vec();
    data.extend(address.as_bytes());
    data.extend([0; 42]);
    program
        .test_run(TestRunOptions { data_in: Some(&data), ..TestRunOptions::new() })
        .map_err(|error| with_causes(&error))?;
    let bytes = name.get(&0, 0).map_err(|error| with_causes(&error))?;
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

pub(super) fn added(sum: Drops, cpu: Drops) -> Drops {
    let Drops {
        seen,
        no_drop,
        rejected,
        unparsed,
        not_ip,
        added,
        lost_full,
        lost_refused,
        lost_nested,
        lost_unread,
        added_packets,
        added_bytes,
    } = cpu;
    Drops {
        seen: sum.seen + seen,
        no_drop: sum.no_drop + no_drop,
        rejected: sum.rejected + rejected,
        unparsed: sum.unparsed + unparsed,
        not_ip: sum.not_ip + not_ip,
        added: sum.added + added,
        lost_full: sum.lost_full + lost_full,
        lost_refused: sum.lost_refused + lost_refused,
        lost_nested: sum.lost_nested + lost_nested,
        lost_unread: sum.lost_unread + lost_unread,
        added_packets: sum.added_packets + added_packets,
        added_bytes: sum.added_bytes + added_bytes,
    }
}
