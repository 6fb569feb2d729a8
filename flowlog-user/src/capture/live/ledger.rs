//! Reads and sums the kernel's counters.

use aya::Pod;
use aya::maps::{MapData, PerCpuArray};
use flowlog_abi::{Counters, Ledger, REASONS, SLOTS, names};
use zerocopy::FromBytes;

use super::Error;

/// A slot's counters over all CPUs.
pub(super) fn hook<const N: usize>(
    map: &PerCpuArray<MapData, [u8; N]>,
    slot: u32,
) -> Result<Counters, Error> {
    Ok(values::<Counters, N>(map, slot, names::HOOKS)?.iter().fold(Counters::default(), add_counters))
}

/// The ledger over all CPUs.
pub(super) fn kernel<const N: usize>(map: &PerCpuArray<MapData, [u8; N]>) -> Result<Ledger, Error> {
    Ok(values::<Ledger, N>(map, 0, names::LEDGER)?.iter().fold(Ledger::default(), add_ledger))
}

/// Packets and layer-2 bytes reported alone, at all hooks.
pub(super) fn alone<const N: usize>(map: &PerCpuArray<MapData, [u8; N]>) -> Result<(u64, u64), Error> {
    (0..SLOTS).try_fold((0, 0), |(packets, bytes), slot| {
        let counters = hook(map, slot)?;
        Ok((packets + counters.alone_packets, bytes + counters.alone_bytes))
    })
}

/// Packets by reason, those that occurred.
pub(super) fn reasons(map: &PerCpuArray<MapData, u64>) -> Result<Vec<(&'static str, u64)>, Error> {
    let mut counted = Vec::new();
    for (reason, name) in REASONS {
        let packets = read(map, reason as u32, names::REASONS)?.iter().sum();
        if packets > 0 {
            counted.push((name, packets));
        }
    }
    Ok(counted)
}

fn read<V: Pod>(map: &PerCpuArray<MapData, V>, index: u32, name: &'static str) -> Result<Vec<V>, Error> {
    map.get(&index, 0).map(|values| values.to_vec()).map_err(|error| Error::map(name, "read", error))
}

fn values<T: FromBytes, const N: usize>(
    map: &PerCpuArray<MapData, [u8; N]>,
    index: u32,
    name: &'static str,
) -> Result<Vec<T>, Error> {
    read(map, index, name)?
        .iter()
        .map(|bytes| {
            T::read_from_bytes(bytes).map_err(|_| Error::map(name, "read", "another size than expected"))
        })
        .collect()
}

fn add_counters(mut sum: Counters, cpu: &Counters) -> Counters {
    let Counters {
        seen_packets,
        seen_bytes,
        counted_packets,
        counted_bytes,
        elsewhere_packets,
        elsewhere_bytes,
        rejected_packets,
        rejected_bytes,
        unparsed_packets,
        unparsed_bytes,
        not_ip_packets,
        not_ip_bytes,
        alone_packets,
        alone_bytes,
        lost_packets,
        lost_bytes,
        inner_packets,
        inner_bytes,
    } = *cpu;
    sum.seen_packets += seen_packets;
    sum.seen_bytes += seen_bytes;
    sum.counted_packets += counted_packets;
    sum.counted_bytes += counted_bytes;
    sum.elsewhere_packets += elsewhere_packets;
    sum.elsewhere_bytes += elsewhere_bytes;
    sum.rejected_packets += rejected_packets;
    sum.rejected_bytes += rejected_bytes;
    sum.unparsed_packets += unparsed_packets;
    sum.unparsed_bytes += unparsed_bytes;
    sum.not_ip_packets += not_ip_packets;
    sum.not_ip_bytes += not_ip_bytes;
    sum.alone_packets += alone_packets;
    sum.alone_bytes += alone_bytes;
    sum.lost_packets += lost_packets;
    sum.lost_bytes += lost_bytes;
    sum.inner_packets += inner_packets;
    sum.inner_bytes += inner_bytes;
    sum
}

fn add_ledger(mut sum: Ledger, cpu: &Ledger) -> Ledger {
    let Ledger {
        ring_records,
        ring_full,
        reported_packets,
        reported_bytes,
        connections,
        reopened,
        table_full,
        insert_failed,
        removed,
    } = *cpu;
    sum.ring_records += ring_records;
    sum.ring_full += ring_full;
    sum.reported_packets += reported_packets;
    sum.reported_bytes += reported_bytes;
    sum.connections += connections;
    sum.reopened += reopened;
    sum.table_full += table_full;
    sum.insert_failed += insert_failed;
    sum.removed += removed;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_summed_with_itself() {
        let one: [u64; 18] = std::array::from_fn(|at| at as u64 + 1);
        let cpu: Counters = zerocopy::transmute!(one);
        let sum: [u64; 18] = zerocopy::transmute!([cpu, cpu].iter().fold(Counters::default(), add_counters));
        assert_eq!(sum, one.map(|value| value * 2));

        let one: [u64; 9] = std::array::from_fn(|at| at as u64 + 1);
        let cpu: Ledger = zerocopy::transmute!(one);
        let sum: [u64; 9] = zerocopy::transmute!([cpu, cpu, cpu].iter().fold(Ledger::default(), add_ledger));
        assert_eq!(sum, one.map(|value| value * 3));
    }
}
