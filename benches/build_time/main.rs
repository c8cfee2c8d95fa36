//! CPU time of a release build of small programs whose dependencies are already built. A program
//! either runs one or a few operations of this library, ndarray or candle, or is a model written
//! with this library. The time for an empty program with the same library is subtracted. Also prints the size
//! of each program's code (`.text`) if `size` is installed.
//!
//! `cargo bench --bench build_time [-- NAME]` measures all programs, or the empty ones and those
//! with this name. CPU time is the user and system time of cargo, rustc and the linker, from the
//! kernel's statistics on child processes (Linux).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of builds of each program; the shortest time counts.
const RUNS: usize = 3;

struct Program {
    name: &'static str,
    library: &'static str,
    text: String,
}

const TYPED: &str =
    "use typed_dims::prelude::*;\ndims! { pub struct I; pub struct J; pub struct K; pub struct L; }\n";

fn typed(name: &'static str, functions: &str) -> Program {
    Program { name, library: "typed-dims", text: format!("{TYPED}{functions}\nfn main() {{ run() }}\n") }
}

fn other(name: &'static str, library: &'static str, body: &str) -> Program {
    Program { name, library, text: format!("{body}\nfn main() {{ run() }}\n") }
}

/// A program with candle that computes `c` from two matrices.
fn candle(c: &str) -> String {
    format!(
        "use candle_core::{{DType, Device, Result, Tensor}};\nfn compute(n: usize) -> Result<Tensor> {{\n    \
         let a = Tensor::ones((n, n), DType::F32, &Device::Cpu)?;\n    let b = a.clone();\n    let _ = &b;\n    Ok({c})\n}}\n\
         fn run() {{ println!(\"{{:?}}\", compute(std::env::args().len() + 2).map(|c| c.elem_count())); }}"
    )
}

/// The sizes of the operands, except in the models, depend on the number of command-line arguments,
/// so that the compiler cannot compute the results.
fn programs() -> Vec<Program> {
    let product = "fn product(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {\n    (a.at((I, K)) * b.at((K, J))).sum(K).order((I, J))\n}\n";
    let arrays = "    let n = std::env::args().len() + 2;\n    let (a, b) = (Array2::<f32>::ones((n, n)), Array2::<f32>::ones((n, n)));\n";
    let mut programs = vec![
        typed("empty", "fn run() { println!(\"{}\", std::env::args().len()); }"),
        typed(
            "product",
            &format!("{product}fn run() {{\n{arrays}    println!(\"{{:?}}\", product(&a, &b).as_ptr());\n}}"),
        ),
        typed(
            "two products",
            &format!(
                "{product}fn second(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {{\n    (a.at((J, L)) * b.at((I, L))).sum(L).order((I, J))\n}}\n\
                 fn run() {{\n{arrays}    println!(\"{{:?}} {{:?}}\", product(&a, &b).as_ptr(), second(&a, &b).as_ptr());\n}}"
            ),
        ),
        typed(
            "elementwise",
            &format!(
                "fn run() {{\n{arrays}    let c = (a.at((I, J)) * b.at((I, J)) + 1.0).relu().order((I, J));\n    println!(\"{{:?}}\", c.as_ptr());\n}}"
            ),
        ),
        typed(
            "softmax",
            &format!(
                "fn run() {{\n{arrays}    let c = a.at((I, J)).softmax(J).order((I, J));\n    println!(\"{{:?}} {{:?}}\", c.as_ptr(), b.as_ptr());\n}}"
            ),
        ),
        typed(
            "attention",
            "fn run() {\n    let n = std::env::args().len() + 2;\n    let q = ones::<f32, _>((I.of(n), L.of(n)));\n    let k = ones::<f32, _>((J.of(n), L.of(n)));\n    \
             let y = attention(&q, &k, &k, L, J, 1.0, true);\n    println!(\"{}\", y.size(I));\n}",
        ),
        Program {
            name: "transformer",
            library: "typed-dims",
            text: include_str!("programs/transformer.rs").into(),
        },
        Program { name: "MLP", library: "typed-dims", text: include_str!("programs/mlp.rs").into() },
    ];
    programs.extend([
        other("empty", "ndarray", "fn run() { println!(\"{}\", std::env::args().len()); }"),
        other(
            "product",
            "ndarray",
            "use ndarray::Array2;\nfn run() {\n    let n = std::env::args().len() + 2;\n    let (a, b) = (Array2::<f32>::ones((n, n)), Array2::<f32>::ones((n, n)));\n    println!(\"{:?}\", a.dot(&b).as_ptr());\n}",
        ),
        other(
            "elementwise",
            "ndarray",
            "use ndarray::Array2;\nfn run() {\n    let n = std::env::args().len() + 2;\n    let (a, b) = (Array2::<f32>::ones((n, n)), Array2::<f32>::ones((n, n)));\n    println!(\"{:?}\", (&a * &b + 1.0).mapv(|x| x.max(0.0)).as_ptr());\n}",
        ),
        other("empty", "candle", "fn run() { println!(\"{}\", std::env::args().len()); }"),
        other("product", "candle", &candle("a.matmul(&b)?")),
        other("elementwise", "candle", &candle("((&a * &b)? + 1.0)?.relu()?")),
        other("softmax", "candle", &candle("{ let e = a.broadcast_sub(&a.max_keepdim(1)?)?.exp()?; e.broadcast_div(&e.sum_keepdim(1)?)? }")),
    ]);
    programs
}

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!("{:<12} {:<14} {:>10} {:>12}", "library", "program", "CPU s", ".text kB");
    let mut empty = 0.0;
    for program in programs() {
        let is_empty = program.name == "empty";
        if !is_empty && !wanted.is_empty() && !wanted.iter().any(|name| program.name == name) {
            continue;
        }
        let (seconds, code) = measure(&program);
        if is_empty {
            empty = seconds;
        }
        let own = if is_empty { seconds } else { seconds - empty };
        let code = code.map_or("-".into(), |bytes| format!("{:.0}", bytes as f64 / 1000.0));
        println!("{:<12} {:<14} {own:>10.2} {code:>12}", program.library, program.name);
    }
}

/// The least CPU time of a build, and the size of the program's code in bytes.
fn measure(program: &Program) -> (f64, Option<u64>) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build_time").join(program.library);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir_all(folder.join("src")).expect("the target folder can be written to");
    let dependency = match program.library {
        "typed-dims" => format!("typed-dims = {{ path = {:?} }}", root.display().to_string()),
        "candle" => "candle-core = { version = \"*\", default-features = false }".into(),
        library => format!("{library} = \"*\""),
    };
    let manifest = format!(
        "[package]\nname = \"build-time\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependency}\n\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).expect("the target folder can be written to");
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the workspace has a lock file");
    let main = folder.join("src/main.rs");
    // Build the dependencies first.
    fs::write(&main, "fn main() {}\n").expect("the target folder can be written to");
    build(&folder);
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        // Cargo compares the modification times of files, which may be coarse.
        std::thread::sleep(std::time::Duration::from_millis(50));
        fs::write(&main, &program.text).expect("the target folder can be written to");
        let before = children();
        build(&folder);
        best = best.min(children() - before);
    }
    (best, code(&folder.join("target/release/build-time")))
}

fn build(folder: &Path) {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--offline"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the program in {} does not compile", folder.display());
}

/// The CPU seconds, user and system, of all finished children of this process.
fn children() -> f64 {
    // See proc(5): field 16 is `cutime` and field 17 `cstime`, in ticks of 1/100 s. Field 2, the
    // name in parentheses, may contain spaces, so `fields` begins with field 3.
    let stat = fs::read_to_string("/proc/self/stat").expect("the kernel has `/proc/self/stat`");
    let fields: Vec<&str> =
        stat[stat.rfind(')').expect("the name ends with `)`") + 1..].split_whitespace().collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<f64>().expect("a time is a number")).sum::<f64>() / 100.0
}

/// The size of the section `.text`, from binutils' `size`.
fn code(program: &PathBuf) -> Option<u64> {
    let output = Command::new("size").args(["-A", "-d"]).arg(program).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix(".text")?.split_whitespace().next()?.parse().ok())
}
