//! New UDP flows at a rate: one datagram each, from one host's sockets to an address behind the other's interface where
//! nobody is. They cross that interface's ingress and end there.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::netns::{FAR, INTERFACE, Pair};

/// Nobody's address, behind the near host's interface.
pub const NOBODY: &str = "10.77.0.200";
/// Destination ports; those of tunnels are not among them.
const PORTS: std::ops::Range<u16> = 10_000..60_000;
/// Distinct flows of a socket.
const FLOWS_OF_A_SOCKET: u64 = PORTS.end as u64 - PORTS.start as u64;
/// Datagrams are sent in turns of this length.
const TURN: Duration = Duration::from_millis(1);

/// How many flows, and how fast.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Flows a second.
    pub per_second: u64,
    /// How long.
    pub lasts: Duration,
    /// After so many the first ones come again.
    pub distinct: u64,
    /// Bytes of each datagram.
    pub payload_bytes: usize,
}

/// What was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Datagrams.
    pub datagrams: u64,
    /// How long it took.
    pub took: Duration,
}

/// A load under way.
#[derive(Debug)]
pub struct Sending {
    thread: JoinHandle<Result<Sent>>,
    stop: Arc<AtomicBool>,
}

impl Load {
    /// Sends from the far host of a pair.
    ///
    /// # Errors
    /// When the neighbour entry cannot be made.
    pub fn start(self, pair: &Pair) -> Result<Sending> {
        let near_mac = "02:77:00:00:00:01";
        let entry =
            ["ip", "neighbour", "replace", NOBODY, "lladdr", near_mac, "dev", INTERFACE, "nud", "permanent"];
        pair.far.run(&entry)?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        Ok(Sending { thread: pair.far.enter(move || self.send(&asked)), stop })
    }

    fn send(self, stop: &AtomicBool) -> Result<Sent> {
        let sockets = (0..self.distinct.div_ceil(FLOWS_OF_A_SOCKET))
            .map(|_| UdpSocket::bind((FAR, 0)))
            .collect::<std::io::Result<Vec<_>>>()?;
        let payload = vec![b'n'; self.payload_bytes];
        let total = u64::try_from(u128::from(self.per_second) * self.lasts.as_millis() / 1000)?;
        let (began, mut sent) = (Instant::now(), 0);
        while sent < total && !stop.load(Ordering::Relaxed) {
            let passed = began.elapsed();
            // Who was held up makes up for it.
            let due = u128::from(self.per_second) * (passed + TURN).as_micros() / 1_000_000;
            let due = u64::try_from(due)?.min(total);
            while sent < due {
                let flow = sent % self.distinct;
                let socket = sockets.get(usize::try_from(flow / FLOWS_OF_A_SOCKET)?).context("a socket")?;
                let port = PORTS.start + u16::try_from(flow % FLOWS_OF_A_SOCKET)?;
                socket.send_to(&payload, (NOBODY, port))?;
                sent += 1;
            }
            // What is measured is a rate.
            sleep(TURN.saturating_sub(began.elapsed() - passed));
        }
        Ok(Sent { datagrams: sent, took: began.elapsed() })
    }
}

impl Sending {
    /// Whether all is sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until all is sent.
    ///
    /// # Errors
    /// When sending failed.
    pub fn wait(self) -> Result<Sent> {
        self.thread.join().map_err(|_| anyhow::anyhow!("the sender died"))?
    }

    /// Sends no more.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn stop(self) -> Result<Sent> {
        self.stop.store(true, Ordering::Relaxed);
        self.wait()
    }
}
