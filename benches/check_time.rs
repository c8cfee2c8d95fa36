//! How long `cargo check` takes on 200 functions, each with 5 dims of its own and 11 typed operations.
//!
//! A crate that depends on `typed-dims` is generated in the target folder, and checked without incremental compilation.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const FUNCTIONS: usize = 200;
const RUNS: usize = 3;

fn source() -> String {
    let mut text = String::from("use typed_dims::prelude::*;\n");
    for n in 0..FUNCTIONS {
        write!(
            text,
            "
pub fn f{n}(x: &Array3<f32>, y: &Array2<f32>, z: &Array2<f32>) -> Array2<f32> {{
    dims!(a, b, c, d, e);
    let x = x.at((a, b, c)); // 1
    let y = y.at((c, d)); // 2
    let z = z.at((d, e)); // 3
    let p = (x * y).sum(c); // 4, 5
    let q = (p * z).sum(d); // 6, 7
    let r = (q + 1.0).relu(); // 8, 9
    r.max(e).order((a, b)) // 10, 11
}}
"
        )
        .expect("a string can be written to");
    }
    text
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

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check_time");
    fs::create_dir_all(folder.join("src")).expect("the target folder can be written to");
    let manifest = format!(
        "[package]\nname = \"check-time\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ntyped-dims = {{ path = {:?} }}\n\n[workspace]\n",
        root.display().to_string()
    );
    let library = folder.join("src/lib.rs");
    fs::write(folder.join("Cargo.toml"), manifest).expect("the target folder can be written to");
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the workspace has a lock file");

    // The dependencies first, then the functions alone.
    fs::write(&library, "").expect("the target folder can be written to");
    check(&folder);
    let empty = seconds(&folder, &library, "");
    let best = (0..RUNS)
        .map(|_| seconds(&folder, &library, &source()))
        .inspect(|seconds| println!("cargo check on {FUNCTIONS} functions: {seconds:.2} s"))
        .fold(f64::INFINITY, f64::min);
    println!("best of {RUNS}: {best:.2} s, of which an empty file takes {empty:.2} s");
}

fn seconds(folder: &Path, library: &Path, text: &str) -> f64 {
    fs::write(library, text).expect("the target folder can be written to");
    let start = Instant::now();
    check(folder);
    start.elapsed().as_secs_f64()
}
