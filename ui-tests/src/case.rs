//! The cases: programs that must not compile.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of this package.
pub fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One program.
pub struct Case {
    /// The path of the file.
    pub path: PathBuf,
    /// Folder, topic and behavior, such as `fail/reductions/sum_over_unbound_dim`.
    pub name: String,
}

impl Case {
    /// The source of the program.
    ///
    /// # Panics
    ///
    /// If the file cannot be read.
    pub fn source(&self) -> String {
        read(&self.path)
    }

    /// The required words of the message, from the line `//~ words: a | b`.
    pub fn words(&self) -> Vec<String> {
        let source = self.source();
        let line = source.lines().find_map(|line| line.strip_prefix("//~ words:")).unwrap_or_default();
        line.split('|').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// The golden message, if there is one.
    pub fn golden(&self) -> Option<String> {
        fs::read_to_string(self.path.with_extension("stderr")).ok()
    }
}

/// All programs in `fail`, sorted by path.
///
/// # Panics
///
/// If a folder cannot be read.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for topic in entries(&home().join("fail")) {
        for path in entries(&topic) {
            if path.extension().is_some_and(|extension| extension == "rs") {
                let name =
                    path.strip_prefix(home()).expect("the path is below the package").with_extension("");
                cases.push(Case { name: name.to_string_lossy().replace('\\', "/"), path });
            }
        }
    }
    cases
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = read.map(|entry| entry.expect("the folder is readable").path()).collect();
    paths.sort();
    paths
}

/// Reads a text file.
///
/// # Panics
///
/// If it cannot be read.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words that `message` lacks.
pub fn lacking<'a>(words: &'a [String], message: &str) -> Vec<&'a str> {
    words.iter().map(String::as_str).filter(|word| !message.contains(word)).collect()
}
