//! Checks all programs in one call of cargo, for versions of rustc without golden messages.

use crate::case::{Case, home};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The errors of rustc for each case, by its name, as a user sees them. Empty if the case compiles.
///
/// Generates a package in `folder`, with one binary for each case.
///
/// # Panics
///
/// If the package cannot be written, cargo cannot be run, or it checks nothing.
pub fn messages(cases: &[Case], folder: &Path) -> HashMap<String, String> {
    fs::create_dir_all(folder).expect("the folder can be made");
    fs::write(folder.join("Cargo.toml"), manifest(cases)).expect("the manifest can be written");
    models(folder);
    // The same versions of dependencies as in the workspace, so that nothing is downloaded.
    let _ = fs::copy(home().join("../Cargo.lock"), folder.join("Cargo.lock"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["check", "--offline", "--keep-going", "--message-format=json", "--bins", "--target-dir"])
        .arg(folder.join("target"))
        .current_dir(folder)
        .output()
        .expect("cargo can be run");
    let mut messages: HashMap<_, _> = cases.iter().map(|case| (case.name.clone(), String::new())).collect();
    let mut checked = 0;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let Some(path) = line["target"]["src_path"].as_str() else { continue };
        let Some(case) = cases.iter().find(|case| Path::new(path) == case.path) else { continue };
        checked += 1;
        let message = &line["message"];
        if message["level"] == "error" {
            let all = messages.get_mut(&case.name).expect("there is a message for each case");
            all.push_str(message["rendered"].as_str().unwrap_or_default());
        }
    }
    assert!(checked > 0, "cargo checked nothing:\n{}", String::from_utf8_lossy(&output.stderr));
    messages
}

/// Copies the models that programs read at compile time into the generated package, and adds two
/// files that are not complete models.
///
/// # Panics
///
/// If a file cannot be read or written.
pub fn models(package: &Path) {
    let (from, to) = (home().join("../tests/onnx/models"), package.join("models"));
    fs::create_dir_all(&to).expect("the folder can be made");
    for entry in fs::read_dir(from).expect("there are models") {
        let path = entry.expect("the folder is readable").path();
        let name = path.file_name().expect("a file has a name");
        fs::copy(&path, to.join(name)).expect("a model can be copied");
    }
    let whole = fs::read(to.join("classifier.onnx")).expect("there is a classifier");
    fs::write(to.join("cut_off.onnx"), &whole[..whole.len() / 2]).expect("a model can be written");
    fs::write(to.join("text.onnx"), "version https://git-lfs.github.com/spec/v1\n")
        .expect("a model can be written");
}

fn manifest(cases: &[Case]) -> String {
    let library = home().parent().expect("the package is in the workspace");
    let mut text = format!(
        "[package]\nname = \"ui-cases\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [workspace]\n\n[dependencies]\ntyped-dims = {{ path = {library:?}, features = [\"onnx\", \"safetensors\", \"linalg\", \"serde\"] }}\n\
         serde_json = \"1\"\n"
    );
    for (at, case) in cases.iter().enumerate() {
        let path = &case.path;
        write!(text, "\n[[bin]]\nname = \"case{at}\"\npath = {path:?}\n").expect("a string takes all");
    }
    text
}
