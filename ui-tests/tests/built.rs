//! Mistakes that `cargo build` finds, but `cargo check` does not. See `README.md`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use ui_tests::budget::MOST_LINES;
use ui_tests::case::{Case, home, lacking};
use ui_tests::rustc;

#[test]
fn two_dims_along_one_mesh_axis() {
    agrees("two_dims_along_one_mesh_axis");
}

#[test]
fn layer_that_maps_a_dim_to_itself() {
    agrees("layer_that_maps_a_dim_to_itself");
}

/// Compares the message for a program with its golden file.
fn agrees(name: &str) {
    let path = home().join(format!("built/{name}.rs"));
    let case = Case { name: format!("built/{name}"), path };
    let message = built(&case);
    assert_eq!(lacking(&case.words(), &message), [""; 0], "in\n{message}");
    if rustc::running() != rustc::golden() {
        return;
    }
    if std::env::var_os("TRYBUILD").is_some_and(|own| own == "overwrite") {
        fs::write(case.path.with_extension("stderr"), &message).expect("the message can be written");
    }
    assert_eq!(case.golden().as_deref(), Some(&message[..]));
    let lines = message.lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= MOST_LINES, "{lines} lines, {MOST_LINES} are allowed");
}

/// The errors of rustc when this program is built with the library of the tests.
fn built(case: &Case) -> String {
    let workspace = home().parent().expect("the package lies in the workspace");
    let libraries = libraries(workspace);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2024", "--emit=obj", "--error-format=json"]);
    rustc.arg(&case.path).arg("--out-dir").arg(folder);
    for (name, path) in &libraries {
        let folder = path.parent().expect("a library lies in a folder");
        rustc.arg("-L").arg(format!("dependency={}", folder.display()));
        rustc.arg("--extern").arg(format!("{name}={}", path.display()));
    }
    let output = rustc.current_dir(workspace).output().expect("rustc can be run");
    let mut text = String::new();
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if ["error", "note", "failure-note"].iter().any(|own| line["level"] == *own) {
            text.push_str(line["rendered"].as_str().unwrap_or_default());
        }
    }
    assert!(!text.is_empty(), "rustc said:\n{}", String::from_utf8_lossy(&output.stderr));
    let text = text.replace(&format!("{}/", workspace.display()), "$WORKSPACE/");
    let text = text.replace("--> dims-", "--> $WORKSPACE/dims-");
    let is_text = |line: &&str| {
        !["full name for the type", "full type name", "aborting due to", "try `rustc --explain"]
            .iter()
            .any(|own| line.contains(own))
    };
    let lines: Vec<String> = text.lines().filter(is_text).map(without_number).collect();
    lines.join("\n").trim_end_matches([' ', '|', '\n']).to_owned() + "\n"
}

/// The libraries that the program needs, by name, as Cargo has built them for the tests of the
/// workspace. Building them again would take minutes.
fn libraries(workspace: &Path) -> HashMap<String, PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The same features as in a test of the whole workspace.
    let output = Command::new(cargo)
        .args(["test", "--offline", "--all-features", "--no-run", "--message-format=json"])
        .args(["--test", "built", "--test", "pjrt"])
        .current_dir(workspace)
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = HashMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let name = line["target"]["name"].as_str().unwrap_or_default();
        let files = line["filenames"].as_array().into_iter().flatten().filter_map(|own| own.as_str());
        let library = files.map(PathBuf::from).find(|own| own.extension().is_some_and(|own| own == "rlib"));
        if ["typed_dims", "typed_dims_xla"].contains(&name)
            && let Some(library) = library
        {
            found.insert(name.to_owned(), library);
        }
    }
    found
}

/// A line of a message without line numbers, which change when the quoted file is edited.
fn without_number(line: &str) -> String {
    if let Some((place, column)) = line.rsplit_once(':')
        && let Some((file, row)) = place.rsplit_once(':')
        && file.contains("--> $WORKSPACE/dims-")
        && [row, column].iter().all(|number| number.parse::<usize>().is_ok())
    {
        return file.to_owned();
    }
    let quoted = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - quoted.len();
    if quoted.starts_with(" |") { " ".repeat(digits) + quoted } else { line.to_owned() }
}
