//! bpf(2) calls that aya does not have: batched look-ups, and a grace period that works on every kernel.
#![expect(unsafe_code, reason = "raw system calls; each block says why it is sound")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use zerocopy::{FromBytes, IntoBytes};

// linux/bpf.h
const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_GET_NEXT_KEY: libc::c_long = 4;
const BPF_OBJ_GET: libc::c_long = 7;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_PROG_QUERY: libc::c_long = 16;
const BPF_MAP_LOOKUP_BATCH: libc::c_long = 24;
/// `enum bpf_link_type`.
const BPF_LINK_TYPE_TCX: u32 = 11;
/// Flag of an element's look-up: copy the value under the spin lock in it.
const BPF_F_LOCK: u64 = 4;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_ARRAY_OF_MAPS: u32 = 12;

/// The members of `union bpf_attr` for BPF_MAP_CREATE, as far as they are used.
#[repr(C)]
#[derive(Default)]
struct CreateAttributes {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

/// The same for BPF_MAP_UPDATE_ELEM.
#[repr(C)]
struct UpdateAttributes {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The same for BPF_OBJ_GET.
#[repr(C)]
struct OpenAttributes {
    path: u64,
    fd: u32,
    flags: u32,
}

/// The same for BPF_OBJ_GET_INFO_BY_FD.
#[repr(C)]
struct InfoAttributes {
    fd: u32,
    length: u32,
    info: u64,
}

/// The beginning of `struct bpf_link_info` with the part for TCX links.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    link_type: u32,
    id: u32,
    program: u32,
    padding: u32,
    ifindex: u32,
    attach_type: u32,
}

/// As [`UpdateAttributes`], for BPF_MAP_GET_NEXT_KEY.
#[repr(C)]
struct NextAttributes {
    map_fd: u32,
    padding: u32,
    key: u64,
    next_key: u64,
}

/// The same for BPF_MAP_LOOKUP_BATCH.
#[repr(C)]
struct BatchAttributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    element_flags: u64,
    flags: u64,
}

/// The same for BPF_PROG_QUERY.
#[repr(C)]
#[derive(Default)]
struct QueryAttributes {
    ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    program_ids: u64,
    count: u32,
    padding: u32,
    program_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

/// `enum bpf_attach_type`: the two TCX chains of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcxChain {
    /// BPF_TCX_INGRESS.
    Ingress = 46,
    /// BPF_TCX_EGRESS.
    Egress = 47,
}

/// Calls bpf(2).
///
/// # Safety
///
/// Every pointer inside `attributes` must be valid for what the command reads or writes through it.
unsafe fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<RawFd> {
    // SAFETY: `attributes` is a live, initialised repr(C) struct of the size that is passed; the kernel reads, and
    // for batches writes, no more than that. What its pointers lead to is the caller's promise.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        RawFd::try_from(result).map_err(io::Error::other)
    }
}

/// A file descriptor as the kernel's structs hold it.
fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().unsigned_abs()
}

/// Where a walk over a hash map stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor(u32);

/// What one batched look-up gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// Entries in the buffers.
    pub(super) count: usize,
    /// Where to go on; `None` at the end of the map.
    pub(super) next: Option<Cursor>,
}

/// Copies the next entries of a hash map into the buffers (as many as the shorter one holds). ENOSPC: a bucket
/// holds more than that, so come again from the same cursor with larger ones. `locked`: each entry under its lock, so
/// that none is seen in the middle of becoming another connection's.
pub(super) fn lookup_batch<K: FromBytes + IntoBytes, V: FromBytes + IntoBytes>(
    map: BorrowedFd<'_>,
    from: Option<Cursor>,
    locked: bool,
    keys: &mut [K],
    values: &mut [V],
) -> io::Result<Slice> {
    let room = keys.len().min(values.len());
    let mut start = from.map_or(0, |cursor| cursor.0);
    let mut next = 0u32;
    let mut attributes = BatchAttributes {
        in_batch: if from.is_some() { std::ptr::from_mut(&mut start) as u64 } else { 0 },
        out_batch: std::ptr::from_mut(&mut next) as u64,
        keys: keys.as_mut_ptr() as u64,
        values: values.as_mut_ptr() as u64,
        count: u32::try_from(room).unwrap_or(u32::MAX),
        map_fd: number(map),
        element_flags: if locked { BPF_F_LOCK } else { 0 },
        flags: 0,
    };
    // SAFETY: a hash map's cursor is a u32; both buffers hold `count` elements of exactly the map's key and value
    // size (checked against the map when it was opened), any bytes are valid for them, and all outlive the call.
    let done = match unsafe { bpf(BPF_MAP_LOOKUP_BATCH, &mut attributes) } {
        Ok(_) => false,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
        Err(error) => return Err(error),
    };
    Ok(Slice { count: room.min(attributes.count as usize), next: (!done).then_some(Cursor(next)) })
}

/// Ids of the programs of a device's TCX chain in the order in which they run. aya's query opens each program, which
/// takes CAP_SYS_ADMIN; the ids alone take CAP_NET_ADMIN.
pub(super) fn tcx_programs(ifindex: u32, chain: TcxChain) -> io::Result<Vec<u32>> {
    let mut ids = vec![0u32; 64]; // BPF_MPROG_MAX: a chain holds no more
    let mut attributes = QueryAttributes {
        ifindex,
        attach_type: chain as u32,
        program_ids: ids.as_mut_ptr() as u64,
        count: 64,
        ..QueryAttributes::default()
    };
    // SAFETY: `program_ids` has room for `count` ids and outlives the call; the other pointers are null.
    unsafe { bpf(BPF_PROG_QUERY, &mut attributes) }?;
    ids.truncate(attributes.count as usize);
    Ok(ids)
}

/// Opens what is pinned at a path.
pub(super) fn open_pinned(path: &CStr) -> io::Result<OwnedFd> {
    let mut attributes = OpenAttributes { path: path.as_ptr() as u64, fd: 0, flags: 0 };
    // SAFETY: the path ends with a zero byte and outlives the call.
    let fd = unsafe { bpf(BPF_OBJ_GET, &mut attributes) }?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Where a TCX link is attached: the device (0 when it is gone) and the chain. `None`: another kind of link.
pub(super) fn tcx_link(link: BorrowedFd<'_>) -> io::Result<Option<(u32, u32)>> {
    let mut info = LinkInfo::default();
    let mut attributes = InfoAttributes {
        fd: number(link),
        length: u32::try_from(size_of::<LinkInfo>()).unwrap_or(0),
        info: std::ptr::from_mut(&mut info) as u64,
    };
    // SAFETY: the kernel writes at most `length` bytes to `info`, which outlives the call and takes any bytes.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attributes) }?;
    Ok((info.link_type == BPF_LINK_TYPE_TCX).then_some((info.ifindex, info.attach_type)))
}

/// How many elements a hash map holds whose keys are no longer than 256 bytes, whatever they mean; at most `most`.
pub(super) fn count_elements(map: BorrowedFd<'_>, most: u32) -> io::Result<u32> {
    let (mut key, mut next) = ([0_u64; 32], [0_u64; 32]);
    for count in 0..most {
        let mut attributes = NextAttributes {
            map_fd: number(map),
            padding: 0,
            key: if count == 0 { 0 } else { key.as_mut_ptr() as u64 },
            next_key: next.as_mut_ptr() as u64,
        };
        // SAFETY: both buffers have room for a key, by the contract above, and outlive the call.
        match unsafe { bpf(BPF_MAP_GET_NEXT_KEY, &mut attributes) } {
            Ok(_) => key = next,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(count),
            Err(error) => return Err(error),
        }
    }
    Ok(most)
}

/// Waits until every program that was running has ended: the update of an element of an array of maps from userspace
/// runs `synchronize_rcu` on every kernel, with any number of CPUs and with nohz_full (where membarrier does not).
#[derive(Debug)]
pub(super) struct GracePeriod {
    outer: OwnedFd,
    inner: OwnedFd,
}

impl GracePeriod {
    pub(super) fn new() -> io::Result<Self> {
        let inner = create_map(BPF_MAP_TYPE_ARRAY, b"FLOWLOG_GRACE_I\0", None)?;
        let outer = create_map(BPF_MAP_TYPE_ARRAY_OF_MAPS, b"FLOWLOG_GRACE_O\0", Some(inner.as_fd()))?;
        Ok(Self { outer, inner })
    }

    /// Returns after a full grace period (5 ms on an idle machine).
    pub(super) fn wait(&self) -> io::Result<()> {
        let mut key = 0u32;
        let mut value = number(self.inner.as_fd());
        let mut attributes = UpdateAttributes {
            map_fd: number(self.outer.as_fd()),
            padding: 0,
            key: std::ptr::from_mut(&mut key) as u64,
            value: std::ptr::from_mut(&mut value) as u64,
            flags: 0,
        };
        // SAFETY: key and value are u32, as the map was created, and outlive the call.
        unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut attributes) }.map(|_| ())
    }
}

fn create_map(map_type: u32, name: &[u8; 16], inner: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
    let mut attributes = CreateAttributes {
        map_type,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
        inner_map_fd: inner.map_or(0, number),
        map_name: *name,
        ..CreateAttributes::default()
    };
    // SAFETY: the struct holds no pointers.
    let fd = unsafe { bpf(BPF_MAP_CREATE, &mut attributes) }?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
