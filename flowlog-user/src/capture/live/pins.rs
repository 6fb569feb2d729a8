//! Tables and links that outlive the daemon (`--pin`): names in a BPF file system, one folder for each network namespace
//! (they know of none), in it one for the links and one for the tables of each layout and size.
//!
//! The names are not files: they hold kernel objects, and `rm -r` of the folder takes everything down.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aya::maps::MapInfo;
use flowlog_abi::{FlowEntry, FlowKey, LAYOUT_ID, names};
use rustix::fs::{CWD, Dir, FlockOperation, Mode, OFlags, flock, open, statfs, unlink};
use rustix::io::Errno;

use crate::clock::monotonic_ns;

use super::attach::Side;
use super::bpf::{open_pinned, tcx_link};
use super::load::with_causes;
use super::{Error, Options};

/// BPF_FS_MAGIC of linux/magic.h.
/// How often, and how far apart, a lock is tried that another one holds.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;
/// Only root may open what is in there.
const FOLDER_MODE: u32 = 0o700;
/// What stays: all that programs and daemons share. Scratch memory and the cache of what was rejected are each load's.
const MAPS: [&str; 12] = [
    names::FLOWS,
    names::RING,
    names::HOOKS,
    names::LEDGER,
    names::REASONS,
    names::OBSERVED,
    names::CONTROL,
    names::RULES,
    names::PREFIXES,
    names::PORTS,
    names::PROTOCOLS,
    names::KEPT,
];
const LINKS: &str = "links";

/// The folder of this network namespace, locked.
pub(super) struct Pins {
    folder: PathBuf,
    tables: PathBuf,
    /// The programs of this load that others of it hand packets over to; not shared with those of another.
    handover: PathBuf,
    /// The tables were there before.
    pub(super) continued: bool,
    _lock: OwnedFd,
}

impl Pins {
    /// Opens or makes the folder, and makes sure that nobody else uses it and that what is in it is what we expect.
    pub(super) fn open(at: &Path, options: &Options) -> Result<Self, Error> {
        let refused = |path: &Path, reason: &dyn std::fmt::Display| Error::Pin {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        make(at)?;
        let magic = statfs(at).map_err(|error| refused(at, &io::Error::from(error)))?.f_type;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a magic number has 32 bits"
        )]
        if magic as u32 != BPF_FS_MAGIC {
            let remedy = "it is not in a BPF file system; mount one with `mount -t bpf bpf /sys/fs/bpf` and give a \
                          folder in it, in a container the host's";
            return Err(refused(at, &remedy));
        }
        let netns = rustix::fs::stat("/proc/self/ns/net")
            .map_err(|error| refused(at, &io::Error::from(error)))?
            .st_ino;
        let folder = at.join(netns.to_string());
        make(&folder)?;
        let lock = open(&folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| refused(&folder, &io::Error::from(error)))?;
        match lock_soon(&lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(refused(
                    &folder,
                    &"another flowlog uses it; stop that one, or give another folder",
                ));
            }
            Err(error) => return Err(refused(&folder, &io::Error::from(error))),
        }
        make(&folder.join(LINKS))?;
        let tables = folder.join(format!(
            "{LAYOUT_ID:08x}-{}-{}",
            options.table_entries,
            options.ring_bytes.next_power_of_two()
        ));
        make(&tables)?;
        let handover = tables.join(format!("{}-{}", names::HANDOVER, monotonic_ns()));
        let mut pins = Self { folder, tables, handover, continued: false, _lock: lock };
        pins.continued = pins.check(options)?;
        Ok(pins)
    }

    /// Whether all tables are there. aya takes whatever it finds under a name, so each is compared first. A set that is
    /// not whole comes of a start that was cut short, before anything was attached: it goes.
    fn check(&self, options: &Options) -> Result<bool, Error> {
        let mut found = Vec::new();
        for name in MAPS {
            let path = self.map(name);
            match MapInfo::from_pin(&path) {
                Ok(info) => found.push((name, path, info)),
                Err(_) if !path.exists() => {}
                Err(error) => return Err(Error::Pin { path, reason: with_causes(&error) }),
            }
        }
        if found.len() < MAPS.len() {
            found.iter().for_each(|(_, path, _)| remove(path));
            return Ok(false);
        }
        for (name, path, info) in found {
            if let Some(other) = differs(name, &info, options) {
                let reason = format!(
                    "it is not a table of this flowlog ({other}); if nobody else uses it, remove it with `rm -r {}`",
                    self.folder.display()
                );
                return Err(Error::Pin { path, reason });
            }
        }
        Ok(true)
    }

    /// The names and places of the tables.
    pub(super) fn maps(&self) -> impl Iterator<Item = (&'static str, PathBuf)> + '_ {
        MAPS.into_iter().map(|name| (name, self.map(name)))
    }

    fn map(&self, name: &str) -> PathBuf {
        self.tables.join(name)
    }

    /// Where this load's array of programs is to be.
    pub(super) fn handover(&self) -> PathBuf {
        self.handover.clone()
    }

    /// Takes the arrays of earlier loads away, whose programs run no more.
    pub(super) fn keep_handover(&self) {
        let named = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(names::HANDOVER))
        };
        entries(&self.tables)
            .iter()
            .filter(|path| named(path) && **path != self.handover)
            .for_each(|path| remove(path));
    }

    /// The kernel's number of the flow table that was there before.
    pub(super) fn table_id(&self) -> Option<u32> {
        self.continued.then(|| MapInfo::from_pin(self.map(names::FLOWS)).ok().map(|info| info.id())).flatten()
    }

    /// Where the link of a hook is.
    pub(super) fn link(&self, ifindex: u32, side: Side) -> PathBuf {
        self.folder.join(LINKS).join(format!("{ifindex}-{}", side.name()))
    }

    /// Whether the link of a hook is there, and at this hook: names outlive devices, and indexes come again. Takes it
    /// away when it is another's.
    pub(super) fn has_link(&self, ifindex: u32, side: Side) -> bool {
        let path = self.link(ifindex, side);
        let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
        let Ok(link) = open_pinned(&name) else { return false };
        let here = (ifindex, side.chain() as u32);
        if tcx_link(link.as_fd()).is_ok_and(|at| at == Some(here)) {
            return true;
        }
        remove(&path);
        false
    }

    /// Takes the links away that are not of these hooks, which detaches them.
    pub(super) fn keep_links(&self, hooks: impl Iterator<Item = (u32, Side)>) {
        let keep: Vec<PathBuf> = hooks.map(|(ifindex, side)| self.link(ifindex, side)).collect();
        for path in entries(&self.folder.join(LINKS)) {
            if !keep.contains(&path) {
                remove(&path);
            }
        }
    }

    /// Folders with tables of another layout or size.
    pub(super) fn others(&self) -> Vec<PathBuf> {
        let links = self.folder.join(LINKS);
        entries(&self.folder).into_iter().filter(|path| *path != links && *path != self.tables).collect()
    }

    /// Whether tables in such a folder are of this layout, so that they can be read.
    pub(super) fn is_readable(folder: &Path) -> bool {
        let layout = format!("{LAYOUT_ID:08x}-");
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&layout))
    }

    /// Takes such a folder away.
    pub(super) fn forget(folder: &Path) {
        entries(folder).iter().for_each(|path| remove(path));
        let _ = rustix::fs::rmdir(folder); // tried again at the next start
    }
}

/// Takes a pin away; what it held goes when nobody else holds it.
pub(super) fn remove(path: &Path) {
    match unlink(path) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => tracing::warn!(path = %path.display(), %error, "cannot remove a pin"),
    }
}

fn make(folder: &Path) -> Result<(), Error> {
    match rustix::fs::mkdir(folder, Mode::from_raw_mode(FOLDER_MODE)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(Error::Pin { path: folder.to_owned(), reason: io::Error::from(error).to_string() }),
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = rustix::fs::openat(CWD, folder, flags, Mode::empty()).and_then(Dir::new) else {
        return Vec::new();
    };
    dir.filter_map(Result::ok)
        .filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
        .map(|entry| folder.join(entry.file_name().to_string_lossy().as_ref()))
        .collect()
}

/// In what a map is not the one that the object would make; the sizes that the name of the folder does not say.
fn differs(name: &str, info: &MapInfo, options: &Options) -> Option<String> {
    let kind = info.map_type().map_or(0, |kind| kind as u32);
    let has = (kind, info.key_size(), info.value_size(), info.max_entries());
    let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    // Type, size of key and value, entries, as linux/bpf.h numbers and counts them.
    let wanted = match name {
        names::FLOWS => (1, size(size_of::<FlowKey>()), size(size_of::<FlowEntry>()), options.table_entries),
        names::RING => (27, 0, 0, options.ring_bytes),
        names::KEPT => (2, 4, size(size_of::<flowlog_abi::Kept>()), 1),
        names::LEDGER => (6, 4, size(size_of::<flowlog_abi::Ledger>()), 1),
        names::HOOKS => (6, 4, size(size_of::<flowlog_abi::Counters>()), flowlog_abi::SLOTS),
        names::REASONS => (6, 4, 8, size(flowlog_abi::REASONS.len())),
        names::OBSERVED => (1, 4, 4, has.3),
        names::CONTROL => (2, 4, 8, 1),
        names::RULES => (2, 4, size(size_of::<flowlog_abi::RuleBase>()), 2),
        names::PREFIXES => (11, 28, size(size_of::<flowlog_abi::Groups>()), has.3),
        names::PORTS => (1, 4, size(size_of::<flowlog_abi::Groups>()), has.3),
        _ => (2, 4, 8, 512),
    };
    let named = info.name_as_str() == Some(name);
    // BPF_F_NO_PREALLOC where the daemon alone inserts.
    let flags = u32::from(matches!(name, names::PREFIXES | names::PORTS));
    if named && has == wanted && info.map_flags() == flags {
        return None;
    }
    Some(format!(
        "type, key, value and entries are {has:?} instead of {wanted:?}, flags {:#x} instead of {flags:#x}",
        info.map_flags()
    ))
}

/// Locks, also where one that is just ending, or a process that it has just forked, holds the lock a moment longer.
fn lock_soon(file: &OwnedFd) -> rustix::io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            locked => return locked,
        }
    }
    Err(Errno::WOULDBLOCK)
}
