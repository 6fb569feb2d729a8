//! The place of a unix socket: made before it is bound, and gone when the daemon is.

use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Why a socket cannot be put there.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon answers there.
    #[error("another flowlog answers on {}; stop it, or give this one another --socket, or `--socket none`", .0.display())]
    Taken(PathBuf),
    /// Something that is no socket stands in its place.
    #[error("{} is there and is no socket; move it away, or give another --socket, or `--socket none`", .0.display())]
    NotASocket(PathBuf),
    /// Folder or socket could not be made.
    #[error("cannot make the socket {}: {source}; choose another with --socket, or `--socket none`", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
}

/// A place where a socket may be bound; its file goes when this does.
#[derive(Debug)]
pub struct SocketPlace(PathBuf);

impl SocketPlace {
    /// Makes a missing folder (0750) and takes away a socket that nobody answers on.
    ///
    /// # Errors
    /// See [`SocketError`].
    pub fn prepare(path: &Path) -> Result<Self, SocketError> {
        let failed = |source| SocketError::Io { path: path.into(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            match std::fs::DirBuilder::new().mode(0o750).create(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(failed)?,
            }
        }
        match std::fs::symlink_metadata(path) {
            Ok(meta) if !meta.file_type().is_socket() => return Err(SocketError::NotASocket(path.into())),
            Ok(_) if UnixStream::connect(path).is_ok() => return Err(SocketError::Taken(path.into())),
            Ok(_) => std::fs::remove_file(path).map_err(failed)?,
            Err(_) => {}
        }
        Ok(Self(path.into()))
    }

    /// The socket's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        // Somebody else may have taken it away, which is what was wanted.
        drop(std::fs::remove_file(&self.0));
    }
}
