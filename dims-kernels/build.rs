//! Tells the crate whether it is optimized, and whether to compile its code for x86-64 vectors.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(unoptimized)");
    println!("cargo::rustc-check-cfg=cfg(x86_vectors)");
    if var("OPT_LEVEL").is_ok_and(|level| level == "0") {
        println!("cargo::rustc-cfg=unoptimized");
    }
    // With the standard library, the vectors are chosen at run time. Without it, the target must
    // guarantee AVX2: other targets may have no floating-point registers.
    let has_avx2 =
        var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|list| list.split(',').any(|name| name == "avx2"));
    let is_x86 = var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    if is_x86 && (has_avx2 || var("CARGO_FEATURE_STD").is_ok()) {
        println!("cargo::rustc-cfg=x86_vectors");
    }
}
