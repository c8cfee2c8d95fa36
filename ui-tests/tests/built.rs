//! Mistakes that `cargo build` finds, but `cargo check` does not. See `README.md`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use ui_tests::budget::MOST_LINES;
use ui_tests::case::{Case, home, lacking};
use ui_tests::rustc;

#[test]
fn two_dims_along_one_mesh_axis() {
    let path = home().join("built/two_dims_along_one_mesh_axis.rs");
    let case = Case { name: "built/two_dims_along_one_mesh_axis".into(), path };
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

/// The errors of rustc when a package with this program is built.
fn built(case: &Case) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui-built");
    let workspace = home().parent().expect("the package lies in the workspace");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let mut manifest = format!(
        "[package]\nname = \"ui-built\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n\
         [dependencies]\ntyped-dims = {{ path = {workspace:?} }}\n"
    );
    let xla = workspace.join("dims-xla");
    writeln!(manifest, "typed-dims-xla = {{ path = {xla:?}, default-features = false }}")
        .expect("a string takes all");
    write!(manifest, "\n[[bin]]\nname = \"built\"\npath = {:?}\n", case.path).expect("a string takes all");
    fs::write(folder.join("Cargo.toml"), manifest).expect("the manifest can be written");
    // The same versions of dependencies as in the workspace, so that nothing is downloaded.
    fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file can be copied");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--offline", "--message-format=json", "--target-dir"])
        .arg(folder.join("target"))
        .current_dir(&folder)
        .output()
        .expect("cargo can be run");
    let mut text = String::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let is_own = line["target"]["src_path"].as_str().is_some_and(|path| Path::new(path) == case.path);
        let is_noted = line["message"]["level"] == "error"
            || line["message"]["level"] == "note"
            || line["message"]["level"] == "failure-note";
        if is_own && is_noted {
            text.push_str(line["message"]["rendered"].as_str().unwrap_or_default());
        }
    }
    assert!(!text.is_empty(), "cargo said:\n{}", String::from_utf8_lossy(&output.stderr));
    let text = text.replace(&format!("{}/", workspace.display()), "$WORKSPACE/");
    // The rest is about rustc's files, and the number of errors.
    let is_text = |line: &&str| {
        !["full name for the type", "full type name", "aborting due to", "try `rustc --explain"]
            .iter()
            .any(|own| line.contains(own))
    };
    let lines: Vec<String> = text.lines().filter(is_text).map(without_number).collect();
    lines.join("\n").trim_end_matches([' ', '|', '\n']).to_owned() + "\n"
}

/// The line of a message without the number of the line that it quotes, which changes with every
/// edit above.
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
