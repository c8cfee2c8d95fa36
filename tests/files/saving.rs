//! Saving replaces a whole file or leaves it unchanged. It writes to pipes and open files directly.

use super::{In, Out, counted};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use typed_dims::file::safetensors::{SafetensorsReader, SafetensorsWriter};
use typed_dims::file::{FileError, MappedFile, npy, npz};
use typed_dims::optim::checkpoint::{Checkpoint, Saved};
use typed_dims::prelude::*;

/// The functions that save a file. Each saves a tensor with the given number of rows.
const SAVERS: [fn(&Path, usize) -> Result<(), FileError>; 5] = [
    |path, rows| npy::save(path, counted(rows)),
    |path, rows| {
        let mut file = npz::NpzWriter::new();
        file.put("w", counted(rows))?;
        file.save(path)
    },
    |path, rows| SafetensorsWriter::new().put("w", counted(rows))?.save(path),
    |path, rows| Checkpoint::new().put("w", &counted(rows))?.save(path),
    |path, rows| Checkpoint::new().put("w", &counted(rows))?.save_npz(path),
];

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// In a process that may only write small files, each function fails midway.
#[test]
fn a_failure_leaves_the_old_file() {
    const FOLDER: &str = "TYPED_DIMS_SAVES_TO";
    if let Some(folder) = std::env::var_os(FOLDER) {
        for (at, save) in SAVERS.iter().enumerate() {
            let path = Path::new(&folder).join(at.to_string());
            let error = save(&path, 1 << 20).unwrap_err();
            assert!(matches!(&error, FileError::Io { .. }), "{error}");
            assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (at, save) in SAVERS.iter().enumerate() {
        save(&folder.path().join(at.to_string()), 2).unwrap();
    }
    let read =
        || names(folder.path()).iter().map(|name| fs::read(folder.path().join(name)).unwrap()).collect();
    let before: Vec<Vec<u8>> = read();
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" a_failure_leaves_the_old_file"])
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stdout));
    assert!(String::from_utf8_lossy(&limited.stdout).contains("1 passed"));
    assert_eq!(names(folder.path()), ["0", "1", "2", "3", "4"]);
    assert!(read() == before, "a file has changed");
}

#[test]
fn an_existing_file_keeps_its_mode_and_a_new_one_has_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    fs::write(&other, "").unwrap();
    for save in SAVERS {
        let path = folder.path().join("model");
        save(&path, 2).unwrap();
        assert_eq!(mode(&path), mode(&other));
        for bits in [0o600, 0o640, 0o664] {
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            save(&path, 3).unwrap();
            assert_eq!(mode(&path), bits);
        }
        assert_eq!(names(folder.path()), ["model", "other"]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_link_is_kept_and_its_target_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("models")).unwrap();
    // A link to a link to a file that does not exist yet.
    symlink("models/latest", at("model")).unwrap();
    symlink("1", at("models/latest")).unwrap();
    for save in SAVERS {
        for rows in [2, 3] {
            save(&at("model"), rows).unwrap();
            assert!(fs::symlink_metadata(at("model")).unwrap().is_symlink());
            assert!(fs::symlink_metadata(at("models/latest")).unwrap().is_symlink());
            assert!(fs::symlink_metadata(at("models/1")).unwrap().is_file());
        }
        assert_eq!(names(&at("models")), ["1", "latest"]);
        fs::remove_file(at("models/1")).unwrap();
    }
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    assert!(npy::save(at("a"), counted(2)).is_err());
}

#[test]
fn pipes_are_written_directly() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for save in SAVERS {
        let expected = folder.path().join("file");
        save(&expected, 2).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        save(&pipe, 2).unwrap();
        assert_eq!(reader.join().unwrap().len(), fs::read(&expected).unwrap().len());
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }
}

/// With `program > w.npy`, saving to `/dev/stdout` writes to the file that the shell opened.
#[cfg(target_os = "linux")]
#[test]
fn open_files_are_written_directly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.npy");
    let file = File::create(&path).unwrap();
    let expected = npy::to_bytes(counted(2)).unwrap();
    for name in ["/dev/fd", "/proc/self/fd"] {
        npy::save(format!("{name}/{}", file.as_raw_fd()), counted(2)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), file.metadata().unwrap().ino());
        assert_eq!(fs::read(&path).unwrap(), expected);
        file.set_len(0).unwrap();
    }
    let link = folder.path().join("link");
    symlink(format!("/dev/fd/{}", file.as_raw_fd()), &link).unwrap();
    npy::save(&link, counted(2)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), expected);
    assert_eq!(names(folder.path()), ["link", "w.npy"]);
    let error = npy::save("/dev/full", counted(2)).unwrap_err().to_string();
    assert!(error.starts_with("/dev/full: "), "{error}");
}

#[test]
fn a_path_without_a_folder_is_in_the_current_one() {
    // The test does not change the current folder, because all tests share it. Only this test uses
    // this file name.
    let path = Path::new("typed-dims-saved-here.npy");
    npy::save(path, counted(2)).unwrap();
    npy::save(path, counted(3)).unwrap();
    let file = npy::NpyReader::open(path).unwrap();
    fs::remove_file(path).unwrap();
    assert_eq!(file.get().unwrap().load::<f32, (Out, In)>().unwrap(), counted(3));
    let error = npy::save("no such folder/w.npy", counted(2)).unwrap_err().to_string();
    assert!(error.starts_with("no such folder/w.npy: No such file or directory"), "{error}");
}

/// Existing mappings still read the old file; opening the path again reads the new one.
#[test]
fn a_mapped_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    Checkpoint::new().put("w", &counted(2)).unwrap().save(&path).unwrap();
    // SAFETY: the file is replaced, not modified.
    let mapped = SafetensorsReader::new(unsafe { MappedFile::open(&path) }.unwrap()).unwrap();
    Checkpoint::new().put("w", &counted(3)).unwrap().save(&path).unwrap();
    assert_eq!(mapped.get("w").unwrap().view::<f32, (Out, In)>().unwrap().eval(), counted(2));
    let mut new = zeros((Out.of(3), In));
    Saved::open(&path).unwrap().load("w", &mut new).unwrap();
    assert_eq!(new, counted(3));
}

#[test]
fn an_error_names_the_path_that_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/w.npy");
    for save in SAVERS {
        let text = save(&path, 1).unwrap_err().to_string();
        assert!(text.contains("missing/w.npy") && !text.contains(".saving"), "{text}");
    }
}
