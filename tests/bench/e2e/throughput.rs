//! What traffic over a veth pair loses while flowlog watches it: a stream of TCP, and small datagrams.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use flowlog_tests::measure::{Case, in_turn, progress};
use flowlog_tests::netns::{FAR, INTERFACE, NEAR, Pair};
use flowlog_tests::report::{Figure, Target};

use super::Agent;
use crate::pipeline::EIGHT;

/// How long each side of a round sends.
const LASTS: Duration = Duration::from_millis(1000);
const PORT: u16 = 5201;
const ROUNDS_MAX: usize = 21;
/// A frame of 60 bytes.
const SMALL: usize = 18;

pub(super) fn measured(rounds: usize) -> Result<Vec<Figure>> {
    let rounds = rounds.min(ROUNDS_MAX);
    let mut figures = Vec::new();
    for (name, unit, least, offloads, round) in [
        ("a TCP stream", "Gbit/s", 0.97, true, stream as fn(&Pair) -> Result<f64>),
        ("datagrams of 18 bytes", "packets/s", 0.92, false, datagrams),
    ] {
        progress(name);
        let pair = Pair::new(offloads)?;
        let folder = tempfile::tempdir()?;
        let logged = RefCell::new(0.0);
        let with = || {
            let agent = Agent::start(&pair, folder.path(), &[("all", EIGHT)], &[])?;
            let figure = round(&pair)?;
            let ended = agent.daemon.stop()?;
            ended.check()?;
            *logged.borrow_mut() = ended.number("/packets/counted/packets").unwrap_or(0) as f64;
            Ok(figure)
        };
        let mut cases = [Case::new("with flowlog", with), Case::new("without", || round(&pair))];
        let series = in_turn(rounds, &mut cases)?;
        ensure!(*logged.borrow() > 0.0, "flowlog saw nothing of {name}");
        let [with, without] = series.as_slice() else { anyhow::bail!("two cases") };
        let name = format!("e2e: {name} over a veth pair, beside without flowlog");
        figures.push(Figure::beside(name, with, without, unit, Target::AtLeast(least)));
    }
    Ok(figures)
}

fn died<T>(_: T) -> anyhow::Error {
    anyhow!("a host died")
}

/// Gigabits a second that a reader gets.
fn stream(pair: &Pair) -> Result<f64> {
    let listener = pair.near.enter(|| Ok(TcpListener::bind((NEAR, PORT))?)).join().map_err(died)??;
    let reading = std::thread::spawn(move || -> Result<(u64, Duration)> {
        let (mut stream, _) = listener.accept()?;
        let (mut buffer, mut bytes, began) = (vec![0; 256 << 10], 0, Instant::now());
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok((bytes, began.elapsed())),
                some => bytes += some as u64,
            }
        }
    });
    let writing = pair.far.enter(|| {
        let mut stream = TcpStream::connect((NEAR, PORT))?;
        let (buffer, began) = (vec![b's'; 256 << 10], Instant::now());
        while began.elapsed() < LASTS {
            stream.write_all(&buffer)?;
        }
        Ok(())
    });
    writing.join().map_err(died)??;
    let (bytes, took) = reading.join().map_err(died)??;
    Ok(bytes as f64 * 8.0 / 1e9 / took.as_secs_f64())
}

/// Datagrams a second that cross the interface, of one flow, to a socket that takes them.
fn datagrams(pair: &Pair) -> Result<f64> {
    let receiver = pair.near.enter(|| Ok(UdpSocket::bind((NEAR, PORT))?)).join().map_err(died)??;
    receiver.set_read_timeout(Some(Duration::from_millis(100)))?;
    let receiving = std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while receiver.recv(&mut buffer).is_ok() {}
    });
    let before = pair.near.counter(INTERFACE, "rx_packets")?;
    let sending = pair.far.enter(|| {
        let socket = UdpSocket::bind((FAR, 0))?;
        socket.connect((NEAR, PORT))?;
        let began = Instant::now();
        while began.elapsed() < LASTS {
            for _ in 0..100 {
                // Refused where the receiver is gone or has not begun: it is sent all the same.
                let _ = socket.send(&[b'd'; SMALL]);
            }
        }
        Ok(began.elapsed())
    });
    let took = sending.join().map_err(died)??;
    let crossed = pair.near.counter(INTERFACE, "rx_packets")? - before;
    receiving.join().map_err(died).context("the receiver")?;
    Ok(crossed as f64 / took.as_secs_f64())
}
