use std::fs::File;
use std::io::{self, Seek};

use flate2::{GzBuilder, write::GzEncoder};
use rustix::fs::fsync;

use super::Error;
use super::folder::Folder;
use super::name::Names;
use super::owner::Ids;

/// What a member carries until it is whole.
const UNFINISHED: &str = ".gz.tmp";

/// Puts a finished plain file into one gzip member that carries a mark and removes the plain one. Gives the new name; on an error the
/// plain file stays.
pub(super) fn compress(
    folder: &Folder,
    file: &mut File,
    name: &str,
    (level, mark): (u32, &str),
    (mode, owner): (u32, Ids),
) -> Result<String, Error> {
    let whole = format!("{name}.gz");
    let unfinished = format!("{name}{UNFINISHED}");
    folder.unlink(&unfinished)?;
    let target = folder.create(&unfinished, mode)?;
    owner.own(folder, &target, &unfinished)?;
    if let Err(error) = copy(file, target, level, mark) {
        folder.unlink(&unfinished)?;
        return Err(folder.io("compress", name, error));
    }
    folder.rename(&unfinished, &whole).map_err(|error| folder.io("rename", &unfinished, error))?;
    folder.sync()?;
    folder.unlink(name)?;
    Ok(whole)
}

fn copy(from: &mut File, to: File, level: u32, mark: &str) -> io::Result<()> {
    from.rewind()?;
    // Whose it is stands where gzip has room for a comment, which its tools pass over.
    let builder = GzBuilder::new().comment(mark.replace('\0', ""));
    let mut encoder: GzEncoder<File> = builder.write(to, flate2::Compression::new(level));
    io::copy(from, &mut encoder)?;
    fsync(encoder.finish()?)?;
    Ok(())
}

/// Removes what a killed process left half done: members that are not whole, and plain files whose member is.
pub(super) fn tidy(folder: &Folder, names: &Names) -> Result<(), Error> {
    for name in folder.names()? {
        if let Some(plain) = name.strip_suffix(UNFINISHED)
            && names.parse(plain).is_some()
        {
            folder.unlink(&name)?;
        }
        if !name.ends_with(".gz")
            && names.parse(&name).is_some()
            && folder.size(&format!("{name}.gz")).is_some()
        {
            folder.unlink(&name)?;
        }
    }
    Ok(())
}
