use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use super::Error;

/// Ends a wait of the thread that polls the kernel, e.g. because there are other tasks.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(super) fn new() -> Result<Self, Error> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        eventfd(0, flags).map(|fd| Self(Arc::new(fd))).map_err(|error| Error::Waker(error.into()))
    }

    /// Ends the wait that goes on, or the next one.
    pub fn wake(&self) {
        // Fails only when it was called 2^64 times and nobody waited since: then it is awake already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Takes the calls in.
    pub(super) fn take(&self) {
        // Fails when there was none.
        let _ = rustix::io::read(&*self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
