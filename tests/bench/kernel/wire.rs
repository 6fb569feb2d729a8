//! Wall time of a datagram from one host's socket over a veth pair to the other's ingress hook and a drop behind it:
//! with no program there, and with each.

use std::cell::{Cell, RefCell};
use std::net::UdpSocket;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use aya::EbpfLoader;
use aya::programs::TcAttachType;
use flowlog_abi::names;

use flowlog_tests::loaded::{Loaded, UPLINK_IN as IN};
use flowlog_tests::measure::{Case, Spread, in_turn, progress};
use flowlog_tests::netns::{INTERFACE, Pair};
use flowlog_tests::report::{Figure, Target};
use flowlog_tests::rules::{many, many_and_udp};

/// Nobody's address, but with a neighbour entry: the packet crosses the hook and is dropped right behind it.
const NOBODY: &str = "10.77.0.200";
const SOCKETS: usize = 16;
/// Datagrams of one round.
const DATAGRAMS: usize = 10_000;
/// Timed together: shorter than a time slice, so that the median is of chunks that nobody interrupted.
const CHUNK: usize = 100;
/// More rounds than these only take time: each is ten thousand packets.
const ROUNDS_MAX: usize = 21;

pub(super) fn measured(rounds: usize) -> Result<Vec<Figure>> {
    let pair = Pair::alone()?;
    let near_mac = "02:77:00:00:00:01";
    pair.far.run(&[
        "ip",
        "neighbour",
        "replace",
        NOBODY,
        "lladdr",
        near_mac,
        "dev",
        INTERFACE,
        "nud",
        "permanent",
    ])?;
    let sockets = pair.far.enter(|| {
        let open = || -> Result<UdpSocket> { Ok(UdpSocket::bind("10.77.0.2:0")?) };
        (0..SOCKETS).map(|_| open()).collect::<Result<Vec<_>>>()
    });
    let sockets = sockets.join().map_err(|_| anyhow!("the far host died"))??;
    // Attaching looks a device up where the thread is.
    let measuring = pair.near.enter(move || each(rounds.min(ROUNDS_MAX), &sockets));
    measuring.join().map_err(|_| anyhow!("the near host died"))?
}

fn each(rounds: usize, sockets: &[UdpSocket]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for flows in [1, 1_000, 64_000, 1_000_000] {
        for (rules, name) in [(None, "off"), (Some(many_and_udp()), "accepts"), (Some(many()), "rejects")] {
            // A rejected flow is in no table, and the rules are the same for one flow and a million.
            if rules.is_some() && !matches!(flows, 1_000 | 64_000) {
                continue;
            }
            progress(&format!("kernel: on a veth, {flows} flows, prefilter {name}"));
            let size = u32::try_from(flows + flows / 8 + 64)?.next_power_of_two();
            let loaded = RefCell::new(Loaded::with(EbpfLoader::new().map_max_entries(names::FLOWS, size)));
            if let Some(rules) = &rules {
                loaded.borrow_mut().set_rules(rules, 1);
            }
            figures.extend(beside(rounds, sockets, &loaded, flows, name)?);
        }
    }
    Ok(figures)
}

/// Sends through a program (or none); nanoseconds a datagram.
fn sent(
    loaded: &RefCell<Loaded>,
    program: Option<&str>,
    mut send: impl FnMut() -> Result<()>,
) -> Result<f64> {
    let mut loaded = loaded.borrow_mut();
    let link = match program {
        Some(name) => Some(loaded.load(name).attach(INTERFACE, TcAttachType::Ingress)?),
        None => None,
    };
    let mut chunks = Vec::with_capacity(DATAGRAMS / CHUNK);
    for _ in 0..DATAGRAMS / CHUNK {
        let began = Instant::now();
        for _ in 0..CHUNK {
            send()?;
        }
        chunks.push(began.elapsed().as_secs_f64() * 1e9 / CHUNK as f64);
    }
    let ns = Spread::of(chunks).median;
    if let (Some(name), Some(link)) = (program, link) {
        loaded.load(name).detach(link)?;
    }
    loaded.reports();
    Ok(ns)
}

fn beside(
    rounds: usize,
    sockets: &[UdpSocket],
    loaded: &RefCell<Loaded>,
    flows: usize,
    prefilter: &str,
) -> Result<Vec<Figure>> {
    let next = Cell::new(0_usize);
    let send = || -> Result<()> {
        let n = next.get();
        next.set((n + 1) % flows);
        let socket = sockets.get(n % SOCKETS).context("a socket")?;
        let port = u16::try_from(1 + n / SOCKETS)?;
        socket.send_to(b"flowlog", (NOBODY, port))?;
        Ok(())
    };
    // All flows are there before the first round.
    for _ in 0..flows.div_ceil(DATAGRAMS) {
        sent(loaded, Some(IN), send)?;
    }
    let case = |program: Option<&'static str>| {
        Case::new(program.unwrap_or("none"), move || sent(loaded, program, send))
    };
    let [empty, reference] = names::BENCH_PROGRAMS;
    let series =
        in_turn(rounds, &mut [case(None), case(Some(empty)), case(Some(reference)), case(Some(IN))])?;
    let [none, empty, reference, ours] = &series[..] else { return Ok(Vec::new()) };
    let figure = |name: &str, series| {
        let name = format!("veth, {flows} flows, prefilter {prefilter}: {name} beside none");
        Figure::beside(name, series, none, "ns", Target::None)
    };
    Ok(vec![figure("empty", empty), figure("reference", reference), figure("flowlog", ours)])
}
