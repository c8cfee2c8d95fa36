//! The time that `cargo check` takes for 200 functions, each with 5 local dims and 11 typed
//! operations.

mod generated;

use std::fmt::Write;

const FUNCTIONS: usize = 200;

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

fn main() {
    generated::print_check_times("check_time", &[(&format!("{FUNCTIONS} functions"), source())]);
}
