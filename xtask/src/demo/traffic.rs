//! A small chatty workload: a shop that asks a name server and a web server, and now and then moves something large.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

const WEB_PORT: u16 = 8080;
const BULK_PORT: u16 = 5201;
const DNS_PORT: u16 = 53;
const BULK_BYTES: usize = 5 << 20;
/// A pause between two visits.
const PAUSE: Duration = Duration::from_millis(200);
const REPLY_LIMIT: Duration = Duration::from_secs(1);
/// A question for shop.example in DNS' wire format.
const QUESTION: &[u8] =
    b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04shop\x07example\x00\x00\x01\x00\x01";

/// The serving pod, until it is killed.
pub(super) fn serve() -> Result<()> {
    let web = TcpListener::bind(("0.0.0.0", WEB_PORT)).context("port 8080")?;
    let bulk = TcpListener::bind(("0.0.0.0", BULK_PORT)).context("port 5201")?;
    let dns = UdpSocket::bind(("0.0.0.0", DNS_PORT)).context("port 53")?;
    thread::spawn(move || {
        for stream in bulk.incoming().flatten() {
            thread::spawn(move || std::io::copy(&mut &stream, &mut std::io::sink()));
        }
    });
    thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((len, from)) = dns.recv_from(&mut question) {
            // An answer is as long as its question and an address; nobody looks into it.
            let mut answer = question.get(..len).unwrap_or_default().to_vec();
            answer.extend([0; 16]);
            let _ = dns.send_to(&answer, from);
        }
    });
    for (visit, stream) in web.incoming().flatten().enumerate() {
        thread::spawn(move || answer(stream, 500 + visit % 40 * 500));
    }
    Ok(())
}

fn answer(mut stream: TcpStream, bytes: usize) -> std::io::Result<()> {
    let mut request = [0; 1024];
    let _ = stream.read(&mut request)?;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(&vec![b'.'; bytes])
}

/// The asking pod, until it is killed. What fails is tried again.
pub(super) fn visit(server: &str) -> Result<()> {
    for round in 0_u64.. {
        let _ = resolve(server);
        let _ = request(server);
        if round % 20 == 5 {
            let _ = move_much(server);
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn resolve(server: &str) -> std::io::Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.set_read_timeout(Some(REPLY_LIMIT))?;
    socket.send_to(QUESTION, (server, DNS_PORT))?;
    socket.recv(&mut [0; 512]).map(drop)
}

fn request(server: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect((server, WEB_PORT))?;
    stream.write_all(b"GET /cart HTTP/1.1\r\nHost: shop.example\r\n\r\n")?;
    std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
}

fn move_much(server: &str) -> std::io::Result<()> {
    TcpStream::connect((server, BULK_PORT))?.write_all(&vec![0; BULK_BYTES])
}
