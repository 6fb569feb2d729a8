//! What is in the tasks' folders, read once for all tasks that open their files together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::fstat;

use super::Error;
use super::folder::Folder;

/// A folder, whatever its path.
type Place = (u64, u64);

/// Names by folder, while they are shared; nothing while they are not.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<Option<HashMap<Place, Arc<Vec<String>>>>>);

/// While this lives, a folder is read once.
#[derive(Debug)]
pub struct Sharing<'a>(&'a Listings);

impl Listings {
    pub(super) fn share(&self) -> Sharing<'_> {
        self.begin(true);
        Sharing(self)
    }

    /// Reads anew from now on: a task has finished a file meanwhile.
    pub(super) fn forget(&self) {
        if let Some(known) = &mut *self.known() {
            known.clear();
        }
    }

    /// The names in a folder, in order.
    pub(super) fn names(&self, folder: &Folder) -> Result<Arc<Vec<String>>, Error> {
        let mut known = self.known();
        let (Some(known), Ok(stat)) = (&mut *known, fstat(&folder.fd)) else {
            return sorted(folder);
        };
        let place = (stat.st_dev, stat.st_ino);
        if let Some(names) = known.get(&place) {
            return Ok(Arc::clone(names));
        }
        let names = sorted(folder)?;
        known.insert(place, Arc::clone(&names));
        Ok(names)
    }

    fn begin(&self, shares: bool) {
        *self.known() = shares.then(HashMap::new);
    }

    fn known(&self) -> MutexGuard<'_, Option<HashMap<Place, Arc<Vec<String>>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sorted(folder: &Folder) -> Result<Arc<Vec<String>>, Error> {
    let mut names = folder.names()?;
    names.sort_unstable();
    Ok(Arc::new(names))
}

impl Drop for Sharing<'_> {
    fn drop(&mut self) {
        self.0.begin(false);
    }
}
