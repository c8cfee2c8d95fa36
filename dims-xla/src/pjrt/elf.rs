//! Checks that a shared library is complete.
//!
//! The loader maps a library without reading it. If the file is truncated, a signal kills the
//! process when it first uses the missing part. So this module compares the table of segments with
//! the length of the file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Returns the reason as an error if the file cannot be opened, or is a 64-bit little-endian ELF
/// file with a damaged table of segments or with segments that reach beyond its end. Other files
/// are left to the loader.
pub(super) fn check(path: &Path) -> Result<(), String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut header = [0; 64];
    if file.read_exact(&mut header).is_err() || !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(());
    }
    let segments = number(&header[32..40]);
    let (size, count) = (number(&header[54..56]), number(&header[56..58]));
    if size < 56 {
        return Err("its ELF header is damaged".to_owned());
    }
    let cut_off = || format!("it is cut off: the file has {length} bytes, and its segments need more");
    for index in 0..count {
        let mut segment = [0; 56];
        let position = segments.checked_add(index * size).ok_or_else(cut_off)?;
        file.seek(SeekFrom::Start(position)).map_err(|_| cut_off())?;
        file.read_exact(&mut segment).map_err(|_| cut_off())?;
        let (offset, bytes) = (number(&segment[8..16]), number(&segment[32..40]));
        let loaded = number(&segment[..4]) == 1;
        if loaded && offset.checked_add(bytes).is_none_or(|end| end > length) {
            return Err(cut_off());
        }
    }
    Ok(())
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
