use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, mkdir, mkdirat, open, openat2};
use rustix::io::Errno;

use super::Error;
use super::folder::Folder;
use super::listing::{Listings, Sharing};
use super::spec::fill;

/// Nothing below a root leaves it, and no link is followed.
pub(super) const INSIDE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The folders below which files may be written, opened once, and the node that writes them.
#[derive(Debug)]
pub struct Roots {
    dirs: Vec<(PathBuf, OwnedFd)>,
    pub(super) node: String,
    pub(super) listings: Listings,
}

impl Roots {
    /// Opens each folder; one that is missing is created (0750) when its parent exists. Links on the way to a root
    /// are followed: the administrator named it.
    ///
    /// # Errors
    /// A root that cannot be opened or created.
    pub fn new(dirs: &[PathBuf]) -> Result<Self, Error> {
        let dirs = dirs.iter().map(|dir| open_root(dir)).collect::<Result<_, _>>()?;
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self { dirs, node, listings: Listings::default() })
    }

    /// With the node's name as records have it (`cluster/node`) instead of the host's.
    #[must_use]
    pub fn with_node(self, node: &str) -> Self {
        Self { node: node.into(), ..self }
    }

    /// Tasks that open their files while this lives read each folder once; without it, each task does. Whoever is told
    /// that a file was finished meanwhile calls [`Self::forget_listings`].
    #[must_use]
    pub fn share_listings(&self) -> Sharing<'_> {
        self.listings.share()
    }

    /// See [`Self::share_listings`].
    pub fn forget_listings(&self) {
        self.listings.forget();
    }

    /// Whether a task may write to this path, as far as the path itself says.
    ///
    /// # Errors
    /// It is not below a root, or names none.
    pub fn allow(&self, task: &str, path: &Path) -> Result<(), Error> {
        self.find(task, path).map(drop)
    }

    /// An absolute path, which part of it is below a root, and that root.
    fn find(&self, task: &str, path: &Path) -> Result<(PathBuf, PathBuf, &(PathBuf, OwnedFd)), Error> {
        let outside = || Error::OutsideRoots { task: task.into(), path: path.into(), roots: self.list() };
        let absolute = std::path::absolute(fill(path, task, Some(&self.node))).map_err(|_| outside())?;
        // The longest root is the nearest one.
        let (rest, root) = self
            .dirs
            .iter()
            .filter_map(|root| Some((absolute.strip_prefix(&root.0).ok()?.to_owned(), root)))
            .min_by_key(|(rest, _)| rest.components().count())
            .ok_or_else(outside)?;
        if rest.components().any(|part| !matches!(part, Component::Normal(_))) || rest.file_name().is_none() {
            return Err(outside());
        }
        Ok((absolute, rest, root))
    }

    /// The folder of a file, created where it is missing (0750), and the file's name in it.
    pub(super) fn folder(&self, task: &str, path: &Path) -> Result<(Folder, String), Error> {
        let outside = || Error::OutsideRoots { task: task.into(), path: path.into(), roots: self.list() };
        let (absolute, rest, (root_path, root)) = self.find(task, path)?;
        let name = rest.file_name().and_then(|name| name.to_str()).ok_or_else(outside)?;
        let parent = rest.parent().unwrap_or(Path::new(""));
        let at = absolute.parent().unwrap_or(Path::new("/")).to_path_buf();
        let failed =
            |source| Error::Io { task: task.into(), what: "open the folder", path: at.clone(), source };
        let fd = open_below(root, parent).map_err(|error| match error {
            Errno::LOOP => Error::Link { task: task.into(), path: at.clone() },
            other => failed(other.into()),
        })?;
        let root = (root_path.clone(), root.try_clone().map_err(failed)?);
        let (task, node) = (task.into(), self.node.clone());
        Ok((Folder { fd, path: at.clone(), task, node, root, below: parent.into() }, name.into()))
    }

    fn list(&self) -> String {
        self.dirs.iter().map(|(path, _)| path.display().to_string()).collect::<Vec<_>>().join(", ")
    }
}

/// Creates a folder and those above it that are missing (0750).
///
/// # Errors
/// One cannot be created, or is no folder.
pub fn create_folders(dir: &Path) -> Result<(), Error> {
    let create = || {
        DirBuilder::new().recursive(true).mode(0o750).create(dir)?;
        if std::fs::metadata(dir)?.is_dir() { Ok(()) } else { Err(Errno::NOTDIR.into()) }
    };
    create().map_err(|source: io::Error| Error::Folder { path: dir.into(), source })
}

pub(super) fn open_root(dir: &Path) -> Result<(PathBuf, OwnedFd), Error> {
    let failed = |source: io::Error| Error::Root { path: dir.into(), source };
    let path = std::path::absolute(dir).map_err(failed)?;
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "the path holds `..`")));
    }
    let fd = match open(&path, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => {
            mkdir(&path, Mode::from_raw_mode(0o750)).map_err(|error| failed(error.into()))?;
            open(&path, FOLDER, Mode::empty())
        }
        opened => opened,
    };
    Ok((path, fd.map_err(|error| failed(error.into()))?))
}

/// Opens a folder below `root` a component at a time, creating what is missing.
pub(super) fn open_below(root: &OwnedFd, parent: &Path) -> Result<OwnedFd, Errno> {
    let mut at = openat2(root, ".", FOLDER, Mode::empty(), INSIDE)?;
    for part in parent.components() {
        match mkdirat(&at, part.as_os_str(), Mode::from_raw_mode(0o750)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        at = openat2(&at, part.as_os_str(), FOLDER, Mode::empty(), INSIDE)?;
    }
    Ok(at)
}
