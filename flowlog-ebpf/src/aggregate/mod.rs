//! Packets to connections: key, entry, report, end.
//!
//! In: a [`Packet`](crate::Packet) and where it was seen. Out: the key of its connection, the entry it is added to,
//! the reports about it. What never happens here: a look-up, a lock, an atomic operation: who runs this brings
//! them (see [`Add`]).

mod around;
mod entry;
mod key;
mod lifetime;
mod reporting;
#[cfg(test)]
mod tests;

pub use around::note_around;
pub use entry::{Add, Plain, Sight, add, add_side, add_with, cross, new_entry, reopen, write_entry};
pub use key::tag;
pub use lifetime::{Closed, Spacing, Timeouts, closed, expired, how, pending, reopens, wants_report};
pub use reporting::{acknowledge, alone, report, write_alone, write_report};

/// The pair's element of one direction (0: low to high; anything else: high to low), without a bounds check that
/// could panic.
#[inline(always)]
pub(crate) const fn of<T>(pair: &[T; 2], direction: usize) -> &T {
    let [up, down] = pair;
    if direction == 0 { up } else { down }
}

/// [`of`], to be changed.
#[inline(always)]
pub(crate) const fn of_mut<T>(pair: &mut [T; 2], direction: usize) -> &mut T {
    let [up, down] = pair;
    if direction == 0 { up } else { down }
}
