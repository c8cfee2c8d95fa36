//! The versions of rustc: the installed one, and that of the golden messages.

use crate::case::{home, read};
use std::process::Command;

/// The version of the rustc that cargo uses, such as `1.95`. Includes the channel if it is not
/// stable.
///
/// # Panics
///
/// If there is no rustc.
pub fn running() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("rustc can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    short(text.split_whitespace().nth(1).unwrap_or_default())
}

/// The version in the file `RUSTC_VERSION`.
///
/// # Panics
///
/// If the file cannot be read.
pub fn golden() -> String {
    read(&home().join("RUSTC_VERSION")).trim().to_owned()
}

/// Shortens `1.95.0` to `1.95`, and `1.96.0-nightly` to `1.96-nightly`.
fn short(version: &str) -> String {
    let (number, channel) = version.split_once('-').map_or((version, None), |(n, c)| (n, Some(c)));
    let number: Vec<_> = number.split('.').take(2).collect();
    match channel {
        Some(channel) => format!("{}-{channel}", number.join(".")),
        None => number.join("."),
    }
}
