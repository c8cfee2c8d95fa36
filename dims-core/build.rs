//! Tells the crate whether it is optimized.
//!
//! If it is not, `inline(always)` would only put a copy of each function into all of its callers,
//! and tests would take longer to build.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(unoptimized)");
    if var("OPT_LEVEL").is_ok_and(|level| level == "0") {
        println!("cargo::rustc-cfg=unoptimized");
    }
}
