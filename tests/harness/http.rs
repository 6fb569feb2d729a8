//! Asks the daemon over HTTP, with nothing of flowlog's own.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result};

/// Status code and body of an answer to GET.
///
/// # Errors
/// When the stream fails or the answer is no HTTP.
pub fn get(mut stream: impl Read + Write, path: &str) -> Result<(u16, String)> {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: flowlog\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    let code = head.split(' ').nth(1).context("an answer has a code")?.parse()?;
    Ok((code, body.to_owned()))
}

/// The daemon's unix socket.
///
/// # Errors
/// When nobody answers.
pub fn unix(path: &std::path::Path) -> Result<std::os::unix::net::UnixStream> {
    let stream = std::os::unix::net::UnixStream::connect(path).context("the daemon's socket")?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

/// Series of a page of metrics: `name{labels}` and the value.
#[must_use]
pub fn series(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            line.rsplit_once(' ').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        })
        .collect()
}
