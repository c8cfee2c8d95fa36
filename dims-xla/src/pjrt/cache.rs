//! Executables as bytes and files.
//!
//! The file of an executable is named after the hash of its key. The file also contains the key, so
//! that a hash collision does not load the wrong program, and a checksum, so that damaged machine
//! code is not loaded.

use crate::XlaError;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

/// The key of an executable, or of a version of a file: parts, each preceded by its length.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Key(Vec<u8>);

impl Key {
    pub(super) fn with(mut self, part: &[u8]) -> Key {
        self.0.extend_from_slice(&(part.len() as u64).to_le_bytes());
        self.0.extend_from_slice(part);
        self
    }
}

/// A 128-bit hash. It need not prevent forgery: anyone who can write the files can write machine
/// code, too.
struct Hash([DefaultHasher; 2]);

impl Hash {
    fn new() -> Hash {
        let mut hash = Hash([DefaultHasher::new(), DefaultHasher::new()]);
        hash.0[1].write(b"the second half");
        hash
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.iter_mut().for_each(|half| half.write(bytes));
    }

    fn finish(&self) -> u128 {
        u128::from(self.0[0].finish()) << 64 | u128::from(self.0[1].finish())
    }

    fn of(bytes: &[u8]) -> u128 {
        let mut hash = Hash::new();
        hash.write(bytes);
        hash.finish()
    }
}

const MAGIC: &[u8] = b"typed-dims-xla executable 1\n";

/// Packs an executable: magic, key, executable, checksum.
pub(super) fn pack(key: &Key, executable: &[u8]) -> Vec<u8> {
    let parts = Key(MAGIC.to_vec()).with(&key.0).with(executable);
    let mut bytes = parts.0;
    bytes.extend_from_slice(&Hash::of(&bytes).to_le_bytes());
    bytes
}

/// Returns the executable. The error says whether the bytes are damaged or have another key.
pub(super) fn unpack<'a>(bytes: &'a [u8], key: &Key) -> Result<&'a [u8], &'static str> {
    const DAMAGED: &str = "the bytes are not a serialized executable, or are damaged";
    let (bytes, checksum) = bytes.split_last_chunk::<16>().ok_or(DAMAGED)?;
    let parts = bytes.strip_prefix(MAGIC).ok_or(DAMAGED)?;
    if Hash::of(bytes) != u128::from_le_bytes(*checksum) {
        return Err(DAMAGED);
    }
    let (found, parts) = part(parts).ok_or(DAMAGED)?;
    let (executable, rest) = part(parts).ok_or(DAMAGED)?;
    if !rest.is_empty() {
        return Err(DAMAGED);
    }
    if found != key.0 {
        return Err(
            "the executable was compiled by another plugin, for other devices or another processor, or with other flags in `XLA_FLAGS` or `LIBTPU_INIT_ARGS`; compile the program again",
        );
    }
    Ok(executable)
}

/// Splits off a part that is preceded by its length.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, bytes) = bytes.split_first_chunk::<8>()?;
    bytes.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// The processor's architecture, and its model and features if `/proc/cpuinfo` lists them. Machine
/// code for one processor may not run on another.
pub(super) fn processor() -> &'static str {
    static PROCESSOR: OnceLock<String> = OnceLock::new();
    PROCESSOR.get_or_init(|| {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let first = text.split("\n\n").next().unwrap_or_default();
        let keep = ["vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU part"];
        let lines = first
            .lines()
            .filter(|line| line.split_once(':').is_some_and(|(name, _)| keep.contains(&name.trim())));
        format!("{} {}", std::env::consts::ARCH, lines.collect::<Vec<_>>().join("\n"))
    })
}

/// A folder of executables.
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn open(folder: &Path) -> Result<Store, XlaError> {
        let error =
            |error: std::io::Error| XlaError::Cache { folder: folder.to_owned(), reason: error.to_string() };
        fs::create_dir_all(folder).map_err(error)?;
        Ok(Store { folder: folder.to_owned() })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{:032x}.xla", Hash::of(&key.0)))
    }

    /// The executable with this key, if there is an undamaged one.
    pub(super) fn read(&self, key: &Key) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path(key)).ok()?;
        unpack(&bytes, key).ok().map(<[u8]>::to_vec)
    }

    /// Stores an executable, unless the file cannot be written.
    pub(super) fn write(&self, key: &Key, executable: &[u8]) {
        self.replace(&self.path(key), &pack(key, executable));
    }

    /// Replaces a file atomically: readers see either the old or the new one.
    fn replace(&self, path: &Path, bytes: &[u8]) {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!(".{}-{number}.tmp", process::id()));
        let write = || {
            let mut file = File::create_new(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            drop(file);
            fs::rename(&temporary, path)
        };
        if write().is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }

    /// [`hash_file`] for the plugin's file. The hash is stored in the folder, so that later
    /// processes need not read the large file.
    pub(super) fn hash_file(&self, path: &Path) -> std::io::Result<u128> {
        let Some(version) = file_version(path) else { return hash_file(path) };
        let note = self.folder.join(format!("{:032x}.plugin", Hash::of(&version.0)));
        let known = fs::read(&note).ok().and_then(|bytes| bytes.try_into().ok()).map(u128::from_le_bytes);
        if let Some(hash) = known {
            return Ok(hash);
        }
        let hash = hash_file(path)?;
        self.replace(&note, &hash.to_le_bytes());
        Ok(hash)
    }
}

/// Identifies a version of a file by its path, length, time of modification and, on Unix, inode.
pub(super) fn file_state(path: &Path) -> Option<Key> {
    let path = path.canonicalize().ok()?;
    let data = path.metadata().ok()?;
    let modified = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let state = Key::default()
        .with(path.as_os_str().as_encoded_bytes())
        .with(&data.len().to_le_bytes())
        .with(&modified.as_nanos().to_le_bytes());
    #[cfg(unix)]
    let state = state.with(&std::os::unix::fs::MetadataExt::ino(&data).to_le_bytes());
    Some(state)
}

/// [`file_state`] and, on Unix, the time of the last change of the inode: a stored hash is used
/// only if this time is the same, too. [`file_state`] lacks the time because a new hard link
/// changes it.
fn file_version(path: &Path) -> Option<Key> {
    let state = file_state(path)?;
    #[cfg(unix)]
    let state = {
        use std::os::unix::fs::MetadataExt;
        let data = path.metadata().ok()?;
        state.with(&data.ctime().to_le_bytes()).with(&data.ctime_nsec().to_le_bytes())
    };
    Some(state)
}

pub(super) fn hash_file(path: &Path) -> std::io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hash = Hash::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finish()),
            Ok(count) => hash.write(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_noticed() {
        let key = Key::default().with(b"cpu").with(b"text");
        let bytes = pack(&key, b"code");
        assert_eq!(unpack(&bytes, &key), Ok(&b"code"[..]));
        for position in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1;
            assert!(unpack(&damaged, &key).is_err());
            assert!(unpack(&bytes[..position], &key).is_err());
        }
        let other = Key::default().with(b"cp").with(b"utext");
        assert!(unpack(&bytes, &other).unwrap_err().contains("another plugin"));
    }
}
