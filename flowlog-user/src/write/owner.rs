use std::fs::{File, read_to_string};
use std::path::Path;

use rustix::fs::{Gid, Uid, fchown};

use super::folder::Folder;
use super::{Error, Owner};

/// Where names of users and groups stand.
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Numbers of user and group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ids {
    user: Option<u32>,
    group: Option<u32>,
}

impl Ids {
    /// Looks names up in /etc/passwd and /etc/group.
    pub(super) fn find(owner: &Owner, task: &str) -> Result<Self, Error> {
        let find = |key, name: &Option<String>, database| match name {
            None => Ok(None),
            Some(name) => id(name, Path::new(database)).map(Some).ok_or_else(|| Error::Owner {
                task: task.into(),
                key,
                name: name.clone(),
                database,
            }),
        };
        Ok(Self {
            user: find("fileUser", &owner.user, USERS)?,
            group: find("fileGroup", &owner.group, GROUPS)?,
        })
    }

    /// Gives a file to them.
    pub(super) fn own(self, folder: &Folder, file: &File, name: &str) -> Result<(), Error> {
        if self == Self::default() {
            return Ok(());
        }
        fchown(file, self.user.map(Uid::from_raw), self.group.map(Gid::from_raw))
            .map_err(|error| folder.io("set the owner of", name, error))
    }
}

/// A number as it stands, or the third field of the line that begins with the name.
fn id(name: &str, database: &Path) -> Option<u32> {
    if let Ok(id) = name.parse() {
        return Some(id);
    }
    let text = read_to_string(database).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passwd");
        std::fs::write(
            &path,
            "root:x:0:0:root:/root:/bin/sh\nsyslog:x:104:110::/nonexistent:/bin/false\nodd\n",
        )
        .unwrap();
        let find = |name| id(name, &path);
        assert_eq!([find("root"), find("syslog"), find("33")], [Some(0), Some(104), Some(33)]);
        assert_eq!([find("sys"), find("odd"), find(""), find("-1")], [None; 4]);
    }
}
