//! Asks the running daemon over its socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

/// How long the daemon may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the daemon answers.
#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    /// The daemon's socket.
    #[arg(long, value_name = "unix://PATH", default_value = "unix:///run/flowlog/flowlog.sock", env = "FLOWLOG_SERVER", value_parser = socket_path)]
    server: PathBuf,
}

impl ServerArgs {
    /// The daemon's answer to GET.
    ///
    /// # Errors
    /// No daemon answers, or not in time.
    pub(super) async fn ask(&self, route: &str) -> anyhow::Result<String> {
        tokio::time::timeout(PATIENCE, ask(&self.server, route))
            .await
            .context("the daemon does not answer")?
    }
}

/// A unix socket as a path or with `unix://` before it.
pub(crate) fn socket_path(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    if path.contains("://") {
        return Err("only unix sockets are served; write unix:///run/flowlog/flowlog.sock".into());
    }
    if !path.starts_with('/') {
        return Err(format!("`{text}` is no absolute path; write e.g. unix:///run/flowlog/flowlog.sock"));
    }
    Ok(path.into())
}

async fn ask(path: &Path, route: &str) -> anyhow::Result<String> {
    let stream = UnixStream::connect(path).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => anyhow::anyhow!(
            "no flowlog answers on {}; start `flowlog run`, or name with --server the --socket that it was given",
            path.display()
        ),
        std::io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("{} may not be opened by this user; try with sudo", path.display())
        }
        _ => anyhow::Error::from(error).context(format!("cannot connect to {}", path.display())),
    })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get(route).header("host", "flowlog").body(Empty::<Bytes>::new())?;
    let answer = sender.send_request(request).await?;
    let code = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(code.is_success(), "the daemon answered {code}: {}", String::from_utf8_lossy(&body).trim());
    match String::from_utf8(body.into()) {
        Ok(text) => Ok(text),
        Err(_) => bail!("the daemon's answer is no text"),
    }
}

/// A value by its path; null where there is none.
pub(super) fn at<'a>(of: &'a Value, path: &str) -> &'a Value {
    of.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
}

/// A text by its path; `-` where there is none.
pub(super) fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    at(of, key).as_str().unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_unix_socket() {
        assert_eq!(socket_path("unix:///run/a.sock"), Ok("/run/a.sock".into()));
        assert_eq!(socket_path("/run/a.sock"), Ok("/run/a.sock".into()));
        assert!(socket_path("tcp://127.0.0.1:1").is_err() && socket_path("a.sock").is_err());
    }
}
