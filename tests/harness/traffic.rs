//! Traffic of known size.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::daemon::PATIENCE;
use crate::netns::Pair;

/// One connection as its client made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The client's address.
    pub client: SocketAddr,
    /// The server's address.
    pub server: SocketAddr,
}

/// Binds a socket where another one of this process may have been until now: what is closed stays for a moment with a
/// child that is about to begin another program, and its address with it.
///
/// # Errors
/// When it cannot be bound, or somebody stays there.
pub fn bound<T>(bind: impl Fn() -> io::Result<T>) -> Result<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        match bind() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            bound => return Ok(bound?),
        }
    }
}

/// Waits until a server listens; otherwise says why it does not.
fn came_up(listening: &Receiver<()>, serving: JoinHandle<Result<()>>) -> Result<JoinHandle<Result<()>>> {
    match listening.recv_timeout(PATIENCE) {
        Ok(()) => Ok(serving),
        Err(_) => Err(said(serving).err().unwrap_or_else(|| anyhow::anyhow!("the server never listened"))),
    }
}

/// What a thread of a host has to say in the end.
fn said<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow::anyhow!("a host died"))?
}

/// Opens `count` TCP connections from near to `server`, one after another; each sends `request` bytes, gets `reply`
/// bytes back and is closed by both sides.
///
/// # Errors
/// When a connection fails.
pub fn tcp(pair: &Pair, server: SocketAddr, count: usize, request: usize, reply: usize) -> Result<Vec<Made>> {
    let (ready, listening) = channel();
    let serving = pair.far.enter(move || -> Result<()> {
        let listener = bound(|| TcpListener::bind(server))?;
        ready.send(())?;
        let mut buffer = vec![0; request];
        for _ in 0..count {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            stream.read_exact(&mut buffer)?;
            stream.write_all(&vec![b'r'; reply])?;
            // Ends with the client's FIN, so that the client is the one that waits in TIME_WAIT.
            let _ = stream.read(&mut buffer)?;
        }
        Ok(())
    });
    let serving = came_up(&listening, serving)?;
    let asking = pair.near.enter(move || -> Result<Vec<Made>> {
        let mut made = Vec::with_capacity(count);
        let mut buffer = vec![0; reply];
        for _ in 0..count {
            let mut stream = TcpStream::connect(server)?;
            stream.set_nodelay(true)?;
            made.push(Made { client: stream.local_addr()?, server });
            stream.write_all(&vec![b'q'; request])?;
            stream.read_exact(&mut buffer)?;
            stream.shutdown(Shutdown::Write)?;
            // The server's FIN.
            let _ = stream.read(&mut buffer)?;
        }
        Ok(made)
    });
    let made = said(asking)?;
    said(serving)?;
    Ok(made)
}

/// Sends `count` datagrams of `size` bytes from near to `server`, which counts them.
///
/// # Errors
/// When one cannot be sent or does not arrive.
pub fn udp(pair: &Pair, server: SocketAddr, count: usize, size: usize) -> Result<Made> {
    let (ready, listening) = channel();
    let receiving = pair.far.enter(move || -> Result<()> {
        let socket = bound(|| UdpSocket::bind(server))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        ready.send(())?;
        let mut buffer = vec![0; 65_536];
        for received in 0..count {
            let (length, peer) =
                socket.recv_from(&mut buffer).with_context(|| format!("{received} received"))?;
            anyhow::ensure!(length == size, "{length} bytes instead of {size}");
            // Every hundredth is acknowledged, so that no buffer overflows.
            if received % 100 == 99 {
                socket.send_to(b"k", peer)?;
            }
        }
        Ok(())
    });
    let receiving = came_up(&listening, receiving)?;
    let sending = pair.near.enter(move || -> Result<Made> {
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let client = socket.local_addr()?;
        for sent in 0..count {
            socket.send(&vec![b'u'; size])?;
            if sent % 100 == 99 {
                socket.recv(&mut [0; 8])?;
            }
        }
        Ok(Made { client, server })
    });
    let made = said(sending)?;
    said(receiving)?;
    Ok(made)
}

/// Sends `count` pings from near to `to`, one every 10 ms; all must be answered.
///
/// # Errors
/// When one is not.
pub fn ping(pair: &Pair, to: &str, count: usize) -> Result<()> {
    let said = pair.near.run(&["ping", "-q", "-c", &count.to_string(), "-i", "0.01", to])?;
    anyhow::ensure!(said.contains(&format!(" {count} received")), "{said}");
    Ok(())
}

/// What the sockets themselves counted on a connection that is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The client's port.
    pub port: u16,
    /// TCP segments the client's socket sent (`tcpi_segs_out`).
    pub sent: u64,
    /// TCP segments it received (`tcpi_segs_in`).
    pub received: u64,
    /// Payload the client's socket sent, sent again included (`tcpi_bytes_sent`).
    pub payload_bytes: u64,
}

/// Streams `bytes` from near to far, and a little back; the connection stays open while `then` runs.
///
/// # Errors
/// When the stream fails, or `then` does.
pub fn stream(
    pair: &Pair,
    server: SocketAddr,
    bytes: usize,
    then: impl FnOnce(Segments) -> Result<()>,
) -> Result<()> {
    let (ready, listening) = channel();
    let (stop, stopped) = channel::<()>();
    let serving = pair.far.enter(move || -> Result<()> {
        let listener = bound(|| TcpListener::bind(server))?;
        ready.send(())?;
        let (mut stream, _) = listener.accept()?;
        let copied = std::io::copy(&mut (&mut stream).take(bytes as u64), &mut std::io::sink())?;
        anyhow::ensure!(copied == bytes as u64, "{copied} bytes came");
        stream.write_all(b"done")?;
        let _ = stopped.recv();
        Ok(())
    });
    let serving = came_up(&listening, serving)?;
    let sending = pair.near.enter(move || -> Result<TcpStream> {
        let mut stream = TcpStream::connect(server)?;
        stream.write_all(&vec![b's'; bytes])?;
        stream.read_exact(&mut [0; 4])?;
        Ok(stream)
    });
    let open = said(sending)?;
    let port = open.local_addr()?.port();
    let outcome = then(settled(pair, port)?);
    drop((open, stop));
    said(serving)?;
    outcome
}

/// The client socket's counters once they stand still (its last ACK may be delayed by 40 ms).
fn settled(pair: &Pair, port: u16) -> Result<Segments> {
    let mut last = None;
    for _ in 0..50 {
        let text = pair.near.run(&["ss", "-tinHO", "sport", "=", &format!(":{port}")])?;
        let number = |name: &str| {
            text.split_whitespace().find_map(|word| word.strip_prefix(name)).and_then(|n| n.parse().ok())
        };
        let now = Segments {
            port,
            sent: number("segs_out:").with_context(|| text.clone())?,
            received: number("segs_in:").with_context(|| text.clone())?,
            payload_bytes: number("bytes_sent:").with_context(|| text.clone())?,
        };
        if last == Some(now) {
            return Ok(now);
        }
        last = Some(now);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    anyhow::bail!("the socket's counters do not settle")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A child that holds a copy of the socket, as one has between its fork and its exec.
    #[test]
    fn an_address_is_had_once_a_child_lets_it_go() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let copy = std::os::fd::OwnedFd::from(socket.try_clone().unwrap());
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(copy).spawn().unwrap();
        drop(socket);
        assert!(UdpSocket::bind(address).is_err(), "the child holds it");
        let letting_go = std::thread::spawn(move || {
            drop(child.stdin.take());
            child.wait().unwrap()
        });
        bound(|| UdpSocket::bind(address)).unwrap();
        letting_go.join().unwrap();
    }
}
