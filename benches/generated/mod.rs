//! Times `cargo check` for a generated file, in a crate in the target folder that depends on
//! `typed-dims`, without incremental compilation.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const RUNS: usize = 3;

pub fn print_check_times(name: &str, texts: &[(&str, String)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("src")).expect("the target folder can be written to");
    let manifest = format!(
        "[package]\nname = \"check-time\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ntyped-dims = {{ path = {:?} }}\n\n[workspace]\n",
        root.display().to_string()
    );
    let library = folder.join("src/lib.rs");
    fs::write(folder.join("Cargo.toml"), manifest).expect("the target folder can be written to");
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the workspace has a lock file");

    // Check the dependencies first, so that only the text is timed.
    fs::write(&library, "").expect("the target folder can be written to");
    check(&folder);
    let empty = seconds(&folder, &library, "");
    for (what, text) in texts {
        let best = (0..RUNS)
            .map(|_| seconds(&folder, &library, text))
            .inspect(|seconds| println!("cargo check on {what}: {seconds:.2} s"))
            .fold(f64::INFINITY, f64::min);
        println!("best of {RUNS}: {best:.2} s; an empty file takes {empty:.2} s");
    }
}

fn seconds(folder: &Path, library: &Path, text: &str) -> f64 {
    fs::write(library, text).expect("the target folder can be written to");
    let start = Instant::now();
    check(folder);
    start.elapsed().as_secs_f64()
}

fn check(folder: &Path) {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo)
        .args(["check", "--quiet", "--offline"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the generated crate in {} does not compile", folder.display());
}
