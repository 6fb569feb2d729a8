//! Metrics, health and status of `flowlog run`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use flowlog_user::server::board::Board;
use flowlog_user::server::http::{Site, serve_tcp, serve_unix};
use flowlog_user::server::listen;
use flowlog_user::write::SocketPlace;
use tokio::net::{TcpListener, UnixListener};

/// Metrics and health, unless told otherwise: loopback, and a port that no component of Cilium uses.
const LISTEN: &str = "127.0.0.1:9477";
/// The status, unless told otherwise.
pub(crate) const SOCKET: &str = "/run/flowlog/flowlog.sock";

/// Where the daemon answers.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Address for /metrics, /healthz and /readyz, or `none` [default: 127.0.0.1:9477].
    #[arg(long, value_name = "ADDR", env = "FLOWLOG_LISTEN")]
    listen: Option<Place<SocketAddr>>,
    /// Unix socket for `flowlog status`, or `none` [default: /run/flowlog/flowlog.sock].
    #[arg(long, value_name = "PATH", env = "FLOWLOG_SOCKET")]
    socket: Option<Place<PathBuf>>,
    /// Also serve the five metrics of Hubble's dynamic exporter; not on a node whose Cilium agent has them already.
    #[arg(long, env = "FLOWLOG_HUBBLE_METRICS")]
    hubble_metrics: bool,
}

/// Somewhere or nowhere.
#[derive(Clone, Debug)]
enum Place<T> {
    None,
    At(T),
}

impl std::str::FromStr for Place<SocketAddr> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        let wrong =
            || format!("`{text}` is no address with a port; write e.g. 127.0.0.1:9477, [::1]:9477 or none");
        text.parse().map(Self::At).map_err(|_| wrong())
    }
}

impl std::str::FromStr for Place<PathBuf> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(if text == "none" { Self::None } else { Self::At(super::client::socket_path(text)?) })
    }
}

/// The listeners.
#[derive(Debug)]
pub(crate) struct Listeners {
    tcp: Option<TcpListener>,
    unix: Option<(UnixListener, SocketPlace)>,
    hubble_metrics: bool,
}

impl ServeArgs {
    /// Opens the listeners. What was asked for must be had; a default that is taken is said and done without.
    ///
    /// # Errors
    /// An address or a socket that was asked for cannot be had.
    pub(crate) async fn listen(&self) -> anyhow::Result<Listeners> {
        let tcp = match &self.listen {
            Some(Place::None) => None,
            Some(Place::At(address)) => Some(listen::tcp(*address).await?),
            None => without(listen::tcp(LISTEN.parse()?).await, "there are no metrics"),
        };
        let unix = match &self.socket {
            Some(Place::None) => None,
            Some(Place::At(path)) => Some(listen::unix(path)?),
            None => without(
                listen::unix(SOCKET.as_ref()),
                "`flowlog status` will not find this daemon; give it a --socket of its own, and `flowlog status` the same with --server",
            ),
        };
        Ok(Listeners { tcp, unix, hubble_metrics: self.hubble_metrics })
    }
}

fn without<T>(listener: Result<T, listen::Error>, consequence: &str) -> Option<T> {
    listener.inspect_err(|error| tracing::warn!(%error, "{consequence}")).ok()
}

impl Listeners {
    /// The folder that the socket's file is removed from at the end.
    pub(crate) fn socket_folder(&self) -> Option<&Path> {
        self.unix.as_ref()?.1.path().parent()
    }

    /// Serves what is on the board from now on, on this thread's runtime. The socket's file goes with what is returned.
    pub(crate) fn serve(self, board: &Arc<Board>) -> Option<SocketPlace> {
        let site = Arc::new(Site { board: Arc::clone(board), hubble_metrics: self.hubble_metrics });
        if let Some(listener) = self.tcp {
            let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
            tracing::info!(address, "metrics");
            tokio::spawn(serve_tcp(listener, Arc::clone(&site)));
        }
        let (listener, socket) = self.unix?;
        tokio::spawn(serve_unix(listener, site));
        Some(socket)
    }
}
