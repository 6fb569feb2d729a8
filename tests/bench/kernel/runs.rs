//! `BPF_PROG_TEST_RUN`: nanoseconds of a program, gross, as the kernel itself measures them.

use std::cell::RefCell;

use anyhow::{Result, bail, ensure};
use aya::EbpfLoader;
use flowlog_abi::names;

use flowlog_tests::loaded::{Beside, Loaded, UPLINK_IN as IN};
use flowlog_tests::measure::{Case, Series, in_turn, progress};
use flowlog_tests::packets::{ACK, B4, a_to_b, ethernet, ipv4, tcp};
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::rules::{hundred, many};

const EMPTY: &str = names::BENCH_PROGRAMS[0];
const REFERENCE: &str = names::BENCH_PROGRAMS[1];
/// Packets of one run that repeats.
const REPEAT: u32 = 50_000;
/// Connections that are met in turn.
const IN_TURN: u32 = 1_024;
/// So many that hardly one is met twice.
const SOURCES: u32 = 1 << 24;
/// First packets of one round: their reports must fit into the ring.
const FIRSTS: u32 = 500;

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

/// A TCP segment from the `n`th source, as `names::BENCH_TURN` numbers them.
fn frame(n: u32) -> Vec<u8> {
    let [_, high, middle, low] = n.to_be_bytes();
    ethernet(0x0800, &ipv4([9, high, middle, low], B4, 6, &tcp(40_000, 80, ACK, &[], b"")))
}

fn figure(name: &str, series: &Series, floor: &Series, target: Target) -> Figure {
    Figure::beside(format!("kernel: {name}"), series, floor, "ns", target)
}

/// The best of a few runs.
fn best(mut run: impl FnMut() -> f64) -> f64 {
    (0..5).map(|_| run()).fold(f64::INFINITY, f64::min)
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
    // Both must run at the same time all the time, which another process on this machine makes less likely the longer
    // it takes: so the best of short runs, beside the best of as many on one CPU.
    let one = Case::new("one CPU", || Ok(best(|| repeated(&mut loaded.borrow_mut(), IN, &packet))));
    let two = |program: &'static str| {
        let (loaded, packet) = (&loaded, &packet);
        Case::new("two CPUs", move || {
            Ok(best(|| loaded.borrow_mut().two_at_once(program, packet, REPEAT / 5)))
        })
    };
    let mut cases = [case(EMPTY), case(REFERENCE), case(IN), one, two(IN), two(REFERENCE)];
    let series = in_turn(rounds, &mut cases)?;
    let [empty, reference, known, one, two, reference_two] = &series[..] else { return Ok(Vec::new()) };
    Ok(vec![
        figure("reference program beside the empty one", reference, empty, Target::None),
        figure("packet of a known flow beside the reference", known, reference, Target::AtMost(1.3)),
        figure("two CPUs on one flow beside one CPU", two, one, Target::AtMost(1.4)),
        figure("two CPUs on one flow beside the reference on two", two, reference_two, Target::None),
    ])
}

/// Every packet opens a flow; the reference finds its one flow each time.
fn firsts(rounds: usize) -> Result<Vec<Figure>> {
    progress("kernel: first packets");
    let size = (u32::try_from(rounds)? + 2) * FIRSTS;
    let size = size.next_power_of_two();
    let loaded = RefCell::new(Loaded::with(EbpfLoader::new().map_max_entries(names::FLOWS, size)));
    let packet = frame(0);
    loaded.borrow_mut().run(IN, &packet);
    let reference = Case::new("reference", || Ok(loaded.borrow_mut().turn(REFERENCE, &packet, 1, FIRSTS)));
    let first = Case::new("first packet", || {
        let mut loaded = loaded.borrow_mut();
        let ns = loaded.turn(IN, &packet, SOURCES, FIRSTS);
        loaded.reports();
        Ok(ns)
    });
    let series = in_turn(rounds, &mut [reference, first])?;
    let [reference, first] = &series[..] else { return Ok(Vec::new()) };
    Ok(vec![figure("first packet of a flow, reported", first, reference, Target::AtMost(5.0))])
}

fn rejected(rounds: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let sets = [(hundred(), "100 rules", 2.5), (many(), "10,000 prefixes and 1,000 ports", 3.5)];
    for (rules, name, most) in sets {
        progress(&format!("kernel: rejected, {name}"));
        let loaded = RefCell::new(Loaded::new());
        let packet = frame(0);
        loaded.borrow_mut().run(IN, &packet);
        loaded.borrow_mut().set_rules(&rules, 1);
        let case = |name: &'static str, program: &'static str, sources: u32| {
            let (loaded, packet) = (&loaded, &packet);
            Case::new(name, move || Ok(loaded.borrow_mut().turn(program, packet, sources, REPEAT)))
        };
        let mut cases = [
            case("reference", REFERENCE, 1),
            case("rejected again", IN, IN_TURN),
            case("rejected first", IN, SOURCES),
        ];
        let series = in_turn(rounds, &mut cases)?;
        drop(cases);
        ensure!(loaded.borrow().hook(false).rejected_packets > 0, "{name}: nothing was rejected");
        let [reference, again, first] = &series[..] else { return Ok(Vec::new()) };
        figures.extend([
            figure(&format!("rejected, 1,024 connections, {name}"), again, reference, Target::AtMost(0.8)),
            figure(&format!("rejected, first packets, {name}"), first, reference, Target::AtMost(most)),
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
    let packet = frame(0);
    let case = |program: &'static str| {
        let (loaded, packet) = (&loaded, &packet);
        Case::new(program, move || Ok(loaded.borrow_mut().turn(program, packet, flows, REPEAT)))
    };
    let series = in_turn(rounds, &mut [case(REFERENCE), case(IN)])?;
    let [reference, known] = &series[..] else { bail!("two cases") };
    Ok(figure(&format!("{flows} flows in random order"), known, reference, Target::AtMost(most)))
}
