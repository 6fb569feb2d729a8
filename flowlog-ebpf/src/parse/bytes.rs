/// A packet's bytes, of which perhaps not all are there.
pub trait Bytes {
    /// The `N` bytes at `offset`; `None` when one of them is not there.
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// The packet's whole length in bytes, whether or not they can be read.
    fn length(&self) -> usize;

    /// `offset` itself. The kernel's verifier follows the bounds of every number on every path; a program that
    /// makes it forget them here has one path behind a loop over headers, and not one for each combination.
    fn forget(&self, offset: usize) -> usize {
        offset
    }
}

impl Bytes for [u8] {
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.get(offset..)?.first_chunk::<N>().copied()
    }

    fn length(&self) -> usize {
        self.len()
    }
}

/// A packet of which a capture kept only the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// What was kept.
    pub bytes: &'a [u8],
    /// Length on the wire in bytes.
    pub length: usize,
}

impl Bytes for Captured<'_> {
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.bytes.read(offset)
    }

    fn length(&self) -> usize {
        self.length
    }
}
