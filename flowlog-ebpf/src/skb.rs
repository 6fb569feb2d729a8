//! The kernel's packet: what is known beside its bytes, and the bytes without touching them.
#![expect(unsafe_code, reason = "fields of the context, direct packet access and a helper")]

use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use aya_ebpf::programs::TcContext;
use core::arch::asm;
use core::mem::MaybeUninit;
use flowlog_ebpf::Bytes;

/// Headers end before this; bounds what the verifier must assume of an offset.
const OFFSET_MAX: usize = 0x3fff;

/// One packet at a hook.
pub(crate) struct Skb<'a> {
    context: &'a TcContext,
}

impl<'a> Skb<'a> {
    #[inline(always)]
    pub(crate) fn new(context: &'a TcContext) -> Self {
        Self { context }
    }

    /// Interface of the hook.
    #[inline(always)]
    pub(crate) fn ifindex(&self) -> u32 {
        // SAFETY: the kernel gives a valid context, here and below.
        unsafe { (*self.context.skb.skb).ifindex }
    }

    /// Interface through which the packet entered the node; at egress 0 when it was made here.
    #[inline(always)]
    pub(crate) fn ingress_ifindex(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.context.skb.skb).ingress_ifindex }
    }

    /// Segments that the packet becomes, payload of one in bytes; 0 where not said.
    #[inline(always)]
    pub(crate) fn offload(&self) -> (u32, u32) {
        // SAFETY: as above.
        unsafe { ((*self.context.skb.skb).gso_segs, (*self.context.skb.skb).gso_size) }
    }

    /// Whether a VLAN tag stands in the metadata.
    #[inline(always)]
    pub(crate) fn vlan_in_metadata(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.context.skb.skb).vlan_present != 0 }
    }

    /// The VLAN tag that stands in the metadata, if one does.
    #[inline(always)]
    pub(crate) fn vlan_tci(&self) -> u16 {
        // SAFETY: as above.
        unsafe { (*self.context.skb.skb).vlan_tci as u16 }
    }

    #[inline(always)]
    fn read_linear<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        // SAFETY: as above. Volatile: read again each time, since the verifier remembers of a pointer how far it has
        // been checked, and would follow every combination of earlier reads through the rest of the program.
        let (mut start, end) = unsafe {
            let skb = self.context.skb.skb;
            (
                (&raw const (*skb).data).read_volatile() as usize,
                (&raw const (*skb).data_end).read_volatile() as usize,
            )
        };
        // SAFETY: a sum of registers, in assembly because the compiler must not split it into others than those the
        // verifier then knows the bounds of. (An empty piece would do, but its line information is refused.)
        unsafe {
            asm!("{start} += {offset}", start = inout(reg) start, offset = in(reg) offset,
                options(pure, nomem, nostack));
        }
        if start + N > end {
            return None;
        }
        // SAFETY: the N bytes end before the end of the linear part.
        Some(unsafe { load::<N>(start) })
    }

    #[inline(always)]
    fn read_anywhere<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = MaybeUninit::<[u8; N]>::uninit();
        // SAFETY: the helper fills all N bytes or none and says which.
        unsafe {
            let from = self.context.as_ptr().cast();
            match bpf_skb_load_bytes(from, offset as u32, bytes.as_mut_ptr().cast(), N as u32) {
                0 => Some(bytes.assume_init()),
                _ => None,
            }
        }
    }
}

/// Loads `N` bytes in as few instructions as the size allows: the compiler takes them one by one, since it must not
/// assume an alignment, but packets may be read unaligned wherever the kernel has direct access at all.
///
/// # Safety
/// `from` points to `N` readable bytes.
#[inline(always)]
pub(crate) unsafe fn load<const N: usize>(from: usize) -> [u8; N] {
    let mut bytes = [0; N];
    let to = bytes.as_mut_ptr();
    let mut at = 0;
    // An IPv4 header's addresses come in one word like that.
    if N % 8 == 4 {
        // SAFETY: as below.
        unsafe {
            let word: u64;
            asm!("{word} = *(u32 *)({from} + 0)", word = out(reg) word, from = in(reg) from,
                options(pure, readonly, nostack));
            to.cast::<u32>().write_unaligned(word as u32);
        }
        at = 4;
    }
    // SAFETY: each step loads and stores as many bytes as are left at least; the loops vanish when unrolled.
    unsafe {
        while at + 8 <= N {
            let word: u64;
            asm!("{word} = *(u64 *)({from} + 0)", word = out(reg) word, from = in(reg) from + at,
                options(pure, readonly, nostack));
            to.add(at).cast::<u64>().write_unaligned(word);
            at += 8;
        }
        if at + 4 <= N {
            let word: u64;
            asm!("{word} = *(u32 *)({from} + 0)", word = out(reg) word, from = in(reg) from + at,
                options(pure, readonly, nostack));
            to.add(at).cast::<u32>().write_unaligned(word as u32);
            at += 4;
        }
        if at + 2 <= N {
            let word: u64;
            asm!("{word} = *(u16 *)({from} + 0)", word = out(reg) word, from = in(reg) from + at,
                options(pure, readonly, nostack));
            to.add(at).cast::<u16>().write_unaligned(word as u16);
            at += 2;
        }
        if at < N {
            to.add(at).write((from as *const u8).add(at).read());
        }
    }
    bytes
}

impl Bytes for Skb<'_> {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        if offset > OFFSET_MAX {
            return None;
        }
        match self.read_linear::<N>(offset) {
            Some(bytes) => Some(bytes),
            None => self.read_anywhere::<N>(offset),
        }
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.context.len() as usize
    }

    #[inline(always)]
    fn forget(&self, offset: usize) -> usize {
        forget(offset, self.length())
    }
}

/// `offset`, of which the verifier knows nothing any more; nor does it know `unknown`.
#[inline(always)]
pub(crate) fn forget(offset: usize, unknown: usize) -> usize {
    let mut same = offset;
    // SAFETY: registers only. A number and twice the same unknown one give the number, which only we know.
    unsafe {
        asm!("{same} ^= {unknown}", "{same} ^= {unknown}", same = inout(reg) same,
            unknown = in(reg) unknown, options(pure, nomem, nostack));
    }
    same
}
