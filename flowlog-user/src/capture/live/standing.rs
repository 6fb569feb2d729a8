//! The table as it stands: what a change of tasks divides into before and after.

use flowlog_abi::Report;
use flowlog_ebpf::report;

use super::sweep::Sweep;
use super::{Error, Live};

impl Live {
    /// Shows every connection of the table with what has been counted so far, and changes nothing.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn standing(&self, mut each: impl FnMut(&Report)) -> Result<(), Error> {
        // A walk of its own: the regular one goes on where it was.
        Sweep::under_lock().whole(&self.loaded.flows_fd, |key, entry| each(&report(key, entry)))
    }
}
