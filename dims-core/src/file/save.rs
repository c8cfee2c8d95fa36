//! Saving files atomically.

use super::FileError;
use alloc::string::ToString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Error, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// The maximum number of symbolic links that are followed, as on Linux.
const MOST_LINKS: usize = 40;

/// Folders and links that lead to the open files of a process. Such a file is written and not
/// replaced, even if it is an ordinary file.
const OPENED: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];

/// Writes these bytes to a file, with the guarantees in the [module's documentation](super).
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    save_with(path, |file| file.write_all(bytes))
        .map_err(|error| FileError::Io { what: path.display().to_string(), error })
}

fn save_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let Some(target) = followed(path)? else {
        return write(&mut File::create(path)?);
    };
    let old = match fs::metadata(&target) {
        Ok(old) if old.is_file() => {
            // Do not replace a file without permission to write it.
            OpenOptions::new().write(true).open(&target)?;
            Some(old)
        }
        // A pipe or a device. (For a folder, the system returns an error.)
        Ok(_) => return write(&mut File::create(&target)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut new = temporary(folder)?;
    if let Some(old) = &old {
        as_before(new.as_file(), old)?;
    }
    write(new.as_file_mut())?;
    new.as_file().sync_all()?;
    new.persist(&target).map_err(|refused| of_replacing(refused.error))?;
    // Sync the folder, so that the new name survives a power failure if the file system supports
    // that.
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Follows a path as long as its last component is a symbolic link. `None` if the path leads to an
/// open file of a process.
fn followed(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_path_buf();
    for _ in 0..=MOST_LINKS {
        if OPENED.iter().any(|opened| path.starts_with(opened)) {
            return Ok(None);
        }
        match fs::read_link(&path) {
            // `next` is relative to the folder of the link, unless it is absolute.
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            // The path is not a link, or does not exist yet.
            Err(_) => return Ok(Some(path)),
        }
    }
    Err(Error::other("there are too many levels of symbolic links"))
}

/// An empty temporary file in this folder.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    // Reports a missing folder with the system's own error.
    fs::metadata(folder)?;
    let mut builder = Builder::new();
    builder.prefix(".saving-");
    // Sets the mode of any new file, to which the umask applies. (By default, only the owner can
    // read a temporary file.)
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // (The error of `tempfile` names the temporary file, so only its kind is kept.)
    builder.tempfile_in(folder).map_err(|error| Error::from(error.kind()))
}

/// Copies the mode of the old file to the new one and, if the system permits, the owner and group.
fn as_before(new: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let now = new.metadata()?;
        if (now.uid(), now.gid()) != (old.uid(), old.gid()) {
            let _ = fchown(new, Some(old.uid()), Some(old.gid()));
        }
    }
    new.set_permissions(old.permissions())
}

/// The error to return if the old file could not be replaced. On Windows, a file that is mapped or
/// open elsewhere cannot be replaced, and the system often reports only that access is denied.
fn of_replacing(error: Error) -> Error {
    const ACCESS_DENIED: i32 = 5;
    const SHARING_VIOLATION: i32 = 32;
    const USER_MAPPED_FILE: i32 = 1224;
    match error.raw_os_error() {
        Some(ACCESS_DENIED | SHARING_VIOLATION | USER_MAPPED_FILE) if cfg!(windows) => Error::new(
            error.kind(),
            format!("the file cannot be replaced while it is mapped (`MappedFile`) or open: {error}"),
        ),
        _ => error,
    }
}
