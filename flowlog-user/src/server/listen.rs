//! Where the daemon listens: a TCP address for metrics and health, a unix socket for the status too.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;
use tokio::net::{TcpListener, UnixListener};

use crate::write::{SocketError, SocketPlace};

/// A listener that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken or not this machine's.
    #[error("cannot listen on {address}: {source}; choose another with --listen, or `--listen none`")]
    Tcp {
        /// What was asked for.
        address: SocketAddr,
        /// The kernel's word.
        source: io::Error,
    },
    /// The socket cannot be had.
    #[error(transparent)]
    Unix(#[from] SocketError),
}

/// Listens on TCP.
///
/// # Errors
/// [`Error::Tcp`].
pub async fn tcp(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Tcp { address, source })
}

/// Listens on a unix socket (mode 0660), whose file goes with the second. To be called before other threads make files,
/// since the mode is given through the process' umask.
///
/// # Errors
/// [`Error::Unix`].
pub fn unix(path: &Path) -> Result<(UnixListener, SocketPlace), Error> {
    let place = SocketPlace::prepare(path)?;
    let before = umask(Mode::from_raw_mode(0o117));
    let bound = UnixListener::bind(path);
    umask(before);
    let listener = bound.map_err(|source| SocketError::Io { path: path.into(), source })?;
    Ok((listener, place))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn in_runtime<T>(work: impl FnOnce() -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _guard = runtime.enter();
        work()
    }

    #[test]
    fn a_socket_is_private_taken_over_from_the_dead_and_refused_beside_the_living() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/flowlog.sock");
        in_runtime(|| {
            let (listener, socket) = unix(&path).unwrap();
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o660);
            assert!(matches!(unix(&path), Err(Error::Unix(SocketError::Taken(_)))));
            // What a killed daemon leaves: the file, and nobody behind it.
            std::mem::forget(socket);
            drop(listener);
            let (_listener, socket) = unix(&path).unwrap();
            drop(socket);
            assert!(!path.exists());
        });
    }

    #[test]
    fn what_is_no_socket_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "mine").unwrap();
        in_runtime(|| assert!(matches!(unix(&path), Err(Error::Unix(SocketError::NotASocket(_))))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
