//! `BPF_PROG_TEST_RUN`: nanoseconds of a program, gross, as the kernel itself measures them.

use std::cell::RefCell;

use anyhow::Result;
use aya::EbpfLoader;
use flowlog_abi::names;

use flowlog_tests::loaded::{Beside, Loaded, UPLINK_IN as IN};
use flowlog_tests::measure::{Case, Series, Spread, in_turn, progress};
use flowlog_tests::packets::{ACK, B4, a_to_b, ethernet, ipv4, tcp};
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::rules::{hundred, many};

const EMPTY: &str = names::BENCH_PROGRAMS[0];
const REFERENCE: &str = names::BENCH_PROGRAMS[1];
/// Packets of one run that repeats.
const REPEAT: u32 = 50_000;
/// Connections that are met in turn, one run each.
const IN_TURN: usize = 1_024;

pub(super) fn measured(rounds: usize) -> Result<Vec<Figure>> {
    let mut figures = known(rounds)?;
    figures.extend(firsts(rounds)?);
    figures.extend(rejected(rounds)?);
    for (flows, most) in [(64_000, 1.3), (1_000_000, 1.2)] {
        figures.push(many_flows(rounds, flows, most)?);
    }
    Ok(figures)
}

/// One packet again and again.
fn repeated(loaded: &mut Loaded, program: &str, data: &[u8]) -> f64 {
    loaded.run_as(program, data, Beside::default(), REPEAT).duration.as_secs_f64() * 1e9
}

/// The median of one run for each frame: what is not in a cache yet can be met only once.
fn one_each(loaded: &mut Loaded, program: &str, frames: &[Vec<u8>]) -> f64 {
    let runs = frames.iter().map(|frame| loaded.run_as(program, frame, Beside::default(), 1).duration);
    Spread::of(runs.map(|took| took.as_secs_f64() * 1e9).collect()).median
}

/// A TCP segment of the `n`th connection from A to B, one of 2^28.
fn frame(n: u32) -> Vec<u8> {
    let [_, host, high, low] = n.to_be_bytes();
    let [net, ..] = n.to_be_bytes();
    let source = [10, 64 + net, host, 1];
    ethernet(0x0800, &ipv4(source, B4, 6, &tcp(u16::from_be_bytes([high, low]), 80, ACK, &[], b"")))
}

fn figure(name: &str, series: &Series, floor: &Series, target: Target) -> Figure {
    Figure::beside(format!("kernel: {name}"), series, floor, "ns", target)
}

fn known(rounds: usize) -> Result<Vec<Figure>> {
    progress("kernel: a known flow");
    let loaded = RefCell::new(Loaded::new());
    let packet = a_to_b(ACK, b"");
    loaded.borrow_mut().run(IN, &packet);
    let case = |program: &'static str| {
        let (loaded, packet) = (&loaded, &packet);
        Case::new(program, move || Ok(repeated(&mut loaded.borrow_mut(), program, packet)))
    };
    let two = Case::new("two CPUs", || Ok(loaded.borrow_mut().two_at_once(IN, &packet, REPEAT)));
    let series = in_turn(rounds, &mut [case(EMPTY), case(REFERENCE), case(IN), two])?;
    let [empty, reference, known, two] = &series[..] else { return Ok(Vec::new()) };
    Ok(vec![
        figure("reference program beside the empty one", reference, empty, Target::None),
        figure("packet of a known flow beside the reference", known, reference, Target::AtMost(1.3)),
        figure("two CPUs on one flow beside one CPU", two, known, Target::AtMost(1.4)),
    ])
}

/// The reference meets its one known flow as often, one run each: what a single run costs is in both.
fn firsts(rounds: usize) -> Result<Vec<Figure>> {
    progress("kernel: first packets");
    let size = u32::try_from((rounds + 2) * IN_TURN)?;
    let loaded =
        RefCell::new(Loaded::with(EbpfLoader::new().map_max_entries(names::FLOWS, size.next_power_of_two())));
    let packet = a_to_b(ACK, b"");
    let known = vec![packet.clone(); IN_TURN];
    loaded.borrow_mut().run(IN, &packet);
    let mut next = 0..size;
    let reference = Case::new("reference", || Ok(one_each(&mut loaded.borrow_mut(), REFERENCE, &known)));
    let first = Case::new("first packet", || {
        let frames: Vec<_> = next.by_ref().take(IN_TURN).map(frame).collect();
        let mut loaded = loaded.borrow_mut();
        let ns = one_each(&mut loaded, IN, &frames);
        loaded.reports();
        Ok(ns)
    });
    let series = in_turn(rounds, &mut [reference, first])?;
    let [reference, first] = &series[..] else { return Ok(Vec::new()) };
    Ok(vec![figure("first packet of a flow, reported", first, reference, Target::AtMost(5.0))])
}

fn rejected(rounds: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (rules, name, most) in
        [(hundred(), "100 rules", 2.5), (many(), "10,000 prefixes and 1,000 ports", 3.5)]
    {
        progress(&format!("kernel: rejected, {name}"));
        let loaded = RefCell::new(Loaded::new());
        let (packet, other) = (a_to_b(ACK, b""), frame(0));
        let known = vec![packet.clone(); IN_TURN];
        loaded.borrow_mut().run(IN, &packet);
        loaded.borrow_mut().set_rules(&rules, 1);
        let again: Vec<_> = (0..u32::try_from(IN_TURN)?).map(frame).collect();
        let mut next = u32::try_from(IN_TURN)?..;
        let mut cases = [
            Case::new("reference", || Ok(one_each(&mut loaded.borrow_mut(), REFERENCE, &known))),
            Case::new("rejected again", || Ok(one_each(&mut loaded.borrow_mut(), IN, &again))),
            Case::new("rejected first", || {
                let frames: Vec<_> = next.by_ref().take(IN_TURN).map(frame).collect();
                Ok(one_each(&mut loaded.borrow_mut(), IN, &frames))
            }),
            Case::new("reference, hot", || Ok(repeated(&mut loaded.borrow_mut(), REFERENCE, &packet))),
            Case::new("rejected, hot", || Ok(repeated(&mut loaded.borrow_mut(), IN, &other))),
        ];
        let series = in_turn(rounds, &mut cases)?;
        drop(cases);
        anyhow::ensure!(loaded.borrow().hook(false).rejected_packets > 0, "{name}: nothing was rejected");
        let [reference, second, first, hot_reference, hot] = &series[..] else { return Ok(Vec::new()) };
        figures.extend([
            figure(
                &format!("rejected, 1,024 connections in turn, {name}"),
                second,
                reference,
                Target::AtMost(0.8),
            ),
            figure(&format!("rejected, one connection, {name}"), hot, hot_reference, Target::AtMost(0.8)),
            figure(
                &format!("first packet of a rejected connection, {name}"),
                first,
                reference,
                Target::AtMost(most),
            ),
        ]);
    }
    Ok(figures)
}

/// Known flows in random order, where neither table nor key is in a cache.
fn many_flows(rounds: usize, flows: u32, most: f64) -> Result<Figure> {
    progress(&format!("kernel: {flows} flows"));
    let size = (flows + flows / 8).next_power_of_two();
    let loaded = RefCell::new(Loaded::with(EbpfLoader::new().map_max_entries(names::FLOWS, size)));
    for n in 0..flows {
        loaded.borrow_mut().run(IN, &frame(n));
        if n % 1_024 == 0 {
            loaded.borrow_mut().reports();
        }
    }
    let seed = RefCell::new(0x2545_f491_4f6c_dd1d_u64);
    let draw = || -> Vec<Vec<u8>> {
        let mut seed = seed.borrow_mut();
        (0..IN_TURN)
            .map(|_| {
                *seed ^= *seed << 13;
                *seed ^= *seed >> 7;
                *seed ^= *seed << 17;
                frame(u32::try_from(*seed % u64::from(flows)).unwrap_or(0))
            })
            .collect()
    };
    let case = |program: &'static str| {
        let (loaded, draw) = (&loaded, &draw);
        Case::new(program, move || Ok(one_each(&mut loaded.borrow_mut(), program, &draw())))
    };
    let series = in_turn(rounds, &mut [case(REFERENCE), case(IN)])?;
    let [reference, known] = &series[..] else { anyhow::bail!("two cases") };
    Ok(figure(&format!("{flows} flows in random order"), known, reference, Target::AtMost(most)))
}
